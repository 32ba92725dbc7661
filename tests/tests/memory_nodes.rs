//! Data with replicas on several memory nodes: values are those of a run in order, and nothing is copied without need.

use proptest::prelude::*;
use sched_core::Arch;
use sched_host::model::starpu::{Bus, NodeMatrix};
use sched_host::runtime::{
    Builder, Codelet, Commute, Handle, Many, Mode, Outcome, Read, ReadWrite, Runtime, TransferStats, Write,
};
use sched_host::topology::Topology;
use sched_host::trace::Timeline;
use sched_tests::stock::{builder, registry};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

/// Each task says which worker runs it.
const CHOSEN: &str = r#"user-choice { each "worker" { fifo { worker } } }"#;

/// 1 ms, and 1 GB/s, so that no decision depends on this machine.
fn bus(nodes: usize) -> Bus {
    let all = |value: f64| NodeMatrix::new(nodes, vec![value; nodes * nodes]);
    Bus { bandwidth: all(1e3), latency: all(1e3), ..Bus::default() }
}

/// A runtime in the making with this tree, on so many memory nodes.
fn on_nodes(tree: &str, workers: usize, nodes: usize) -> Builder {
    builder(tree, workers, Vec::new()).unchecked().memory_nodes(nodes).bus(bus(nodes))
}

fn start(tree: &str, workers: usize, nodes: usize) -> Runtime {
    on_nodes(tree, workers, nodes).build().expect("the runtime starts")
}

fn moved(runtime: &Runtime) -> Vec<(u32, u32, u64)> {
    runtime.transfers().iter().map(|TransferStats { from, to, count, .. }| (*from, *to, *count)).collect()
}

/// Bytes of replicas on each memory node.
fn resident(runtime: &Runtime) -> Vec<u64> {
    runtime.memory_nodes().iter().map(|node| node.replica_bytes).collect()
}

type Log = Vec<usize>;

fn log(runtime: &Runtime) -> Handle<Log> {
    runtime.replicated(Log::new()).bytes(1000).register()
}

/// A task that appends its number, and one that says what it sees.
fn append(runtime: &Runtime) -> Codelet<(ReadWrite<Log>,), usize> {
    runtime.codelet("append").cpu("append", |context, (log,): (&mut Log,)| log.push(*context.params)).build()
}

fn expect(runtime: &Runtime) -> Codelet<(Read<Log>,), usize> {
    let check = |context: &sched_host::runtime::Context<'_, usize>, (log,): (&Log,)| {
        assert_eq!(log.len(), *context.params, "every write before is seen");
    };
    runtime.codelet("expect").cpu("expect", check).build()
}

const DATA: usize = 4;

#[derive(Clone, Default, PartialEq, Debug)]
struct Value {
    log: Vec<usize>,
    sum: usize,
}

#[derive(Clone, Debug)]
struct Step {
    modes: [Option<Mode>; DATA],
    /// Says afterwards that this data is not used for now.
    unused: Option<usize>,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        3 => Just(None),
        3 => Just(Some(Mode::Read)),
        1 => Just(Some(Mode::Write)),
        2 => Just(Some(Mode::ReadWrite)),
        1 => Just(Some(Mode::Commute)),
    ];
    let unused = prop_oneof![9 => Just(None), 1 => (0..DATA).prop_map(Some)];
    (prop::array::uniform4(mode), unused).prop_map(|(modes, unused)| Step { modes, unused })
}

impl Step {
    fn with(&self, mode: Mode) -> impl Iterator<Item = usize> {
        (0..DATA).filter(move |data| self.modes[*data] == Some(mode))
    }
}

/// What a step sees of data that it reads.
fn seen<'a>(values: impl Iterator<Item = &'a Value>) -> usize {
    let numbers = values.flat_map(|value| value.log.iter().copied().chain([value.sum, value.log.len()]));
    numbers.fold(0, |hash: usize, number| hash.wrapping_mul(31).wrapping_add(number))
}

