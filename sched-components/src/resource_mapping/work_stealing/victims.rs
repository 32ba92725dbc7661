//! The order in which a thief visits its victims.

use sched_core::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The victims of one thief, the nearest first, by the host's distances between workers.
///
/// Among equally near victims each thief starts with a different one, so that thieves do not crowd at one victim. If
/// the host does not know distances, victims that share a memory node with the thief come first, and then neighbours:
/// children are in the order of the topology.
#[derive(Debug)]
pub(super) struct Victims {
    thief: Child,
    /// Groups of equally near victims, the nearest first.
    rounds: Vec<Round>,
}

/// Equally near children, visited round-robin in ascending order.
#[derive(Debug)]
struct Round {
    ring: Arc<Ring>,
    /// The word of the child to start with, and the bits of that child and those above it in that word.
    word: usize,
    from: u64,
}

/// A set of children, shared by neighbouring thieves.
#[derive(Debug)]
struct Ring {
    /// The words that contain children, counted from the first.
    span: Range<usize>,
    words: Box<[u64]>,
}

/// The word of a child in a set of children, and its bit there.
fn place(child: Child) -> (usize, u64) {
    ((child.0 / 64) as usize, 1 << (child.0 % 64))
}

/// Distances that thieves found out, for their neighbours.
#[derive(Default, Debug)]
pub(super) struct Neighbourhoods(Mutex<Vec<Rings>>);

/// With fewer children than this, each thief asks for all its distances itself.
const MANY: usize = 64;

/// The smallest distance of workers that do not share a processing unit.
const NEXT: u32 = 1;

