//! Which memory nodes hold which elements of data that has parts.

use sched_core::MemoryNode;
use sched_graph::Region;

/// Elements that are in the same state, on each memory node (as bits).
#[derive(Clone, Debug)]
struct Tile {
    region: Region,
    /// Nodes that hold their value.
    valid: u64,
    /// Nodes that hold any value of them, maybe an old one.
    filled: u64,
    /// Nodes to which they are being copied.
    arriving: u64,
    /// Nodes from which they are, with some of copies that have ended while others go on.
    leaving: u64,
    /// Number of the write that made the value.
    version: u64,
}

/// The elements, as disjoint tiles. Tiles are split where a task uses a part of one, and joined where one writes all of
/// them, so their number is bounded by the number of parts.
#[derive(Debug)]
pub(crate) struct Tiles {
    list: Vec<Tile>,
    /// Number of writes.
    writes: u64,
}

/// Elements to copy.
pub(crate) struct Missing {
    pub(crate) region: Region,
    /// Nodes that hold them.
    pub(crate) valid: u64,
    /// Whether the node held no value of them before.
    pub(crate) is_new: bool,
    version: u64,
}

fn bit(node: MemoryNode) -> u64 {
    1 << node.0
}

impl Tiles {
    /// Data that is on one node.
    pub(crate) fn new(whole: Region, node: MemoryNode) -> Tiles {
        let (valid, filled) = (bit(node), bit(node));
        Tiles { list: vec![Tile { region: whole, valid, filled, arriving: 0, leaving: 0, version: 0 }], writes: 0 }
    }

    /// Splits tiles, so that each is inside the region or outside.
    pub(crate) fn split(&mut self, region: &Region) {
        let is_across = |tile: &Tile| tile.region.overlaps(region) && !region.contains(&tile.region);
        let across: Vec<Tile> = self.list.extract_if(.., |tile| is_across(tile)).collect();
        for tile in across {
            let pieces = tile.region.minus(region).chain([tile.region.intersection(region)]);
            self.list.extend(pieces.map(|region| Tile { region, ..tile }));
        }
    }

    /// Ends a copy of a tile to `node`.
    fn end(tile: &mut Tile, node: MemoryNode) {
        tile.arriving &= !bit(node);
        if tile.arriving == 0 {
            tile.leaving = 0;
        }
    }

    fn inside<'t>(&'t mut self, region: &'t Region) -> impl Iterator<Item = &'t mut Tile> {
        self.list.iter_mut().filter(|tile| region.contains(&tile.region))
    }

    /// Begins to copy what `node` needs of a region, which is split: the value, or any value. The elements are
    /// returned, without those that are being copied already.
    pub(crate) fn begin(&mut self, region: &Region, node: MemoryNode, value: bool) -> Vec<Missing> {
        let is_missing = |tile: &&mut Tile| {
            let there = if value { tile.valid } else { tile.filled };
            (there | tile.arriving) & bit(node) == 0
        };
        let begin = |tile: &mut Tile| {
            tile.arriving |= bit(node);
            Missing {
                region: tile.region.clone(),
                valid: tile.valid,
                is_new: tile.filled & bit(node) == 0,
                version: tile.version,
            }
        };
        self.inside(region).filter(is_missing).map(begin).collect()
    }