/// Values at the end, and what each step saw, when the steps run one after the other.
fn in_order(steps: &[Step]) -> (Vec<Value>, Vec<usize>) {
    let (mut values, mut sights) = (vec![Value::default(); DATA], Vec::new());
    for (index, step) in steps.iter().enumerate() {
        sights.push(seen(step.with(Mode::Read).map(|data| &values[data])));
        step.with(Mode::Write).for_each(|data| values[data] = Value { log: vec![index], sum: 0 });
        step.with(Mode::ReadWrite).for_each(|data| values[data].log.push(index));
        step.with(Mode::Commute).for_each(|data| values[data].sum += index);
    }
    (values, sights)
}

type Accesses = (Many<Read<Value>>, Many<Write<Value>>, Many<ReadWrite<Value>>, Many<Commute<Value>>);

fn check(runtime: &Runtime, steps: &[Step]) {
    let handles: Vec<Handle<Value>> =
        (0..DATA).map(|_| runtime.replicated(Value::default()).bytes(100).register()).collect();
    let sights: Arc<Vec<OnceLock<usize>>> = Arc::new(steps.iter().map(|_| OnceLock::new()).collect());
    let noted = Arc::clone(&sights);
    let codelet = runtime
        .codelet::<Accesses, usize>("step")
        .cpu("step", move |context, (reads, writes, updates, commutes)| {
            let index = *context.params;
            let _ = noted[index].set(seen(reads.into_iter()));
            // Whatever lies there is not to be read.
            writes.into_iter().for_each(|value| *value = Value { log: vec![index], sum: 0 });
            updates.into_iter().for_each(|value| value.log.push(index));
            commutes.into_iter().for_each(|value| value.sum += index);
        })
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    for (index, step) in steps.iter().enumerate() {
        let of = |mode| step.with(mode).map(|data| handles[data].clone()).collect::<Vec<_>>();
        let data = (&of(Mode::Read), &of(Mode::Write), &of(Mode::ReadWrite), &of(Mode::Commute));
        // Who does not let it choose makes nothing of it.
        let worker = index * 7 % runtime.workers();
        runtime.task_with(&codelet, index, data).sched_data(worker as u64).submit().expect("the task is sound");
        if let Some(data) = step.unused {
            runtime.wont_use(&handles[data]).expect("it is the runtime's own");
        }
    }
    runtime.wait_all().expect("every task runs");
    let (values, expected) = in_order(steps);
    let sights: Vec<usize> = sights.iter().map(|sight| *sight.get().expect("every task runs")).collect();
    assert_eq!(sights, expected, "each task sees what was written last before it");
    for (handle, value) in handles.into_iter().zip(values) {
        assert_eq!(*runtime.read(&handle).expect("the data is good"), value);
        assert_eq!(runtime.unregister(handle).expect("the data is good").expect("it is the only handle"), value);
    }
    assert!(resident(runtime).iter().all(|bytes| *bytes == 0), "all memory is given back");
}

/// One of each family of policies, as it is shipped.
const POLICIES: [&str; 6] = ["tree-eager", "tree-ws", "tree-dmda", "tree-dmdar", "tree-heft", "tree-eager-prefetching"];

fn shipped(policy: &str, workers: usize, nodes: usize) -> Runtime {
    static MACHINE: OnceLock<Topology> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| Topology::this_machine().expect("the machine can be explored"));
    let builder = Runtime::builder().policy(policy).registry(registry(Vec::new())).topology(machine.clone());
    let builder = builder.workers(workers).bind(false).memory_nodes(nodes).bus(bus(nodes));
    builder.build().expect("the runtime starts")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_program_gives_what_it_gives_in_order(
        steps in prop::collection::vec(step(), 1..80),
        policy in prop::sample::select(&POLICIES[..]),
        (workers, nodes) in (1_usize..=4).prop_flat_map(|workers| (Just(workers), 1..=workers)),
    ) {
        check(&shipped(policy, workers, nodes), &steps);
    }
}

