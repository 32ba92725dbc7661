//! Who steals from whom.

use sched_core::*;
use std::collections::BTreeMap;

/// The victims of one thief, the nearest first, by the distances of workers that the host tells.
///
/// Of those that are equally near each thief begins with another one, so that thieves do not crowd at one victim. Under
/// a host that tells no distances, those that share a memory node with the thief come first, and then neighbours:
/// children stand in the order of the topology.
#[derive(Debug)]
pub(super) struct Victims {
    /// The order, as victims that are looked at together, from the lowest number up: the number of a word of a set of
    /// children, and their bits in it.
    steps: Vec<(usize, u64)>,
}

/// The word of a child in a set of children, and its bit there.
pub(super) fn place(child: Child) -> (usize, u64) {
    ((child.0 / 64) as usize, 1 << (child.0 % 64))
}

/// What thieves have learned of distances, for their neighbours.
#[derive(Default, Debug)]
pub(super) struct Neighbourhoods(Mutex<Vec<Rings>>);

/// Where there are fewer children, each thief asks for all of its distances itself.
const MANY: usize = 64;

/// The least distance of workers that do not share a processing unit.
const NEXT: u32 = 1;

impl Neighbourhoods {
    /// The victims of `thief`.
    ///
    /// Asking for each pair on a machine of many workers would take longer than many a run. But workers that are next to
    /// each other are equally far from all others, so one of them asks for all.
    pub(super) fn victims(&self, node: Node<'_>, thief: Child) -> Victims {
        let alone = || node.child_worker(thief).is_some();
        if node.children().len() <= MANY || !alone() {
            return Rings::new(node, thief).map_or_else(|| by_memory_node(node, thief), |rings| rings.victims(thief));
        }
        // Services are asked under the lock, but no component.
        let mut known = self.0.lock();
        if let Some(rings) = known.iter().find(|rings| distance(node, thief, rings.center) == Some(NEXT)) {
            return rings.victims(thief);
        }
        let Some(rings) = Rings::new(node, thief) else { return by_memory_node(node, thief) };
        let victims = rings.victims(thief);
        if rings.nearest == NEXT {
            known.push(rings);
        }
        victims
    }
}

/// All children but one, by their distance from it.
#[derive(Debug)]
struct Rings {
    center: Child,
    /// The distance of the first ring.
    nearest: u32,
    /// The nearest first; those of unknown distance last: what has no place in the topology, as an accelerator may, is the
    /// farthest.
    rings: Vec<Vec<u64>>,
}

impl Rings {
    /// `None` under a host that tells no distances.
    fn new(node: Node<'_>, center: Child) -> Option<Rings> {
        let words = node.children().len().div_ceil(64);
        let mut rings: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for child in node.children().filter(|child| *child != center) {
            let (word, bit) = place(child);
            let distance = distance(node, center, child).unwrap_or(u32::MAX);
            rings.entry(distance).or_insert_with(|| vec![0; words])[word] |= bit;
        }
        let nearest = *rings.keys().next()?;
        (nearest != u32::MAX).then(|| Rings { center, nearest, rings: rings.into_values().collect() })
    }

    /// The victims of the child in the centre, or of one in the first ring that is equally far from all others.
    fn victims(&self, thief: Child) -> Victims {
        let mut victims = Victims { steps: Vec::new() };
        for (number, ring) in self.rings.iter().enumerate() {
            if number > 0 || thief == self.center {
                victims.add(ring, thief.0);
                continue;
            }
            let mut ring = ring.clone();
            for child in [self.center, thief] {
                let (word, bit) = place(child);
                ring[word] ^= bit;
            }
            victims.add(&ring, thief.0);
        }
        victims
    }
}