impl Neighbourhoods {
    /// The victims of `thief`.
    ///
    /// On a machine with many workers, asking for each pair would take longer than many a run. But adjacent workers are
    /// equally far from all others, so one of them asks for all.
    pub(super) fn victims(&self, node: Node<'_>, thief: Child) -> Victims {
        let alone = || node.child_worker(thief).is_some();
        if node.children().len() <= MANY || !alone() {
            return Rings::new(node, thief).map_or_else(|| by_memory_node(node, thief), |rings| rings.victims(thief));
        }
        // Only services are called under the lock, never components.
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

/// All children by their distance from one of them, which is in the first ring.
#[derive(Debug)]
struct Rings {
    center: Child,
    /// Distance of the first ring.
    nearest: u32,
    /// The nearest first; those of unknown distance last: a worker without a position in the topology, such as an
    /// accelerator, counts as the farthest.
    rings: Vec<Arc<Ring>>,
}

impl Rings {
    /// `None` if the host does not know distances.
    fn new(node: Node<'_>, center: Child) -> Option<Rings> {
        let mut rings: BTreeMap<u32, Vec<Child>> = BTreeMap::new();
        for child in node.children().filter(|child| *child != center) {
            let distance = distance(node, center, child).unwrap_or(u32::MAX);
            rings.entry(distance).or_default().push(child);
        }
        let mut first = rings.first_entry()?;
        let nearest = *first.key();
        first.get_mut().push(center);
        let rings = rings.values().map(|ring| Arc::new(Ring::of(ring))).collect();
        (nearest != u32::MAX).then_some(Rings { center, nearest, rings })
    }

    /// The victims of the central child, or of one in the first ring that is equally far from all others.
    fn victims(&self, thief: Child) -> Victims {
        Victims { thief, rounds: self.rings.iter().map(|ring| Round::new(ring, thief.0)).collect() }
    }
}

impl Ring {
    fn of(children: &[Child]) -> Ring {
        let numbers = children.iter().map(|child| place(*child).0);
        let span = numbers.clone().min().unwrap_or(0)..numbers.max().map_or(0, |last| last + 1);
        let mut words = vec![0; span.len()];
        children.iter().map(|child| place(*child)).for_each(|(word, bit)| words[word - span.start] |= bit);
        Ring { span, words: words.into() }
    }
}

impl Round {
    /// A round over these children, starting with the one of index `number` modulo their count.
    fn new(ring: &Arc<Ring>, number: u32) -> Round {
        let count: u32 = ring.words.iter().map(|word| word.count_ones()).sum();
        let mut before = number.checked_rem(count).unwrap_or(0);
        for (word, bits) in ring.span.clone().zip(&ring.words) {
            if before < bits.count_ones() {
                let first = (0..before).fold(*bits, |left, _| left & (left - 1)).trailing_zeros();
                return Round { ring: Arc::clone(ring), word, from: u64::MAX << first };
            }
            before -= bits.count_ones();
        }
        Round { ring: Arc::clone(ring), word: ring.span.start, from: u64::MAX }
    }

    /// The first result of `visit` among these children, as far as they are members of `among`.
    #[inline]
    fn find<T>(&self, among: &SharedSet, mut visit: impl FnMut(usize, u64) -> Option<T>) -> Option<T> {
        let Round { ring, word, from } = self;
        let mut look = |(word, members): (usize, u64), wanted: u64| {
            let found = members & ring.words[word - ring.span.start] & wanted;
            if found == 0 { None } else { visit(word, found) }
        };
        let (before, after) = (ring.span.start..*word, *word..ring.span.end);
        among
            .words(after)
            .find_map(|members| look(members, if members.0 == *word { *from } else { u64::MAX }))
            .or_else(|| among.words(before).find_map(|members| look(members, u64::MAX)))
            .or_else(|| among.words(*word..*word + 1).find_map(|members| look(members, !from)))
    }
}

impl Victims {
    /// The first result of `visit` among the victims that are members of `among`.
    #[inline]
    pub(super) fn find<T>(&self, among: &SharedSet, mut visit: impl FnMut(Child) -> Option<T>) -> Option<T> {
        if among.is_empty() {
            return None;
        }
        let own = place(self.thief);
        self.rounds.iter().find_map(|round| {
            round.find(among, |word, mut left| {
                if word == own.0 {
                    left &= !own.1;
                }
                while left != 0 {
                    let victim = Child(word as u32 * 64 + left.trailing_zeros());
                    left &= left - 1;
                    if let Some(found) = visit(victim) {
                        return Some(found);
                    }
                }
                None
            })
        })
    }
}

/// The distance between the nearest workers of two children, if the host knows it.
fn distance(node: Node<'_>, one: Child, other: Child) -> Option<u32> {
    if let (Some(one), Some(other)) = (node.child_worker(one), node.child_worker(other)) {
        return node.worker_distance(one, other);
    }
    let (ones, others) = (node.child_workers(one), node.child_workers(other));
    let pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| node.worker_distance(one, other)).min()
}

/// Children that share a memory node with `thief` first, then the others; both by their distance in the ring of
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
    let round = |victim: Child| Round::new(&Arc::new(Ring::of(&[victim])), 0);
    Victims { thief, rounds: others.into_iter().map(round).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of all victims.
    fn order(victims: &Victims) -> Vec<u32> {
        let everybody = SharedSet::new(1024);
        (0..1024).for_each(|child| everybody.insert(child));
        let mut all = Vec::new();
        let none = victims.find(&everybody, |child| -> Option<Child> {
            all.push(child.0);
            None
        });
        assert_eq!(none, None);
        all
    }

    fn ring(children: impl IntoIterator<Item = u32>) -> Arc<Ring> {
        Arc::new(Ring::of(&children.into_iter().map(Child).collect::<Vec<_>>()))
    }

    #[test]
    fn near_victims_come_first_and_each_thief_begins_with_another() {
        let rings = Rings { center: Child(5), nearest: NEXT, rings: vec![ring(0..64), ring(64..1024)] };
        for thief in [5, 0, 37, 63] {
            let all = order(&rings.victims(Child(thief)));
            let near: Vec<u32> = (thief + 1..64).chain(0..thief).collect();
            assert_eq!(all[..63], near, "thief {thief}");
            let far = 64 + thief % 960;
            assert_eq!(all[63..], (far..1024).chain(64..far).collect::<Vec<_>>(), "thief {thief}");
        }
    }

    #[test]
    fn only_members_are_visited() {
        let rings = Rings { center: Child(5), nearest: NEXT, rings: vec![ring(0..64), ring(64..1024)] };
        let (victims, some) = (rings.victims(Child(63)), SharedSet::new(1024));
        assert_eq!(victims.find(&some, Some), None);
        [63, 62, 64, 130, 900].into_iter().for_each(|child| some.insert(child));
        let mut visited = Vec::new();
        let found = victims.find(&some, |child| {
            visited.push(child.0);
            (child.0 == 900).then_some(child)
        });
        assert_eq!((found, visited), (Some(Child(900)), vec![62, 130, 900]));
    }

    #[test]
    fn sets_are_gone_round_from_any_member() {
        let set = ring([3, 63, 64, 200, 201, 900]);
        for number in 0..12 {
            let victims = Victims { thief: Child(1000), rounds: vec![Round::new(&set, number)] };
            let mut wanted = [3, 63, 64, 200, 201, 900];
            wanted.rotate_left(number as usize % 6);
            assert_eq!(order(&victims), wanted);
        }
    }
}
