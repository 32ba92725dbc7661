//! Arrays and matrices in parts: any program gives what it gives in order, and wrong ones are refused.

use super::{CHOSEN, moved, on_nodes, resident, start};
use proptest::prelude::*;
use proptest::sample::Index;
use sched_host::graph::Region;
use sched_host::runtime::{
    AccessMode, Codelet, Commute, Context, Many, Matrix, MatrixHandle, MatrixLayout, MatrixMut, MatrixRef, Outcome,
    PartitionError, Plan, Read, ReadWrite, RunError, Runtime, SubmitError, TaskRef, Write,
};
use sched_tests::hold::Hold;
use sched_tests::stock::{EAGER, builder};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, OnceLock};

const ROWS: usize = 9;
const COLUMNS: usize = 7;

#[derive(Clone, Debug)]
enum Step {
    /// Divides one of the parts so far.
    Divide(Index, Plan),
    /// Drops the handle to a part.
    Forget(Index),
    /// Reads a part.
    Look(Index),
    /// Says where a part is wanted, or that it is not used for now.
    Advise(Index, Option<u32>),
    Task(Vec<(Index, AccessMode)>),
}

fn plan() -> impl Strategy<Value = Plan> {
    let grid = prop_oneof![
        (1..5usize).prop_map(Plan::rows),
        (1..4usize).prop_map(Plan::columns),
        (1..4usize, 1..4usize).prop_map(|(down, across)| Plan::blocks(down, across)),
        (1..5usize, 1..5usize).prop_map(|(rows, columns)| Plan::tiles(rows, columns)),
    ];
    (grid, prop_oneof![2 => Just(0usize), 1 => 1..3usize]).prop_map(|(plan, width)| plan.halo(width))
}

fn step() -> impl Strategy<Value = Step> {
    use AccessMode::{Commute, Read, ReadWrite, Write};
    let mode = prop::sample::select(vec![Read, Read, Read, Write, ReadWrite, ReadWrite, Commute]);
    prop_oneof![
        2 => (any::<Index>(), plan()).prop_map(|(of, plan)| Step::Divide(of, plan)),
        1 => any::<Index>().prop_map(Step::Forget),
        1 => any::<Index>().prop_map(Step::Look),
        2 => (any::<Index>(), prop::option::of(0..4_u32)).prop_map(|(part, node)| Step::Advise(part, node)),
        12 => prop::collection::vec((any::<Index>(), mode), 1..4).prop_map(Step::Task),
    ]
}

type Values = [[u64; COLUMNS]; ROWS];
type Accesses =
    (Many<Read<Matrix<u64>>>, Many<Write<Matrix<u64>>>, Many<ReadWrite<Matrix<u64>>>, Many<Commute<Matrix<u64>>>);
type Views<'a> = (Vec<MatrixRef<'a, u64>>, Vec<MatrixMut<'a, u64>>, Vec<MatrixMut<'a, u64>>, Vec<MatrixMut<'a, u64>>);

/// What a task writes at a place, given what it saw and what was there.
fn written(mode: AccessMode, number: u64, seen: u64, old: u64) -> u64 {
    match mode {
        AccessMode::Write => seen.wrapping_add(number),
        AccessMode::ReadWrite => old.wrapping_mul(31).wrapping_add(seen ^ number),
        _ => old.wrapping_add(number),
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    hash.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(value)
}

fn change(view: &mut MatrixMut<'_, u64>, mode: AccessMode, number: u64, seen: u64) {
    for row in 0..view.rows() {
        for column in 0..view.columns() {
            view[(row, column)] = written(mode, number, seen, view[(row, column)]);
        }
    }
}

fn run_step(number: u64, (reads, writes, updates, commutes): Views<'_>, sight: &OnceLock<u64>) {
    let elements = |view: MatrixRef<'_, u64>| -> Vec<u64> {
        (0..view.rows()).flat_map(|row| (0..view.columns()).map(move |column| view[(row, column)])).collect()
    };
    let seen = reads.into_iter().flat_map(elements).fold(0, mix);
    let _ = sight.set(seen);
    for (views, mode) in
        [(writes, AccessMode::Write), (updates, AccessMode::ReadWrite), (commutes, AccessMode::Commute)]
    {
        views.into_iter().for_each(|mut view| change(&mut view, mode, number, seen));
    }
}

