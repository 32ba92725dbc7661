//! A picture of a model: time or energy by size, on logarithmic axes.

use super::{Fit, Kind, Measured, Quantity, Stored, Variant};
use sched_text::amount::{decimal_bytes, scaled};
use sched_text::count;
use sched_text::svg::{EDGE, INK, MUTED, Pen, Px, SERIES};
use std::fmt::Write;

const WIDTH: f64 = 900.0;
/// Minimum height; larger if the legend needs it.
const HEIGHT: f64 = 520.0;
/// Height of a variant in the legend.
const ITEM: f64 = 58.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 56.0;
const PLOT_WIDTH: f64 = 540.0;
const PLOT_HEIGHT: f64 = 390.0;

/// Draws a model as SVG. Each variant has a point for each size, whose area grows with the number of samples, and a bar
/// over the middle half of them; points with fewer than `minimum` samples are hollow. The curve is the variant's
/// regression. `None` if nothing of the quantity was measured.
#[must_use]
pub fn svg(stored: &Stored, quantity: Quantity, minimum: u64) -> Option<String> {
    let chosen = stored.measurements.variants.iter().filter(|((_, of), _)| *of == quantity);
    let variants: Vec<(Variant, &Measured)> = chosen.map(|((variant, _), measured)| (*variant, measured)).collect();
    let sizes = variants.iter().flat_map(|(_, measured)| x_range(measured));
    let values = variants.iter().flat_map(|(_, measured)| y_range(measured, &stored.kind));
    let axes = Axes { x: Axis::of(sizes)?, y: Axis::of(values)? };
    let mut pen = Pen::new(12.0);
    let title = format!("{} ({})", stored.symbol, stored.kind.name());
    let height = HEIGHT.max(TOP + ITEM * variants.len() as f64);
    frame(&mut pen, &axes, &title, quantity);
    for (index, (variant, measured)) in variants.iter().enumerate() {
        let curve = Curve { variant: *variant, measured, kind: &stored.kind, colour: SERIES[index % SERIES.len()] };
        curve.regression(&mut pen, &axes);
        curve.points(&mut pen, &axes, quantity, minimum);
        curve.legend(&mut pen, TOP + 14.0 + ITEM * index as f64);
    }
    Some(pen.finish(&title, WIDTH, height))
}

fn power(measured: &Measured, kind: &Kind) -> Option<super::Power> {
    match measured.fit(kind).or_else(|| measured.prior_fit(kind)) {
        Some(Fit::Power(power)) => Some(power),
        _ => None,
    }
}

fn x_range(measured: &Measured) -> Vec<f64> {
    let mut sizes: Vec<f64> = measured.entries.values().map(|entry| entry.bytes as f64).collect();
    for power in [measured.prior.linear, measured.prior.nonlinear].into_iter().flatten() {
        sizes.extend([power.min, power.max]);
    }
    // Entries without a size are drawn at 1 byte.
    sizes.iter_mut().for_each(|size| *size = size.max(1.0));
    sizes
}

fn y_range(measured: &Measured, kind: &Kind) -> Vec<f64> {
    let mut values = Vec::new();
    for entry in measured.entries.values() {
        values.extend([entry.samples.quantile(0.25), entry.samples.quantile(0.75)].into_iter().flatten());
    }
    values.extend(power(measured, kind).iter().flat_map(|power| [power.at(power.min), power.at(power.max)]));
    values.retain(|value| value.is_finite() && *value > 0.0);
    values
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Option<Axis> {
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return None;
        }
        // Some margin; around a single value, a decade.
        let room = ((high / low).log10() * 0.06).max(if high / low < 1.5 { 0.5 } else { 0.05 });
        Some(Axis { low: low.log10() - room, high: high.log10() + room })
    }

    /// The position of a value, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    /// Round values on the axis: powers of ten, with their multiples by 2 and 5 if there are few.
    fn ticks(&self) -> Vec<f64> {
        let within = |value: &f64| (0.0..=1.0).contains(&self.place(*value));
        let decades = || self.low.floor() as i32..=self.high.ceil() as i32;
        let of = |factors: &'static [f64]| -> Vec<f64> {
            decades()
                .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
                .filter(within)
                .collect()
        };
        let tens = of(&[1.0]);
        match tens.len() {
            0..=1 => of(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]),
            2..=4 => of(&[1.0, 2.0, 5.0]),
            count => tens.into_iter().step_by(count.div_ceil(9)).collect(),
        }
    }
}

