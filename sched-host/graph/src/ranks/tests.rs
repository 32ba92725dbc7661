use super::*;
use crate::generate::{cholesky, qr};
use crate::{Datum, Dependencies, Task, TaskGraph, TaskId};
use proptest::prelude::*;

#[test]
fn a_value_reaches_every_rank_over_few_others() {
    for ranks in [1, 2, 3, 8, 13, 64] {
        let mut holders = Holders::owned_by(0);
        let mut depth = vec![0; ranks];
        let mut sent = vec![0; ranks];
        for rank in 1..ranks {
            let from = holders.bring(rank).expect("it is not there yet");
            assert!(from == 0 || depth[from] > 0, "who sends it has it");
            depth[rank] = depth[from] + 1;
            sent[from] += 1;
        }
        let most = ranks.next_power_of_two().ilog2();
        assert!(depth.iter().chain(&sent).all(|count| *count <= most), "{ranks}: {depth:?} {sent:?}");
    }
}

#[test]
fn an_owner_may_change() {
    let mut holders = Holders::owned_by(1);
    holders.bring(2);
    holders.bring(0);
    holders.give(0);
    assert!(holders.owner() == 0 && holders.has_copy(1) && holders.has_copy(2) && !holders.has_copy(0));
    holders.flush();
    assert!(holders.has(0) && !holders.has(1));
}

#[test]
fn blocks_are_known_by_their_names() {
    let data = ["A(0,0)", "A(1,0)", "T(3, 5)", "b", "f(x)", "A(1,2"].map(|name| Datum::new(8).named(name));
    assert_eq!(Grid::new(4).owners(&data), [0, 2, 3, 3, 0, 1]);
    assert_eq!(Grid::new(7).owner(6, 6), 6);
    assert_eq!(Grid::new(0).ranks(), 1);
}

/// For each task of a divided graph, whether it comes after each other: directly, or by tasks and messages of any
/// ranks.
fn comes_after(shares: &Shares, tasks: usize) -> Vec<Vec<bool>> {
    // Messages and tasks of all ranks in one order that respects each rank's, by repeated passes.
    let dependencies: Vec<_> = shares.ranks.iter().map(|share| share.graph.dependencies()).collect();
    let mut known: Vec<Vec<Option<Vec<bool>>>> =
        shares.ranks.iter().map(|share| vec![None; share.graph.tasks.len()]).collect();
    let mut done = vec![Vec::new(); tasks];
    let mut left = true;
    while std::mem::take(&mut left) {
        for (rank, share) in shares.ranks.iter().enumerate() {
            for id in share.graph.ids().filter(|id| known[rank][id.index()].is_none()).collect::<Vec<_>>() {
                let mut before: Vec<(usize, TaskId)> =
                    dependencies[rank].predecessors(id).iter().map(|before| (rank, *before)).collect();
                if let Role::Receive(message) = share.roles[id.index()] {
                    let message = shares.messages[message.index()];
                    before.push((message.from as usize, message.sends));
                }
                let all: Option<Vec<&Vec<bool>>> =
                    before.iter().map(|(rank, task)| known[*rank][task.index()].as_ref()).collect();
                let Some(all) = all else {
                    left = true;
                    continue;
                };
                let mut after = vec![false; tasks];
                all.iter().for_each(|of| after.iter_mut().zip(*of).for_each(|(here, there)| *here |= there));
                if let Role::Task(task) = share.roles[id.index()] {
                    done[task.index()].clone_from(&after);
                    after[task.index()] = true;
                }
                known[rank][id.index()] = Some(after);
            }
        }
    }
    done
}

fn check(graph: &TaskGraph, owners: &[usize], ranks: usize) {
    let shares = Shares::new(graph, owners, ranks);
    let roles = || shares.ranks.iter().flat_map(|share| &share.roles);
    let mut tasks: Vec<TaskId> =
        roles().filter_map(|role| if let Role::Task(task) = role { Some(*task) } else { None }).collect();
    tasks.sort_unstable();
    assert!(tasks.into_iter().eq(graph.ids()), "each task is on one rank");
    assert_eq!(roles().count(), graph.tasks.len() + 2 * shares.messages.len());
    for message in &shares.messages {
        assert_ne!(message.from, message.to);
        assert_eq!(shares.ranks[message.to as usize].roles[message.receives.index()], {
            let Role::Send(id) = shares.ranks[message.from as usize].roles[message.sends.index()] else { panic!() };
            Role::Receive(id)
        });
    }
    let after = comes_after(&shares, graph.tasks.len());
    let (dependencies, flows) = (graph.dependencies(), Dependencies::of_flows(graph));
    let mut writers: Vec<Option<TaskId>> = vec![None; graph.data.len()];
    let mut adders: Vec<Vec<TaskId>> = vec![Vec::new(); graph.data.len()];
    for (id, task) in graph.ids().zip(&graph.tasks) {
        // What it reads has been written, wherever that was; and its rank keeps its own order.
        let read = task.accesses.iter().filter(|access| access.mode.reads());
        let made =
            read.flat_map(|access| writers[access.data.index()].iter().chain(&adders[access.data.index()]).copied());
        let here = dependencies.predecessors(id).iter().copied();
        let here = here.filter(|before| rank_in(&shares, *before) == rank_in(&shares, id));
        let flows = flows.predecessors(id).iter().copied();
        for before in made.chain(task.after.iter().copied()).chain(here).chain(flows).filter(|before| *before != id) {
            assert!(after[id.index()][before.index()], "{id:?} comes after {before:?}");
        }
        for access in task.accesses.iter().filter(|access| access.mode.writes()) {
            match access.mode {
                AccessMode::Redux => adders[access.data.index()].push(id),
                _ => {
                    writers[access.data.index()] = Some(id);
                    adders[access.data.index()].clear();
                }
            }
        }
    }
}

