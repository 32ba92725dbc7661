//! Tasks are not pushed where nobody has room, whoever decides above; nor are they lost where that is reported wrongly,
//! or by a component that then fails.

use sched_core::{
    Build, BuildError, Child, Component, Family, Info, Mutex, Node, Offer, Param, Params, Push, Refusal, Refused,
    Storage, Task,
};
use sched_host::graph::generate::cholesky;
use sched_host::sim::{Platform, SimOutcome, Simulation};
use sched_tests::stock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Number of pushes to components that count them.
static PUSHES: AtomicU32 = AtomicU32::new(0);

/// Held by who counts.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Passes tasks to the first child that takes them, and counts.
struct Counts;

impl Build for Counts {
    const INFO: Info = Info::new("counts", Family::ResourceMapping, "Counts pushes.").forwards_pull().forwards_push();

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Counts)
    }
}

impl Component for Counts {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        PUSHES.fetch_add(1, Relaxed);
        for child in node.children() {
            match node.push_to(child, task) {
                Ok(()) => return Ok(()),
                Err(refused) => task = refused.task,
            }
        }
        Err(Refused::new(task, Refusal::Full))
    }
}

/// Holds one task, for the worker below, and says so.
#[derive(Default)]
struct Honest {
    held: Mutex<Option<Task>>,
}

impl Build for Honest {
    const INFO: Info = Info::new("honest", Family::FlowControl, "Holds one task.")
        .params(const { &[Param::int("room", 1, "tasks held")] })
        .storage(Storage::BoundedBy(&["room"]));

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Honest::default())
    }
}

impl Honest {
    fn take(&self, node: Node<'_>) -> Option<Task> {
        let mut held = self.held.lock();
        let task = held.take_if(|task| node.requester_can_execute(task))?;
        node.note_room(true);
        Some(task)
    }
}

impl Component for Honest {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut held = self.held.lock();
        if held.is_some() {
            return Err(Refused::new(task, Refusal::Full));
        }
        *held = Some(task);
        node.note_room(false);
        drop(held);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let task = self.take(node);
        if node.parents_can_push() && task.is_none() { self.take(node) } else { task }
    }

    fn drain(&self) -> Vec<Task> {
        self.held.lock().take().into_iter().collect()
    }
}

/// Says at the first push that it has no room, though it has; then fails, if asked to, or passes the task on.
struct Claims {
    fails: bool,
    said: AtomicBool,
}

impl Build for Claims {
    const INFO: Info = Info::new("claims", Family::SpecialPurpose, "Reports that it has no room.")
        .params(const { &[Param::bool("fails", false, "whether it fails")] })
        .forwards_pull();

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Claims { fails: params.bool("fails")?, said: AtomicBool::new(false) })
    }
}

impl Component for Claims {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        if !self.said.swap(true, Relaxed) {
            node.note_room(false);
        }
        assert!(!self.fails, "as asked for");
        node.push_to(Child(0), task)
    }
}

/// Holds one task, says so, and fails when there is room for it below.
#[derive(Default)]
struct Fails(Honest);

impl Build for Fails {
    const INFO: Info = Info::new("fails", Family::FlowControl, "Holds one task, and fails.")
        .params(const { &[Param::int("room", 1, "tasks held")] })
        .storage(Storage::BoundedBy(&["room"]));

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Fails::default())
    }
}

impl Component for Fails {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.0.push_task(node, task)
    }

    fn can_push(&self, node: Node<'_>, _: Child) -> bool {
        let sent = node.parents_can_push();
        assert!(self.0.held.lock().is_none(), "as it does");
        sent
    }

    fn drain(&self) -> Vec<Task> {
        self.0.drain()
    }
}

/// Holds two tasks, and says when a task comes whether there is room for another; not when one goes.
#[derive(Default)]
struct Forgets {
    held: Mutex<VecDeque<Task>>,
}

impl Build for Forgets {
    const INFO: Info = Info::new("forgets", Family::FlowControl, "Holds two tasks.")
        .params(const { &[Param::int("room", 2, "tasks held")] })
        .storage(Storage::BoundedBy(&["room"]));

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Forgets::default())
    }
}

impl Forgets {
    fn take(&self, node: Node<'_>) -> Option<Task> {
        self.held.lock().pop_front_if(|task| node.requester_can_execute(task))
    }
}

impl Component for Forgets {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut held = self.held.lock();
        if held.len() == 2 {
            return Err(Refused::new(task, Refusal::Full));
        }
        held.push_back(task);
        node.note_room(held.len() < 2);
        drop(held);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let task = self.take(node);
        if node.parents_can_push() && task.is_none() { self.take(node) } else { task }
    }

    fn drain(&self) -> Vec<Task> {
        self.held.lock().drain(..).collect()
    }
}

/// Sends tasks to the child that each of them has by its number, if that has room.
struct Asks;

impl Build for Asks {
    const INFO: Info = Info::new("asks", Family::ResourceMapping, "Asks for room.").forwards_pull().forwards_push();

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Asks)
    }
}

impl Component for Asks {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let child = Child((task.id().sequence() % node.children().len() as u64) as u32);
        if node.child_has_room(child) { node.push_to(child, task) } else { Err(Refused::new(task, Refusal::Full)) }
    }
}

/// Keeps what is refused below, until there is room; it never asks for more. It declares both to store tasks and not
/// to, or only the second.
#[derive(Default)]
struct Keeps<const SAYS_SO: bool> {
    kept: Mutex<Vec<Task>>,
}

