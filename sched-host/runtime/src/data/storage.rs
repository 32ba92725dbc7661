//! The memory of data that has parts: one buffer on each memory node, whose elements tasks use through pointers.
//!
//! # Safety
//!
//! Elements are plain values, which are copied as bytes and need no drop; the type is known to the handles only.
//!
//! - Tasks that use overlapping parts, one of which writes, run one after the other
//!   ([`RegionOrder`](sched_graph::RegionOrder)), and no task names overlapping parts of which it writes one. So a
//!   [`Access`](super::array::Access) for writing is the only one to its elements. Debug builds check that.
//! - With several memory nodes, an access uses the buffer of its worker's node. Before, the worker
//!   [brings](Storage::bring) the elements there; only one thread at a time copies an element to a node ([`Tiles`]),
//!   only where the node does not hold its value, so nobody uses it there; and since it is the turn of a task that uses
//!   it, nobody writes it elsewhere.
//! - Elements are also copied [ahead](Storage::begin_ahead) of a task. That begins in its turn, before the task does. The
//!   copy may go on when the task has run elsewhere and ended: whoever writes the elements in memory of the host waits
//!   until none of them are being copied to any node, and a scope until nobody copies what it lent.
//! - A buffer is as large on each node, and not initialized: an element is used only after it has been filled.
//! - On the memory node of a device, an element is at the same place of a buffer of the device, which only its driver
//!   reaches ([`devices`]).
//! - A buffer is given back when its node holds no element and none is being copied there, under the lock of the tiles:
//!   who uses an element on a node has seen it filled, and who copies it has noted that it arrives.

mod devices;
mod pinning;

use super::layout::MatrixLayout;
use super::tiles::{Missing, Tiles};
use super::whole::Whole;
use crate::memory::Memories;
use devices::OnDevice;
use parking_lot::{Condvar, Mutex, MutexGuard};
use pinning::Pinning;
use sched_core::driver::DriverError;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::{DataId, Region};
use sched_memory::Reason;
use sched_trace::Transfer;
use smallvec::SmallVec;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Memory for the elements on one node.
#[derive(Clone, Copy)]
struct Buffer(NonNull<u8>);

// SAFETY: it is only a pointer; how it is used is described at the top.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// See the [module](self).
pub(crate) struct Storage {
    /// Size and alignment of an element.
    element: Layout,
    layout: MatrixLayout,
    /// Number of elements from the first to the last.
    span: usize,
    first: Buffer,
    owned: Option<Owned>,
    spread: Option<Spread>,
}

/// A vector that is taken apart.
struct Owned {
    length: usize,
    capacity: usize,
    drop: unsafe fn(NonNull<u8>, usize, usize),
}

/// Buffers on several memory nodes.
struct Spread {
    memories: Arc<Memories>,
    /// The node of the first buffer.
    home: MemoryNode,
    /// The other buffers, allocated on first use; null where there is none.
    others: Box<[AtomicPtr<u8>]>,
    /// The buffers on devices, in order of their nodes.
    on_devices: Box<[OnDevice]>,
    pinning: Mutex<Pinning>,
    tiles: Mutex<Tiles>,
    /// Notified when a copy has arrived.
    arrived: Condvar,
}

/// Elements that are being copied to a node, and where each piece comes from.
pub(crate) struct Copying {
    missing: Vec<Missing>,
    sources: SmallVec<[Option<MemoryNode>; 4]>,
}

impl Spread {
    /// The state of the elements, as soon as none of a region are being copied in a way that `matters`: what is evicted
    /// from a device, or was fetched ahead of a task that then ran elsewhere, may still be on its way. It is a writer's
    /// turn.
    fn when_settled(&self, region: &Region, matters: impl Fn(&mut Tiles) -> bool) -> MutexGuard<'_, Tiles> {
        let mut tiles = self.tiles.lock();
        tiles.split(region);
        self.arrived.wait_while(&mut tiles, matters);
        tiles
    }
}

/// # Safety
/// The arguments are those of a `Vec<T>` that was taken apart.
unsafe fn drop_vec<T>(first: NonNull<u8>, length: usize, capacity: usize) {
    // SAFETY: the caller's.
    drop(unsafe { Vec::<T>::from_raw_parts(first.as_ptr().cast(), length, capacity) });
}

impl Storage {
    /// Takes values over. The layout has been [checked](MatrixLayout::check) for them.
    pub(crate) fn owned<T: Copy + Send + Sync>(values: Vec<T>, layout: MatrixLayout, span: usize) -> Storage {
        let mut values = std::mem::ManuallyDrop::new(values);
        let (length, capacity) = (values.len(), values.capacity());
        let first = NonNull::new(values.as_mut_ptr()).expect("a vector has a pointer");
        let mut storage = Storage::at(first, layout, span);
        storage.owned = Some(Owned { length, capacity, drop: drop_vec::<T> });
        storage
    }

