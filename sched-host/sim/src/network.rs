//! Transfers that share links: how fast each of them goes at any moment.
//!
//! Bandwidth is shared max-min fairly (Bertsekas and Gallager, *Data Networks*, 6.5): all flows grow alike until a link is
//! full; those through it stop there, and the others go on growing. A flow that passes a link twice counts twice there.
//! Between two changes rates are constant, so only the beginning and the end of a flow are events.

/// A flow: something on its way over some links.
#[derive(Clone, Debug)]
struct Flow {
    /// What the owner calls it.
    tag: u32,
    /// Its links, with how often it passes each.
    links: Vec<(u32, f64)>,
    /// Bytes that have not arrived.
    left: f64,
    /// Bytes in a nanosecond.
    rate: f64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Network {
    /// Bytes in a nanosecond that each link carries.
    bandwidth: Vec<f64>,
    flows: Vec<Flow>,
    /// The time that `left` is of.
    now: u64,
    /// Scratch: what is left of each link, and how many flows that are not settled pass it.
    open: Vec<(f64, f64)>,
    /// Links that flows pass.
    used: Vec<u32>,
    spare: Vec<Vec<(u32, f64)>>,
    settled: Vec<bool>,
}

impl Network {
    pub(super) fn new(bandwidth: Vec<f64>) -> Network {
        let open = vec![(0.0, 0.0); bandwidth.len()];
        Network { bandwidth, flows: Vec::new(), now: 0, open, used: Vec::new(), spare: Vec::new(), settled: Vec::new() }
    }

    /// Number of links.
    pub(super) fn links(&self) -> usize {
        self.bandwidth.len()
    }

    /// A flow of so many bytes over `links` begins at `now`.
    pub(super) fn begin(&mut self, now: u64, tag: u32, links: &[usize], bytes: u64) {
        self.advance(now);
        let mut passed = self.spare.pop().unwrap_or_default();
        for link in links {
            let link = *link as u32;
            match passed.iter_mut().find(|(known, _)| *known == link) {
                Some((_, times)) => *times += 1.0,
                None => passed.push((link, 1.0)),
            }
        }
        self.flows.push(Flow { tag, links: passed, left: bytes as f64, rate: 0.0 });
        self.share();
    }

    /// Takes the flows out that have arrived by `now`, in the order in which they began.
    pub(super) fn arrived(&mut self, now: u64, arrived: &mut Vec<u32>) {
        self.advance(now);
        let before = arrived.len();
        let spare = &mut self.spare;
        self.flows.retain_mut(|flow| {
            // Half a nanosecond's worth may be left from rounding.
            let done = flow.left <= flow.rate * 0.5 + 1e-6;
            if done {
                arrived.push(flow.tag);
                flow.links.clear();
                spare.push(std::mem::take(&mut flow.links));
            }
            !done
        });
        if arrived.len() > before {
            self.share();
        }
    }