impl<const SAYS_SO: bool> Build for Keeps<SAYS_SO> {
    const INFO: Info = match SAYS_SO {
        true => Info::new("keeps", Family::SpecialPurpose, "Keeps tasks.").storage(Storage::Unbounded),
        false => Info::new("hides", Family::SpecialPurpose, "Keeps tasks."),
    }
    .forwards_push();

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Keeps::default())
    }
}

impl<const SAYS_SO: bool> Component for Keeps<SAYS_SO> {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        if let Err(refused) = node.push_to(Child(0), task) {
            self.kept.lock().push(refused.task);
        }
        Ok(())
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        node.pump(to, || self.kept.lock().pop(), |task| self.kept.lock().push(task))
    }

    fn drain(&self) -> Vec<Task> {
        std::mem::take(&mut *self.kept.lock())
    }
}

fn simulate(tree: &str, tiles: usize, workers: usize) -> SimOutcome {
    let platform = Platform::flat(workers, Duration::from_millis(1));
    let offers = vec![
        Offer::of::<Counts>(),
        Offer::of::<Claims>(),
        Offer::of::<Honest>(),
        Offer::of::<Fails>(),
        Offer::of::<Forgets>(),
        Offer::of::<Asks>(),
        Offer::of::<Keeps<true>>(),
        Offer::of::<Keeps<false>>(),
    ];
    let simulation = Simulation::new(cholesky(tiles, 960), platform).registry(stock::registry(offers));
    simulation.policy_value(stock::policy(tree)).run().unwrap_or_else(|error| panic!("{tree}: {error:?}"))
}

/// Number of pushes in a simulation of this policy.
fn pushes(tree: &str, workers: usize) -> u64 {
    let before = PUSHES.load(Relaxed);
    let outcome = simulate(tree, 16, workers);
    assert_eq!((outcome.tasks, outcome.faults.len()), (816, 0), "{tree}");
    u64::from(PUSHES.load(Relaxed) - before)
}

#[test]
fn each_task_is_pushed_once_through_components_that_store_nothing() {
    let _alone = ALONE.lock().expect("no test failed");
    let tree = r#"fifo { counts { counts { each "worker" { fifo ntasks-threshold=2 { worker } } } } }"#;
    // The lower one is called at first, to see whether it stores nothing, and with it the upper one, which is then.
    assert_eq!(pushes(tree, 3), 2 * 816 + 2 * 64 + 64);
}

#[test]
fn reports_of_any_component_are_heeded_once_it_has_kept_to_them() {
    let _alone = ALONE.lock().expect("no test failed");
    let tree = r#"fifo { counts { each "worker" { honest { worker } } } }"#;
    // Then it is seen whether the one above stores nothing.
    assert_eq!(pushes(tree, 1), 816 + 64 + 64);
}

#[test]
fn a_component_that_takes_tasks_although_it_has_no_room_gets_them_and_is_named() {
    let tree = r#"fifo { eager { each "worker" { claims { fifo ntasks-threshold=2 { worker } } } } }"#;
    let outcome = simulate(tree, 8, 3);
    assert_eq!(outcome.tasks, 120);
    let said: Vec<String> = outcome.faults.iter().map(ToString::to_string).collect();
    assert!(!said.is_empty());
    for fault in said {
        assert!(fault.contains("declares at times that it has no room, but `push_task` took a task then"), "{fault}");
    }
}

#[test]
fn who_forgets_to_report_room_gets_tasks_and_is_named() {
    let outcome = simulate(r#"fifo { eager { each "worker" { forgets { worker } } } }"#, 16, 3);
    assert_eq!(outcome.tasks, 816);
    let said: Vec<String> = outcome.faults.iter().map(ToString::to_string).collect();
    let is_named =
        |fault: &String| fault.contains("declares at times that it has no room, but `push_task` took a task");
    assert!(said.len() == 3 && said.iter().all(is_named), "{said:?}");
}

#[test]
fn what_a_component_reported_before_it_failed_is_forgotten() {
    let tree = r#"fifo { eager { each "worker" { claims fails=#true { fifo ntasks-threshold=2 { worker } } } } }"#;
    assert_eq!(simulate(tree, 8, 3).tasks, 120);
}

fn faults(tree: &str) -> Vec<String> {
    let outcome = simulate(tree, 8, 3);
    assert_eq!(outcome.tasks, 120);
    outcome.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn what_passes_through_a_component_that_failed_while_it_was_full_is_no_false_report_of_it() {
    let said = faults(r#"fifo { eager { each "worker" { fails { fifo { worker } } } } }"#);
    assert!(!said.is_empty() && said.iter().all(|fault| fault.contains("panicked")), "{said:?}");
}

#[test]
fn who_was_told_that_there_is_no_room_need_not_push() {
    let said = faults(r#"fifo { asks { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#);
    assert_eq!(said, [""; 0]);
}

#[test]
fn who_stores_tasks_gets_them_whatever_else_it_declares() {
    let said = faults(r#"keeps { fifo ntasks-threshold=1 { eager { each "worker" { worker } } } }"#);
    assert_eq!(said, [""; 0]);
}

#[test]
fn who_secretly_stores_tasks_still_gets_them_and_is_named() {
    let said = faults(r#"keeps { hides { fifo ntasks-threshold=1 { eager { each "worker" { worker } } } } }"#);
    assert!(said.len() == 1 && said[0].contains("hides"), "{said:?}");
}
