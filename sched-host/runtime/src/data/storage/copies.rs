//! Copies of elements between memory nodes: for tasks that need them, and ahead of these.

use super::devices::lost_with_its_device;
use super::{Buffer, Spread, Storage};
use crate::data::tiles::{Missing, Tiles};
use crate::data::whole::Whole;
use crate::memory::Memories;
use parking_lot::MutexGuard;
use sched_core::driver::DriverError;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::{DataId, Region};
use sched_memory::Reason;
use sched_trace::Transfer;
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements that are being copied to a node, and where each piece comes from.
pub(crate) struct Copying {
    missing: Vec<Missing>,
    sources: SmallVec<[Option<MemoryNode>; 4]>,
}

impl Copying {
    /// Whether some piece comes from a device that is lost.
    fn is_from_lost(&self, memories: &Memories) -> bool {
        let lost = memories.lost();
        self.sources.iter().flatten().any(|from| lost & 1 << from.0 != 0)
    }
}

impl Storage {
    /// Brings the values of a region to the node of a worker, or of the application to where they began; without
    /// `value` any values will do. It is the turn of the caller, who writes the region or only reads it.
    ///
    /// # Errors
    /// If a device does not give or take them.
    pub(crate) fn bring(
        &self,
        whole: &Arc<Whole>,
        region: &Region,
        worker: Option<WorkerId>,
        value: bool,
    ) -> Result<(), DriverError> {
        let Some(spread) = &self.spread else { return Ok(()) };
        let node = worker.map_or(spread.home, |worker| spread.memories.node_of(worker));
        self.bring_to(whole, region, (node, worker, Reason::Demand), value)
    }

    /// Brings the values of a region to a node ahead of tasks. It is the turn of the caller, a reader.
    pub(crate) fn bring_ahead(&self, whole: &Arc<Whole>, region: &Region, node: MemoryNode) -> Result<(), DriverError> {
        self.bring_to(whole, region, (node, None, Reason::Prefetch), true)
    }

    /// Begins to copy the values of a region that a node lacks, for a task that is to read them there; `None` if it
    /// lacks none. It is the turn of the task, which does not begin during this call, and the caller goes on with
    /// [`copy_ahead`](Self::copy_ahead).
    pub(crate) fn begin_ahead(&self, region: &Region, node: MemoryNode) -> Option<Copying> {
        let spread = self.spread.as_ref().filter(|_| !region.is_empty())?;
        let mut tiles = spread.tiles.lock();
        tiles.split(region);
        let missing = tiles.begin(region, node, true);
        (!missing.is_empty()).then(|| self.begin_copies(spread, &mut tiles, missing, (node, None), None))
    }

    /// Copies what [`begin_ahead`](Self::begin_ahead) has begun to copy, unless the values are `gone`.
    ///
    /// # Errors
    /// If they are, if there is no room, or if a device does not give or take them.
    pub(crate) fn copy_ahead(
        &self,
        whole: &Arc<Whole>,
        (node, copying): (MemoryNode, &Copying),
        gone: Option<DriverError>,
    ) -> Result<(), DriverError> {
        let Some(spread) = &self.spread else { return Ok(()) };
        let copied = gone
            .map_or(Ok(()), Err)
            .and_then(|()| self.block(spread, whole, node, false))
            .and_then(|_| self.fetch(spread, whole, copying, (node, None, Reason::Prefetch)));
        self.note_use(spread, node);
        drop(self.end_copies(spread, copying, (node, None), (true, copied.is_ok())));
        copied
    }

    /// Brings a region to a node, for a worker or for nobody in particular, for this reason.
    fn bring_to(
        &self,
        whole: &Arc<Whole>,
        region: &Region,
        (node, by, why): (MemoryNode, Option<WorkerId>, Reason),
        value: bool,
    ) -> Result<(), DriverError> {
        let Some(spread) = self.spread.as_ref().filter(|_| !region.is_empty()) else { return Ok(()) };
        // A device has memory for what is written without being read, whatever is there.
        let is_copied = value || spread.memories.device(node).is_none();
        // The host's is to be initialized: with what is at home, where no device that works has the value.
        let instead = (is_copied && !value).then_some(spread.home);
        let mut tiles = spread.tiles.lock();
        tiles.split(region);
        loop {
            // Whoever writes in memory of the host waits for all copies anyway. Afterwards none to the home begins of
            // what only lost devices have.
            if instead.is_some_and(|home| tiles.is_arriving(region, home)) {
                spread.arrived.wait(&mut tiles);
                continue;
            }
            let missing = tiles.begin(region, node, value);
            if missing.is_empty() {
                if !tiles.is_arriving(region, node) {
                    return Ok(());
                }
                spread.arrived.wait(&mut tiles);
                continue;
            }
            let copying = self.begin_copies(spread, &mut tiles, missing, (node, by), instead);
            drop(tiles);
            let fetched = match is_copied {
                true => self.fetch(spread, whole, &copying, (node, by, why)),
                false => self.block(spread, whole, node, true).map(|_| ()),
            };
            // What was copied for a writer may be no value.
            tiles = self.end_copies(spread, &copying, (node, by), (value, fetched.is_ok()));
            // A device that turned out to be lost is no source next time.
            if instead.is_none() || !copying.is_from_lost(&spread.memories) {
                fetched?;
            }
        }
    }

