//! Queue lengths: the number of tasks that each node stores.

use super::event::{Event, Stamped};
use sched_core::TaskId;
use sched_tree::ObservedNode;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Replaces [`Event::Held`] by [`Event::QueueLength`]. Tasks that enter and leave a node at the same time do not count.
pub(super) fn queue_lengths(events: Vec<Stamped>, nodes: usize) -> Vec<Stamped> {
    let mut queues = Queues {
        at: BTreeMap::new(),
        lengths: vec![0; nodes],
        reported: vec![0; nodes],
        changed: BTreeSet::new(),
        all: Vec::with_capacity(events.len()),
    };
    let mut now = 0;
    for stamped in events {
        if stamped.nanos > now {
            queues.report(now);
            now = stamped.nanos;
        }
        match stamped.event {
            Event::Held { task, node } => queues.moves(task, Location::Node(node)),
            Event::Pulled { task, .. } | Event::Started { task, .. } => {
                queues.moves(task, Location::Gone);
                queues.all.push(stamped);
            }
            _ => queues.all.push(stamped),
        }
    }
    queues.report(now);
    queues.all
}

/// Location of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Node(ObservedNode),
    /// A worker has pulled it. Later reports by the threads that pushed it are outdated.
    Gone,
}

struct Queues {
    at: BTreeMap<TaskId, Location>,
    lengths: Vec<u32>,
    /// The lengths that were reported last.
    reported: Vec<u32>,
    changed: BTreeSet<ObservedNode>,
    all: Vec<Stamped>,
}

impl Queues {
    fn moves(&mut self, task: TaskId, to: Location) {
        let before = match self.at.entry(task) {
            Entry::Vacant(entry) => {
                entry.insert(to);
                None
            }
            Entry::Occupied(entry) if *entry.get() == Location::Gone || *entry.get() == to => return,
            Entry::Occupied(mut entry) => Some(entry.insert(to)),
        };
        if let Some(Location::Node(node)) = before {
            self.change(node, |length| length.saturating_sub(1));
        }
        if let Location::Node(node) = to {
            self.change(node, |length| length + 1);
        }
    }

    fn change(&mut self, node: ObservedNode, by: impl Fn(u32) -> u32) {
        if let Some(length) = self.lengths.get_mut(node.index()) {
            *length = by(*length);
            self.changed.insert(node);
        }
    }

    /// Reports the lengths that have changed at this time.
    fn report(&mut self, nanos: u64) {
        while let Some(node) = self.changed.pop_first() {
            let length = self.lengths[node.index()];
            if std::mem::replace(&mut self.reported[node.index()], length) != length {
                self.all.push(Stamped { nanos, event: Event::QueueLength { node, length } });
            }
        }
    }
}