#[test]
fn a_long_program_gives_what_it_gives_in_order() {
    use proptest::strategy::ValueTree;
    let mut source = proptest::test_runner::TestRunner::deterministic();
    let program = prop::collection::vec(step(), 2000..=2000).new_tree(&mut source).expect("a program").current();
    POLICIES.iter().for_each(|policy| check(&shipped(policy, 4, 3), &program));
    let everywhere = start(CHOSEN, 4, 3);
    check(&everywhere, &program);
    assert_eq!(everywhere.transfers().len(), 6, "between any two nodes");
}

#[test]
fn a_chain_on_one_node_copies_once_and_every_write_is_seen_everywhere() {
    let runtime = start(CHOSEN, 2, 2);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    for number in 0..100 {
        runtime.task_with(&append, number, (&log,)).sched_data(1).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)]);
    // There and back again: each write makes the other replica worthless.
    for number in 100..110 {
        let worker = number as u64 % 2;
        runtime.task_with(&append, number, (&log,)).sched_data(worker).submit().expect("the task is sound");
        runtime.task_with(&expect, number + 1, (&log,)).sched_data(1 - worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&log).expect("the data is good"), (0..110).collect::<Log>());
    assert_eq!(resident(&runtime), [1000, 1000]);
}

#[test]
fn what_all_read_is_copied_once_for_each_node() {
    let runtime = start(CHOSEN, 6, 3);
    let (expect, log) = (expect(&runtime), log(&runtime));
    for number in 0..300 {
        runtime.task_with(&expect, 0, (&log,)).sched_data(number % 6).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    let transfers = runtime.transfers();
    let to = |node| transfers.iter().filter(|moved| moved.to == node).map(|moved| moved.count).sum::<u64>();
    assert_eq!([to(0), to(1), to(2)], [0, 1, 1]);
    assert_eq!(transfers.iter().map(|moved| moved.bytes).sum::<u64>(), 2000);
    let nodes: Vec<Vec<u32>> = runtime.memory_nodes().into_iter().map(|node| node.workers).collect();
    assert_eq!(nodes, [[0, 1], [2, 3], [4, 5]]);
}

#[test]
fn what_writes_without_reading_copies_nothing_where_there_is_a_replica() {
    let runtime = start(CHOSEN, 2, 2);
    let replace = runtime
        .codelet::<(Write<Log>,), usize>("replace")
        .cpu("replace", |context, (log,)| *log = vec![*context.params])
        .build();
    let log = log(&runtime);
    for number in 0..50 {
        runtime.task_with(&replace, number, (&log,)).sched_data(number as u64 % 2).submit().expect("it is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)], "the first on the other node has to have a value in place");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [49]);
}

#[test]
fn the_application_reads_and_writes_in_its_turn() {
    let runtime = start(CHOSEN, 2, 2);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    runtime.task_with(&append, 0, (&log,)).sched_data(1).submit().expect("the task is sound");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [0]);
    runtime.write(&log).expect("the data is good").push(1);
    for worker in 0..2 {
        runtime.task_with(&expect, 2, (&log,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(runtime.unregister(log).expect("the data is good").expect("it is the only handle"), [0, 1]);
}

#[test]
fn data_that_a_task_registers_begins_on_its_node() {
    let runtime = start(CHOSEN, 2, 2);
    let (send, made) = mpsc::channel();
    let make = move |context: &sched_host::runtime::Context<'_>, ()| {
        send.send(context.submitter().replicated(vec![7usize]).bytes(10).register()).expect("the test listens");
    };
    let make = runtime.codelet::<(), ()>("make").cpu("make", make).build();
    runtime.task(&make, ()).sched_data(1).submit().expect("the task is sound");
    let log = made.recv().expect("the task runs");
    assert_eq!(resident(&runtime), [0, 10]);
    let expect = expect(&runtime);
    runtime.task_with(&expect, 1, (&log,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), []);
}

/// A worker is busy until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Keeps a worker busy, and says which; with [`CHOSEN`], that one.
fn busy(runtime: &Runtime, chosen: u64) -> (u32, Busy) {
    let open = Arc::new(AtomicBool::new(false));
    let (begin, begun) = mpsc::channel();
    let gate = Arc::clone(&open);
    let block = runtime
        .codelet::<(), ()>("block")
        .cpu("block", move |context, ()| {
            begin.send(context.worker.0).expect("the test listens");
            while !gate.load(SeqCst) {
                std::thread::yield_now();
            }
        })
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    runtime.task(&block, ()).sched_data(chosen).submit().expect("the task is sound");
    (begun.recv().expect("a worker begins"), Busy(open))
}

#[test]
fn a_queue_prefers_the_task_whose_data_is_there() {
    let runtime = start(r#"fifo ready=#true { eager { each "worker" { worker } } }"#, 2, 2);
    let (first, one) = busy(&runtime, 0);
    let (other, two) = busy(&runtime, 0);
    assert_eq!(first + other, 1, "both workers have something to do");
    let far = log(&runtime);
    // What is on memory node 0 is far for worker 1, and near for worker 0.
    let order = Arc::new(Order::default());
    let visit = |name: &'static str, order: &Arc<Order>| {
        let order = Arc::clone(order);
        runtime.codelet::<(Read<Log>,), ()>(name).cpu(name, move |_, (_,)| order.note(name)).build()
    };
    let (gate_of_1, gate_of_0) = if first == 1 { (one, two) } else { (two, one) };
    // Ends on worker 1, so that its data is there.
    let near = log(&runtime);
    let append = append(&runtime);
    runtime.task_with(&append, 1, (&near,)).submit().expect("the task is sound");
    drop(gate_of_1);
    assert_eq!(runtime.read(&near).expect("the data is good").len(), 1);
    let (worker, gate_of_1) = busy(&runtime, 0);
    assert_eq!(worker, 1, "the other one is busy");
    runtime.task(&visit("far", &order), (&far,)).submit().expect("the task is sound");
    runtime.task(&visit("near", &order), (&near,)).submit().expect("the task is sound");
    drop(gate_of_1);
    while order.noted().len() < 2 {
        std::thread::yield_now();
    }
    drop(gate_of_0);
    runtime.wait_all().expect("every task runs");
    assert_eq!(order.noted(), ["near", "far"]);
}

/// The order in which tasks ran.
#[derive(Default)]
struct Order(Mutex<Vec<&'static str>>);

impl Order {
    fn note(&self, name: &'static str) {
        self.0.lock().expect("no test panics here").push(name);
    }

    fn noted(&self) -> Vec<&'static str> {
        self.0.lock().expect("no test panics here").clone()
    }
}

#[test]
fn tasks_go_where_their_data_is() {
    let runtime = start(r#"mct { each "worker" { fifo { worker } } }"#, 2, 2);
    let count = Arc::new([const { AtomicU32::new(0) }; 2]);
    let on = Arc::clone(&count);
    let visit = runtime
        .codelet::<(ReadWrite<Log>,), ()>("visit")
        .cpu("visit", move |context, (_,)| {
            on[context.worker.0 as usize].fetch_add(1, SeqCst);
        })
        .estimate(Arch::CPU, Duration::from_micros(10))
        .build();
    let log = log(&runtime);
    for _ in 0..20 {
        // One at a time, so that both workers are free whenever one is chosen.
        let task = runtime.task(&visit, (&log,)).submit().expect("the task is sound");
        runtime.wait(task).expect("it ends");
    }
    assert_eq!([count[0].load(SeqCst), count[1].load(SeqCst)], [20, 0]);
    assert_eq!(moved(&runtime), []);
}

#[test]
fn a_queue_has_data_fetched_while_its_worker_is_busy() {
    let runtime = start(CHOSEN, 2, 2);
    let (expect, log) = (expect(&runtime), log(&runtime));
    let (_, gate) = busy(&runtime, 1);
    runtime.task_with(&expect, 0, (&log,)).sched_data(1).submit().expect("the task is sound");
    while runtime.transfers().is_empty() {
        std::thread::yield_now();
    }
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(moved(&runtime), [(0, 1, 1)], "and the worker finds it there");
}

#[test]
fn replicas_go_when_nobody_will_use_them() {
    let runtime = start(CHOSEN, 3, 3);
    let (append, expect, log) = (append(&runtime), expect(&runtime), log(&runtime));
    runtime.task_with(&append, 0, (&log,)).sched_data(2).submit().expect("the task is sound");
    for worker in 0..3 {
        runtime.task_with(&expect, 1, (&log,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000; 3]);
    // In its turn: while a task uses the data, nothing goes.
    let (_, gate) = busy(&runtime, 0);
    runtime.task_with(&append, 1, (&log,)).sched_data(0).submit().expect("the task is sound");
    runtime.wont_use(&log).expect("it is the runtime's own");
    assert_eq!(resident(&runtime), [1000; 3]);
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000, 0, 0]);
    runtime.task_with(&expect, 2, (&log,)).sched_data(1).submit().expect("the task is sound");
    runtime.wait_all().expect("every task runs");
    assert_eq!(resident(&runtime), [1000, 1000, 0]);
    // However often, it needs no stack.
    let (_, gate) = busy(&runtime, 0);
    runtime.task_with(&append, 2, (&log,)).sched_data(0).submit().expect("the task is sound");
    for _ in 0..100_000 {
        runtime.wont_use(&log).expect("it is the runtime's own");
    }
    drop(gate);
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [0, 1, 2]);
    let other = start(CHOSEN, 2, 2);
    other.wont_use(&log).expect_err("it is another runtime's");
}

#[derive(Debug)]
struct Fragile {
    value: u32,
    broken: Arc<AtomicBool>,
}

impl Clone for Fragile {
    fn clone(&self) -> Fragile {
        assert!(!self.broken.load(SeqCst), "it broke");
        Fragile { value: self.value, broken: Arc::clone(&self.broken) }
    }
}

#[test]
fn a_clone_that_panics_fails_the_task_and_nothing_else() {
    // No queue of the worker's own, which would have it copied ahead.
    let runtime = start(r#"fifo { eager { each "worker" { worker } } }"#, 2, 2);
    let broken = Arc::new(AtomicBool::new(true));
    let data = runtime.replicated(Fragile { value: 1, broken: Arc::clone(&broken) }).register();
    let add = runtime
        .codelet::<(Read<Fragile>, ReadWrite<u32>), ()>("add")
        .cpu("add", |_, (fragile, sum)| *sum += fragile.value)
        .build();
    let (first, one) = busy(&runtime, 0);
    let (_, two) = busy(&runtime, 0);
    let (gate_of_0, gate_of_1) = if first == 0 { (one, two) } else { (two, one) };
    let lost = runtime.register(0u32);
    let task = runtime.task(&add, (&data, &lost)).name("the unlucky one").submit().expect("the task is sound");
    drop(gate_of_1);
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("its data cannot be copied") };
    let told = failure.to_string();
    assert!(told.contains("the unlucky one") && told.contains("codelet `add`"), "{told}");
    assert!(told.ends_with("while its data was copied to the worker's memory node: it broke"), "{told}");
    runtime.read(&lost).map(|_| ()).expect_err("it was not computed");
    // Once it can be copied, all is well: what was there is still good.
    broken.store(false, SeqCst);
    let sum = runtime.register(0u32);
    let task = runtime.task(&add, (&data, &sum)).submit().expect("the task is sound");
    assert_eq!(runtime.wait(task).expect("it ends"), Outcome::Done);
    drop(gate_of_0);
    runtime.wait_all().expect_err("one task failed");
    assert_eq!(*runtime.read(&sum).expect("the data is good"), 1);
    assert_eq!(moved(&runtime), [(0, 1, 1)]);
}

#[test]
fn a_task_that_fails_while_it_writes_spoils_the_data_until_it_is_written_whole() {
    let runtime = start(CHOSEN, 2, 2);
    let log = log(&runtime);
    let fail = runtime.codelet::<(ReadWrite<Log>,), ()>("fail").cpu("fail", |_, (_,)| panic!("halfway")).build();
    let replace = runtime.codelet::<(Write<Log>,), ()>("replace").cpu("replace", |_, (log,)| *log = vec![9]).build();
    let expect = expect(&runtime);
    runtime.task(&fail, (&log,)).sched_data(1).submit().expect("the task is sound");
    let cancelled = runtime.task_with(&expect, 0, (&log,)).sched_data(0).submit().expect("the task is sound");
    assert!(matches!(runtime.wait(cancelled).expect("it ends"), Outcome::Cancelled(_)));
    runtime.task(&replace, (&log,)).sched_data(0).submit().expect("the task is sound");
    let good = runtime.task_with(&expect, 1, (&log,)).sched_data(1).submit().expect("the task is sound");
    assert_eq!(runtime.wait(good).expect("it ends"), Outcome::Done);
    runtime.wait_all().expect_err("one task failed");
    assert_eq!(*runtime.read(&log).expect("the data is good"), [9]);
}

#[test]
fn a_team_works_on_the_replica_of_its_first_member() {
    let machine = Topology::from_synthetic("core:4 pu:1").expect("the description is sound");
    let tree = r#"user-choice {
        fifo { eager { each "worker" { worker } } }
        each "combined-worker" { fifo { combined-worker } }
    }"#;
    let runtime = on_nodes(tree, 4, 2).topology(machine).build().expect("the runtime starts");
    let numbers = runtime.replicated(vec![1u64; 10]).bytes(80).register();
    let sum = runtime.replicated(vec![0u64; 4]).bytes(32).register();
    let add = runtime
        .codelet::<(Read<Vec<u64>>, ReadWrite<Vec<u64>>), ()>("add")
        .cpu_spmd("add_spmd", 4, |_, (numbers, part)| {
            part.iter_mut().for_each(|sum| *sum += numbers.iter().sum::<u64>())
        })
        .build();
    for choice in [1, 0, 1, 0, 1] {
        runtime.task(&add, (&numbers, &sum)).sched_data(choice).submit().expect("the task is sound");
    }
    runtime.wait_all().expect("every task runs");
    assert_eq!(*runtime.read(&sum).expect("the data is good"), [50; 4]);
}

#[test]
fn a_trace_has_the_transfers() {
    let runtime = on_nodes(CHOSEN, 2, 2).trace(1000).build().expect("the runtime starts");
    let (append, log) = (append(&runtime), log(&runtime));
    for (number, worker) in [1, 0, 1].into_iter().enumerate() {
        let task = runtime.task_with(&append, number, (&log,)).sched_data(worker).submit().expect("it is sound");
        runtime.wait(task).expect("it ends");
    }
    runtime.wait_all().expect("every task runs");
    let trace = runtime.take_trace().expect("it was asked for");
    assert_eq!(trace.memories, ["memory 0", "memory 1"]);
    let timeline = Timeline::of(&trace);
    let moved = |from, to| timeline.links.get(&(from, to)).map_or(0, Vec::len);
    assert_eq!((moved(0, 1), moved(1, 0)), (2, 1));
    assert!(timeline.links.values().flatten().all(|span| span.transfer.bytes == 1000));
}

#[test]
fn one_memory_node_copies_nothing() {
    // A type that cannot be copied in time.
    let broken = Arc::new(AtomicBool::new(true));
    let runtime = start(CHOSEN, 2, 1);
    let data = runtime.replicated(Fragile { value: 1, broken }).register();
    let read = runtime.codelet::<(ReadWrite<Fragile>,), ()>("read").cpu("read", |_, (data,)| data.value += 1).build();
    for worker in [0, 1, 0, 1] {
        runtime.task(&read, (&data,)).sched_data(worker).submit().expect("the task is sound");
    }
    runtime.wont_use(&data).expect("it is the runtime's own");
    assert_eq!(runtime.read(&data).expect("the data is good").value, 5);
    assert_eq!((runtime.transfers(), runtime.memory_nodes()), (Vec::new(), Vec::new()));
}

#[test]
fn memory_nodes_need_workers() {
    for nodes in [0, 3] {
        let Err(told) = on_nodes(CHOSEN, 2, nodes).build() else { panic!("there are two workers") };
        assert_eq!(told.to_string(), format!("{nodes} memory nodes were asked for, expected 1 to 2 for 2 workers"));
    }
}