    /// Chooses where what is missing on a node is copied from, `instead` of nowhere if that is a node, and keeps it
    /// there until [`end_copies`](Self::end_copies).
    fn begin_copies(
        &self,
        spread: &Spread,
        tiles: &mut Tiles,
        missing: Vec<Missing>,
        (node, by): (MemoryNode, Option<WorkerId>),
        instead: Option<MemoryNode>,
    ) -> Copying {
        let nearest = |of: &Missing| spread.memories.nearest(of.valid, node, self.bytes(of.region.len())).or(instead);
        let sources: SmallVec<[Option<MemoryNode>; 4]> = missing.iter().map(nearest).collect();
        sources.iter().for_each(|from| spread.begin_copy_from(*from));
        tiles.note_sources(missing.iter().zip(sources.iter().copied()));
        if let Some(device) = spread.visited(node, by) {
            device.arena.enter();
        }
        Copying { missing, sources }
    }

    /// Notes that copies have ended: of values or of nothing, and well or not. Locks the tiles.
    fn end_copies<'s>(
        &self,
        spread: &'s Spread,
        Copying { missing, sources }: &Copying,
        (node, by): (MemoryNode, Option<WorkerId>),
        (is_copied, is_well): (bool, bool),
    ) -> MutexGuard<'s, Tiles> {
        let mut tiles = spread.tiles.lock();
        sources.iter().for_each(|from| spread.end_copy_from(*from));
        match is_well {
            true => {
                let new: usize = missing.iter().filter(|of| of.is_new).map(|of| of.region.len()).sum();
                spread.memories.note_allocated(node, self.bytes(new));
                tiles.arrive(missing, node, is_copied);
            }
            // Not even what was copied before the error counts as being there.
            false => tiles.give_up(missing, node),
        }
        if let Some(device) = spread.visited(node, by) {
            device.arena.leave();
        }
        spread.arrived.notify_all();
        tiles
    }

    /// Copies what is missing on a node from where each piece is.
    fn fetch(
        &self,
        spread: &Spread,
        whole: &Arc<Whole>,
        Copying { missing, sources }: &Copying,
        (node, by, why): (MemoryNode, Option<WorkerId>, Reason),
    ) -> Result<(), DriverError> {
        for (Missing { region, .. }, from) in missing.iter().zip(sources) {
            let bytes = self.bytes(region.len());
            let from = from.ok_or_else(lost_with_its_device)?;
            let transfer = Transfer { data: DataId(whole.id as u32), from, to: node, bytes, why };
            let underway = spread.memories.note_transfer(transfer, by);
            self.transfer(spread, whole, (from, node), region)?;
            underway.arrived();
        }
        Ok(())
    }

    /// Copies elements from one node to another.
    fn transfer(
        &self,
        spread: &Spread,
        whole: &Arc<Whole>,
        (from, to): (MemoryNode, MemoryNode),
        region: &Region,
    ) -> Result<(), DriverError> {
        if spread.memories.device(from).is_some() || spread.memories.device(to).is_some() {
            return self.transfer_by_device(spread, whole, (from, to), region);
        }
        // SAFETY: this thread copies the elements, which nobody writes at `from`, where they are initialized, or uses
        // on `to`.
        unsafe { self.copy(self.buffer(spread, from), self.buffer(spread, to), region) };
        Ok(())
    }

    /// Copies a region from one buffer to another.
    ///
    /// # Safety
    /// The elements are initialized in the first buffer and not written meanwhile, and nobody uses them in the second.
    unsafe fn copy(&self, from: Buffer, to: Buffer, region: &Region) {
        let layout = self.layout.of_part(region);
        let Region { rows, columns } = region;
        let size = self.element.size();
        let copy = |row: usize, column: usize, length: usize| {
            let (from, to) = (self.element_of(from, row, column), self.element_of(to, row, column));
            // SAFETY: `length` elements of the region follow one another there, in two different buffers.
            unsafe { from.copy_to_nonoverlapping(to, length * size) };
        };
        if layout.is_contiguous() {
            copy(rows.start, columns.start, region.len());
        } else if layout.column_stride() == 1 {
            rows.clone().for_each(|row| copy(row, columns.start, columns.len()));
        } else if layout.row_stride() == 1 {
            columns.clone().for_each(|column| copy(rows.start, column, rows.len()));
        } else {
            rows.clone().for_each(|row| columns.clone().for_each(|column| copy(row, column, 1)));
        }
    }
}