    /// Uses values that stay where they are.
    ///
    /// # Safety
    /// `span` values are there, and nobody else uses them while handles to the storage can be used.
    pub(crate) unsafe fn lent<T: Copy + Send + Sync>(first: NonNull<T>, layout: MatrixLayout, span: usize) -> Storage {
        Storage::at(first, layout, span)
    }

    fn at<T: Copy + Send + Sync>(first: NonNull<T>, layout: MatrixLayout, span: usize) -> Storage {
        const { assert!(size_of::<T>() > 0, "elements have a size") };
        Storage { element: Layout::new::<T>(), layout, span, first: Buffer(first.cast()), owned: None, spread: None }
    }

    /// Allows copies on other memory nodes; the values are on `home`.
    pub(crate) fn spread(mut self, memories: &Arc<Memories>, home: MemoryNode) -> Storage {
        memories.note_allocated(home, self.bytes(self.layout.region().len()));
        self.spread = Some(Spread {
            memories: Arc::clone(memories),
            home,
            others: (0..memories.nodes()).map(|_| AtomicPtr::default()).collect(),
            on_devices: memories.devices().iter().map(|_| OnDevice::default()).collect(),
            pinning: Mutex::default(),
            tiles: Mutex::new(Tiles::new(self.layout.region(), home)),
            arrived: Condvar::new(),
        });
        self
    }

    /// Layout of the whole.
    pub(crate) fn layout(&self) -> MatrixLayout {
        self.layout
    }

    /// Size of its buffer on a device.
    pub(crate) fn device_bytes(&self) -> u64 {
        self.bytes(self.span).max(1)
    }

    /// Size of this number of elements.
    pub(crate) fn bytes(&self, elements: usize) -> u64 {
        (elements * self.element.size()) as u64
    }

    /// Pointer to the first element of a region, on the node of a worker, or where the values began.
    pub(crate) fn place(&self, region: &Region, worker: Option<WorkerId>) -> NonNull<u8> {
        let buffer = match (&self.spread, worker) {
            (Some(spread), Some(worker)) => self.buffer(spread, spread.memories.node_of(worker)),
            _ => self.first,
        };
        self.element_of(buffer, region.rows.start, region.columns.start)
    }

    /// Pointer to an element in a buffer; without elements, to its begin.
    fn element_of(&self, buffer: Buffer, row: usize, column: usize) -> NonNull<u8> {
        let offset = self.layout.offset(row, column);
        if offset >= self.span {
            return buffer.0;
        }
        // SAFETY: the offset is within the buffer.
        unsafe { buffer.0.add(offset * self.element.size()) }
    }

    fn buffer(&self, spread: &Spread, node: MemoryNode) -> Buffer {
        if node == spread.home {
            return self.first;
        }
        let other = &spread.others[node.index()];
        if let Some(buffer) = NonNull::new(other.load(Acquire)) {
            return Buffer(buffer);
        }
        let Some(layout) = self.whole() else { return self.first };
        // SAFETY: the size is not 0.
        let new = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        match other.compare_exchange(std::ptr::null_mut(), new.as_ptr(), AcqRel, Acquire) {
            Ok(_) => Buffer(new),
            Err(there) => {
                // SAFETY: it was allocated with this layout, and nobody else has seen it.
                unsafe { dealloc(new.as_ptr(), layout) };
                Buffer(NonNull::new(there).unwrap_or(self.first.0))
            }
        }
    }

    /// Gives back a buffer that nobody uses.
    fn give_back(&self, buffer: *mut u8) {
        if let (Some(buffer), Some(layout)) = (NonNull::new(buffer), self.whole()) {
            // SAFETY: it was allocated with this layout, and the caller knows that nothing uses it any more.
            unsafe { dealloc(buffer.as_ptr(), layout) };
        }
    }

