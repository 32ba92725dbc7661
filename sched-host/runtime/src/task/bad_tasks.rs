//! The tasks that failed or were cancelled, for whoever asks for the outcome of a task, however late.
//!
//! A program that runs for days may lose tasks all the time, to deadlines for example. So only the newest have their
//! reasons; of older ones a bit is left that says whether they failed or were cancelled.

use super::failure::{Outcome, TaskFailure};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// See the [module](self).
#[derive(Default)]
pub(super) struct BadTasks {
    /// Outcomes of the newest, by sequence.
    newest: HashMap<u64, Outcome>,
    /// Sequences of these, the oldest first.
    order: VecDeque<u64>,
    /// The others, 64 sequences together: which failed, and which were cancelled.
    older: BTreeMap<u64, [u64; 2]>,
}

/// Number of tasks whose reasons are kept.
const NEWEST: usize = 4096;

impl BadTasks {
    pub(super) fn insert(&mut self, task: u64, outcome: Outcome) {
        if self.newest.insert(task, outcome).is_none() {
            self.order.push_back(task);
        }
        if self.order.len() > NEWEST
            && let Some(oldest) = self.order.pop_front()
        {
            let was_cancelled = matches!(self.newest.remove(&oldest), Some(Outcome::Cancelled(_)));
            self.older.entry(oldest / 64).or_default()[usize::from(was_cancelled)] |= 1 << (oldest % 64);
        }
    }

    /// Outcome of a task that failed or was cancelled.
    pub(super) fn get(&self, task: u64) -> Option<Outcome> {
        self.newest.get(&task).cloned().or_else(|| self.of_older(task))
    }

    #[cold]
    fn of_older(&self, task: u64) -> Option<Outcome> {
        let [failed, cancelled] =
            self.older.get(&(task / 64)).map(|bits| bits.map(|bits| bits >> (task % 64) & 1 == 1))?;
        let reason = |what: &str, cancelled| {
            Arc::new(TaskFailure {
                task,
                codelet: String::new(),
                implementation: String::new(),
                name: None,
                worker: 0,
                panicked: false,
                cancelled,
                message: format!("task {task} {what}; the reason is not kept, since {NEWEST} others ended badly later"),
            })
        };
        match (failed, cancelled) {
            (true, _) => Some(Outcome::Failed(reason("failed", false))),
            (_, true) => Some(Outcome::Cancelled(reason("was cancelled", true))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(task: u64) -> Outcome {
        let cause = Arc::new(TaskFailure {
            task,
            codelet: "codelet".to_owned(),
            implementation: "cpu".to_owned(),
            name: None,
            worker: 0,
            panicked: true,
            cancelled: false,
            message: "no".to_owned(),
        });
        if task.is_multiple_of(3) { Outcome::Failed(cause) } else { Outcome::Cancelled(cause) }
    }

    #[test]
    fn whether_a_task_ended_badly_is_known_for_ever_and_why_for_the_newest() {
        let mut tasks = BadTasks::default();
        let bad = |task: u64| !task.is_multiple_of(5);
        let last = 2 * NEWEST as u64;
        (1..=last).filter(|task| bad(*task)).for_each(|task| tasks.insert(task, outcome(task)));
        for task in 1..=last + 100 {
            let found = tasks.get(task);
            let message = match &found {
                Some(Outcome::Failed(cause)) if task.is_multiple_of(3) => cause.to_string(),
                Some(Outcome::Cancelled(cause)) if !task.is_multiple_of(3) => cause.to_string(),
                None if task > last || !bad(task) => continue,
                other => panic!("task {task}: {other:?}"),
            };
            assert!(task <= last && bad(task));
            match (1..=last).filter(|other| *other > task && bad(*other)).count() < NEWEST {
                true => assert_eq!(
                    message,
                    format!("task {task} (codelet `codelet`, implementation `cpu`, worker 0) panicked: no")
                ),
                false => {
                    assert!(message.starts_with(&format!("task {task} ")) && message.contains("not kept"), "{message}")
                }
            }
        }
        assert_eq!((tasks.newest.len(), tasks.order.len()), (NEWEST, NEWEST));
    }
}
