//! The buffers on devices: copies by drivers, eviction, and what is kept from it.

use super::pinning::copy_apart;
use super::{Buffer, Spread, Storage};
use crate::data::whole::Whole;
use crate::device::Device;
use crate::device::arena::Resident;
use parking_lot::Mutex;
use sched_core::driver::{BufferId, DeviceMemory, DriverError, DriverErrorKind, HostMemory, Rows};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::{DataId, Region};
use sched_memory::Reason;
use sched_trace::Transfer;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The buffer on one device.
#[derive(Default)]
pub(super) struct OnDevice {
    block: Mutex<Option<BufferId>>,
    /// Number of tasks and copies that use the buffer. Grows under the lock of the tiles only.
    pins: AtomicU32,
    /// When a task on the device last used it.
    last_use: AtomicU64,
}

/// Counts uses of buffers.
static USES: AtomicU64 = AtomicU64::new(0);

/// Values that no node holds any more.
pub(super) fn lost_with_its_device() -> DriverError {
    DriverError::new(DriverErrorKind::Lost, "the only copy of the data was on a device that does not work any more")
}

impl Spread {
    fn on_device(&self, node: MemoryNode) -> Option<(&OnDevice, &Arc<Device>)> {
        let device = self.memories.device(node)?;
        Some((&self.on_devices[node.index() - self.memories.first_of_devices()], device))
    }

    /// Keeps the buffer of a device, from which a thread copies. The caller has locked the tiles.
    pub(super) fn begin_copy_from(&self, node: Option<MemoryNode>) {
        if let Some((there, device)) = node.and_then(|node| self.on_device(node)) {
            there.pins.fetch_add(1, Relaxed);
            device.arena.enter();
        }
    }

    /// Ends what [`begin_copy_from`](Self::begin_copy_from) began. The caller has locked the tiles.
    pub(super) fn end_copy_from(&self, node: Option<MemoryNode>) {
        if let Some((there, device)) = node.and_then(|node| self.on_device(node)) {
            there.pins.fetch_sub(1, Relaxed);
            device.arena.leave();
        }
    }

    /// The device whose memory a thread fills that is not its worker, and has to
    /// [enter](crate::device::arena::Arena::enter) it.
    pub(super) fn visited(&self, node: MemoryNode, by: Option<WorkerId>) -> Option<&Device> {
        self.on_device(node).map(|(_, device)| &**device).filter(|device| by != Some(device.worker))
    }
}

/// Rows of a region: bytes from the begin of the buffer to the first, from one to the next, and their extent.
struct Extent {
    offset: usize,
    pitch: usize,
    rows: Rows,
}

impl Storage {
    /// Keeps the buffer on a device from being evicted while a task uses it.
    pub(crate) fn pin(&self, node: MemoryNode) {
        let Some(spread) = &self.spread else { return };
        let _tiles = spread.tiles.lock();
        if let Some((there, _)) = spread.on_device(node) {
            there.pins.fetch_add(1, Relaxed);
            self.note_use(spread, node);
        }
    }

    /// Ends what [`pin`](Self::pin) began.
    pub(crate) fn unpin(&self, node: MemoryNode) {
        let Some(spread) = &self.spread else { return };
        let _tiles = spread.tiles.lock();
        if let Some((there, _)) = spread.on_device(node) {
            there.pins.fetch_sub(1, Relaxed);
        }
    }

    /// When a task on a device last used the values there.
    pub(crate) fn last_use(&self, node: MemoryNode) -> u64 {
        let there = self.spread.as_ref().and_then(|spread| spread.on_device(node));
        there.map_or(0, |(there, _)| there.last_use.load(Relaxed))
    }

    /// The buffer on a device, and the place of a region in it in elements; the region has been brought there.
    pub(crate) fn device_place(&self, region: &Region, node: MemoryNode) -> Option<(BufferId, usize)> {
        let (there, _) = self.spread.as_ref()?.on_device(node)?;
        let block = *there.block.lock();
        Some((block?, self.layout.offset(region.rows.start, region.columns.start)))
    }

    /// The buffer on a device, allocated if there is none, if that `evicts` in the place of other data.
    pub(super) fn block(
        &self,
        spread: &Spread,
        whole: &Arc<Whole>,
        node: MemoryNode,
        evicts: bool,
    ) -> Result<Option<BufferId>, DriverError> {
        let Some((there, device)) = spread.on_device(node) else { return Ok(None) };
        let mut block = there.block.lock();
        if block.is_none() {
            let resident: Weak<Whole> = Arc::downgrade(whole);
            *block = Some(device.arena.allocate(device, self.device_bytes(), resident, evicts)?);
        }
        Ok(*block)
    }

