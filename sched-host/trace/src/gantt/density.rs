//! Resolution of a Gantt chart: wide boxes are drawn one by one, narrow ones are merged into columns.

use super::FONT;
use super::axis::{Axis, PLOT};
use super::rows::Row;
use sched_text::amount::nanos;
use sched_text::svg::{Pen, Px};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of boxes that are drawn one by one.
const MOST_BOXES: usize = 4000;
/// Maximum number of columns in all rows together.
const MOST_COLUMNS: f64 = 10_000.0;
/// Maximum width of a column in pixels; equal neighbours are merged.
const WIDEST_COLUMN: f64 = 8.0;
/// Number of intensities of a colour.
const STEPS: f64 = 6.0;

/// Resolution of the drawing, in pixels.
pub(super) struct Detail {
    /// Minimum width of a box that is drawn by itself.
    narrowest: f64,
    /// Width of a column, into which narrower boxes are merged.
    column: f64,
}

impl Detail {
    /// The finest resolution that keeps the drawing small.
    pub(super) fn of(rows: &[Row<'_>], axis: &Axis) -> Detail {
        let widths = || rows.iter().flat_map(|row| &row.boxes).map(|of| axis.x((of.end - of.begin) as f64));
        let mut narrowest = 1.0;
        while widths().filter(|width| *width >= narrowest).count() > MOST_BOXES {
            narrowest *= 1.5;
        }
        Detail { narrowest, column: (rows.len() as f64 * PLOT / MOST_COLUMNS).clamp(1.0, WIDEST_COLUMN) }
    }

    /// Draws the boxes of a row of this height.
    pub(super) fn draw(&self, pen: &mut Pen, row: &Row<'_>, axis: &Axis, height: f64) {
        let mut columns = Columns::new(self.column);
        // Grouped by colour, so that each colour is written once.
        let mut wide: BTreeMap<&str, Pen> = BTreeMap::new();
        for of in &row.boxes {
            let (from, to) = (axis.x(of.begin as f64), axis.x(of.end as f64));
            if to - from < self.narrowest {
                columns.add(from, to, of.fill);
                continue;
            }
            let (at, length) = (nanos(of.begin as f64), nanos((of.end - of.begin) as f64));
            let boxes = wide.entry(of.fill).or_insert_with(|| Pen::new(FONT));
            let width = to - from;
            // Neighbours of one colour are kept apart.
            let shown = if width > 4.0 { width - 0.6 } else { width };
            let [x, shown, height] = [from, shown, height].map(Px);
            boxes.raw(format_args!("<rect x=\"{x}\" width=\"{shown}\" height=\"{height}\">"));
            boxes.tooltip(&format!("{}: {length} from {at}", of.what.label()));
            boxes.raw(format_args!("</rect>\n"));
        }
        columns.draw(pen, height);
        for (fill, boxes) in wide {
            pen.raw(format_args!("<g fill=\"{fill}\">\n"));
            pen.append(boxes);
            pen.raw(format_args!("</g>\n"));
        }
    }
}

/// Length of each colour in each column, in pixels.
struct Columns {
    width: f64,
    filled: BTreeMap<u32, BTreeMap<&'static str, f64>>,
    /// End of the last box.
    last: f64,
}

impl Columns {
    fn new(width: f64) -> Columns {
        Columns { width, filled: BTreeMap::new(), last: 0.0 }
    }

    fn add(&mut self, from: f64, to: f64, fill: &'static str) {
        self.last = self.last.max(to);
        let (first, last) = ((from / self.width) as u32, (to / self.width) as u32);
        for column in first..=last {
            let begin = f64::from(column) * self.width;
            let length = to.min(begin + self.width) - from.max(begin);
            // A box without length is drawn too.
            if length > 0.0 || first == last {
                *self.filled.entry(column).or_default().entry(fill).or_default() += length;
            }
        }
    }

    /// A path for each colour and intensity; equal neighbouring columns are one rectangle.
    fn draw(&self, pen: &mut Pen, height: f64) {
        let mut paths: BTreeMap<(&str, u32), String> = BTreeMap::new();
        let mut run: Option<(u32, u32, &str, u32)> = None;
        let mut close = |run: Option<(u32, u32, &'static str, u32)>| {
            if let Some((first, end, fill, strength)) = run {
                let x = f64::from(first) * self.width;
                let wide = (f64::from(end - first) * self.width).min((self.last - x).max(0.1));
                let path = paths.entry((fill, strength)).or_default();
                let [x, wide, height] = [x, wide, height].map(Px);
                // Writing to a string does not fail.
                let _ = write!(path, "M{x} 0h{wide}v{height}h-{wide}z");
            }
        };
        for (column, fills) in &self.filled {
            let most = fills.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
            let Some((fill, _)) = most else { continue };
            let share = fills.values().sum::<f64>() / self.width;
            let strength = (share * STEPS).ceil().clamp(1.0, STEPS) as u32;
            match &mut run {
                Some((_, end, of, like)) if *end == *column && of == fill && *like == strength => *end += 1,
                _ => close(run.replace((*column, column + 1, fill, strength))),
            }
        }
        close(run);
        for ((fill, strength), path) in paths {
            let opacity = 0.25 + 0.75 * f64::from(strength) / STEPS;
            pen.raw(format_args!("<path fill=\"{fill}\" fill-opacity=\"{opacity:.2}\" d=\"{path}\"/>\n"));
        }
    }
}
