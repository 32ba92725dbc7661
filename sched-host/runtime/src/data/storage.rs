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
//! - Elements are also copied [ahead](Storage::begin_ahead) of a task. That begins in its turn, before the task does.
//!   The copy may go on when the task has run elsewhere and ended: whoever writes the elements in memory of the host
//!   waits until none of them are being copied to any node, whoever writes them on a device until none are but from
//!   there, and a scope until nobody copies what it lent.
//! - A buffer is as large on each node, and not initialized: an element is used only after it has been filled.
//! - On the memory node of a device, an element is at the same place of a buffer of the device, which only its driver
//!   reaches ([`devices`]).
//! - A buffer is given back when its node holds no element and none is being copied there, under the lock of the tiles:
//!   who uses an element on a node has seen it filled, and who copies it has noted that it arrives.

mod copies;
mod devices;
mod pinning;

pub(crate) use copies::Copying;

use super::layout::MatrixLayout;
use super::tiles::Tiles;
use crate::memory::Memories;
use devices::OnDevice;
use parking_lot::{Condvar, Mutex, MutexGuard};
use pinning::Pinning;
use sched_core::{MemoryNode, WorkerId};
use sched_graph::Region;
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
            pinning: Mutex::new(Pinning::Unclaimed),
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

    /// Keeps one copy of a region. It is the turn of the caller, a writer.
    pub(crate) fn let_go(&self, region: &Region) {
        let Some(spread) = &self.spread else { return };
        let mut tiles = spread.when_settled(region, |tiles| tiles.is_moving(region));
        for (node, elements) in tiles.let_go(region, spread.home, spread.memories.lost()) {
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

    /// Notes that a region is written on the node of a worker, or where the values began.
    pub(crate) fn note_write(&self, region: &Region, worker: Option<WorkerId>) {
        if let Some(spread) = &self.spread {
            let node = worker.map_or(spread.home, |worker| spread.memories.node_of(worker));
            // What is copied from a device while it is written there is no value of the elements, nor taken for one.
            // What is copied from elsewhere is waited for, though it is not written: the next copy from the device may
            // go to the same memory.
            let on_device = spread.memories.device(node).is_some();
            let matters = |tiles: &mut Tiles| match on_device {
                true => tiles.is_moving_beside(region, node),
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
