//! The transfers of tasks that were sent, as far as they can be foreseen.

use super::flows::Flows;
use super::network::{Network, Traffic};
use sched_core::{DataAccess, MemoryNode, Node, Submitted};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A transfer that waits for memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When that is allocated.
    pub(super) at: u64,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Number of the place that it is for.
    pub(super) place: u32,
    bytes: u64,
}

/// See the [module](self). Where the host does not know the routes, nothing is foreseen.
#[derive(Default, Debug)]
pub(super) struct UnderWay {
    /// Number of memories that tasks are planned for.
    pub(super) memories: usize,
    pub(super) network: Arc<Network>,
    pub(super) traffic: Traffic,
    /// The same transfers, each of which brings the data to the memory with that number in `places`.
    pub(super) flows: Flows,
    /// Those that are yet to begin, by the time when they do.
    pub(super) requests: VecDeque<Request>,
    pub(super) places: Vec<(u64, usize)>,
    /// When each piece of data arrives in a memory.
    arrivals: BTreeMap<(u64, usize), u64>,
    /// Pieces of data that have memory, by what was fetched.
    allocated: BTreeMap<(u64, usize), Held>,
    /// By memory: bytes for data, where that is limited; and the bytes of what was fetched.
    capacities: Vec<Option<u64>>,
    used: Vec<u64>,
    /// The memory and the data of the tasks that were sent, by sequence number, where memory is limited.
    users: BTreeMap<u64, (usize, Vec<u64>)>,
    /// Number of uses of data.
    uses: u64,
}

/// A piece of data that has memory.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    bytes: u64,
    /// Number of its last use.
    used: u64,
    /// Number of tasks that were sent and use it.
    users: u32,
}

impl UnderWay {
    /// Nothing is under way between the first `memories` memory nodes.
    pub(super) fn new(node: Node<'_>, memories: usize) -> UnderWay {
        let network = Network::of(node, memories);
        UnderWay {
            memories,
            traffic: network.quiet(),
            flows: Flows::quiet(&network),
            capacities: if network.is_known() { capacities(node, memories) } else { vec![None; memories] },
            used: vec![0; memories],
            network: Arc::new(network),
            ..UnderWay::default()
        }
    }

    /// When data arrives in a memory, if it is on its way there.
    pub(super) fn arrival(&self, data: u64, memory: usize, now: u64) -> Option<u64> {
        self.arrivals.get(&(data, memory)).copied().filter(|at| *at > now)
    }

    /// Whether data has memory there, valid or not.
    pub(super) fn is_allocated(&self, data: u64, memory: usize) -> bool {
        self.allocated.contains_key(&(data, memory))
    }

    /// Bytes for data in a memory, where that is limited.
    pub(super) fn capacity(&self, memory: usize) -> Option<u64> {
        self.capacities.get(memory).copied().flatten()
    }

    /// The data that may be in a memory, with its bytes.
    pub(super) fn held(&self, memory: usize) -> impl Iterator<Item = (u64, u64)> {
        let there = self.allocated.iter().filter(move |((_, there), _)| *there == memory);
        there.map(|((data, _), held)| (*data, held.bytes))
    }

    /// Number of the last use of data in a memory; smaller ones are longer ago.
    pub(super) fn last_use(&self, data: u64, memory: usize) -> u64 {
        self.allocated.get(&(data, memory)).map_or(0, |held| held.used)
    }

    /// Takes note that a task that was sent has ended, or goes elsewhere.
    pub(super) fn leave(&mut self, sequence: u64) {
        let Some((memory, data)) = self.users.remove(&sequence) else { return };
        for datum in data {
            self.uses += 1;
            if let Some(held) = self.allocated.get_mut(&(datum, memory)) {
                held.users = held.users.saturating_sub(1);
                held.used = self.uses;
            }
        }
    }

    /// Takes note that a task that is sent uses data.
    fn use_by(&mut self, sequence: u64, data: u64, memory: usize) {
        if self.capacity(memory).is_none() {
            return;
        }
        self.users.entry(sequence).or_insert_with(|| (memory, Vec::new())).1.push(data);
        self.uses += 1;
        if let Some(held) = self.allocated.get_mut(&(data, memory)) {
            held.users += 1;
            held.used = self.uses;
        }
    }

