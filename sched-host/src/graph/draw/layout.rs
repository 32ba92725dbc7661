//! Where the nodes of a picture are: in layers by depth, in an order with few crossings.

use super::sketch::Sketch;

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
    /// After Sugiyama, Tagawa and Toda (1981): nodes of a layer are ordered by the mean place of their neighbours in the
    /// layers above and below, in turns; then each moves towards that mean as far as its neighbours let it.
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
                layers[layer] = wanted.iter().map(|(_, node)| *node).collect();
                for ((_, node), place) in wanted.iter().zip(spread(&wanted)) {
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

/// Places as near to the wanted ones, which ascend, as can be with one width between each two: the least squares solution,
/// by joining those that push each other into blocks (isotonic regression).
pub(crate) fn spread(wanted: &[(f64, usize)]) -> Vec<f64> {
    /// Nodes next to each other: sum of what their places less their number in the layer should be, and how many.
    struct Block {
        sum: f64,
        nodes: usize,
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (number, (place, _)) in wanted.iter().enumerate() {
        let mut block = Block { sum: place - number as f64, nodes: 1 };
        while let Some(last) = blocks.pop_if(|last| last.sum / last.nodes as f64 >= block.sum / block.nodes as f64) {
            block = Block { sum: last.sum + block.sum, nodes: last.nodes + block.nodes };
        }
        blocks.push(block);
    }
    let starts = blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.nodes as f64, block.nodes));
    starts.enumerate().map(|(number, start)| start + number as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nodes_with_room_stay_where_they_want_to_be() {
        let wanted = [(0.0, 0), (2.0, 1), (5.5, 2)];
        assert_eq!(spread(&wanted), [0.0, 2.0, 5.5]);
        assert_eq!(spread(&[(1.0, 0), (1.0, 1), (1.0, 2)]), [0.0, 1.0, 2.0]);
    }

    proptest! {
        #[test]
        fn nodes_never_overlap(mut places in prop::collection::vec(0.0f64..10.0, 0..30)) {
            places.sort_by(f64::total_cmp);
            let wanted: Vec<(f64, usize)> = places.into_iter().zip(0..).collect();
            let spread = spread(&wanted);
            prop_assert!(spread.windows(2).all(|pair| pair[1] - pair[0] >= 1.0 - 1e-9));
        }
    }
}
