//! Patterns of dependencies between steps, as Task Bench has them (Slaughter et al., *Task Bench: A Parameterized
//! Benchmark for Evaluating Parallel Runtime Performance*, SC 2020).

use serde::Serialize;
use std::fmt;

/// Which tasks of a step each task of the next step waits for. Every step has one task for each column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// No task waits for another.
    Trivial,
    /// A task waits for its own column and its neighbours. Two rows of data are used in turn.
    Stencil,
    /// A stencil in which every step has data of its own.
    StencilFresh,
    /// A task waits for its own column and for those at a distance of a power of two, as in a fast Fourier transform.
    Fft,
    /// A task waits for the five nearest columns, its own included.
    Nearest,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 5] =
        [Pattern::Trivial, Pattern::Stencil, Pattern::StencilFresh, Pattern::Fft, Pattern::Nearest];

    /// Largest number of tasks that a task waits for.
    pub(super) const MOST: usize = 5;

    /// Name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Trivial => "trivial",
            Pattern::Stencil => "stencil",
            Pattern::StencilFresh => "stencil-fresh",
            Pattern::Fft => "fft",
            Pattern::Nearest => "nearest",
        }
    }

    /// One line that describes it.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Pattern::Trivial => "No task waits for another",
            Pattern::Stencil => "A task waits for its column and its neighbours; two rows of data in turn",
            Pattern::StencilFresh => "A stencil in which every step has data of its own",
            Pattern::Fft => "A task waits for its column and those at a distance of a power of two",
            Pattern::Nearest => "A task waits for the five nearest columns",
        }
    }

    /// Number of rows of data for `steps` steps.
    pub(super) const fn rows(self, steps: usize) -> usize {
        match self {
            Pattern::StencilFresh => steps,
            _ => 2,
        }
    }

    /// Columns of the step before whose tasks the task of `step` and `column` waits for, in ascending order.
    pub(super) fn before(self, width: usize, step: usize, column: usize) -> impl Iterator<Item = usize> {
        let (first, last, stride) = match self {
            _ if step == 0 => (1, 0, 1),
            Pattern::Trivial => (1, 0, 1),
            Pattern::Stencil | Pattern::StencilFresh => (-1, 1, 1),
            Pattern::Nearest => (-2, 2, 1),
            Pattern::Fft => {
                let distances = width.next_power_of_two().trailing_zeros().max(1) as usize;
                let distance = 1_isize << ((step - 1) % distances);
                (-distance, distance, distance as usize)
            }
        };
        let near = (first..=last).step_by(stride).filter_map(move |away| column.checked_add_signed(away));
        near.filter(move |column| *column < width)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_wait_for_columns_of_the_step_before() {
        let of = |pattern: Pattern, step, column| pattern.before(8, step, column).collect::<Vec<_>>();
        assert!(of(Pattern::Stencil, 0, 3).is_empty());
        assert!(of(Pattern::Trivial, 4, 3).is_empty());
        assert_eq!(of(Pattern::Stencil, 1, 3), [2, 3, 4]);
        assert_eq!(of(Pattern::StencilFresh, 1, 0), [0, 1]);
        assert_eq!(of(Pattern::Nearest, 5, 6), [4, 5, 6, 7]);
        assert_eq!(of(Pattern::Fft, 1, 3), [2, 3, 4]);
        assert_eq!(of(Pattern::Fft, 2, 3), [1, 3, 5]);
        assert_eq!(of(Pattern::Fft, 3, 3), [3, 7]);
        assert_eq!(of(Pattern::Fft, 4, 3), [2, 3, 4], "distances begin again");
        for pattern in Pattern::ALL {
            let most = (0..64).map(|at| pattern.before(8, at / 8, at % 8).count()).max();
            assert!(most <= Some(Pattern::MOST), "{pattern}");
        }
    }
}