struct Axes {
    x: Axis,
    y: Axis,
}

impl Axes {
    fn x(&self, size: f64) -> f64 {
        LEFT + self.x.place(size.max(1.0)) * PLOT_WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.place(value)) * PLOT_HEIGHT
    }
}

fn frame(pen: &mut Pen, axes: &Axes, title: &str, quantity: Quantity) {
    const GRID: &str = "stroke=\"#e2e8f0\"";
    pen.heading((LEFT, 30.0), WIDTH - LEFT, title);
    let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
    for size in axes.x.ticks() {
        let x = axes.x(size);
        pen.path(&format!("M{} {TOP}V{bottom}", Px(x)), GRID, None);
        let look = format!("text-anchor=\"middle\" fill=\"{MUTED}\"");
        pen.text((x, bottom + 18.0), &look, &decimal_bytes(size));
    }
    for value in axes.y.ticks() {
        let y = axes.y(value);
        pen.path(&format!("M{LEFT} {}H{right}", Px(y)), GRID, None);
        let look = format!("text-anchor=\"end\" fill=\"{MUTED}\"");
        pen.text((LEFT - 8.0, y + 4.0), &look, &amount(value, quantity));
    }
    pen.rect((LEFT, TOP), (PLOT_WIDTH, PLOT_HEIGHT), &format!("fill=\"none\" stroke=\"{EDGE}\""));
    let middle = format!("text-anchor=\"middle\" fill=\"{INK}\"");
    pen.text((LEFT + PLOT_WIDTH / 2.0, bottom + 44.0), &middle, "size of the data");
    let y = TOP + PLOT_HEIGHT / 2.0;
    pen.text((22.0, y), &format!("{middle} transform=\"rotate(-90 22 {y})\""), quantity.name());
}

/// What is drawn of a variant.
struct Curve<'a> {
    variant: Variant,
    measured: &'a Measured,
    kind: &'a Kind,
    colour: &'static str,
}

impl Curve<'_> {
    fn regression(&self, pen: &mut Pen, axes: &Axes) {
        let Some(power) = power(self.measured, self.kind) else { return };
        let (low, high) = (power.min.max(1.0).ln(), power.max.max(1.0).ln());
        let mut points = String::new();
        for step in 0..=60 {
            let size = (low + (high - low) * f64::from(step) / 60.0).exp();
            let value = power.at(size);
            if value.is_finite() && value > 0.0 {
                let y = axes.y(value).clamp(TOP, TOP + PLOT_HEIGHT);
                // Writing to a string does not fail.
                let _ = write!(points, "{},{} ", Px(axes.x(size)), Px(y));
            }
        }
        let look = format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" stroke-opacity=\"0.7\"", self.colour);
        pen.raw(format_args!("<polyline {look} points=\"{points}\"/>\n"));
    }

    fn points(&self, pen: &mut Pen, axes: &Axes, quantity: Quantity, minimum: u64) {
        let colour = self.colour;
        for (footprint, entry) in &self.measured.entries {
            let samples = &entry.samples;
            let (Some(middle), Some(low), Some(high)) =
                (samples.midmean(), samples.quantile(0.25), samples.quantile(0.75))
            else {
                continue;
            };
            let (x, y) = (Px(axes.x(entry.bytes as f64)), Px(axes.y(middle)));
            let (top, bottom) = (Px(axes.y(high)), Px(axes.y(low)));
            let radius = Px(3.0 + (samples.count() as f64).log10());
            let fill = if samples.count() >= minimum { colour } else { "white" };
            let size = decimal_bytes(entry.bytes as f64);
            let samples = count(samples.count(), "sample");
            let tooltip = format!("{footprint:08x}: {size}, {}, {samples}", amount(middle, quantity));
            pen.path(&format!("M{x} {top}V{bottom}"), &format!("stroke=\"{colour}\""), None);
            pen.group(&tooltip, |pen| {
                let look = format!("fill=\"{fill}\" fill-opacity=\"0.8\" stroke=\"{colour}\"");
                pen.raw(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {look}/>"));
            });
        }
    }

    fn legend(&self, pen: &mut Pen, y: f64) {
        let x = LEFT + PLOT_WIDTH + 24.0;
        pen.raw(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"5\" fill=\"{}\"/>\n", Px(x), Px(y), self.colour));
        pen.text((x + 12.0, y + 4.0), &format!("fill=\"{INK}\""), &self.variant.to_string());
        let fit = self.measured.fit(self.kind).or_else(|| self.measured.prior_fit(self.kind));
        let samples = count(self.measured.samples(), "sample");
        for (line, words) in [samples].into_iter().chain(fit.as_ref().map(formula)).enumerate() {
            pen.text((x + 12.0, y + 20.0 + 16.0 * line as f64), &format!("fill=\"{MUTED}\""), &words);
        }
    }
}