fn elements(region: &Region) -> impl Iterator<Item = (usize, usize)> {
    region.rows.clone().flat_map(|row| region.columns.clone().map(move |column| (row, column)))
}

/// What the program does, one step after the other.
fn run_in_order(values: &mut Values, number: u64, data: &[(Region, AccessMode)]) -> u64 {
    let read = data.iter().filter(|(_, mode)| *mode == AccessMode::Read).flat_map(|(region, _)| elements(region));
    let seen = read.map(|(row, column)| values[row][column]).fold(0, mix);
    for (region, mode) in data.iter().filter(|(_, mode)| *mode != AccessMode::Read) {
        for (row, column) in elements(region) {
            values[row][column] = written(*mode, number, seen, values[row][column]);
        }
    }
    seen
}

/// Whether a task may name these data.
fn is_sound(data: &[(Region, AccessMode)]) -> bool {
    let conflict = |a: &(Region, AccessMode), b: &(Region, AccessMode)| {
        (a.1.writes() || b.1.writes()) && elements(&a.0).any(|element| elements(&b.0).any(|other| other == element))
    };
    (0..data.len()).all(|at| data[at + 1..].iter().all(|other| !conflict(&data[at], other)))
}

fn length(layout: MatrixLayout) -> usize {
    layout.row_stride() * ROWS + layout.column_stride() * COLUMNS
}

fn check_values(values: &Values, layout: MatrixLayout, left: &[u64]) {
    for (row, line) in values.iter().enumerate() {
        for (column, value) in line.iter().enumerate() {
            assert_eq!(left[row * layout.row_stride() + column * layout.column_stride()], *value);
        }
    }
}

fn check(runtime: &Runtime, layout: MatrixLayout, steps: &[Step]) {
    for run in [run, run_recorded, run_nested] {
        let whole = runtime.matrix(vec![0u64; length(layout)], layout).expect("the layout is sound");
        let values = run(runtime, &whole, steps);
        let left = runtime.unregister(whole).expect("the data is good").expect("it is the only handle");
        check_values(&values, layout, &left);
    }
    assert!(resident(runtime).iter().all(|bytes| *bytes == 0), "all memory is given back");
}

/// A program while its tasks are submitted.
struct Program {
    /// What the matrix should be, which begins with zeros.
    values: Values,
    parts: Vec<MatrixHandle<u64>>,
    codelet: Codelet<Accesses, usize>,
    sights: Arc<Vec<OnceLock<u64>>>,
    /// What each task should see.
    expected: Vec<Option<u64>>,
}

/// The data of a task, by mode, in the order in which the kernel comes to them.
type Named = [Vec<MatrixHandle<u64>>; 4];
const MODES: [AccessMode; 4] = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Commute];

impl Program {
    fn new(runtime: &Runtime, whole: &MatrixHandle<u64>, steps: &[Step]) -> Program {
        let sights: Arc<Vec<OnceLock<u64>>> = Arc::new(steps.iter().map(|_| OnceLock::new()).collect());
        let noted = Arc::clone(&sights);
        let codelet = runtime
            .codelet::<Accesses, usize>("step")
            .cpu("step", move |context, views| run_step(*context.params as u64, views, &noted[*context.params]))
            .build();
        let expected = vec![None; steps.len()];
        Program { values: [[0; COLUMNS]; ROWS], parts: vec![whole.clone()], codelet, sights, expected }
    }

    /// Submits a task by `submit`, or changes the parts.
    fn step(&mut self, number: usize, step: &Step, submit: impl FnOnce(&Self, Named) -> Result<TaskRef, SubmitError>) {
        match step {
            Step::Divide(of, plan) if self.parts.len() < 60 => {
                let divided = of.get(&self.parts).partition(plan).expect("the plan fits");
                self.parts.extend(divided.into_iter().filter(|part| part.rows() * part.columns() > 0));
            }
            Step::Forget(part) => {
                let at = part.index(self.parts.len());
                if at > 0 {
                    self.parts.swap_remove(at);
                }
            }
            Step::Divide(..) | Step::Look(_) | Step::Advise(..) => {}
            Step::Task(data) => {
                let named: Named = MODES.map(|wanted| {
                    let of_mode = data.iter().filter(|(_, mode)| *mode == wanted);
                    of_mode.map(|(part, _)| part.get(&self.parts).clone()).collect()
                });
                let regions = named.iter().zip(MODES);
                let regions: Vec<(Region, AccessMode)> =
                    regions.flat_map(|(parts, mode)| parts.iter().map(move |part| (part.region(), mode))).collect();
                let submitted = submit(self, named);
                if is_sound(&regions) {
                    submitted.expect("the task is sound");
                    self.expected[number] = Some(run_in_order(&mut self.values, number as u64, &regions));
                } else {
                    let refused = submitted.expect_err("it writes what it names twice");
                    assert!(matches!(refused, SubmitError::Overlap { .. } | SubmitError::Aliased { .. }));
                }
            }
        }
    }

