//! Transfers that share links: how fast each of them goes at any moment.
//!
//! Bandwidth is shared max-min fairly (Bertsekas and Gallager, *Data Networks*, 6.5): the rates of all flows grow in
//! proportion to their weights until a link is full; those of its flows stop there, and the others go on growing. A
//! flow that passes a link twice counts twice there. Between two changes rates are constant, so only the beginning and
//! the end of a flow are events.
//!
//! The weights are those of [`Sharing`](super::platform::Sharing).

use smallvec::SmallVec;

/// A transfer: its place in the engine's list until it ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TransferId(pub(super) u32);

impl TransferId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A way through the network: its place in the list of [`Network::add_route`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct RouteId(pub(super) u32);

impl RouteId {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The links of flows from one place to another.
#[derive(Clone, Debug)]
struct Route {
    passages: Vec<Passage>,
    /// Its share of a link, relative to that of other flows.
    weight: f64,
}

/// A link that a flow passes.
#[derive(Clone, Copy, Debug)]
struct Passage {
    /// Place in the list of links.
    link: usize,
    /// How often the flow passes it.
    times: f64,
}

/// The bytes of a transfer on their way over some links.
#[derive(Clone, Debug)]
struct Flow {
    transfer: TransferId,
    route: RouteId,
    /// How many flows began before it.
    number: u64,
    /// Bytes that have not arrived.
    left: f64,
    /// Bytes per nanosecond.
    rate: f64,
}

/// A link while bandwidth is shared.
#[derive(Clone, Copy, Default, Debug)]
struct OpenLink {
    /// Bandwidth that is not given to flows.
    left: f64,
    /// Total weight of the passages of flows without a rate.
    passing: f64,
    /// Number of these passages.
    count: f64,
}

/// Maximum number of flows whose rates are remembered.
const REMEMBERED_FLOWS: usize = 8;

/// Number of sets of flows whose rates are remembered; a power of two.
const REMEMBERED_SETS: usize = 1024;

/// The rates of some flows.
#[derive(Clone, Copy, Default, Debug)]
struct Remembered {
    /// Their routes, in a byte each, from 1; 0 if nothing is remembered.
    routes: u64,
    rates: [f64; REMEMBERED_FLOWS],
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Network {
    /// Bandwidth of each link in bytes per nanosecond.
    bandwidth: Vec<f64>,
    routes: Vec<Route>,
    /// In order of their routes, then of their beginning.
    flows: Vec<Flow>,
    /// Number of flows so far.
    begun: u64,
    /// Time for which [`Flow::left`] holds.
    now: u64,
    /// Rates that were computed before, since a machine has few routes: each set of flows has one place. Empty before
    /// the first.
    remembered: Vec<Remembered>,
    /// Scratch: the state of each link.
    open: Vec<OpenLink>,
    /// Scratch: links that flows pass.
    used: Vec<usize>,
    /// Scratch: whether each flow has its rate.
    settled: Vec<bool>,
}

impl Network {
    pub(super) fn new(bandwidth: Vec<f64>) -> Network {
        Network {
            open: vec![OpenLink::default(); bandwidth.len()],
            bandwidth,
            routes: Vec::new(),
            flows: Vec::new(),
            begun: 0,
            now: 0,
            remembered: Vec::new(),
            used: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Adds a route over `links`, which get numbers from 0. Flows share a link in proportion to their weights.
    pub(super) fn add_route(&mut self, links: &[usize], weight: f64) -> RouteId {
        let mut passages: Vec<Passage> = Vec::new();
        for link in links {
            match passages.iter_mut().find(|passage| passage.link == *link) {
                Some(passage) => passage.times += 1.0,
                None => passages.push(Passage { link: *link, times: 1.0 }),
            }
        }
        self.routes.push(Route { passages, weight });
        RouteId(self.routes.len() as u32 - 1)
    }

    /// Number of links.
    pub(super) fn links(&self) -> usize {
        self.bandwidth.len()
    }

    /// Begins a flow of `bytes` bytes over a route at `now`.
    pub(super) fn begin(&mut self, now: u64, transfer: TransferId, route: RouteId, bytes: u64) {
        self.advance(now);
        let behind = self.flows.iter().rposition(|flow| flow.route <= route).map_or(0, |before| before + 1);
        self.flows.insert(behind, Flow { transfer, route, number: self.begun, left: bytes as f64, rate: 0.0 });
        self.begun += 1;
        self.share();
    }

    /// Removes the flows that have arrived by `now`, in the order in which they began, and adds their transfers to
    /// `arrived`.
    pub(super) fn arrived(&mut self, now: u64, arrived: &mut Vec<TransferId>) {
        self.advance(now);
        let mut done: SmallVec<[(u64, TransferId); 4]> = SmallVec::new();
        self.flows.retain(|flow| {
            // Rounding may leave the bytes of half a nanosecond.
            let is_done = flow.left <= flow.rate * 0.5 + 1e-6;
            if is_done {
                done.push((flow.number, flow.transfer));
            }
            !is_done
        });
        if done.is_empty() {
            return;
        }
        done.sort_unstable_by_key(|(number, _)| *number);
        arrived.extend(done.into_iter().map(|(_, transfer)| transfer));
        self.share();
    }

    /// Time at which the next flow arrives, if nothing changes before.
    pub(super) fn next(&self) -> Option<u64> {
        let after = |flow: &Flow| if flow.left <= 0.0 { 0.0 } else { flow.left / flow.rate };
        // One instruction of most processors, unlike `f64::min`; there is no NaN.
        let first = self.flows.iter().map(after).reduce(|one, other| if one < other { one } else { other })?;
        // The next whole number, as `ceil` gives it, which is a call on most processors' common instruction set.
        let whole = first as u64;
        Some(self.now.saturating_add(whole).saturating_add(u64::from((whole as f64) < first)))
    }

    fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.now) as f64;
        if passed > 0.0 {
            for flow in &mut self.flows {
                flow.left -= flow.rate * passed;
            }
        }
        self.now = now;
    }

    /// Gives each flow its share of the bandwidth, as it was computed the last time for such flows.
    fn share(&mut self) {
        let Some(routes) = self.routes_of_flows() else { return self.compute_shares() };
        // Fibonacci hashing: the upper bits depend on all.
        let at = (routes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % REMEMBERED_SETS;
        if let Some(known) = self.remembered.get(at).filter(|known| known.routes == routes) {
            return self.flows.iter_mut().zip(&known.rates).for_each(|(flow, rate)| flow.rate = *rate);
        }
        self.compute_shares();
        self.remembered.resize(REMEMBERED_SETS, Remembered::default());
        let new = &mut self.remembered[at];
        new.routes = routes;
        new.rates.iter_mut().zip(&self.flows).for_each(|(rate, flow)| *rate = flow.rate);
    }

    /// The routes of all flows, as [`Remembered::routes`] has them; `None` if they are too many.
    fn routes_of_flows(&self) -> Option<u64> {
        if self.flows.len() > REMEMBERED_FLOWS || self.routes.len() > usize::from(u8::MAX) {
            return None;
        }
        Some(self.flows.iter().fold(0, |routes, flow| routes << 8 | u64::from(flow.route.0 + 1)))
    }

    /// Computes the share of each flow.
    fn compute_shares(&mut self) {
        self.used.clear();
        for flow in &self.flows {
            for Passage { link, .. } in &self.routes[flow.route.index()].passages {
                self.open[*link] = OpenLink { left: self.bandwidth[*link], ..OpenLink::default() };
            }
        }
        for flow in &self.flows {
            let Route { passages, weight } = &self.routes[flow.route.index()];
            for Passage { link, times } in passages {
                let open = &mut self.open[*link];
                if open.count == 0.0 {
                    self.used.push(*link);
                }
                open.passing += times * weight;
                open.count += times;
            }
        }
        self.settled.clear();
        self.settled.resize(self.flows.len(), false);
        let mut unsettled = self.flows.len();
        while unsettled > 0 {
            // The rate of a flow is its weight times the share.
            let mut share = f64::INFINITY;
            let mut narrowest = None;
            for link in &self.used {
                let OpenLink { left, passing, count } = self.open[*link];
                if count > 0.0 && left / passing < share {
                    (share, narrowest) = (left / passing, Some(*link));
                }
            }
            for (flow, settled) in self.flows.iter_mut().zip(&mut self.settled) {
                let Route { passages, weight } = &self.routes[flow.route.index()];
                let through =
                    narrowest.is_none_or(|narrowest| passages.iter().any(|passage| passage.link == narrowest));
                if *settled || !through {
                    continue;
                }
                (flow.rate, *settled) = (share * weight, true);
                unsettled -= 1;
                for Passage { link, times } in passages {
                    let open = &mut self.open[*link];
                    open.left = (open.left - flow.rate * times).max(0.0);
                    open.count -= times;
                    // Rounding must not leave a weight where no flow is left.
                    open.passing =
                        if open.count > 0.0 { (open.passing - times * weight).max(f64::MIN_POSITIVE) } else { 0.0 };
                }
            }
        }
    }

    #[cfg(test)]
    fn rates(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Begins a flow over a route of its own.
    fn begin(network: &mut Network, now: u64, transfer: u32, links: &[usize], bytes: u64, weight: f64) {
        let route = network.add_route(links, weight);
        network.begin(now, TransferId(transfer), route, bytes);
    }

    fn passages<'n>(network: &'n Network, flow: &Flow) -> &'n [Passage] {
        &network.routes[flow.route.index()].passages
    }

    #[test]
    fn flows_over_one_link_share_it_and_speed_up_when_one_arrives() {
        let mut network = Network::new(vec![10.0]);
        begin(&mut network, 0, 1, &[0], 1000, 1.0);
        assert_eq!(network.next(), Some(100));
        begin(&mut network, 50, 2, &[0], 1000, 1.0);
        // 500 bytes are left of the first, at half the rate.
        assert_eq!((network.rates(), network.next()), (vec![5.0, 5.0], Some(150)));
        let mut arrived = Vec::new();
        network.arrived(150, &mut arrived);
        assert_eq!((&arrived[..], network.next()), (&[TransferId(1)][..], Some(200)));
        network.arrived(200, &mut arrived);
        assert_eq!((&arrived[..], network.next()), (&[TransferId(1), TransferId(2)][..], None));
    }

    #[test]
    fn what_a_narrow_link_leaves_goes_to_others() {
        // The textbook's case: one flow over a narrow and a wide link, two over the wide one alone.
        let mut network = Network::new(vec![2.0, 12.0]);
        begin(&mut network, 0, 0, &[0, 1], 1 << 20, 1.0);
        begin(&mut network, 0, 1, &[1], 1 << 20, 1.0);
        begin(&mut network, 0, 2, &[1], 1 << 20, 1.0);
        assert_eq!(network.rates(), [2.0, 5.0, 5.0]);
    }

    #[test]
    fn flows_share_a_link_by_weight_and_a_limited_one_leaves_the_rest() {
        let mut network = Network::new(vec![12.0, 2.0]);
        begin(&mut network, 0, 0, &[0], 1 << 20, 3.0);
        begin(&mut network, 0, 1, &[0], 1 << 20, 1.0);
        assert_eq!(network.rates(), [9.0, 3.0]);
        begin(&mut network, 0, 2, &[0, 1], 1 << 20, 8.0);
        assert_eq!(network.rates(), [7.5, 2.5, 2.0]);
    }

    #[test]
    fn a_link_that_is_passed_twice_carries_half() {
        let mut network = Network::new(vec![6.0]);
        begin(&mut network, 0, 0, &[0, 0], 600, 1.0);
        assert_eq!((network.rates(), network.next()), (vec![3.0], Some(200)));
    }

    proptest! {
        /// No link exceeds its bandwidth, and each flow is limited by a full link on which no flow is faster for its
        /// weight.
        #[test]
        fn rates_are_max_min_fair(
            bandwidth in prop::collection::vec(1u32..50, 1..6),
            routes in prop::collection::vec((prop::collection::vec(0usize..6, 1..4), 1u32..9), 1..12),
        ) {
            let bandwidth: Vec<f64> = bandwidth.into_iter().map(f64::from).collect();
            let mut network = Network::new(bandwidth.clone());
            for (transfer, (route, weight)) in (0..).zip(&routes) {
                let links: Vec<usize> = route.iter().map(|link| link % bandwidth.len()).collect();
                begin(&mut network, 0, transfer, &links, 1000, f64::from(*weight));
            }
            let load = |link: usize| network.flows.iter().map(|flow| {
                passages(&network, flow).iter().filter(|passage| passage.link == link).map(|passage| passage.times * flow.rate).sum::<f64>()
            }).sum::<f64>();
            for (link, most) in bandwidth.iter().enumerate() {
                prop_assert!(load(link) <= most * (1.0 + 1e-9));
            }
            for flow in &network.flows {
                let stopped = passages(&network, flow).iter().any(|Passage { link, .. }| {
                    let full = load(*link) >= bandwidth[*link] * (1.0 - 1e-9);
                    let through = |other: &&Flow| passages(&network, other).iter().any(|passage| passage.link == *link);
                    let share = |flow: &Flow| flow.rate / network.routes[flow.route.index()].weight;
                    full && network.flows.iter().filter(through).all(|other| share(other) <= share(flow) * (1.0 + 1e-9))
                });
                prop_assert!(stopped, "{flow:?}");
            }
        }

        /// Remembered rates are those that are computed.
        #[test]
        fn rates_follow_from_the_flows(steps in prop::collection::vec((0u32..5, 1u64..5_000, any::<bool>()), 1..60)) {
            let mut network = Network::new(vec![6.0, 0.37, 11.0]);
            for (links, weight) in [(&[0, 2][..], 1.0), (&[1], 1.0), (&[1, 2], 0.3), (&[2, 2], 2.0), (&[0, 1], 1.5)] {
                network.add_route(links, weight);
            }
            for (transfer, (route, bytes, waits)) in (0..).map(TransferId).zip(steps) {
                network.begin(network.now, transfer, RouteId(route), bytes);
                if let Some(next) = network.next().filter(|_| waits) {
                    network.arrived(next, &mut Vec::new());
                }
                let rates = network.rates();
                network.compute_shares();
                prop_assert_eq!(rates, network.rates());
            }
        }

        #[test]
        fn everything_arrives(sizes in prop::collection::vec((0u64..10_000_000, 0usize..3, 0u64..5_000), 1..20)) {
            let mut network = Network::new(vec![6.0, 0.37, 11.0]);
            let (mut now, mut arrived) = (0, Vec::new());
            for (transfer, (bytes, link, gap)) in (0..).zip(&sizes) {
                now += gap;
                begin(&mut network, now, transfer, &[*link], *bytes, 1.0);
            }
            while let Some(next) = network.next() {
                let before = arrived.len();
                network.arrived(next, &mut arrived);
                prop_assert!(arrived.len() > before, "an announced arrival comes about");
            }
            prop_assert_eq!(arrived.len(), sizes.len());
        }
    }
}