    /// Layout of a buffer, unless it is empty.
    fn whole(&self) -> Option<Layout> {
        let size = self.span * self.element.size();
        // The values are in memory already, so their size is not too large.
        Layout::from_size_align(size, self.element.align()).ok().filter(|_| size > 0)
    }

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
        (!missing.is_empty()).then(|| self.begin_copies(spread, missing, (node, None)))
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
            .and_then(|()| self.spare_block(spread, whole, node))
            .and_then(|()| self.fetch(spread, whole, copying, (node, None, Reason::Prefetch)));
        drop(self.end_copies(spread, copying, (node, None), (true, copied.is_ok())));
        copied
    }

    /// Keeps one copy of a region. It is the turn of the caller, a writer.
    pub(crate) fn let_go(&self, region: &Region) {
        let Some(spread) = &self.spread else { return };
        let mut tiles = spread.when_settled(region, |tiles| tiles.is_moving(region));
        for (node, elements) in tiles.let_go(region, spread.home) {
            spread.memories.note_freed(node, self.bytes(elements));
            // Who evicts from it gives it back.
            if tiles.is_used(node) || self.is_pinned(spread, node) {
                continue;
            }
            if spread.memories.device(node).is_some() {
                self.release_block(spread, node);
            } else {
                self.give_back(spread.others[node.index()].swap(std::ptr::null_mut(), AcqRel));
            }
        }
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
        let mut tiles = spread.tiles.lock();
        tiles.split(region);
        loop {
            let missing = tiles.begin(region, node, value);
            if missing.is_empty() {
                if !tiles.is_arriving(region, node) {
                    return Ok(());
                }
                spread.arrived.wait(&mut tiles);
                continue;
            }
            let copying = self.begin_copies(spread, missing, (node, by));
            drop(tiles);
            let fetched = match is_copied {
                true => self.fetch(spread, whole, &copying, (node, by, why)),
                false => self.block(spread, whole, node).map(|_| {
                    let new = copying.missing.iter().filter(|of| of.is_new);
                    new.for_each(|of| spread.memories.note_allocated(node, self.bytes(of.region.len())));
                }),
            };
            tiles = self.end_copies(spread, &copying, (node, by), (is_copied, fetched.is_ok()));
            fetched?;
        }
    }

    /// Chooses where what is missing on a node is copied from, and keeps it there until [`end_copies`](Self::end_copies).
    /// The caller has locked the tiles.
    fn begin_copies(
        &self,
        spread: &Spread,
        missing: Vec<Missing>,
        (node, by): (MemoryNode, Option<WorkerId>),
    ) -> Copying {
        let nearest = |of: &Missing| spread.memories.nearest(of.valid, node, self.bytes(of.region.len()));
        let sources: SmallVec<[Option<MemoryNode>; 4]> = missing.iter().map(nearest).collect();
        sources.iter().for_each(|from| spread.begin_copy_from(*from));
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
            true => tiles.arrive(missing, node, is_copied),
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
        for (Missing { region, is_new, .. }, from) in missing.iter().zip(sources) {
            let bytes = self.bytes(region.len());
            let from = from.ok_or_else(devices::lost_with_its_device)?;
            let transfer = Transfer { data: DataId(whole.id as u32), from, to: node, bytes, why };
            let underway = spread.memories.note_transfer(transfer, by);
            self.transfer(spread, whole, (from, node), region)?;
            underway.arrived();
            if *is_new {
                spread.memories.note_allocated(node, bytes);
            }
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
        // SAFETY: this thread copies the elements, which are valid at `from` and used by nobody on `to`.
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

    /// Notes that a region is written on the node of a worker, or where the values began.
    pub(crate) fn note_write(&self, region: &Region, worker: Option<WorkerId>) {
        if let Some(spread) = &self.spread {
            let node = worker.map_or(spread.home, |worker| spread.memories.node_of(worker));
            // What is copied from a device while it is written there is no value of the elements, and not taken for one.
            let on_device = spread.memories.device(node).is_some();
            let matters = |tiles: &mut Tiles| match on_device {
                true => tiles.is_arriving(region, node),
                false => tiles.is_moving(region),
            };
            spread.when_settled(region, matters).write(region, node);
        }
    }

    /// Nodes that hold all values of a region, as bits; 0 with one memory node.
    pub(crate) fn valid(&self, region: &Region) -> u64 {
        self.spread.as_ref().map_or(0, |spread| spread.tiles.lock().valid(region))
    }

    /// Values of a region that a node does not hold: their bytes, and the nodes that hold them.
    pub(crate) fn missing(&self, region: &Region, node: MemoryNode) -> Vec<(u64, u64)> {
        let Some(spread) = &self.spread else { return Vec::new() };
        let tiles = spread.tiles.lock();
        tiles.missing(region, node).map(|(elements, valid)| (self.bytes(elements), valid)).collect()
    }

    /// Takes the values back, which are all where they began; `None` if they were lent.
    pub(crate) fn into_vec<T: Copy + Send + Sync>(mut self) -> Option<Vec<T>> {
        debug_assert_eq!(self.element, Layout::new::<T>(), "the handle knows the type");
        let Owned { length, capacity, .. } = self.owned.take()?;
        // SAFETY: they are those of a vector of this type, which nothing else uses any more.
        Some(unsafe { Vec::from_raw_parts(self.first.0.as_ptr().cast(), length, capacity) })
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(spread) = &mut self.spread {
            let tiles = spread.tiles.get_mut();
            for node in (0..spread.others.len() as u32).map(MemoryNode) {
                let filled = (tiles.filled(node) * self.element.size()) as u64;
                spread.memories.note_freed(node, filled);
            }
        }
        self.release_blocks();
        self.unpin_home();
        for other in self.spread.iter().flat_map(|spread| &spread.others) {
            self.give_back(other.swap(std::ptr::null_mut(), AcqRel));
        }
        if let Some(Owned { length, capacity, drop }) = self.owned.take() {
            // SAFETY: they are those of the vector that was taken apart.
            unsafe { drop(self.first.0, length, capacity) };
        }
    }
}