    /// Checks what the tasks saw, which have ended. Returns what the matrix should be.
    fn check(self) -> Values {
        let seen: Vec<Option<u64>> = self.sights.iter().map(|sight| sight.get().copied()).collect();
        assert_eq!(seen, self.expected, "each task sees what was written last before it");
        self.values
    }
}

/// Submits a task of a program to a runtime, a recorder or a nest.
macro_rules! submit_to {
    ($to:expr, $number:expr, $workers:expr) => {
        |program, [reads, writes, updates, commutes]| {
            let task = $to.task_with(&program.codelet, $number, (&reads, &writes, &updates, &commutes));
            task.sched_data(($number * 7 % $workers) as u64).submit()
        }
    };
}

/// Runs a program on a matrix of zeros, and checks what tasks see. Returns what the matrix should be.
fn run(runtime: &Runtime, whole: &MatrixHandle<u64>, steps: &[Step]) -> Values {
    let mut program = Program::new(runtime, whole, steps);
    for (number, step) in steps.iter().enumerate() {
        program.step(number, step, submit_to!(runtime, number, runtime.workers()));
        match step {
            Step::Look(part) => {
                let part = part.get(&program.parts);
                let read = runtime.read(part).expect("the data is good");
                for (place, (row, column)) in elements(&part.region()).enumerate() {
                    let here = (place / part.columns(), place % part.columns());
                    assert_eq!(read.view()[here], program.values[row][column], "step {number}");
                }
            }
            Step::Advise(part, node) => {
                let (part, nodes) = (part.get(&program.parts), runtime.memory_nodes().len().max(1) as u32);
                let advised = node.map_or_else(|| runtime.wont_use(part), |node| runtime.prefetch(part, node % nodes));
                advised.expect("it is the runtime's own");
            }
            _ => {}
        }
    }
    runtime.wait_all().expect("every task runs");
    program.check()
}

/// [`run`], with the tasks of the program recorded first.
fn run_recorded(runtime: &Runtime, whole: &MatrixHandle<u64>, steps: &[Step]) -> Values {
    let mut program = Program::new(runtime, whole, steps);
    let recording = runtime.record(|recorder| {
        for (number, step) in steps.iter().enumerate() {
            program.step(number, step, submit_to!(recorder, number, runtime.workers()));
        }
        Ok::<(), SubmitError>(())
    });
    let recording = recording.expect("nothing fails");
    runtime.replay(&recording).expect("nothing else is replayed");
    runtime.wait_all().expect("every task runs");
    program.check()
}

/// [`run`], with the tasks of the program nested in one.
fn run_nested(runtime: &Runtime, whole: &MatrixHandle<u64>, steps: &[Step]) -> Values {
    let program = Arc::new(Mutex::new(Some(Program::new(runtime, whole, steps))));
    let (shared, steps, workers) = (Arc::clone(&program), steps.to_vec(), runtime.workers());
    let submit_all = move |context: &Context<'_, ()>, _: (MatrixMut<'_, u64>,)| {
        let nest = context.nest();
        let mut program = shared.lock().expect("nobody panics with it");
        let program = program.as_mut().expect("the kernel runs once");
        for (number, step) in steps.iter().enumerate() {
            program.step(number, step, submit_to!(nest, number, workers));
        }
    };
    let outer = runtime.codelet::<(ReadWrite<Matrix<u64>>,), ()>("all").nests().cpu("all", submit_all).build();
    runtime.task(&outer, (whole,)).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    let program = program.lock().expect("nobody panics with it").take();
    program.expect("the kernel has returned it").check()
}

