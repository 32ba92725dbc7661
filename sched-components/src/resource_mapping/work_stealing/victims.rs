//! Who steals from whom.

use sched_core::*;

/// The victims of one thief, the nearest first, by the distances of workers that the host tells.
///
/// Of those that are equally near each thief begins with another one, so that thieves do not crowd at one victim. Under
/// a host that tells no distances, those that share a memory node with the thief come first, and then neighbours:
/// children stand in the order of the topology.
#[derive(Debug)]
pub(super) struct Victims {
    /// The order, as children that are looked at together, since they stand in the order of their numbers: the number of
    /// a word, and their bits in it.
    steps: Box<[(u32, u64)]>,
}

/// The word of a child in a set of children, and its bit there.
pub(super) fn place(child: Child) -> (usize, u64) {
    ((child.0 / 64) as usize, 1 << (child.0 % 64))
}

impl Victims {
    pub(super) fn new(node: Node<'_>, thief: Child) -> Victims {
        let mut steps: Vec<(u32, u64)> = Vec::new();
        for victim in in_order(node, thief) {
            let (word, bit) = place(victim);
            match steps.last_mut() {
                // Bits are looked at from the lowest up.
                Some((last, bits)) if *last as usize == word && *bits < bit => *bits |= bit,
                _ => steps.push((word as u32, bit)),
            }
        }
        Victims { steps: steps.into() }
    }

    /// The victims that are in a set, of which `word` gives each word.
    pub(super) fn listed(&self, word: impl Fn(usize) -> u64) -> impl Iterator<Item = Child> {
        self.steps.iter().flat_map(move |(number, bits)| {
            let mut left = bits & word(*number as usize);
            std::iter::from_fn(move || {
                let victim = (left != 0).then(|| Child(number * 64 + left.trailing_zeros()));
                left &= left.wrapping_sub(1);
                victim
            })
        })
    }
}

/// All other children.
fn in_order(node: Node<'_>, thief: Child) -> Vec<Child> {
    let others: Vec<Child> = node.children().filter(|child| *child != thief).collect();
    let distances: Vec<Option<u32>> = others.iter().map(|child| distance(node, thief, *child)).collect();
    if distances.iter().all(Option::is_none) {
        return by_memory_node(node, thief, others);
    }
    // What has no place in the topology, as an accelerator may, is the farthest.
    let distances = distances.into_iter().map(|distance| distance.unwrap_or(u32::MAX));
    let mut victims: Vec<(u32, Child)> = distances.zip(others).collect();
    // Stable: equally distant children keep their order, so that a rotation gives each thief another first.
    victims.sort_by_key(|(distance, _)| *distance);
    for alike in victims.chunk_by_mut(|one, other| one.0 == other.0) {
        alike.rotate_left(thief.0 as usize % alike.len());
    }
    victims.into_iter().map(|(_, child)| child).collect()
}

/// How far the nearest workers of two children are apart, if the host tells.
fn distance(node: Node<'_>, one: Child, other: Child) -> Option<u32> {
    if let (Some(one), Some(other)) = (node.child_worker(one), node.child_worker(other)) {
        return node.worker_distance(one, other);
    }
    let (ones, others) = (node.child_workers(one), node.child_workers(other));
    let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| node.worker_distance(one, other)).min()
}

/// Children that share a memory node with `thief` first, then the others, and each sort by how far they are on the ring of
/// children.
fn by_memory_node(node: Node<'_>, thief: Child, mut others: Vec<Child>) -> Vec<Child> {
    let memory_nodes = |child| -> Vec<MemoryNode> {
        node.child_workers(child).iter().filter_map(|worker| node.memory_node(worker)).collect()
    };
    let (near, count) = (memory_nodes(thief), others.len() as u32 + 1);
    others.sort_by_cached_key(|child| {
        let forward = (child.0 + count - thief.0) % count;
        let far = !memory_nodes(*child).iter().any(|memory_node| near.contains(memory_node));
        (far, forward.min(count - forward), forward)
    });
    others
}
