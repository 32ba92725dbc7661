//! Data that has parts: the whole of it, which all handles to parts share.

use super::layout::MatrixLayout;
use super::loan::Loan;
use super::storage::{Copying, Storage};
use super::{DataHeader, DataSize, Places};
use crate::device::Device;
use crate::device::arena::Resident;
use crate::task::record::TaskKey;
use parking_lot::{Mutex, RwLockReadGuard};
use sched_core::driver::{BufferId, DriverError, DriverErrorKind};
use sched_core::{MemoryNode, WorkerId};
use sched_graph::{PartId, Region, RegionOrder};
use sched_model::DataShape;
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Weak};

/// See the [module](self).
pub(crate) struct Whole {
    /// Id of the data as a whole.
    pub(crate) id: u64,
    /// The runtime that it is registered with.
    pub(crate) runtime: u64,
    pub(crate) order: Mutex<RegionOrder<TaskKey>>,
    /// Present if the values belong to a scope.
    pub(crate) loan: Option<Arc<Loan>>,
    is_array: bool,
    element: u64,
    storage: Storage,
    bad: BadRegions,
    #[cfg(debug_assertions)]
    uses: Mutex<Vec<(Region, bool)>>,
}

/// What tasks that failed should have written.
#[derive(Default)]
struct BadRegions {
    any: AtomicBool,
    list: Mutex<BadList>,
}

#[derive(Default)]
struct BadList {
    /// Regions, with the sequence of the task.
    regions: Vec<(Region, u64)>,
    /// Length at which regions that are there before are removed: tasks may fail for as long as the program runs.
    sweep_at: usize,
}

impl BadList {
    fn add(&mut self, region: &Region, task: u64) {
        if self.regions.len() >= self.sweep_at {
            let mut seen = HashSet::new();
            self.regions.retain(|(region, _)| seen.insert(region.clone()));
            self.sweep_at = (2 * self.regions.len()).max(64);
        }
        self.regions.push((region.clone(), task));
    }
}

/// A part of data, or the whole of it.
pub(crate) struct Part {
    pub(crate) whole: Arc<Whole>,
    pub(crate) id: PartId,
    pub(crate) region: Region,
}

/// Values that are about to be copied ahead of a task.
#[must_use = "whoever writes the values waits for the end of the copy"]
pub(crate) struct Ahead {
    whole: Arc<Whole>,
    node: MemoryNode,
    copying: Copying,
}

/// Values in memory, while a task or the application uses them.
pub struct PartGuard<'a> {
    part: &'a Part,
    first: NonNull<u8>,
    _loan: Option<RwLockReadGuard<'a, bool>>,
    #[cfg(debug_assertions)]
    writes: bool,
}

impl Whole {
    /// New data, with its header.
    pub(crate) fn register(
        storage: Storage,
        element: usize,
        is_array: bool,
        runtime: u64,
        loan: Option<Arc<Loan>>,
    ) -> Arc<DataHeader> {
        let region = storage.layout().region();
        let make = |id| Whole {
            id,
            runtime,
            order: Mutex::new(RegionOrder::new(region.clone())),
            loan,
            is_array,
            element: element as u64,
            storage,
            bad: BadRegions::default(),
            #[cfg(debug_assertions)]
            uses: Mutex::default(),
        };
        let size = size(&region, element as u64, is_array);
        let part = |id| Part { whole: Arc::new(make(id)), id: PartId::WHOLE, region: region.clone() };
        Arc::new(DataHeader::special(size, runtime, |id| Places::Part(part(id))))
    }

    /// Keeps the scope from ending that the values belong to, if they do, while they are copied.
    ///
    /// # Errors
    /// If it has ended.
    fn open_loan(&self) -> Result<Option<RwLockReadGuard<'_, bool>>, DriverError> {
        let open = self.loan.as_ref().map(|loan| loan.try_enter()).transpose();
        open.map_err(|why| DriverError::new(DriverErrorKind::Invalid, why))
    }

    /// The region of all elements, and the size of one.
    pub(crate) fn shape(&self) -> (Region, u64) {
        (self.storage.layout().region(), self.element)
    }

    /// Elements that a failed task did not write as it should.
    pub(crate) fn note_bad(&self, region: &Region, task: u64) {
        self.bad.list.lock().add(region, task);
        self.bad.any.store(true, Release);
    }

    /// Elements that were written completely.
    pub(crate) fn note_good(&self, region: &Region) {
        let regions = &mut self.bad.list.lock().regions;
        let rest = regions.iter().flat_map(|(bad, task)| bad.minus(region).map(|rest| (rest, *task))).collect();
        *regions = rest;
        self.bad.any.store(!regions.is_empty(), Release);
    }

    /// Sequence of a task that failed to write elements of this region; 0 if they are good.
    pub(crate) fn failed(&self, region: &Region) -> u64 {
        if !self.bad.any.load(Acquire) {
            return 0;
        }
        let regions = &self.bad.list.lock().regions;
        // One without elements overlaps not even itself.
        let is_bad = |(bad, _): &&(Region, u64)| bad.overlaps(region) || bad == region;
        regions.iter().find(is_bad).map_or(0, |(_, task)| *task)
    }
}

