//! Why data moves.

/// Reason of a transfer, in the order of urgency: a smaller one goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A worker waits for the data.
    Demand,
    /// The data is written home, so that its memory can be used for something else.
    Eviction,
    /// A task in a queue will need the data there.
    Prefetch,
    /// The data will not be used any more, and is written home.
    WontUse,
}

impl Reason {
    /// All reasons, in the order of urgency.
    pub const ALL: [Reason; 4] = [Reason::Demand, Reason::Eviction, Reason::Prefetch, Reason::WontUse];

    /// Name of the reason in traces.
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