/// By rows, by columns, with room between rows, and with room everywhere.
const LAYOUTS: [(usize, usize); 4] = [(COLUMNS, 1), (1, ROWS), (COLUMNS + 3, 1), (2 * COLUMNS, 2)];

fn one_node(workers: usize) -> Runtime {
    builder(CHOSEN, workers, Vec::new()).unchecked().build().expect("the runtime starts")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_program_on_parts_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(), 1..120),
        (row, column) in prop::sample::select(&LAYOUTS[..]),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        let layout = MatrixLayout::row_major(ROWS, COLUMNS).strides(row, column);
        let runtime = if nodes == 1 { one_node(workers) } else { start(CHOSEN, workers, nodes) };
        check(&runtime, layout, &steps);
        let mut lent = vec![0u64; length(layout)];
        let values = runtime.scope(|scope| {
            run(&runtime, &scope.matrix(&mut lent, layout).expect("the layout is sound"), &steps)
        });
        check_values(&values.expect("the data is good"), layout, &lent);
    }
}

#[test]
fn a_long_program_on_parts_gives_what_it_gives_in_order() {
    use proptest::strategy::ValueTree;
    let mut source = proptest::test_runner::TestRunner::deterministic();
    let program = prop::collection::vec(step(), 3000..=3000).new_tree(&mut source).expect("a program").current();
    let layout = MatrixLayout::row_major(ROWS, COLUMNS);
    check(&one_node(4), layout, &program);
    let everywhere = start(CHOSEN, 4, 3);
    check(&everywhere, layout, &program);
    assert_eq!(everywhere.transfers().len(), 6, "between any two nodes");
}

/// Adds a number to each element.
fn add(runtime: &Runtime) -> sched_host::runtime::Codelet<(ReadWrite<[u64]>,), u64> {
    let add = |context: &sched_host::runtime::Context<'_, u64>, (part,): (&mut [u64],)| {
        part.iter_mut().for_each(|value| *value += context.params);
    };
    runtime.codelet("add").cpu("add", add).build()
}

#[test]
fn a_node_gets_the_parts_that_its_tasks_use_and_the_whole_is_gathered() {
    let runtime = start(CHOSEN, 3, 3);
    let (add, x) = (add(&runtime), runtime.array(vec![0u64; 300]));
    let parts = x.partition(&Plan::ranges(3)).expect("the plan fits");
    for _ in 0..10 {
        for (worker, part) in parts.iter().enumerate() {
            runtime.task_with(&add, 1, (part,)).sched_data(worker as u64).submit().expect("the task is sound");
        }
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1), (0, 2, 1)]);
    assert_eq!(resident(&runtime), [2400, 800, 800]);
    runtime.task_with(&add, 1, (&x,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 2), (0, 2, 1), (2, 1, 1)], "two thirds were elsewhere");
    assert_eq!(*runtime.read(&x).expect("the data is good"), [11; 300]);
    drop(parts);
    assert_eq!(runtime.unregister(x).expect("the data is good").expect("it is the only handle"), [11; 300]);
    assert_eq!(resident(&runtime), [0; 3]);
}

/// As with any other data: tasks that name it run in order, and a failure is one of those that read it.
#[test]
fn data_without_elements_has_an_order_and_may_be_bad() {
    let runtime = one_node(2);
    let (fail, copy) = (
        runtime.codelet::<(Write<[u64]>,), ()>("fail").cpu("fail", |_, _| Err("no")).build(),
        runtime
            .codelet::<(Read<[u64]>, Write<u64>), ()>("copy")
            .cpu("copy", |_, (from, to)| *to = from.len() as u64)
            .build(),
    );
    let (x, y) = (runtime.array(Vec::<u64>::new()), runtime.register(1));
    let empty = &runtime.array(vec![0; 3]).partition(&Plan::ranges(4)).expect("the plan fits")[3].clone();
    for data in [&x, empty] {
        runtime.task(&fail, (data,)).submit().expect("the task is sound");
        let reader = runtime.task(&copy, (data, &y)).submit().expect("the task is sound");
        assert!(matches!(runtime.wait(reader).expect("it ends"), Outcome::Cancelled(_)));
    }
    runtime.wait_all().expect_err("two have failed");
}

