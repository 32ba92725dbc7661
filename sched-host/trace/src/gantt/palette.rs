//! Colours of transfers.

use sched_memory::Reason;

/// The reasons of transfers, in the order of a legend.
pub(super) const REASONS: [Reason; 4] = [Reason::Demand, Reason::Prefetch, Reason::Eviction, Reason::WontUse];

/// The colour of a transfer, as `#rrggbb`.
pub(crate) fn reason_colour(reason: Reason) -> &'static str {
    match reason {
        Reason::Demand => "#475569",
        Reason::Prefetch => "#7fa6d6",
        Reason::Eviction => "#882255",
        Reason::WontUse => "#b8a14a",
    }
}
