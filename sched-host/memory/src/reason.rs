//! The reasons of transfers.

/// Reason of a transfer, in order of urgency: smaller ones go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A worker waits for the data.
    Demand,
    /// The data is written back, so that its memory can be reused.
    Eviction,
    /// A queued task will need the data there.
    Prefetch,
    /// The data will not be used any more, and is written back.
    WontUse,
}

impl Reason {
    /// All reasons, in order of urgency.
    pub const ALL: [Reason; 4] = [Reason::Demand, Reason::Eviction, Reason::Prefetch, Reason::WontUse];

    /// The reason's name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Demand => "demand",
            Reason::Eviction => "eviction",
            Reason::Prefetch => "prefetch",
            Reason::WontUse => "wont-use",
        }
    }
}