/// As at the end of a loop, where nothing is left of what the steps divide.
#[test]
fn a_task_may_name_the_whole_and_a_part_without_elements() {
    let runtime = one_node(1);
    let count = |context: &Context<'_, ()>, (to, rest): (&mut [u64], &[u64])| {
        assert!(rest.is_empty() && context.worker.0 == 0);
        to.iter_mut().for_each(|to| *to += 1);
    };
    let count = runtime.codelet::<(ReadWrite<[u64]>, Read<[u64]>), ()>("count").cpu("count", count).build();
    let look = |_: &Context<'_, ()>, (from, rest): (&[u64], &mut [u64])| assert!(from == [2; 4] && rest.is_empty());
    let look = runtime.codelet::<(Read<[u64]>, Write<[u64]>), ()>("look").cpu("look", look).build();
    let x = runtime.array(vec![0; 4]);
    let rest = &x.partition(&Plan::ranges(5)).expect("the plan fits")[4];
    for _ in 0..2 {
        runtime.task(&count, (&x, rest)).submit().expect("they do not overlap");
    }
    runtime.task(&look, (&x, rest)).submit().expect("they do not overlap");
    let recording = runtime.record(|recorder| recorder.task(&count, (&x, rest)).submit().map(drop));
    runtime.replay(&recording.expect("they do not overlap")).expect("nothing else is replayed");
    runtime.wait_all().expect("none waits for itself");
    assert_eq!(*runtime.read(&x).expect("it is computed"), [3; 4]);
}