/// Size and shape of a region.
fn size(region: &Region, element: u64, is_array: bool) -> DataSize {
    let bytes = region.len() as u64 * element;
    let length = |length: usize| u32::try_from(length);
    let shape = match (length(region.rows.len()), length(region.columns.len())) {
        (Ok(nx), _) if is_array => Some(DataShape::Vector { nx }),
        (Ok(nx), Ok(ny)) if !is_array => Some(DataShape::Matrix { nx, ny }),
        _ => None,
    };
    shape.map_or(DataSize::of_bytes(bytes), |shape| DataSize { bytes, footprint: shape.footprint() })
}

impl Part {
    /// Headers of new parts, with regions inside this one.
    pub(crate) fn divide(&self, regions: &[Region]) -> Vec<Arc<DataHeader>> {
        let (row, column) = (self.region.rows.start, self.region.columns.start);
        let moved = |region: &Region| Region {
            rows: region.rows.start + row..region.rows.end + row,
            columns: region.columns.start + column..region.columns.end + column,
        };
        let regions: Vec<Region> = regions.iter().map(moved).collect();
        let ids = self.whole.order.lock().add(self.id, &regions);
        let header = |(id, region): (PartId, Region)| {
            let size = size(&region, self.whole.element, self.whole.is_array);
            let part = Part { whole: Arc::clone(&self.whole), id, region };
            Arc::new(DataHeader::special(size, self.whole.runtime, |_| Places::Part(part)))
        };
        ids.into_iter().zip(regions).map(header).collect()
    }

    /// Brings what a task needs to the node of its worker, or of the application to where the data began. It is the
    /// caller's turn.
    ///
    /// # Errors
    /// If a device does not give or take them.
    pub(crate) fn bring(&self, worker: Option<WorkerId>, value: bool) -> Result<(), DriverError> {
        let _loan = self.whole.open_loan()?;
        self.whole.storage.bring(&self.whole, &self.region, worker, value)
    }

    /// Brings the values to a node ahead of tasks. It is a reader's turn.
    pub(crate) fn bring_ahead(&self, node: MemoryNode) -> Result<(), DriverError> {
        let _loan = self.whole.open_loan()?;
        self.whole.storage.bring_ahead(&self.whole, &self.region, node)
    }

    /// Begins to copy the values to a node that lacks them, ahead of a task that reads them, whose turn it is and which
    /// does not begin during this call; `None` if there is nothing to copy.
    pub(crate) fn begin_ahead(&self, node: MemoryNode) -> Option<Ahead> {
        let copying = self.whole.storage.begin_ahead(&self.region, node)?;
        Some(Ahead { whole: Arc::clone(&self.whole), node, copying })
    }

    /// Whether a node lacks some of the values.
    pub(crate) fn is_missing(&self, node: MemoryNode) -> bool {
        self.valid() & 1 << node.0 == 0
    }

    /// Keeps the values on a device from being evicted while a task uses them.
    pub(crate) fn pin(&self, node: MemoryNode) {
        self.whole.storage.pin(node);
    }

    /// Ends what [`pin`](Self::pin) began.
    pub(crate) fn unpin(&self, node: MemoryNode) {
        self.whole.storage.unpin(node);
    }

    /// The buffer of the values on the device of a worker, and their place in it in elements, for a kernel that
    /// `writes` them or only reads them. They have been brought, and it is the caller's turn.
    pub(crate) fn on_device(&self, worker: WorkerId, node: MemoryNode, writes: bool) -> Option<(BufferId, usize)> {
        if writes {
            self.whole.storage.note_write(&self.region, Some(worker));
        }
        self.whole.storage.device_place(&self.region, node)
    }

    /// Drops all copies of the values but one. It is a writer's turn.
    pub(crate) fn let_go(&self) {
        self.whole.storage.let_go(&self.region);
    }

    /// Layout of the part.
    pub(crate) fn layout(&self) -> MatrixLayout {
        self.whole.storage.layout().of_part(&self.region)
    }

    /// Nodes that hold the values, as bits; 0 if unknown.
    pub(crate) fn valid(&self) -> u64 {
        self.whole.storage.valid(&self.region)
    }

