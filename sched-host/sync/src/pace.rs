//! Looks at regular intervals, by a thread that sleeps meanwhile and may be disturbed.

use std::time::{Duration, Instant};

/// When the next look is due: a period after the first sleep, or after the last look. Disturbances do not put it off.
#[derive(Debug)]
pub struct Pace {
    period: Duration,
    /// Not asked for before it is needed: most waits end without a sleep.
    since: Option<Instant>,
}

impl Pace {
    /// Looks that are `period` apart.
    #[must_use]
    pub fn new(period: Duration) -> Pace {
        Pace { period, since: None }
    }

    /// Time until the next look.
    pub fn left(&mut self) -> Duration {
        self.period.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed())
    }

    /// Whether a look is due; if so, the next one is a period later.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.left().is_zero();
        if is_due {
            self.since = None;
        }
        is_due
    }
}