    /// Whether there is room without evictions.
    fn has_room(&mut self, submitted: Submitted<'_>, memory: usize, bytes: u64, now: u64) -> bool {
        let Some(capacity) = self.capacity(memory) else { return true };
        if self.used[memory].saturating_add(bytes) > capacity {
            self.forget_evicted(submitted, memory, now);
        }
        self.used[memory].saturating_add(bytes) <= capacity
    }

    /// Forgets the memory of data that is not in it any more.
    fn forget_evicted(&mut self, submitted: Submitted<'_>, memory: usize, now: u64) {
        let UnderWay { allocated, arrivals, used, .. } = self;
        used[memory] = 0;
        allocated.retain(|place, held| {
            if place.1 != memory {
                return true;
            }
            let stays = held.users > 0
                || submitted.has_copy(place.0, MemoryNode(memory as u32))
                || arrivals.get(place).is_some_and(|at| *at > now);
            used[memory] = used[memory].saturating_add(if stays { held.bytes } else { 0 });
            stays
        });
    }

    /// Takes note that data has memory. Returns whether it had none.
    fn allocate(&mut self, data: u64, memory: usize, bytes: u64) -> bool {
        let is_new = !self.is_allocated(data, memory);
        if is_new {
            self.allocated.insert((data, memory), Held { bytes, ..Held::default() });
            self.used[memory] = self.used[memory].saturating_add(bytes);
        }
        is_new
    }

    /// Forgets what has arrived, and foresees when the rest does.
    pub(super) fn settle(&mut self, now: u64) {
        self.run(now);
        self.arrivals.clear();
        if self.requests.is_empty() && self.flows.tidy() {
            self.places.clear();
            return;
        }
        let UnderWay { flows, network, requests, places, arrivals, .. } = self;
        let mut flows = flows.clone();
        let mut note = |place: u32, at: u64| _ = arrivals.insert(places[place as usize], at);
        for request in requests.iter() {
            flows.run(network, request.at, &mut note);
            let pair = network.pair(request.from, request.to);
            flows.request(network, pair, request.place, request.bytes, request.at);
        }
        flows.run(network, u64::MAX - 1, &mut note);
    }

    /// Lets time pass until `now`.
    fn run(&mut self, now: u64) {
        let UnderWay { flows, network, requests, .. } = self;
        while let Some(request) = requests.pop_front_if(|request| request.at <= now) {
            flows.run(network, request.at, |_, _| {});
            let pair = network.pair(request.from, request.to);
            flows.request(network, pair, request.place, request.bytes, request.at);
        }
        flows.run(network, now, |_, _| {});
    }

    /// When the data of a task that was [fetched](Self::fetch) to a memory is there.
    pub(super) fn complete(&self, submitted: Submitted<'_>, sequence: u64, to: usize, now: u64) -> u64 {
        let Some(task) = submitted.task(sequence) else { return now };
        let read = submitted.accesses(sequence, task).filter(|access| access.reads);
        read.filter_map(|access| self.arrival(access.data, to, now)).fold(now, u64::max)
    }