    /// Values that a node does not hold: bytes, and the nodes that hold them.
    pub(crate) fn missing(&self, node: MemoryNode) -> Vec<(u64, u64)> {
        self.whole.storage.missing(&self.region, node)
    }

    /// The values for a worker that runs a task, or for the application, in its turn; they have been brought.
    ///
    /// # Panics
    /// If they belong to a scope that has ended.
    pub(crate) fn read(&self, worker: Option<WorkerId>) -> PartGuard<'_> {
        self.guard(worker, false)
    }

    /// [`read`](Self::read), for writing.
    ///
    /// # Panics
    /// If they belong to a scope that has ended, or was only lent them for reading.
    pub(crate) fn write(&self, worker: Option<WorkerId>) -> PartGuard<'_> {
        let guard = self.guard(worker, true);
        self.whole.storage.note_write(&self.region, worker);
        guard
    }

    fn guard(&self, worker: Option<WorkerId>, writes: bool) -> PartGuard<'_> {
        let loan = self.whole.loan.as_ref().map(|loan| loan.enter(writes));
        #[cfg(debug_assertions)]
        {
            let mut uses = self.whole.uses.lock();
            let conflicts =
                |(other, other_writes): &(Region, bool)| (writes || *other_writes) && other.overlaps(&self.region);
            let conflict = uses.iter().find(|of| conflicts(of)).cloned();
            assert!(conflict.is_none(), "{:?} is used while {conflict:?} is: the order keeps them apart", self.region);
            uses.push((self.region.clone(), writes));
        }
        PartGuard {
            part: self,
            first: self.whole.storage.place(&self.region, worker),
            _loan: loan,
            #[cfg(debug_assertions)]
            writes,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.id != PartId::WHOLE {
            self.whole.order.lock().remove(self.id);
        }
    }
}

impl PartGuard<'_> {
    /// Pointer to the first value.
    pub(crate) fn first<T>(&self) -> NonNull<T> {
        self.first.cast()
    }

    /// Layout of the values.
    pub(crate) fn layout(&self) -> MatrixLayout {
        self.part.layout()
    }
}

impl Ahead {
    /// Copies the values.
    ///
    /// # Errors
    /// If the node has no room, or a device does not give or take them: the task that needs them will copy them.
    pub(crate) fn copy(self) -> Result<(), DriverError> {
        // The task may have run meanwhile, and the scope that lent the values may have ended.
        let (_loan, gone) = match self.whole.open_loan() {
            Ok(loan) => (loan, None),
            Err(gone) => (None, Some(gone)),
        };
        self.whole.storage.copy_ahead(&self.whole, (self.node, &self.copying), gone)
    }
}

#[cfg(debug_assertions)]
impl Drop for PartGuard<'_> {
    fn drop(&mut self) {
        let mut uses = self.part.whole.uses.lock();
        let at = uses.iter().position(|(region, writes)| *region == self.part.region && *writes == self.writes);
        at.map(|at| uses.swap_remove(at));
    }
}

impl Resident for Whole {
    fn last_use(&self, node: MemoryNode) -> u64 {
        self.storage.last_use(node)
    }

    fn evict(self: Arc<Self>, device: &Device) -> Result<bool, DriverError> {
        match self.open_loan() {
            Ok(_loan) => self.storage.evict(&self, device),
            // Nobody uses it any more, and it has no place to go to.
            Err(_) => Ok(self.storage.give_up(device)),
        }
    }
}

impl Whole {
    /// Notes whether the values are about to be taken back; nobody evicts them then.
    pub(crate) fn note_leaving(whole: &Arc<Whole>, is_leaving: bool) {
        let resident: Weak<Whole> = Arc::downgrade(whole);
        whole.storage.note_leaving(&(resident as Weak<dyn Resident>), is_leaving);
    }

    /// Ends the pinning of lent memory: its scope has ended, and nothing is copied any more.
    pub(crate) fn unpin_home(&self) {
        self.storage.unpin_home();
    }

    /// Another header of the whole.
    pub(crate) fn header(whole: Arc<Whole>) -> Arc<DataHeader> {
        let region = whole.storage.layout().region();
        let (size, runtime) = (size(&region, whole.element, whole.is_array), whole.runtime);
        Arc::new(DataHeader::special(size, runtime, |_| Places::Part(Part { whole, id: PartId::WHOLE, region })))
    }

    /// Takes the values back from the last handle; `None` if they were lent. They have been brought back.
    pub(crate) fn into_vec<T: Copy + Send + Sync>(self) -> Option<Vec<T>> {
        self.storage.into_vec()
    }
}