/// A regression as a formula for people.
#[must_use]
pub fn formula(fit: &Fit) -> String {
    match fit {
        Fit::Power(power) if power.c == 0.0 => format!("{:.3e} · bytes^{:.3}", power.a, power.b),
        Fit::Power(power) => format!("{:.3e} · bytes^{:.3} + {:.4}", power.a, power.b, power.c),
        Fit::Linear(linear) => {
            let coefficients: Vec<String> = linear.coefficients.iter().map(|number| format!("{number:.3e}")).collect();
            format!("coefficients {}", coefficients.join(", "))
        }
    }
}

/// A time or an energy, abbreviated for people.
#[must_use]
pub fn amount(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Time => scaled(value, 3, &[(1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")]),
        Quantity::Energy => scaled(value, 3, &[(1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Measurements, SizeInfo};
    use sched_core::Arch;

    fn scale(kind: Kind) -> Stored {
        let mut measurements = Measurements::default();
        for (arch, factor) in [(Arch::CPU, 0.01), (Arch::CUDA, 0.001)] {
            let measured = measurements.variants.entry((Variant::of(arch), Quantity::Time)).or_default();
            for step in 1..=6u32 {
                let bytes = 10u64.pow(step + 1);
                for sample in 0..u64::from(step) * 3 {
                    let size = SizeInfo { footprint: step, bytes, ..SizeInfo::default() };
                    assert!(measured.add(&size, bytes as f64 * factor * (1.0 + sample as f64 / 100.0)));
                }
            }
        }
        Stored { symbol: "a<b".to_owned(), kind, measurements }
    }

    #[test]
    fn every_point_is_inside_and_every_variant_has_a_curve() {
        let picture = svg(&scale(Kind::Regression), Quantity::Time, 10).expect("something was measured");
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(picture.contains("a&lt;b (regression)"));
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("<title>").count(), 13, "one for the picture, and one for each point");
        assert_eq!(picture.matches("fill=\"white\" fill-opacity").count(), 6, "three points each are not calibrated");
        for point in picture.split("<circle cx=\"").skip(1) {
            let x: f64 = point.split('"').next().and_then(|x| x.parse().ok()).expect("a number");
            assert!((LEFT..WIDTH).contains(&x), "{point}");
        }
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }

    #[test]
    fn what_was_not_measured_is_not_drawn() {
        assert_eq!(svg(&scale(Kind::History), Quantity::Energy, 10), None);
        let one = svg(&scale(Kind::History), Quantity::Time, 10).expect("something was measured");
        assert_eq!(one.matches("<polyline").count(), 0);
    }

    #[test]
    fn numbers_are_short() {
        let shown = |value| amount(value, Quantity::Time);
        assert_eq!([shown(87_780.2), shown(0.25), shown(3.0)], ["87.8 ms", "250 ns", "3 µs"]);
        assert_eq!(amount(0.5, Quantity::Energy), "500 mJ");
    }
}
