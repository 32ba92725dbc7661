//! A component that asks for the tasks to come, and records the answers.

use sched_core::{Build, BuildError, Component, DataAccess, Family, Info, Node, Param, Params, Push, Stage, Task};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Reported facts of a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
    /// Its stage.
    pub stage: Stage,
    /// It ends by itself.
    pub passes: bool,
    /// Its successors.
    pub successors: Vec<u64>,
    /// What it accesses.
    pub accesses: Vec<DataAccess>,
}

/// Tasks by their sequences.
pub type Tasks = BTreeMap<u64, Told>;

static SEEN: Mutex<BTreeMap<i64, Tasks>> = Mutex::new(BTreeMap::new());

/// The tasks reported to the onlooker of this number at the last push to it.
///
/// # Panics
/// If used after a panic.
#[must_use]
pub fn seen(number: i64) -> Tasks {
    SEEN.lock().expect("nobody panics with it").get(&number).cloned().unwrap_or_default()
}

/// Passes tasks to its child, and asks for the tasks to come at each push.
#[derive(Debug)]
pub struct Onlooker(i64);

impl Build for Onlooker {
    const INFO: Info = Info::new("onlooker", Family::SpecialPurpose, "Writes down which tasks are submitted.")
        .forwards_push()
        .params(const { &[Param::int("number", 0, "under which number")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Onlooker(params.int("number")?))
    }
}

impl Component for Onlooker {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        if let Some(submitted) = node.submitted() {
            let shown = submitted.tasks().map(|(sequence, task)| {
                let successors = submitted.successors(sequence, task).collect();
                let accesses = submitted.accesses(sequence, task).collect();
                (sequence, Told { stage: task.stage, passes: task.passes, successors, accesses })
            });
            let shown = shown.collect();
            SEEN.lock().expect("nobody panics with it").insert(self.0, shown);
        }
        match node.children().next() {
            Some(child) => node.push_to(child, task),
            None => Err(sched_core::Refused::new(task, sched_core::Refusal::NoWorker)),
        }
    }
}
