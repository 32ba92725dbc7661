//! Where the nodes of a picture are: in layers by depth, in an order with few crossings.

use super::sketch::Sketch;
use sched_text::spread;

/// How often the layers are gone through to straighten edges.
const SWEEPS: usize = 12;

/// Where each node is: its layer, and its place across, in widths of a node.
pub(super) struct Layout {
    pub(super) across: Vec<f64>,
    /// Number of layers.
    pub(super) layers: usize,
    /// Widths of a node that the picture takes.
    pub(super) width: f64,
}

impl Layout {
    /// After Sugiyama, Tagawa and Toda (1981): nodes of a layer are ordered by the mean place of their neighbours in
    /// the layers above and below, in turns; then each moves towards that mean as far as its neighbours let it.
    pub(super) fn of(sketch: &Sketch) -> Layout {
        let n = sketch.nodes.len();
        let (mut above, mut below) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for (from, to, _) in &sketch.edges {
            if sketch.nodes[*from].level < sketch.nodes[*to].level {
                above[*to].push(*from);
                below[*from].push(*to);
            }
        }
        let mut layers: Vec<Vec<usize>> = Vec::new();
        for (number, node) in sketch.nodes.iter().enumerate() {
            if layers.len() <= node.level {
                layers.resize_with(node.level + 1, Vec::new);
            }
            layers[node.level].push(number);
        }
        let widest = layers.iter().map(Vec::len).max().unwrap_or(0);
        let mut across = vec![0.0; n];
        for layer in &layers {
            let margin = (widest - layer.len()) as f64 / 2.0;
            for (place, node) in layer.iter().enumerate() {
                across[*node] = margin + place as f64;
            }
        }
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let neighbours = if down { &above } else { &below };
            let order: Vec<usize> = if down { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
            for layer in order {
                let mean = |node: usize| {
                    let places = neighbours[node].iter().map(|other| across[*other]);
                    if neighbours[node].is_empty() {
                        across[node]
                    } else {
                        places.sum::<f64>() / neighbours[node].len() as f64
                    }
                };
                let mut wanted: Vec<(f64, usize)> = layers[layer].iter().map(|node| (mean(*node), *node)).collect();
                wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
                let places: Vec<f64> = wanted.iter().map(|(place, _)| *place).collect();
                layers[layer] = wanted.iter().map(|(_, node)| *node).collect();
                for ((_, node), place) in wanted.iter().zip(spread(&places)) {
                    across[*node] = place;
                }
            }
        }
        let least = across.iter().copied().fold(f64::INFINITY, f64::min);
        let most = across.iter().copied().fold(0.0, f64::max);
        if n > 0 {
            across.iter_mut().for_each(|place| *place -= least);
        }
        Layout { across, layers: layers.len(), width: if n > 0 { most - least + 1.0 } else { 0.0 } }
    }
}