    /// Notes that the buffer on a device, if the node is one's, will be used: it is not the first to be evicted.
    pub(super) fn note_use(&self, spread: &Spread, node: MemoryNode) {
        if let Some((there, _)) = spread.on_device(node) {
            there.last_use.store(USES.fetch_add(1, Relaxed), Relaxed);
        }
    }

    /// Whether tasks or copies use the buffer on a device. The caller has locked the tiles.
    pub(super) fn is_pinned(&self, spread: &Spread, node: MemoryNode) -> bool {
        spread.on_device(node).is_some_and(|(there, _)| there.pins.load(Relaxed) > 0)
    }

    /// Gives the buffer on a device back, which nobody uses.
    pub(super) fn release_block(&self, spread: &Spread, node: MemoryNode) {
        let Some((there, device)) = spread.on_device(node) else { return };
        if let Some(buffer) = there.block.lock().take() {
            device.arena.release(self.device_bytes(), buffer);
        }
    }

    /// Gives the buffers on all devices back at the end.
    pub(super) fn release_blocks(&self) {
        let Some(spread) = &self.spread else { return };
        spread.memories.devices().iter().for_each(|device| self.release_block(spread, device.node));
    }

    /// Notes whether the owner of the values is about to take them: no device evicts them then, nor does anybody fetch
    /// them.
    pub(crate) fn note_leaving(&self, resident: &Weak<dyn Resident>, is_leaving: bool) {
        let Some(spread) = &self.spread else { return };
        if is_leaving {
            spread.memories.wait_for_fetching();
        }
        spread.memories.devices().iter().for_each(|device| device.arena.note_leaving(resident, is_leaving));
    }

    /// Rows of a region, fewest first.
    fn extents(&self, region: &Region) -> Vec<Extent> {
        let (layout, size) = (self.layout, self.element.size());
        let Region { rows, columns } = region;
        let extent = |row: usize, column: usize, pitch: usize, length: usize, count: usize| Extent {
            offset: layout.offset(row, column) * size,
            pitch: pitch * size,
            rows: Rows { bytes: (length * size) as u64, count: count as u64 },
        };
        if layout.of_part(region).is_contiguous() {
            vec![extent(rows.start, columns.start, region.len(), region.len(), 1)]
        } else if layout.column_stride() == 1 {
            vec![extent(rows.start, columns.start, layout.row_stride(), columns.len(), rows.len())]
        } else if layout.row_stride() == 1 {
            vec![extent(rows.start, columns.start, layout.column_stride(), rows.len(), columns.len())]
        } else {
            let row = |row| extent(row, columns.start, layout.column_stride(), 1, columns.len());
            rows.clone().map(row).collect()
        }
    }