/// Parts have a turn each among tasks that commute on them: those of overlapping parts wait for each other.
#[test]
fn tasks_that_commute_on_overlapping_parts_run_one_after_the_other() {
    const FIRST: u64 = 0;
    let runtime = one_node(2);
    let [seen, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (is_seen, has_ended) = (Arc::clone(&seen), Arc::clone(&ended));
    let commute = runtime
        .codelet::<(Commute<[u64]>,), u64>("commute")
        .cpu("commute", move |context, _| {
            if *context.params == FIRST {
                // On the other worker, behind the second task unless that waits.
                while !is_seen.load(Acquire) {
                    std::thread::yield_now();
                }
                has_ended.store(true, Release);
            } else {
                assert!(has_ended.load(Acquire), "both use the elements that they share");
            }
        })
        .build();
    let is_seen = Arc::clone(&seen);
    let note = runtime.codelet::<(), ()>("note").cpu("note", move |_, ()| is_seen.store(true, Release)).build();
    let x = runtime.array(vec![0u64; 10]);
    let halves = x.partition(&Plan::ranges(2).halo(1)).expect("the plan fits");
    macro_rules! submit_all {
        ($to:expr) => {{
            for (worker, part) in (FIRST..).zip(&halves) {
                $to.task_with(&commute, worker, (part,)).sched_data(worker).submit().expect("it is sound");
            }
            $to.task(&note, ()).sched_data(1).submit().expect("it is sound");
        }};
    }
    let begin_again = || [&seen, &ended].map(|flag| flag.store(false, Release));
    submit_all!(runtime);
    runtime.wait_all().expect("nobody meets another");
    begin_again();
    let recording = runtime.record(|recorder| {
        submit_all!(recorder);
        Ok::<(), SubmitError>(())
    });
    runtime.replay(&recording.expect("nothing fails")).expect("nothing else is replayed");
    runtime.wait_all().expect("nobody meets another");
    begin_again();
    let submit_all = move |context: &Context<'_, ()>, _: (&mut [u64],)| submit_all!(context.nest());
    let outer = runtime.codelet::<(ReadWrite<[u64]>,), ()>("all").cpu("all", submit_all).nests().build();
    runtime.task(&outer, (&x,)).submit().expect("it is sound");
    runtime.wait_all().expect("nobody meets another");
}

#[test]
fn what_overlaps_is_an_error_before_anything_runs() {
    let runtime = one_node(1);
    let copy = runtime
        .codelet::<(Read<[u64]>, Write<[u64]>), ()>("copy")
        .cpu("copy", |_, (from, to)| to.copy_from_slice(from))
        .build();
    let x = runtime.array((0..12u64).collect());
    let (thirds, halves) =
        (x.partition(&Plan::ranges(3)).expect("it fits"), x.partition(&Plan::ranges(2)).expect("it fits"));
    let refused = runtime.task(&copy, (&thirds[1], &halves[1])).submit().expect_err("they overlap");
    assert_eq!(
        refused.to_string(),
        "codelet `copy` was given rows 4..8, columns 0..1 and rows 6..12, columns 0..1 of one array or matrix, which \
         overlap, and writes to one"
    );
    runtime.task(&copy, (&thirds[0], &x)).submit().expect_err("a part overlaps the whole");
    let again = x.partition(&Plan::ranges(3)).expect("it fits");
    runtime.task(&copy, (&thirds[0], &again[0])).submit().expect_err("they are the same elements");
    runtime.task(&copy, (&thirds[0], &again[1])).submit().expect("they are disjoint");
    let other = one_node(1).array(vec![0u64; 4]);
    let refused = runtime.task(&copy, (&thirds[0], &other)).submit().expect_err("it is another runtime's");
    assert!(matches!(refused, SubmitError::Foreign { .. }));
    assert_eq!(*runtime.read(&x).expect("it is good"), [0, 1, 2, 3, 0, 1, 2, 3, 8, 9, 10, 11]);
    assert_eq!(runtime.stats()[0].tasks, 1);
}

#[test]
fn plans_that_do_not_fit_are_errors() {
    let runtime = one_node(1);
    let (x, a) = (runtime.array(vec![0u8; 10]), runtime.matrix(vec![0u8; 12], MatrixLayout::column_major(3, 4)));
    let a = a.expect("the layout is sound");
    assert_eq!(x.partition(&Plan::ranges(0)).unwrap_err(), PartitionError::NoParts);
    assert_eq!(x.partition(&Plan::chunks(0)).unwrap_err(), PartitionError::NoParts);
    assert_eq!(x.partition(&Plan::blocks(2, 2)).unwrap_err(), PartitionError::ColumnsOfArray);
    let outside = x.partition(&Plan::these_ranges([0..3, 8..11])).unwrap_err();
    assert_eq!(
        outside.to_string(),
        "part 1 of the plan is rows 8..11, columns 0..1, and there are 10 rows and 1 columns"
    );
    let part = &a.partition(&Plan::columns(2)).expect("the plan fits")[1];
    part.partition(&Plan::these_regions([part.region()])).expect_err("indices count from the part");
    assert_eq!(part.partition(&Plan::tiles(2, 2)).expect("the plan fits").shape(), (2, 1));
    let too_short = runtime.matrix(vec![0u8; 11], MatrixLayout::row_major(3, 4)).unwrap_err();
    assert_eq!(
        too_short.to_string(),
        "11 values were given, and a matrix of 3 × 4 elements with strides 4 and 1 needs 12"
    );
    runtime.matrix(vec![0u8; 100], MatrixLayout::row_major(3, 4).strides(3, 1)).expect_err("rows overlap");
    runtime.matrix(vec![0u8; 100], MatrixLayout::row_major(usize::MAX, 4)).expect_err("it is too large");
}

#[test]
fn a_single_row_or_column_has_any_stride() {
    let add = |runtime: &Runtime| {
        let kernel = |_: &Context<'_>, (x,): (MatrixMut<'_, u64>,)| {
            let rows = x.rows();
            let (mut all, none) = x.split_at_row(rows);
            assert_eq!(none.rows(), 0);
            (0..rows).for_each(|row| (0..all.columns()).for_each(|column| all[(row, column)] += 1));
        };
        runtime.codelet::<(ReadWrite<Matrix<u64>>,), ()>("add").cpu("add", kernel).build()
    };
    for runtime in [one_node(1), on_nodes(EAGER, 2, 2).build().expect("the runtime starts")] {
        let add = add(&runtime);
        for (rows, columns, strides) in
            [(1, 4, (usize::MAX, 1)), (4, 1, (1, usize::MAX)), (1, 1, (usize::MAX, usize::MAX))]
        {
            let layout = MatrixLayout::row_major(rows, columns).strides(strides.0, strides.1);
            let x = runtime.matrix(vec![0; 4], layout).expect("each element has its place");
            // More parts than rows and columns: some have no elements.
            for plan in [Plan::blocks(3, 3), Plan::rows(5), Plan::columns(5)] {
                for part in &x.partition(&plan).expect("the plan fits") {
                    runtime.task(&add, (part,)).submit().expect("the task is sound");
                }
            }
            runtime.wait_all().expect("no kernel fails");
            let x = runtime.read(&x).expect("the data is good");
            assert!((0..rows).all(|row| (0..columns).all(|column| x.view()[(row, column)] == 3)));
        }
    }
}

