//! How fast contexts are, and how a pool of 1 is divided.

use super::Progress;

/// Tasks and operations of a context per second on the whole pool, as measured; older measurements count less.
#[derive(Default, Debug)]
pub(super) struct Rate {
    tasks: f64,
    flops: f64,
    /// Integral of the share of the pool over time, in seconds.
    pool_time: f64,
}

/// Factor by which older measurements count at each look.
const FADE: f64 = 0.95;

/// Number of tasks from which on a rate counts.
const FEW: f64 = 4.0;

impl Rate {
    /// Notes the progress in some seconds, in which the context had this share of the pool.
    pub(super) fn note(&mut self, before: &Progress, now: &Progress, passed: f64, share: f64) {
        self.tasks = self.tasks * FADE + now.ended.saturating_sub(before.ended) as f64;
        self.flops = self.flops * FADE + (now.flops - before.flops).max(0.0);
        self.pool_time = self.pool_time * FADE + passed * share;
    }

    /// Tasks per second on the whole pool.
    pub(super) fn tasks(&self) -> Option<f64> {
        self.is_known().then(|| self.tasks / self.pool_time)
    }

    /// Operations per second on the whole pool.
    pub(super) fn flops(&self) -> Option<f64> {
        (self.is_known() && self.flops > 0.0).then(|| self.flops / self.pool_time)
    }

    fn is_known(&self) -> bool {
        self.tasks >= FEW && self.pool_time > 0.0
    }
}

/// Divides 1 among contexts by their demands, of which `None` is what the others leave, with a maximum for each.
pub(super) fn divide(demands: &[Option<f64>], caps: &[f64]) -> Vec<f64> {
    let total: f64 = demands.iter().flatten().sum();
    let modest = demands.iter().filter(|demand| demand.is_none()).count();
    let wanted = |demand: &Option<f64>| match demand {
        None => (1.0 - total).max(0.0) / modest as f64,
        Some(demand) if total > 1.0 || (modest == 0 && total > 0.0) => demand / total,
        Some(demand) => *demand,
    };
    let mut shares: Vec<f64> = demands.iter().map(wanted).collect();
    // What a maximum cuts off goes to those below theirs.
    for _ in caps {
        let over: f64 = shares.iter().zip(caps).map(|(share, cap)| (share - cap).max(0.0)).sum();
        let below: f64 = shares.iter().zip(caps).filter(|(share, cap)| share < cap).map(|(share, _)| share).sum();
        if over <= 1e-12 || below <= 0.0 {
            break;
        }
        for (share, cap) in shares.iter_mut().zip(caps) {
            *share = if *share < *cap { *share * (1.0 + over / below) } else { *cap };
        }
    }
    shares
}
