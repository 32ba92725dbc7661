//! What tasks take, of the kinds that a worker has executed lately.

use std::time::Duration;

/// Number of kinds that are remembered, a power of two.
const KINDS: usize = 16;

/// Number of tasks of a kind after which the host is asked again: what it expects changes slowly, and each question
/// costs more than all else that is done for a short task here.
const USES: u32 = 64;

/// See the [module](self). Another kind may take the place of one.
#[derive(Default, Debug)]
pub(super) struct Lengths {
    kinds: [Option<Kind>; KINDS],
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    /// The codelet of the tasks, and their footprint.
    of: (u32, u64),
    length: Duration,
    uses: u32,
}

impl Lengths {
    /// What a task with this codelet and footprint should take: as said of such tasks lately, or else when the host is
    /// asked now.
    pub(super) fn of(&mut self, of: (u32, u64), ask: impl FnOnce() -> Option<Duration>) -> Option<Duration> {
        let place = &mut self.kinds[(u64::from(of.0) ^ of.1) as usize % KINDS];
        match place {
            Some(kind) if kind.of == of && kind.uses < USES => {
                kind.uses += 1;
                Some(kind.length)
            }
            _ => {
                let length = ask()?;
                *place = Some(Kind { of, length, uses: 0 });
                Some(length)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_asked_once_for_many_tasks_of_a_kind() {
        let mut lengths = Lengths::default();
        let mut of = |codelet, footprint, said: Option<u64>| {
            let length = lengths.of((codelet, footprint), || said.map(Duration::from_micros));
            length.map(|length| length.as_micros())
        };
        assert_eq!(of(1, 7, None), None);
        for said in 5..=5 + u64::from(USES) {
            assert_eq!(of(1, 7, Some(said)), Some(5));
        }
        assert_eq!(of(1, 8, Some(6)), Some(6), "of another size");
        assert_eq!(of(1, 7, Some(9)), Some(9), "after so many");
    }
}
