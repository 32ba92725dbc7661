//! The axis of time.

use sched_text::svg::{MUTED, Pen, Px};

/// Width of the part with the rows, in pixels.
pub(super) const PLOT: f64 = 1040.0;

/// Scale from nanoseconds to pixels.
pub(super) struct Axis {
    end: f64,
}

impl Axis {
    /// An axis from 0 to `end` nanoseconds.
    pub(super) fn new(end: f64) -> Axis {
        Axis { end: end.max(1.0) }
    }

    /// Horizontal position of a time.
    pub(super) fn x(&self, nanos: f64) -> f64 {
        nanos / self.end * PLOT
    }

    /// Ticks at round numbers: nanoseconds, and label.
    fn ticks(&self) -> Vec<(f64, String)> {
        let (unit, name) = match self.end {
            end if end >= 1e9 => (1e9, "s"),
            end if end >= 1e6 => (1e6, "ms"),
            end if end >= 1e3 => (1e3, "µs"),
            _ => (1.0, "ns"),
        };
        let least = self.end / unit / 10.0;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= least * 0.999);
        let step = step.unwrap_or(10.0 * power);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let count = (self.end / unit / step * 1.000_001).floor() as u32;
        (0..=count).map(|n| (f64::from(n) * step * unit, format!("{:.digits$} {name}", f64::from(n) * step))).collect()
    }

    /// Draws a thin line over the rows for each tick, with its label below.
    pub(super) fn draw(&self, pen: &mut Pen, left: f64, top: f64, bottom: f64) {
        for (nanos, label) in self.ticks() {
            let x = left + self.x(nanos);
            let path = format!("M{} {}V{}", Px(x), Px(top), Px(bottom + 4.0));
            pen.path(&path, "stroke=\"#d5dae1\"", None);
            let look = format!("fill=\"{MUTED}\" font-size=\"10\" text-anchor=\"middle\"");
            pen.text((x, bottom + 16.0), &look, &label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(end: f64) -> String {
        Axis::new(end).ticks().into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn ticks_are_round_numbers_in_a_unit_that_suits_them() {
        assert_eq!(labels(1e9), "0.0 s, 0.1 s, 0.2 s, 0.3 s, 0.4 s, 0.5 s, 0.6 s, 0.7 s, 0.8 s, 0.9 s, 1.0 s");
        assert_eq!(labels(37e6), "0 ms, 5 ms, 10 ms, 15 ms, 20 ms, 25 ms, 30 ms, 35 ms");
        assert_eq!(labels(1.3e6), "0.0 ms, 0.2 ms, 0.4 ms, 0.6 ms, 0.8 ms, 1.0 ms, 1.2 ms");
        assert_eq!(labels(250_000.0), "0 µs, 50 µs, 100 µs, 150 µs, 200 µs, 250 µs");
        assert_eq!(
            labels(0.0),
            "0.0 ns, 0.1 ns, 0.2 ns, 0.3 ns, 0.4 ns, 0.5 ns, 0.6 ns, 0.7 ns, 0.8 ns, 0.9 ns, 1.0 ns"
        );
    }
}
