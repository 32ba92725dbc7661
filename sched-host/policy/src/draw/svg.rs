//! Plans as a drawing of their own.

use super::bundles::{Bundle, Fold};
use super::{colour, label, tooltip};
use crate::plan::TreePlan;
use sched_core::WorkerId;
use sched_text::spread;
use sched_text::svg::{EDGE, LABEL, MUTED, Pen, curve, text_width};

// All lengths are in pixels.
const MARGIN: f64 = 24.0;
const LINE: f64 = 16.0;
const FONT: f64 = 12.0;
const GAP: f64 = 14.0;
/// Between a layer and the one below it.
const DROP: f64 = 46.0;
const NARROWEST: f64 = 320.0;

/// A box of one component or of several.
struct Shape {
    lines: Vec<String>,
    layer: usize,
    /// Its left edge.
    x: f64,
    y: f64,
    height: f64,
}

impl TreePlan {
    /// The plan as a self-contained SVG picture: a box for each component, or for similar ones, coloured by family,
    /// above the workers that it schedules for.
    #[must_use]
    pub fn to_svg(&self, fold: Fold) -> String {
        let bundles = self.bundles(fold);
        let mut shapes = self.shapes(&bundles);
        let lines = shapes.iter().flat_map(|shape| &shape.lines);
        let width = lines.map(|line| text_width(line, FONT)).fold(0.0, f64::max) + 16.0;
        let (across, down) = self.place(&bundles, &mut shapes, width);
        let (across, down) = ((across + 2.0 * MARGIN).max(NARROWEST), down + MARGIN);

        let mut pen = Pen::new(FONT);
        pen.heading((MARGIN, MARGIN + LINE), across - 2.0 * MARGIN, &self.policy);
        for (bundle, shape) in bundles.iter().zip(&shapes) {
            for link in &bundle.links {
                link.to.iter().for_each(|to| edge(&mut pen, shape, &shapes[*to], width, link.slot.as_deref()));
            }
        }
        for (bundle, shape) in bundles.iter().zip(&shapes) {
            pen.group(&tooltip(bundle, self), |pen| {
                draw(pen, colour(bundle.first(self).info.family), shape, width);
            });
        }
        pen.finish(&self.policy, across, down)
    }

    /// Text and layer of each box: one layer below its lowest parent.
    fn shapes(&self, bundles: &[Bundle]) -> Vec<Shape> {
        let shape = |bundle: &Bundle| {
            let lines = label(bundle, self);
            let height = lines.len() as f64 * LINE + 10.0;
            Shape { lines, layer: 0, x: 0.0, y: 0.0, height }
        };
        let mut shapes: Vec<Shape> = bundles.iter().map(shape).collect();
        // A link may lead to a bundle that comes earlier; then those below that are lower, too.
        loop {
            let mut has_moved = false;
            for (at, bundle) in bundles.iter().enumerate() {
                let below = shapes[at].layer + 1;
                for to in bundle.links.iter().flat_map(|link| &link.to) {
                    has_moved |= shapes[*to].layer < below;
                    shapes[*to].layer = shapes[*to].layer.max(below);
                }
            }
            if !has_moved {
                return shapes;
            }
        }
    }

    /// Puts each box above the middle of its workers, as far as its neighbours allow. Returns the extent of the boxes,
    /// across and down.
    fn place(&self, bundles: &[Bundle], shapes: &mut [Shape], width: f64) -> (f64, f64) {
        let layers = shapes.iter().map(|shape| shape.layer + 1).max().unwrap_or(0);
        let crowd = |layer| shapes.iter().filter(|shape| shape.layer == layer).count();
        let columns = (0..layers).map(crowd).max().unwrap_or(1) as f64;
        // Workers in the order of their numbers, over the width of the fullest layer.
        let workers: Vec<_> = self.root().workers.iter().collect();
        let each = columns / workers.len().max(1) as f64;
        let middle = |bundle: &Bundle| {
            let below = bundle.nodes.iter().flat_map(|node| self[*node].workers.iter());
            let numbers = below.filter_map(|worker: WorkerId| workers.binary_search(&worker).ok());
            let (sum, count) = numbers.fold((0, 0), |(sum, count), number| (sum + number, count + 1));
            (sum as f64 / f64::from(count.max(1)) + 0.5) * each - 0.5
        };
        let mut y = MARGIN + 2.5 * LINE;
        for layer in 0..layers {
            let here = || (0..shapes.len()).filter(|at| shapes[*at].layer == layer);
            let mut wanted: Vec<(f64, usize)> = here().map(|at| (middle(&bundles[at]), at)).collect();
            wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let height = here().map(|at| shapes[at].height).fold(0.0, f64::max);
            let places: Vec<f64> = wanted.iter().map(|(place, _)| *place).collect();
            for (place, (_, at)) in spread(&places).into_iter().zip(&wanted) {
                (shapes[*at].x, shapes[*at].y) = (place * (width + GAP), y);
            }
            y += height + DROP;
        }
        let least = shapes.iter().map(|shape| shape.x).fold(f64::INFINITY, f64::min);
        let most = shapes.iter().map(|shape| shape.x + width).fold(0.0, f64::max);
        // A narrow tree stands in the middle of its picture.
        let indent = ((NARROWEST - 2.0 * MARGIN - (most - least)) / 2.0).max(0.0);
        shapes.iter_mut().for_each(|shape| shape.x += MARGIN + indent - least);
        (most - least, y - DROP)
    }
}

fn edge(pen: &mut Pen, above: &Shape, below: &Shape, width: f64, slot: Option<&str>) {
    let (from, to) = ((above.x + width / 2.0, above.y + above.height), (below.x + width / 2.0, below.y));
    pen.path(&curve(from, to, (to.1 - from.1) / 2.0), &format!("stroke=\"{EDGE}\""), None);
    if let Some(slot) = slot {
        let look = format!(
            "text-anchor=\"middle\" font-size=\"11\" fill=\"{MUTED}\" stroke=\"white\" stroke-width=\"3\" \
             paint-order=\"stroke\""
        );
        pen.text((to.0, to.1 - 6.0), &look, slot);
    }
}

fn draw(pen: &mut Pen, colour: &str, shape: &Shape, width: f64) {
    let Shape { lines, x, y, height, .. } = shape;
    let look = format!("rx=\"5\" fill=\"{colour}\" stroke=\"{LABEL}\"");
    pen.rect((*x, *y), (width, *height), &look);
    for (line, number) in lines.iter().zip(1..) {
        pen.text((x + width / 2.0, y + f64::from(number) * LINE), "text-anchor=\"middle\"", line);
    }
}