    /// Takes note that the data of a task is fetched to a memory: because it `is_sent`, or ahead of that, when nothing
    /// is evicted. Returns when it is there, and its memory allocated.
    pub(super) fn fetch(
        &mut self,
        submitted: Submitted<'_>,
        sequence: u64,
        to: usize,
        is_sent: bool,
        now: u64,
    ) -> (u64, u64) {
        let (mut latest, mut memory) = (now, now);
        if !self.network.is_known() {
            return (latest, memory);
        }
        let Some(task) = submitted.task(sequence) else { return (latest, memory) };
        self.run(now);
        // What is written and not read gets memory when a worker takes the task.
        let uses = |access: &DataAccess| access.reads || (access.writes && is_sent);
        for access in submitted.accesses(sequence, task).filter(uses) {
            let has_copy = |memory: usize| submitted.has_copy(access.data, MemoryNode(memory as u32));
            let is_there = has_copy(to);
            if !is_there
                && !is_sent
                && !self.is_allocated(access.data, to)
                && !self.has_room(submitted, to, access.bytes, now)
            {
                continue;
            }
            if self.allocate(access.data, to, access.bytes) && !is_there {
                memory = self.network.allocate(&mut self.traffic, to, now);
            }
            if is_sent {
                self.use_by(sequence, access.data, to);
            }
            if is_there || !access.reads {
                continue;
            }
            if let Some(at) = self.arrival(access.data, to, now) {
                latest = latest.max(at);
                continue;
            }
            let alone = |from: usize| self.network.alone(from, to, access.bytes);
            let expected = |from: &usize| {
                submitted.expected_transfer(MemoryNode(*from as u32), MemoryNode(to as u32), access.bytes)
            };
            let Some(from) = (0..self.memories).filter(|from| has_copy(*from)).min_by_key(expected) else { continue };
            let Some(length) = alone(from) else { continue };
            let begins = self.network.allocated(&self.traffic, to, now);
            let at = self.network.begin(&mut self.traffic, from, to, begins, length);
            let place = self.places.len() as u32;
            if begins > now {
                self.requests.push_back(Request { at: begins, from, to, place, bytes: access.bytes });
            } else {
                self.flows.request(&self.network, self.network.pair(from, to), place, access.bytes, now);
            }
            self.places.push((access.data, to));
            self.arrivals.insert((access.data, to), at);
            latest = latest.max(at);
        }
        (latest.max(memory), memory)
    }
}

/// Bytes for data in each memory but main memory, where all of it is at home.
fn capacities(node: Node<'_>, memories: usize) -> Vec<Option<u64>> {
    (0..memories as u32).map(|memory| node.memory_capacity(MemoryNode(memory)).filter(|_| memory > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::{Passage, Route};
    use std::time::Duration;

    /// Nothing under way from memory 0 to memory 1, over a link that takes 1 ns for a byte.
    fn quiet() -> UnderWay {
        let allocation = Duration::from_nanos(100);
        let links = vec![Passage { link: 0, per_byte: 1.0 }];
        let there = Route { latency: Duration::from_nanos(10), links, weight: 1.0, allocation };
        let routes = [Route::default(), there, Route::default(), Route { allocation, ..Route::default() }];
        let network = Network::over(2, &routes);
        UnderWay {
            memories: 2,
            traffic: network.quiet(),
            flows: Flows::quiet(&network),
            network: Arc::new(network),
            ..UnderWay::default()
        }
    }

    #[test]
    fn a_transfer_begins_when_its_memory_is_allocated() {
        let mut under_way = quiet();
        for (at, place, bytes) in [(100, 0, 50), (200, 1, 20)] {
            under_way.requests.push_back(Request { at, from: 0, to: 1, place, bytes });
            under_way.places.push((7 + u64::from(place), 1));
        }
        let arrivals = |under_way: &UnderWay, now| [7, 8].map(|data| under_way.arrival(data, 1, now));
        under_way.settle(0);
        assert_eq!(arrivals(&under_way, 0), [Some(160), Some(230)]);
        under_way.settle(120);
        assert_eq!((under_way.requests.len(), arrivals(&under_way, 120)), (1, [Some(160), Some(230)]));
        under_way.settle(160);
        assert_eq!(arrivals(&under_way, 160), [None, Some(230)]);
        under_way.settle(230);
        assert_eq!((under_way.places.len(), arrivals(&under_way, 230)), (0, [None, None]));
    }

    #[test]
    fn the_machine_makes_one_allocation_at_a_time() {
        let UnderWay { network, mut traffic, .. } = quiet();
        assert_eq!(network.allocated(&traffic, 1, 5), 5);
        assert_eq!([5, 5, 500].map(|at| network.allocate(&mut traffic, 1, at)), [105, 205, 600]);
        assert_eq!([550, 700].map(|at| network.allocated(&traffic, 1, at)), [600, 700]);
        assert_eq!((network.allocate(&mut traffic, 0, 5), network.allocated(&traffic, 0, 5)), (5, 5), "not at home");
    }
}
