//! Transfers that share links at each moment: a prediction that costs more than that of [`Traffic`](super::network),
//! and is closer.
//!
//! Between two memories one transfer at a time is under way in each direction; those that wait for it follow in the
//! order in which they were requested. Transfers that flow share each link fairly: all speeds grow in proportion to
//! the weights of the routes until a link is full, where those of its transfers stop (max-min fairness; Bertsekas and
//! Gallager, *Data Networks*, 6.5).

use super::network::Network;

/// No transfer, or no place.
const NONE: u32 = u32::MAX;

/// What arrives nowhere that matters.
pub(super) const NOWHERE: u32 = NONE;

/// A transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// What arrives, by the caller's number.
    place: u32,
    bytes: f64,
    /// The next one between the same memories.
    next: u32,
}

/// The transfers between two memories.
#[derive(Clone, Copy, Debug)]
struct Channel {
    busy: bool,
    first: u32,
    last: u32,
}

const QUIET: Channel = Channel { busy: false, first: NONE, last: NONE };

/// The transfer under way between two memories.
#[derive(Clone, Copy, Debug)]
struct Active {
    pair: u32,
    transfer: u32,
    /// When its first byte moves, in nanoseconds.
    opens: u64,
    is_open: bool,
    /// Bytes that have not arrived.
    left: f64,
    /// Bytes for each nanosecond.
    speed: f64,
}

/// A link while it is divided.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    /// The part of its time that is not given to transfers.
    left: f64,
    /// Nanoseconds that it needs for a byte of each transfer without a speed.
    passing: f64,
    count: u32,
}

/// See the [module](self).
#[derive(Default, Debug)]
pub(super) struct Flows {
    now: u64,
    transfers: Vec<Transfer>,
    channels: Vec<Channel>,
    active: Vec<Active>,
    /// Whether speeds are to be computed again.
    changed: bool,
    /// What [`next`](Self::next) has found, while time stands still and nothing begins or ends.
    upcoming: Option<u64>,
    /// Scratch: by link.
    shares: Vec<Share>,
    used: Vec<usize>,
}

impl Clone for Flows {
    fn clone(&self) -> Flows {
        let mut clone = Flows::default();
        clone.clone_from(self);
        clone
    }

    fn clone_from(&mut self, other: &Flows) {
        self.now = other.now;
        self.transfers.clone_from(&other.transfers);
        self.channels.clone_from(&other.channels);
        self.active.clone_from(&other.active);
        self.changed = other.changed;
        self.upcoming = other.upcoming;
        self.shares.clone_from(&other.shares);
    }
}

impl Flows {
    /// No transfers.
    pub(super) fn quiet(network: &Network) -> Flows {
        Flows {
            channels: vec![QUIET; network.pairs()],
            shares: vec![Share::default(); network.links()],
            ..Flows::default()
        }
    }

    /// Requests a transfer at `now`, at which everything earlier has [arrived](Self::arrive).
    pub(super) fn request(&mut self, network: &Network, pair: usize, place: u32, bytes: u64, now: u64) {
        self.pass(now);
        let transfer = self.transfers.len() as u32;
        self.transfers.push(Transfer { place, bytes: bytes as f64, next: NONE });
        let channel = &mut self.channels[pair];
        if channel.first == NONE {
            channel.first = transfer;
        } else {
            self.transfers[channel.last as usize].next = transfer;
        }
        channel.last = transfer;
        if !channel.busy {
            self.begin(network, pair);
        }
    }

    /// Begins the next transfer between two memories.
    fn begin(&mut self, network: &Network, pair: usize) {
        let channel = &mut self.channels[pair];
        let transfer = channel.first;
        channel.busy = transfer != NONE;
        if !channel.busy {
            return;
        }
        let Transfer { bytes, next, .. } = self.transfers[transfer as usize];
        channel.first = next;
        let opens = self.now.saturating_add(network.latency(pair));
        let pair = pair as u32;
        self.upcoming = None;
        self.active.push(Active { pair, transfer, opens, is_open: false, left: bytes, speed: 0.0 });
    }