#[test]
fn what_a_failed_task_should_have_written_is_bad_until_it_is_overwritten() {
    let runtime = one_node(2);
    let fail = runtime.codelet::<(ReadWrite<[u64]>,), ()>("fail").cpu("fail", |_, _| panic!("on purpose")).build();
    let set =
        runtime.codelet::<(Write<[u64]>,), u64>("set").cpu("set", |context, (x,)| x.fill(*context.params)).build();
    let x = runtime.array(vec![0u64; 10]);
    let halves = x.partition(&Plan::ranges(2)).expect("the plan fits");
    let across = &x.partition(&Plan::these_ranges([4..6, 8..10])).expect("the plan fits");
    runtime.task(&fail, (&halves[0],)).submit().expect("the task is sound");
    assert!(runtime.read(&halves[0]).is_err() && runtime.read(&x).is_err() && runtime.read(&across[0]).is_err());
    assert!(runtime.read(&halves[1]).is_ok() && runtime.read(&across[1]).is_ok());
    // It would read what is bad.
    runtime.task_with(&add(&runtime), 1, (&x,)).submit().expect("the task is sound");
    let Err(RunError::Failed { failed, cancelled }) = runtime.wait_all() else { panic!("a task failed") };
    assert_eq!((failed.len(), cancelled), (1, 1));
    runtime.task_with(&set, 7, (&halves[0],)).submit().expect("the task is sound");
    assert!(runtime.read(&halves[0]).is_ok());
    // The other half was to be written by the task that was cancelled.
    assert!(runtime.read(&x).is_err());
    runtime.task_with(&set, 8, (&halves[1],)).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&x).expect("all of it was written"), [7, 7, 7, 7, 7, 8, 8, 8, 8, 8]);
}

#[test]
fn disjoint_parts_are_written_at_once_and_the_whole_waits() {
    let runtime = one_node(2);
    let (add, x) = (add(&runtime), runtime.array(vec![0u64; 4]));
    let halves = x.partition(&Plan::ranges(2)).expect("the plan fits");
    let hold = Hold::new(&runtime);
    let gate = hold.worker_given(0);
    runtime.task_with(&add, 1, (&halves[0],)).sched_data(0).submit().expect("the task is sound");
    let whole = runtime.task_with(&add, 10, (&x,)).sched_data(1).submit().expect("the task is sound");
    let after = runtime.task_with(&add, 100, (&halves[1],)).sched_data(1).submit().expect("the task is sound");
    let other = runtime.array(vec![0u64; 1]);
    let free = runtime.task_with(&add, 1, (&other,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait(free).expect("it does not wait for the others");
    drop(gate);
    runtime.wait(after).expect("it ends");
    runtime.wait(whole).expect("it ends");
    assert_eq!(*runtime.read(&x).expect("the data is good"), [11, 11, 110, 110]);
}

#[test]
fn a_team_shares_a_part() {
    let machine = sched_host::topology::Topology::from_synthetic("core:4 pu:1").expect("the description is sound");
    let tree = r#"user-choice {
        fifo { eager { each "worker" { worker } } }
        each "combined-worker" { fifo { combined-worker } }
    }"#;
    let runtime = on_nodes(tree, 4, 2).topology(machine).build().expect("the runtime starts");
    let fill = runtime
        .codelet::<(Read<[u64]>, ReadWrite<Matrix<u64>>), ()>("fill")
        .cpu_spmd("fill_spmd", 4, |_, (numbers, mut rows)| {
            let sum = numbers.iter().sum::<u64>();
            (0..rows.rows()).for_each(|row| rows.row_mut(row).iter_mut().for_each(|value| *value += sum));
        })
        .build();
    let (numbers, a) = (runtime.array(vec![1u64; 6]), runtime.matrix(vec![0u64; 15], MatrixLayout::row_major(5, 3)));
    let (a, half) = (a.expect("the layout is sound"), &numbers.partition(&Plan::ranges(2)).expect("the plan fits")[1]);
    for choice in [1, 0, 1] {
        runtime.task(&fill, (half, &a)).sched_data(choice).submit().expect("the task is sound");
    }
    assert_eq!(runtime.read(&a).expect("the data is good").as_slice(), Some(&[9u64; 15][..]));
}