    /// Copies elements from or to the node of a device, or from one to another.
    pub(super) fn transfer_by_device(
        &self,
        spread: &Spread,
        whole: &Arc<Whole>,
        (from, to): (MemoryNode, MemoryNode),
        region: &Region,
    ) -> Result<(), DriverError> {
        let (source, target) = (self.block(spread, whole, from, true)?, self.block(spread, whole, to, true)?);
        let (source, target) = (spread.memories.device(from).zip(source), spread.memories.device(to).zip(target));
        let bytes = self.bytes(region.len());
        let is_claimed = match (source, target) {
            (None, Some((device, _))) => self.note_copy(spread, from, device, bytes),
            (Some((device, _)), None) => self.note_copy(spread, to, device, bytes),
            _ => true,
        };
        for extent in self.extents(region) {
            let place = |device: &Device, buffer: BufferId| DeviceMemory {
                device: device.number,
                buffer,
                offset: extent.offset as u64,
                pitch: extent.pitch as u64,
            };
            match (source, target) {
                (None, Some((device, buffer))) if !is_claimed => {
                    let host = self.host_rows(self.buffer(spread, from), &extent);
                    copy_apart(device, host, place(device, buffer), extent.rows, true)?;
                }
                (Some((device, buffer)), None) if !is_claimed => {
                    let host = self.host_rows(self.buffer(spread, to), &extent);
                    copy_apart(device, host, place(device, buffer), extent.rows, false)?;
                }
                (None, Some((device, buffer))) => {
                    let host = self.host_rows(self.buffer(spread, from), &extent);
                    let started = device.driver.copy_in(host, place(device, buffer), extent.rows, device.copying());
                    device.finish(started)?;
                }
                (Some((device, buffer)), None) => {
                    let host = self.host_rows(self.buffer(spread, to), &extent);
                    let started = device.driver.copy_out(place(device, buffer), host, extent.rows, device.copying());
                    device.finish(started)?;
                }
                (Some((one, source)), Some((other, target))) => {
                    across((one, place(one, source)), (other, place(other, target)), extent.rows)?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Rows in a buffer of the host.
    fn host_rows(&self, buffer: Buffer, extent: &Extent) -> HostMemory {
        // SAFETY: the rows are within the buffer, which stays until the copy has ended, as the caller waits for that.
        // It is the caller who fills these elements, or they are valid and nobody writes them meanwhile.
        unsafe { HostMemory::new(buffer.0.add(extent.offset).as_ptr(), extent.pitch as u64) }
    }

    /// See [`Resident::evict`].
    pub(crate) fn evict(&self, whole: &Arc<Whole>, device: &Device) -> Result<bool, DriverError> {
        let Some(spread) = &self.spread else { return Ok(false) };
        let node = device.node;
        let Some((there, _)) = spread.on_device(node) else { return Ok(false) };
        let mut tiles = spread.tiles.lock();
        // Who fills the buffer has locked it, and may wait for the eviction of something else.
        let has_buffer = there.block.try_lock().is_some_and(|block| block.is_some());
        if !has_buffer || there.pins.load(Relaxed) > 0 {
            return Ok(false);
        }
        let lost = spread.memories.lost();
        let Some(leaving) = tiles.begin_to_leave(node, spread.home, lost) else { return Ok(false) };
        // Nobody gives the buffer back while it is copied.
        there.pins.fetch_add(1, Relaxed);
        drop(tiles);
        let mut written = Ok(());
        for missing in &leaving {
            let bytes = self.bytes(missing.region.len());
            let (data, to, why) = (DataId(whole.id as u32), spread.home, Reason::Eviction);
            let underway = spread.memories.note_transfer(Transfer { data, from: node, to, bytes, why }, None);
            written = self.transfer_by_device(spread, whole, (node, spread.home), &missing.region);
            if written.is_err() {
                break;
            }
            underway.arrived();
        }
        tiles = spread.tiles.lock();
        there.pins.fetch_sub(1, Relaxed);
        match &written {
            Ok(()) => tiles.arrive(&leaving, spread.home, true),
            Err(_) => tiles.give_up(&leaving, spread.home),
        }
        let lost_now = spread.memories.lost();
        let left = match there.pins.load(Relaxed) {
            0 if written.is_ok() || !tiles.is_used(node) => tiles.leave(node, lost_now),
            _ => None,
        };
        if let Some(elements) = left {
            spread.memories.note_freed(node, self.bytes(elements));
            self.release_block(spread, node);
        }
        spread.arrived.notify_all();
        drop(tiles);
        if written.is_ok() && left.is_none() && lost_now != lost {
            // The device may alone hold now what one held too that was lost during the copy.
            return self.evict(whole, device);
        }
        written.map(|()| left.is_some())
    }

    /// Gives the buffer on a device back with the values there, which nobody needs. Returns whether it did: not while
    /// it is used.
    pub(crate) fn give_up(&self, device: &Device) -> bool {
        let Some(spread) = &self.spread else { return false };
        let Some((there, _)) = spread.on_device(device.node) else { return false };
        let mut tiles = spread.tiles.lock();
        let has_buffer = there.block.try_lock().is_some_and(|block| block.is_some());
        if !has_buffer || there.pins.load(Relaxed) > 0 {
            return false;
        }
        let Some(elements) = tiles.forget(device.node) else { return false };
        spread.memories.note_freed(device.node, self.bytes(elements));
        self.release_block(spread, device.node);
        true
    }
}

/// Copies rows from one device to another: directly if their driver can, or else through the host.
fn across(
    (one, from): (&Arc<Device>, DeviceMemory),
    (other, to): (&Arc<Device>, DeviceMemory),
    rows: Rows,
) -> Result<(), DriverError> {
    if Arc::ptr_eq(&one.driver, &other.driver) {
        match one.driver.copy_across(from, to, rows, one.copying()) {
            Err(error) if error.kind == DriverErrorKind::Unsupported => {}
            started => return one.finish(started),
        }
    }
    let mut row = vec![0; rows.bytes as usize];
    for number in 0..rows.count {
        let at = |memory: DeviceMemory| DeviceMemory { offset: memory.offset + number * memory.pitch, ..memory };
        one.note(one.driver.read(at(from), &mut row, one.copying()))?;
        other.note(other.driver.write(&row, at(to), other.copying()))?;
    }
    Ok(())
}