    /// Notes from where what [`begin`](Self::begin) returned is copied, if there is a source.
    pub(crate) fn note_sources<'m>(&mut self, missing: impl Iterator<Item = (&'m Missing, Option<MemoryNode>)>) {
        for (of, from) in missing {
            self.inside(&of.region).for_each(|tile| tile.leaving |= from.map_or(0, bit));
        }
    }

    /// Whether elements of a region, which is split, are being copied to `node`, or to anywhere from another one.
    pub(crate) fn is_moving_beside(&mut self, region: &Region, node: MemoryNode) -> bool {
        self.inside(region).any(|tile| tile.arriving & bit(node) != 0 || tile.leaving & !bit(node) != 0)
    }

    /// Whether elements of a region, which is split, are being copied to `node`.
    pub(crate) fn is_arriving(&mut self, region: &Region, node: MemoryNode) -> bool {
        self.inside(region).any(|tile| tile.arriving & bit(node) != 0)
    }

    /// Whether elements of a region, which is split, are being copied to any node.
    pub(crate) fn is_moving(&mut self, region: &Region) -> bool {
        self.inside(region).any(|tile| tile.arriving != 0)
    }

    /// Ends the copies that [`begin`](Self::begin) returned: the node has memory for the elements, and their value if
    /// that was copied and nobody has written another one meanwhile.
    pub(crate) fn arrive(&mut self, missing: &[Missing], node: MemoryNode, value: bool) {
        for Missing { region, version, .. } in missing {
            for tile in self.inside(region) {
                Tiles::end(tile, node);
                tile.filled |= bit(node);
                if value && tile.version == *version {
                    tile.valid |= bit(node);
                }
            }
        }
    }

    /// Ends copies that failed.
    pub(crate) fn give_up(&mut self, missing: &[Missing], node: MemoryNode) {
        for Missing { region, .. } in missing {
            self.inside(region).for_each(|tile| Tiles::end(tile, node));
        }
    }

    /// Begins to copy to `home` what `node` alone holds, apart from nodes that are `lost`, before its memory is given
    /// back; `None` if something is being copied to that memory.
    pub(crate) fn begin_to_leave(&mut self, node: MemoryNode, home: MemoryNode, lost: u64) -> Option<Vec<Missing>> {
        if self.list.iter().any(|tile| tile.arriving & bit(node) != 0) {
            return None;
        }
        let is_alone = |tile: &&mut Tile| tile.valid & !lost == bit(node) && tile.arriving & bit(home) == 0;
        let begin = |tile: &mut Tile| {
            tile.arriving |= bit(home);
            tile.leaving |= bit(node);
            let (region, valid, version) = (tile.region.clone(), tile.valid, tile.version);
            Missing { region, valid, is_new: false, version }
        };
        Some(self.list.iter_mut().filter(is_alone).map(begin).collect())
    }

    /// Notes that `node` holds nothing any more, and returns the number of elements that it held any value of; `None`
    /// if it alone holds some value, apart from nodes that are `lost`, or something is being copied there.
    pub(crate) fn leave(&mut self, node: MemoryNode, lost: u64) -> Option<usize> {
        if self.list.iter().any(|tile| tile.valid & !lost == bit(node)) {
            return None;
        }
        self.forget(node)
    }

    /// [`leave`](Self::leave), with the values that `node` alone holds.
    pub(crate) fn forget(&mut self, node: MemoryNode) -> Option<usize> {
        if self.list.iter().any(|tile| tile.arriving & bit(node) != 0) {
            return None;
        }
        let held = self.filled(node);
        for tile in &mut self.list {
            tile.valid &= !bit(node);
            tile.filled &= !bit(node);
        }
        Some(held)
    }

    /// Notes a write of a region on `node`: no other node holds its value afterwards.
    pub(crate) fn write(&mut self, region: &Region, node: MemoryNode) {
        self.split(region);
        self.writes += 1;
        let version = self.writes;
        self.inside(region).for_each(|tile| (tile.valid, tile.version) = (bit(node), version));
        let mut inside = self.list.iter().filter(|tile| region.contains(&tile.region));
        let Some(first) = inside.next().cloned() else { return };
        // Whoever copies tiles ends that for each of them.
        if first.arriving == 0 && inside.all(|tile| (tile.filled, tile.arriving) == (first.filled, 0)) {
            self.list.retain(|tile| !region.contains(&tile.region));
            self.list.push(Tile { region: region.clone(), ..first });
        }
    }

    /// Keeps one copy of each element of a region, at `home` if that holds the value, and on no node that is `lost` if
    /// another one holds it. Returns the nodes that hold nothing of some elements any more, with the number of these.
    /// Nobody copies or uses the region.
    pub(crate) fn let_go(&mut self, region: &Region, home: MemoryNode, lost: u64) -> Vec<(MemoryNode, usize)> {
        self.split(region);
        let mut gone = Vec::new();
        for tile in self.inside(region) {
            let kept = match (tile.valid, tile.valid & !lost) {
                (valid, _) if valid & bit(home) != 0 => bit(home),
                (valid, 0) => valid & valid.wrapping_neg(),
                (_, good) => good & good.wrapping_neg(),
            };
            // What was registered stays where it is.
            let stays = kept | bit(home);
            let nodes = (0..u64::BITS).map(MemoryNode).filter(|node| tile.filled & !stays & bit(*node) != 0);
            gone.extend(nodes.map(|node| (node, tile.region.len())));
            (tile.valid, tile.filled) = (kept, tile.filled & stays);
        }
        gone
    }

    /// Whether a node holds any value, or is about to.
    pub(crate) fn is_used(&self, node: MemoryNode) -> bool {
        self.list.iter().any(|tile| (tile.filled | tile.arriving) & bit(node) != 0)
    }

    /// Nodes that hold the values of all elements of a region.
    pub(crate) fn valid(&self, region: &Region) -> u64 {
        let overlapping = self.list.iter().filter(|tile| tile.region.overlaps(region));
        overlapping.fold(u64::MAX, |valid, tile| valid & tile.valid)
    }

    /// Elements of a region whose values `node` does not hold: how many, and the nodes that hold them.
    pub(crate) fn missing(&self, region: &Region, node: MemoryNode) -> impl Iterator<Item = (usize, u64)> {
        let overlapping = self.list.iter().filter(move |tile| tile.valid & bit(node) == 0);
        let counted = overlapping.map(|tile| (tile.region.intersection(region).len(), tile.valid));
        counted.filter(|(count, _)| *count > 0)
    }

    /// Number of elements that a node holds any value of.
    pub(crate) fn filled(&self, node: MemoryNode) -> usize {
        self.list.iter().filter(|tile| tile.filled & bit(node) != 0).map(|tile| tile.region.len()).sum()
    }
}
