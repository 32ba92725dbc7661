//! Components that do not keep their contract, which must harm no other component.

use sched_core::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

/// Does what its parameter `what` says from the `after`-th call on; else it passes everything through, or keeps tasks
/// until they are pulled if it `stores`.
#[derive(Debug)]
pub struct Bad {
    what: String,
    stores: bool,
    left: AtomicI64,
    kept: Mutex<VecDeque<Task>>,
}

impl Build for Bad {
    const INFO: Info = Info::new("bad", Family::SpecialPurpose, "Misbehaves.").storage(Storage::Unbounded).params(
        const {
            &[
                Param::text("what", "", "what it does wrong"),
                Param::int("after", 0, "calls before it begins"),
                Param::bool("stores", false, "it keeps tasks until they are pulled"),
            ]
        },
    );

    fn build(params: &Params) -> Result<Self, BuildError> {
        let bad = Bad {
            what: params.text("what")?.to_owned(),
            stores: params.bool("stores")?,
            left: AtomicI64::new(params.int("after")?),
            kept: Mutex::default(),
        };
        bad.block_now("block in build");
        Ok(bad)
    }
}

impl Bad {
    /// Whether it is time to do `what`.
    fn now(&self, what: &str) -> bool {
        self.what == what && self.left.fetch_sub(1, Relaxed) <= 0
    }

    /// Whether it is time to do `what`, every third time.
    fn now_and_then(&self, what: &str) -> bool {
        self.what == what && self.left.fetch_sub(1, Relaxed) % 3 == 0
    }

    fn panic_now(&self, what: &str) {
        assert!(!self.now(what), "bad on purpose: {what}");
    }

    /// Does not come back, if it is time to do so.
    fn block_now(&self, what: &str) {
        while self.now(what) {
            std::thread::park();
        }
    }

    fn keep(&self, node: Node<'_>, task: Task) -> Push {
        self.kept.lock().push_back(task);
        node.children_can_pull();
        Ok(())
    }

    fn take(&self) -> Option<Task> {
        self.kept.lock().pop_front()
    }
}

impl Component for Bad {
    // Long because there are many ways to misbehave.
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.panic_now("panic in push");
        self.block_now("block in push");
        if self.what == "panic after storing" {
            self.kept.lock().push_back(task);
            self.panic_now("panic after storing");
            node.children_can_pull();
            return Ok(());
        }
        if self.now_and_then("drop") {
            return Ok(());
        }
        if self.now_and_then("leak") {
            std::mem::forget(task);
            return Ok(());
        }
        match &*self.what {
            // Stores the task, and wakes nobody.
            "mute" | "hoard" => {
                self.kept.lock().push_back(task);
                return Ok(());
            }
            "refuse" | "deaf" => return Err(Refused::new(task, Refusal::Full)),
            // Keeps the new task and hands back the previous one.
            "swap" => {
                let other = self.kept.lock().replace(task);
                node.children_can_pull();
                return match other {
                    Some(other) => Err(Refused::new(other, Refusal::Full)),
                    None => Ok(()),
                };
            }
            // Sends the previous task down, and keeps the new one until it is pulled.
            "one behind" => {
                let other = self.kept.lock().replace(task);
                return match other.map(|other| node.push_to(Child(0), other)) {
                    Some(Err(refused)) => self.keep(node, refused.task),
                    _ => {
                        node.children_can_pull();
                        Ok(())
                    }
                };
            }
            "ask" => {
                let load = node.load_below();
                assert!((0.0..f64::INFINITY).contains(&load), "the host gives usable numbers: {load}");
                let _ = node.earliest_end_below();
            }
            "name a child" => {
                // None of them exists.
                let _ = (node.child_can_pull(Child(7)), node.child_load(Child(8)), node.child_estimated_end(Child(9)));
                let refused = node.push_to(Child(u32::MAX), task).expect_err("there is no such child");
                return node.push_to(Child(0), refused.task);
            }
            "hold a lock" => {
                let _lock = self.kept.lock();
                return node.push_to(Child(0), task);
            }
            _ => {}
        }
        if self.stores { self.keep(node, task) } else { node.push_to(Child(0), task) }
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        if ["deaf", "hoard"].contains(&&*self.what) {
            return None;
        }
        self.block_now("block in pull");
        if self.what == "name a parent" {
            let _ = node.pull_from(Parent(7));
        }
        let task = self.take().or_else(|| node.pull_from_parents());
        self.panic_now("panic in pull");
        if task.is_some() && self.now_and_then("drop when pulled") {
            return None;
        }
        task
    }

    fn can_push(&self, node: Node<'_>, _to: Child) -> bool {
        self.panic_now("panic in can_push");
        self.block_now("block in can_push");
        if ["deaf", "hoard"].contains(&&*self.what) {
            return false;
        }
        if self.what == "wake for nothing" {
            node.children_can_pull();
        }
        let mut moved = false;
        while let Some(task) = self.take() {
            match node.push_to(Child(0), task) {
                Ok(()) => moved = true,
                Err(refused) => {
                    self.kept.lock().push_front(refused.task);
                    return moved;
                }
            }
        }
        if self.what == "down again" { node.wake_one() } else { moved || node.parents_can_push() }
    }

    fn can_pull(&self, node: Node<'_>) -> bool {
        self.panic_now("panic in can_pull");
        self.block_now("block in can_pull");
        if self.what == "up again" { node.parents_can_push() } else { node.wake_one() }
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        self.panic_now("panic in estimated_end");
        node.earliest_end_below()
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        self.panic_now("panic in estimated_load");
        match &*self.what {
            "no number" => f64::NAN,
            "an infinite load" => f64::INFINITY,
            "a negative load" => -1.0,
            _ => node.load_below(),
        }
    }

    fn drain(&self) -> Vec<Task> {
        self.block_now("block in drain");
        if self.what == "keep when drained" {
            return Vec::new();
        }
        self.kept.lock().drain(..).collect()
    }

    fn describe(&self, report: &mut Report) {
        self.panic_now("panic in describe");
        report.fact("kept", self.kept.lock().len());
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        self.panic_now("panic in drop");
        self.block_now("block in drop");
    }
}

/// A queue of capacity 1.
trait Replace {
    fn replace(&mut self, task: Task) -> Option<Task>;
}

impl Replace for VecDeque<Task> {
    fn replace(&mut self, task: Task) -> Option<Task> {
        self.push_back(task);
        if self.len() > 1 { self.pop_front() } else { None }
    }
}

/// Distributes tasks to its children in turn, whichever worker pulls. It keeps its contract; few other components send
/// a worker's tasks to others while that worker is awake.
#[derive(Debug)]
pub struct Deal {
    next: AtomicU32,
}

impl Build for Deal {
    const INFO: Info = Info::new("deal", Family::ResourceMapping, "Deals tasks out in turn.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Deal { next: AtomicU32::new(0) })
    }
}

impl Component for Deal {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let turn = self.next.fetch_add(1, Relaxed);
        node.push_to(Child(turn % node.children().len() as u32), task)
    }
}