impl Victims {
    /// Adds a set of children, beginning with that of the given number among them, which is counted round.
    fn add(&mut self, set: &[u64], number: u32) {
        let count: u32 = set.iter().map(|word| word.count_ones()).sum();
        let mut before = number.checked_rem(count).unwrap_or(0);
        for (word, bits) in set.iter().enumerate() {
            if before < bits.count_ones() {
                // The lowest ones come last.
                let from = (0..before).fold(*bits, |left, _| left & (left - 1));
                self.steps.push((word, from));
                self.steps.extend(set.iter().copied().enumerate().skip(word + 1));
                self.steps.extend(set.iter().copied().enumerate().take(word));
                self.steps.push((word, bits & !from));
                break;
            }
            before -= bits.count_ones();
        }
        self.steps.retain(|(_, bits)| *bits != 0);
    }

    /// What `visit` finds at the first of the victims that are in a set, of which `word` gives each word.
    #[inline]
    pub(super) fn find<T>(&self, word: impl Fn(usize) -> u64, mut visit: impl FnMut(Child) -> Option<T>) -> Option<T> {
        for (number, bits) in &self.steps {
            let mut left = bits & word(*number);
            while left != 0 {
                let victim = Child(*number as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
                if let Some(found) = visit(victim) {
                    return Some(found);
                }
            }
        }
        None
    }
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
fn by_memory_node(node: Node<'_>, thief: Child) -> Victims {
    let memory_nodes = |child| -> Vec<MemoryNode> {
        node.child_workers(child).iter().filter_map(|worker| node.memory_node(worker)).collect()
    };
    let (near, count) = (memory_nodes(thief), node.children().len() as u32);
    let mut others: Vec<Child> = node.children().filter(|child| *child != thief).collect();
    others.sort_by_cached_key(|child| {
        let forward = (child.0 + count - thief.0) % count;
        let far = !memory_nodes(*child).iter().any(|memory_node| near.contains(memory_node));
        (far, forward.min(count - forward), forward)
    });
    Victims { steps: others.into_iter().map(place).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The order of all victims, and how many words of the set it takes to find none.
    fn order(victims: &Victims) -> (Vec<u32>, usize) {
        let asked = Cell::new(0);
        let none = |_| {
            asked.set(asked.get() + 1);
            0
        };
        assert_eq!(victims.find(none, Some), None);
        let mut all = Vec::new();
        let kept = |child: Child| -> Option<Child> {
            all.push(child.0);
            None
        };
        victims.find(|_| u64::MAX, kept);
        (all, asked.get())
    }

    fn ring(children: impl IntoIterator<Item = u32>) -> Vec<u64> {
        let mut ring = vec![0; 16];
        children.into_iter().map(|child| place(Child(child))).for_each(|(word, bit)| ring[word] |= bit);
        ring
    }

    #[test]
    fn a_thousand_victims_are_passed_over_by_the_word() {
        let center = Child(5);
        let rings = vec![ring((0..64).filter(|child| *child != 5)), ring(64..1024)];
        let rings = Rings { center, nearest: NEXT, rings };
        for thief in [5, 0, 37, 63] {
            let (all, looks) = order(&rings.victims(Child(thief)));
            let near = |start: u32| (start..64).chain(0..start).filter(|child| *child != thief).collect::<Vec<_>>();
            // The thief is left out of the first ring, of 63; 960 are in the other.
            let first = if thief % 63 < thief { thief % 63 } else { thief % 63 + 1 };
            assert_eq!(all[..63], near(first), "thief {thief}");
            let far = 64 + thief % 960;
            assert_eq!(all[63..], (far..1024).chain(64..far).collect::<Vec<_>>(), "thief {thief}");
            assert!(looks <= 2 + 16, "{looks} words");
        }
    }

    #[test]
    fn sets_are_gone_round_from_any_member() {
        let set = ring([3, 63, 64, 200, 201, 900]);
        for number in 0..12 {
            let mut victims = Victims { steps: Vec::new() };
            victims.add(&set, number);
            let mut wanted = [3, 63, 64, 200, 201, 900];
            wanted.rotate_left(number as usize % 6);
            assert_eq!(order(&victims).0, wanted);
        }
    }
}