    /// When the next transfer arrives or begins to flow, if nothing is requested before.
    #[inline]
    pub(super) fn next(&mut self, network: &Network) -> u64 {
        if let Some(upcoming) = self.upcoming {
            return upcoming;
        }
        let next = self.find_next(network);
        self.upcoming = Some(next);
        next
    }

    fn find_next(&mut self, network: &Network) -> u64 {
        if std::mem::take(&mut self.changed) {
            self.share(network);
        }
        let mut next = u64::MAX;
        for active in &self.active {
            let at = if active.is_open {
                let nanos = active.left.max(0.0) / active.speed;
                // Rounded up: `ceil` would be a call.
                let whole = nanos as u64;
                self.now.saturating_add(whole).saturating_add(u64::from((whole as f64) < nanos))
            } else {
                active.opens
            };
            next = next.min(at);
        }
        next
    }

    /// Lets time pass until [`next`](Self::next), and calls `arrived` for each place where something arrives.
    pub(super) fn arrive(&mut self, network: &Network, at: u64, mut arrived: impl FnMut(u32)) {
        self.pass(at);
        self.upcoming = None;
        let mut index = 0;
        while let Some(active) = self.active.get_mut(index) {
            if !active.is_open {
                active.is_open = active.opens <= at;
                self.changed |= active.is_open;
                index += 1;
            } else if active.left <= active.speed * 0.5 + 1e-6 {
                let Active { pair, transfer, .. } = self.active.swap_remove(index);
                self.changed = true;
                arrived(self.transfers[transfer as usize].place);
                self.begin(network, pair as usize);
            } else {
                index += 1;
            }
        }
    }

    /// Lets time pass until `until`, and calls `arrived` for each place and time where something arrives.
    pub(super) fn run(&mut self, network: &Network, until: u64, mut arrived: impl FnMut(u32, u64)) {
        loop {
            let next = self.next(network);
            if next > until {
                break;
            }
            self.arrive(network, next, |place| arrived(place, next));
        }
        self.pass(until);
    }

    /// Names the places anew.
    pub(super) fn rename(&mut self, name: impl Fn(u32) -> u32) {
        self.transfers.iter_mut().for_each(|transfer| transfer.place = name(transfer.place));
    }

    /// The places where something is yet to arrive.
    pub(super) fn coming(&self) -> impl Iterator<Item = u32> {
        let under_way = self.active.iter().map(|active| active.transfer);
        let queued = self.channels.iter().flat_map(|channel| {
            let first = Some(channel.first).filter(|first| *first != NONE);
            std::iter::successors(first, |at| Some(self.transfers[*at as usize].next).filter(|next| *next != NONE))
        });
        under_way.chain(queued).map(|transfer| self.transfers[transfer as usize].place)
    }