fn rank_in(shares: &Shares, task: TaskId) -> usize {
    shares.ranks.iter().position(|share| share.roles.contains(&Role::Task(task))).expect("it is on a rank")
}

#[test]
fn factorisations_are_divided_by_blocks() {
    let graph = cholesky(6, 10);
    check(&graph, &Grid::new(4).owners(&graph.data), 4);
    let graph = qr(4, 10);
    check(&graph, &Grid::new(3).owners(&graph.data), 3);
    let shares = Shares::block_cyclic(&graph, 1);
    assert!(shares.messages.is_empty());
    assert_eq!(shares.ranks[0].graph.tasks.len(), graph.tasks.len());
}

#[test]
fn what_a_rank_passes_over_is_counted() {
    let mut graph = TaskGraph::new("in turn");
    let kind = graph.add_kind("k");
    for _ in 0..7 {
        graph.add_task(Task::new(kind));
    }
    let shares = Shares::new(&graph, &[], 3);
    let passed: Vec<&[u32]> = shares.ranks.iter().map(|share| &share.passed_over[..]).collect();
    assert_eq!(passed, [&[0, 2, 2][..], &[1, 2], &[2, 2]]);
}

#[test]
fn parts_of_a_sum_go_along_a_tree_once_it_is_read() {
    let mut graph = TaskGraph::new("sum");
    let kind = graph.add_kind("k");
    let sum = graph.add_data(Datum::new(8));
    let others: Vec<_> = (0..8).map(|_| graph.add_data(Datum::new(8))).collect();
    for other in others.iter().chain(&others) {
        graph.add_task(Task::new(kind).access(*other, AccessMode::ReadWrite).access(sum, AccessMode::Redux));
    }
    let owners: Vec<usize> = std::iter::once(3).chain(0..8).collect();
    assert_eq!(Shares::new(&graph, &owners, 8).messages, [], "nobody has read it");
    graph.add_task(Task::new(kind).access(sum, AccessMode::Read));
    let shares = Shares::new(&graph, &owners, 8);
    check(&graph, &owners, 8);
    let sent = |rank: u32| shares.messages.iter().filter(|message| message.from == rank).count();
    assert_eq!((0..8).map(sent).collect::<Vec<_>>(), [1, 1, 1, 0, 1, 1, 1, 1]);
    let received = |rank: u32| shares.messages.iter().filter(|message| message.to == rank).count();
    assert_eq!((0..8).map(received).max(), Some(3));
}

#[test]
fn an_end_is_told_once_to_each_rank() {
    let mut graph = TaskGraph::new("after");
    let kind = graph.add_kind("k");
    let first = graph.add_task(Task::new(kind));
    for _ in 0..5 {
        graph.add_task(Task::new(kind).after(first));
    }
    let shares = Shares::new(&graph, &[], 3);
    let told: Vec<_> = shares.messages.iter().map(|message| (message.from, message.to, message.data)).collect();
    assert_eq!(told, [(0, 1, None), (0, 2, None)]);
}

proptest! {
    /// Whoever owns what: tasks of all ranks come in the order that the whole graph has them in.
    #[test]
    fn shares_keep_the_order(
        tasks in prop::collection::vec((prop::collection::vec((0..4_u32, 0..4_usize), 0..4), prop::option::of(0..40_u32)), 1..40),
        owners in prop::array::uniform4(0..5_usize),
        ranks in 1..5_usize,
    ) {
        let mut graph = TaskGraph::new("random");
        let kind = graph.add_kind("k");
        let data: Vec<_> = (0..4).map(|bytes| graph.add_data(Datum::new(bytes))).collect();
        for (index, (accesses, after)) in (0..).zip(tasks) {
            let modes = [AccessMode::Read, AccessMode::Write, AccessMode::ReadWrite, AccessMode::Redux];
            let mut task = Task::new(kind);
            for (at, mode) in accesses {
                // Runtimes refuse tasks that name data twice.
                if task.accesses.iter().all(|access| access.data != data[at as usize]) {
                    task = task.access(data[at as usize], modes[mode]);
                }
            }
            if let Some(after) = after.filter(|after| *after < index) {
                task = task.after(TaskId(after));
            }
            graph.add_task(task);
        }
        let owners = owners.map(|owner| owner % ranks);
        check(&graph, &owners, ranks);
    }
}
