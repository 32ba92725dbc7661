//! A picture of a model: time or energy by size, on logarithmic axes.

use super::{Fit, Kind, Measured, Quantity, Stored, Variant};
use sched_text::amount::{decimal_bytes, scaled};
use sched_text::xml::escaped;
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

/// Colours of the variants, used cyclically.
const COLOURS: [&str; 8] = ["#0f766e", "#b45309", "#4338ca", "#be123c", "#4d7c0f", "#7e22ce", "#0369a1", "#57534e"];

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
    let mut out = String::new();
    let title = format!("{} ({})", stored.symbol, stored.kind.name());
    let height = HEIGHT.max(TOP + ITEM * variants.len() as f64);
    frame(&mut out, &axes, &title, quantity, height).expect("writing to a string never fails");
    for (index, (variant, measured)) in variants.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        curve(&mut out, &axes, measured, &stored.kind, colour).expect("writing to a string never fails");
        points(&mut out, &axes, measured, quantity, minimum, colour).expect("writing to a string never fails");
        let y = TOP + 14.0 + ITEM * index as f64;
        legend(&mut out, y, *variant, measured, &stored.kind, colour).expect("writing to a string never fails");
    }
    out.push_str("</svg>\n");
    Some(out)
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

fn frame(out: &mut String, axes: &Axes, title: &str, quantity: Quantity, height: f64) -> std::fmt::Result {
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
    )?;
    writeln!(out, "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>")?;
    writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"30\" font-size=\"17\" font-weight=\"bold\" fill=\"#1e293b\">{}</text>",
        escaped(title)
    )?;
    let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
    for size in axes.x.ticks() {
        let x = axes.x(size);
        writeln!(out, "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#e2e8f0\"/>")?;
        writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#475569\">{}</text>",
            bottom + 18.0,
            decimal_bytes(size)
        )?;
    }
    for value in axes.y.ticks() {
        let y = axes.y(value);
        writeln!(out, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#e2e8f0\"/>")?;
        let shown = amount(value, quantity);
        writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#475569\">{shown}</text>",
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    writeln!(
        out,
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{PLOT_WIDTH}\" height=\"{PLOT_HEIGHT}\" fill=\"none\" stroke=\"#94a3b8\"/>"
    )?;
    let (middle, below) = (LEFT + PLOT_WIDTH / 2.0, bottom + 44.0);
    writeln!(
        out,
        "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\" fill=\"#1e293b\">size of the data</text>"
    )?;
    let what = quantity.name();
    let y = TOP + PLOT_HEIGHT / 2.0;
    writeln!(
        out,
        "<text x=\"22\" y=\"{y}\" text-anchor=\"middle\" fill=\"#1e293b\" transform=\"rotate(-90 22 {y})\">{what}</text>"
    )
}

fn curve(out: &mut String, axes: &Axes, measured: &Measured, kind: &Kind, colour: &str) -> std::fmt::Result {
    let Some(power) = power(measured, kind) else { return Ok(()) };
    write!(out, "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-opacity=\"0.7\" points=\"")?;
    let (low, high) = (power.min.max(1.0).ln(), power.max.max(1.0).ln());
    for step in 0..=60 {
        let size = (low + (high - low) * f64::from(step) / 60.0).exp();
        let value = power.at(size);
        if value.is_finite() && value > 0.0 {
            write!(out, "{:.1},{:.1} ", axes.x(size), axes.y(value).clamp(TOP, TOP + PLOT_HEIGHT))?;
        }
    }
    writeln!(out, "\"/>")
}

fn points(
    out: &mut String,
    axes: &Axes,
    measured: &Measured,
    quantity: Quantity,
    minimum: u64,
    colour: &str,
) -> std::fmt::Result {
    for (footprint, entry) in &measured.entries {
        let samples = &entry.samples;
        let (Some(middle), Some(low), Some(high)) = (samples.midmean(), samples.quantile(0.25), samples.quantile(0.75))
        else {
            continue;
        };
        let (x, y) = (axes.x(entry.bytes as f64), axes.y(middle));
        let radius = 3.0 + (samples.count() as f64).log10();
        let fill = if samples.count() >= minimum { colour } else { "white" };
        let (top, bottom) = (axes.y(high), axes.y(low));
        writeln!(out, "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{colour}\"/>")?;
        let (count, spread) = (samples.count(), amount(middle, quantity));
        writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" fill-opacity=\"0.8\" stroke=\"{colour}\"><title>{footprint:08x}: {}, {spread}, {count} samples</title></circle>",
            decimal_bytes(entry.bytes as f64)
        )?;
    }
    Ok(())
}

fn legend(
    out: &mut String,
    y: f64,
    variant: Variant,
    measured: &Measured,
    kind: &Kind,
    colour: &str,
) -> std::fmt::Result {
    let x = LEFT + PLOT_WIDTH + 24.0;
    writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"5\" fill=\"{colour}\"/>")?;
    let fit = measured.fit(kind).or_else(|| measured.prior_fit(kind));
    let samples = format!("{} samples", measured.samples());
    writeln!(out, "<text x=\"{}\" y=\"{}\" fill=\"#1e293b\">{variant}</text>", x + 12.0, y + 4.0)?;
    for (line, words) in [samples].into_iter().chain(fit.as_ref().map(formula)).enumerate() {
        let y = y + 20.0 + 16.0 * line as f64;
        writeln!(out, "<text x=\"{}\" y=\"{y}\" fill=\"#475569\">{words}</text>", x + 12.0)?;
    }
    Ok(())
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
        assert_eq!(picture.matches("<title>").count(), 12);
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