    /// When the next flow arrives, if nothing changes before.
    pub(super) fn next(&self) -> Option<u64> {
        let after = |flow: &Flow| if flow.left <= 0.0 { 0 } else { (flow.left / flow.rate).ceil() as u64 };
        self.flows.iter().map(after).min().map(|after| self.now.saturating_add(after))
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

    /// Gives each flow its share.
    fn share(&mut self) {
        self.used.clear();
        for flow in &self.flows {
            for (link, _) in &flow.links {
                self.open[*link as usize] = (self.bandwidth[*link as usize], 0.0);
            }
        }
        for flow in &self.flows {
            for (link, times) in &flow.links {
                let open = &mut self.open[*link as usize];
                if open.1 == 0.0 {
                    self.used.push(*link);
                }
                open.1 += times;
            }
        }
        self.settled.clear();
        self.settled.resize(self.flows.len(), false);
        let mut unsettled = self.flows.len();
        while unsettled > 0 {
            let mut share = f64::INFINITY;
            let mut narrowest = u32::MAX;
            for link in &self.used {
                let (left, passing) = self.open[*link as usize];
                if passing > 0.0 && left / passing < share {
                    (share, narrowest) = (left / passing, *link);
                }
            }
            for (flow, settled) in self.flows.iter_mut().zip(&mut self.settled) {
                let through = narrowest == u32::MAX || flow.links.iter().any(|(link, _)| *link == narrowest);
                if *settled || !through {
                    continue;
                }
                (flow.rate, *settled) = (share, true);
                unsettled -= 1;
                for (link, times) in &flow.links {
                    let open = &mut self.open[*link as usize];
                    open.0 = (open.0 - share * times).max(0.0);
                    open.1 -= times;
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

    #[test]
    fn flows_over_one_link_share_it_and_speed_up_when_one_arrives() {
        let mut network = Network::new(vec![10.0]);
        network.begin(0, 1, &[0], 1000);
        assert_eq!(network.next(), Some(100));
        network.begin(50, 2, &[0], 1000);
        // 500 bytes are left of the first, at half the rate.
        assert_eq!((network.rates(), network.next()), (vec![5.0, 5.0], Some(150)));
        let mut arrived = Vec::new();
        network.arrived(150, &mut arrived);
        assert_eq!((&arrived[..], network.next()), (&[1][..], Some(200)));
        network.arrived(200, &mut arrived);
        assert_eq!((&arrived[..], network.next()), (&[1, 2][..], None));
    }

    #[test]
    fn what_a_narrow_link_leaves_goes_to_others() {
        // The textbook's case: one flow over a narrow and a wide link, two over the wide one alone.
        let mut network = Network::new(vec![2.0, 12.0]);
        network.begin(0, 0, &[0, 1], 1 << 20);
        network.begin(0, 1, &[1], 1 << 20);
        network.begin(0, 2, &[1], 1 << 20);
        assert_eq!(network.rates(), [2.0, 5.0, 5.0]);
    }

    #[test]
    fn a_link_that_is_passed_twice_carries_half() {
        let mut network = Network::new(vec![6.0]);
        network.begin(0, 0, &[0, 0], 600);
        assert_eq!((network.rates(), network.next()), (vec![3.0], Some(200)));
    }

    proptest! {
        /// No link carries more than it can, and each flow is stopped by a link that is full and on which nobody is faster.
        #[test]
        fn rates_are_max_min_fair(
            bandwidth in prop::collection::vec(1u32..50, 1..6),
            routes in prop::collection::vec(prop::collection::vec(0usize..6, 1..4), 1..12),
        ) {
            let bandwidth: Vec<f64> = bandwidth.into_iter().map(f64::from).collect();
            let mut network = Network::new(bandwidth.clone());
            for (tag, route) in routes.iter().enumerate() {
                let links: Vec<usize> = route.iter().map(|link| link % bandwidth.len()).collect();
                network.begin(0, tag as u32, &links, 1000);
            }
            let load = |link: u32| network.flows.iter().map(|flow| {
                flow.links.iter().filter(|(of, _)| *of == link).map(|(_, times)| times * flow.rate).sum::<f64>()
            }).sum::<f64>();
            for (link, most) in bandwidth.iter().enumerate() {
                prop_assert!(load(link as u32) <= most * (1.0 + 1e-9));
            }
            for flow in &network.flows {
                let stopped = flow.links.iter().any(|(link, _)| {
                    let full = load(*link) >= bandwidth[*link as usize] * (1.0 - 1e-9);
                    let through = |other: &&Flow| other.links.iter().any(|(of, _)| of == link);
                    full && network.flows.iter().filter(through).all(|other| other.rate <= flow.rate * (1.0 + 1e-9))
                });
                prop_assert!(stopped, "{flow:?}");
            }
        }

        #[test]
        fn everything_arrives(sizes in prop::collection::vec((0u64..10_000_000, 0usize..3, 0u64..5_000), 1..20)) {
            let mut network = Network::new(vec![6.0, 0.37, 11.0]);
            let (mut now, mut arrived) = (0, Vec::new());
            for (tag, (bytes, link, gap)) in sizes.iter().enumerate() {
                now += gap;
                network.begin(now, tag as u32, &[*link], *bytes);
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
