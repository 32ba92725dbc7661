//! Colours that people with any kind of colour vision can tell apart.

use sched_memory::Reason;

/// First those of Okabe and Ito, then of Tol's "muted" scheme.
const PALETTE: [&str; 14] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#332288", "#999933", "#882255",
    "#44aa99", "#ddcc77", "#117733", "#aa4499",
];

/// The reasons of transfers, in the order of a legend.
pub(super) const REASONS: [Reason; 4] = [Reason::Demand, Reason::Prefetch, Reason::Eviction, Reason::WontUse];

/// The colour of a codelet, as `#rrggbb`. After fourteen they come again.
#[must_use]
pub fn colour(codelet: usize) -> &'static str {
    PALETTE[codelet % PALETTE.len()]
}

/// The colour of a transfer, as `#rrggbb`.
pub(crate) fn reason_colour(reason: Reason) -> &'static str {
    match reason {
        Reason::Demand => "#475569",
        Reason::Prefetch => "#7fa6d6",
        Reason::Eviction => "#882255",
        Reason::WontUse => "#b8a14a",
    }
}