    /// Forgets all transfers if none is under way. Returns whether it is so.
    pub(super) fn tidy(&mut self) -> bool {
        if self.active.is_empty() {
            self.transfers.clear();
        }
        self.active.is_empty()
    }

    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.now) as f64;
        if passed > 0.0 {
            for active in self.active.iter_mut().filter(|active| active.is_open) {
                active.left -= active.speed * passed;
            }
            self.now = now;
            self.upcoming = None;
        }
    }

    /// Gives each transfer its speed.
    fn share(&mut self, network: &Network) {
        let Flows { active, shares, used, .. } = self;
        used.clear();
        let mut unsettled = 0;
        for active in active.iter_mut().filter(|active| active.is_open) {
            active.speed = 0.0;
            unsettled += 1;
            let weight = network.weight(active.pair as usize);
            for (link, per_byte) in network.passed(active.pair as usize) {
                let share = &mut shares[link];
                if share.count == 0 {
                    *share = Share { left: 1.0, ..Share::default() };
                    used.push(link);
                }
                share.passing += weight * per_byte;
                share.count += 1;
            }
        }
        while unsettled > 0 {
            let (mut speed, mut narrowest) = (f64::INFINITY, None);
            for link in used.iter() {
                let Share { left, passing, count } = shares[*link];
                let most = left / passing.max(f64::MIN_POSITIVE);
                if count > 0 && most < speed {
                    (speed, narrowest) = (most, Some(*link));
                }
            }
            for active in active.iter_mut().filter(|active| active.is_open && active.speed == 0.0) {
                let pair = active.pair as usize;
                if narrowest.is_some_and(|narrowest| network.passed(pair).all(|(link, _)| link != narrowest)) {
                    continue;
                }
                let weight = network.weight(pair);
                active.speed = (weight * speed).max(f64::MIN_POSITIVE);
                unsettled -= 1;
                for (link, per_byte) in network.passed(pair) {
                    let share = &mut shares[link];
                    share.left = (share.left - active.speed * per_byte).max(0.0);
                    share.passing -= weight * per_byte;
                    share.count -= 1;
                }
            }
        }
        for link in used.iter() {
            shares[*link] = Share::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::{Passage, Route};
    use std::time::Duration;

    /// Two memories and the routes between them, over links of these numbers of nanoseconds for each byte.
    fn network(there: &[(u32, f64)], back: &[(u32, f64)], weights: [f64; 2]) -> Network {
        let route = |links: &[(u32, f64)], weight| Route {
            latency: Duration::from_nanos(10),
            links: links.iter().map(|(link, per_byte)| Passage { link: *link, per_byte: *per_byte }).collect(),
            weight,
            ..Route::default()
        };
        let routes = [Route::default(), route(there, weights[0]), route(back, weights[1]), Route::default()];
        Network::over(2, &routes)
    }

    /// When each place gets what was requested for it.
    fn arrivals(flows: &mut Flows, network: &Network) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        flows.run(network, 1_000_000, |place, at| found.push((place, at)));
        found
    }

    #[test]
    fn one_transfer_at_a_time_is_under_way_in_each_direction() {
        let network = network(&[(0, 1.0)], &[(1, 1.0)], [1.0; 2]);
        let mut flows = Flows::quiet(&network);
        flows.request(&network, 1, 7, 100, 0);
        flows.request(&network, 1, 8, 50, 0);
        flows.request(&network, 2, 9, 100, 5);
        assert_eq!(flows.coming().collect::<Vec<_>>(), [7, 9, 8]);
        assert_eq!(arrivals(&mut flows, &network), [(7, 110), (9, 115), (8, 170)]);
        assert!(flows.tidy());
    }

    #[test]
    fn transfers_share_a_link_by_the_weights_of_their_routes() {
        for (weights, expected) in [([1.0, 1.0], [(2, 210), (1, 310)]), ([3.0, 1.0], [(1, 277), (2, 311)])] {
            let network = network(&[(0, 1.0)], &[(0, 1.0)], weights);
            let mut flows = Flows::quiet(&network);
            flows.request(&network, 1, 1, 200, 0);
            flows.request(&network, 2, 2, 100, 0);
            assert_eq!(arrivals(&mut flows, &network), expected);
        }
    }

    #[test]
    fn what_a_narrow_link_leaves_goes_to_others() {
        // One passes a narrow link too, and the other one takes what that leaves of the wide link.
        let network = network(&[(0, 1.0), (1, 4.0)], &[(0, 1.0)], [1.0; 2]);
        let mut flows = Flows::quiet(&network);
        flows.request(&network, 1, 1, 100, 0);
        flows.request(&network, 2, 2, 75, 0);
        assert_eq!(arrivals(&mut flows, &network), [(2, 110), (1, 410)]);
    }

    #[test]
    fn transfers_over_no_link_take_their_latency() {
        let network = network(&[], &[], [1.0; 2]);
        let mut flows = Flows::quiet(&network);
        flows.request(&network, 1, 1, 1 << 30, 0);
        assert_eq!(arrivals(&mut flows, &network), [(1, 10)]);
    }
}
