//! A device driver as the host sees it.
//!
//! The plugin of a driver has the stamp and the root of one without components, and a second entry point, [`SYMBOL`].
//! The types here are frozen for [`ABI_MAJOR`](super::ABI_MAJOR); later versions add to them what a driver offers by
//! name ([`WireDriver::extension`]).

mod adapter;
mod attendant;
mod opened;

pub use adapter::root_of;
pub use attendant::{Attendant, DriverCall};
pub use opened::{DriverHandle, DriverSummary, OpenedDriver, PinnedBytes};

use super::extension::{Named, RawExtension};
use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::sabi_trait;
use abi_stable::std_types::{RBox, ROption, RResult, RSlice, RStr, RString, RVec};
use abi_stable::type_layout::TypeLayout;

/// Name of the function that returns the [`DriverEntry`].
pub const SYMBOL: &str = "sched_driver_entry_v1";

/// Type of the function that returns the [`DriverEntry`].
pub type DriverEntryFn = extern "C" fn() -> DriverEntry;

/// The owned stable object of a driver.
pub type DriverObject = WireDriver_TO<RBox<()>>;

/// Result of a call into a driver.
pub type Answer<T> = RResult<T, RawDriverError>;

/// What the plugin of a driver offers.
#[repr(C)]
#[derive(StableAbi)]
pub struct DriverRoot {
    /// What the driver is.
    pub info: extern "C" fn() -> RawDriverInfo,
    /// Opens the driver.
    pub open: extern "C" fn() -> Answer<DriverObject>,
}

/// [`DriverInfo`](crate::driver::DriverInfo) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawDriverInfo {
    /// Name of the driver.
    pub name: RString,
    /// Number of the architecture.
    pub arch: u32,
    /// One-line description.
    pub doc: RString,
    /// Restriction that users should know.
    pub note: RString,
    /// Bit 0: used on request only.
    pub flags: u32,
    /// For later versions.
    pub extras: super::manifest::Extras,
}

/// A driver's root with the description of its layout, passed before it is checked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DriverEntry {
    layout: &'static TypeLayout,
    root: *const DriverRoot,
}

impl DriverEntry {
    /// What the entry function of a driver returns.
    #[must_use]
    pub fn new(root: &'static DriverRoot) -> DriverEntry {
        DriverEntry { layout: <DriverRoot as StableAbi>::LAYOUT, root }
    }

    /// Compares the layouts, and returns the root if they agree.
    ///
    /// # Safety
    /// The entry comes from a library whose stamp was [checked](super::Stamp::check) and that is never unloaded.
    ///
    /// # Errors
    /// The difference, in one line.
    pub unsafe fn open(self) -> Result<&'static DriverRoot, String> {
        check_layout_compatibility(<DriverRoot as StableAbi>::LAYOUT, self.layout)
            .map_err(|errors| super::root::innermost(&errors.to_string()))?;
        // SAFETY: the layouts agree, and the caller guarantees that the library stays loaded.
        Ok(unsafe { self.open_unchecked() })
    }

    /// Returns the root without a comparison, for hosts that have [compared](Self::open) this very library in another
    /// process.
    ///
    /// # Safety
    /// That comparison found that they agree, and the library is never unloaded.
    #[must_use]
    pub unsafe fn open_unchecked(self) -> &'static DriverRoot {
        // SAFETY: as the caller guarantees.
        unsafe { &*self.root }
    }
}

/// [`DriverError`](crate::driver::DriverError) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawDriverError {
    /// Number of the kind.
    pub kind: u32,
    /// The message.
    pub message: RString,
}

/// [`DeviceInfo`](crate::driver::DeviceInfo) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Debug)]
pub struct RawDeviceInfo {
    /// Name of the model.
    pub name: RString,
    /// Vendor and versions.
    pub version: RString,
    /// Memory in bytes.
    pub memory: u64,
    /// Largest buffer in bytes.
    pub largest_buffer: u64,
    /// Number of compute units.
    pub compute_units: u32,
    /// Number of queues.
    pub queues: u32,
    /// Bit 0: double precision. Bit 1: shares the host's memory.
    pub flags: u32,
    /// NUMA node of the host; `u32::MAX` if unknown.
    pub numa_node: u32,
    /// For later versions.
    pub extras: super::manifest::Extras,
}

/// Memory of the host: rows that an operation of a driver reads or writes.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMemory {
    first: *mut u8,
    pitch: u64,
}

impl HostMemory {
    /// Rows that begin at `first`, `pitch` bytes from one to the next.
    ///
    /// # Safety
    /// Until the operation has ended that this is passed to, its rows are allocated there; nobody else writes rows that
    /// it reads, or uses rows that it writes.
    #[must_use]
    pub unsafe fn new(first: *mut u8, pitch: u64) -> HostMemory {
        HostMemory { first, pitch }
    }

    /// Pointer to the first byte.
    #[must_use]
    pub fn first(self) -> *mut u8 {
        self.first
    }

    /// Bytes from the begin of a row to the next.
    #[must_use]
    pub fn pitch(self) -> u64 {
        self.pitch
    }
}

/// [`DeviceMemory`](crate::driver::DeviceMemory) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawDeviceMemory {
    /// The device.
    pub device: u32,
    /// The buffer.
    pub buffer: u64,
    /// Begin of the first row.
    pub offset: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
}

/// [`Rows`](crate::driver::Rows) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawRows {
    /// Bytes of a row.
    pub bytes: u64,
    /// Number of rows.
    pub count: u64,
}

/// [`Order`](crate::driver::Order) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawOrder<'a> {
    /// The queue.
    pub queue: u32,
    /// Tokens of operations that end before.
    pub after: RSlice<'a, u64>,
}

/// [`Source`](crate::driver::Source) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawSource<'a> {
    /// 0 text, 1 binary.
    pub kind: u32,
    /// The text or the binary.
    pub content: RSlice<'a, u8>,
    /// Options for the compiler.
    pub options: RStr<'a>,
}

/// [`Arg`](crate::driver::Arg) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawArg {
    /// 0 buffer, 1 scalar, 2 local memory.
    pub kind: u32,
    /// Bytes of a scalar.
    pub size: u32,
    /// The buffer, the scalar's bytes, or the bytes of local memory.
    pub value: u64,
}

/// Extension of a driver: what users should know of the devices that there are.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct RawRemarks {
    /// See [`Driver::remarks`](crate::driver::Driver::remarks).
    pub texts: RVec<RString>,
}

impl Named for RawRemarks {
    const NAME: &'static str = "driver-remarks/1";
}

/// Extension of a driver: it measures what others than the host put into its queues. `this` is the pointer that the
/// driver offered ([`RawExtension::as_ptr`]).
#[repr(C)]
#[derive(StableAbi)]
pub struct DriverSpans {
    /// See [`Driver::begin_span`](crate::driver::Driver::begin_span).
    pub begin: extern "C" fn(this: *const (), device: u32, queue: u32) -> Answer<u64>,
    /// See [`Driver::end_span`](crate::driver::Driver::end_span).
    pub end: extern "C" fn(this: *const (), device: u32, queue: u32, span: u64) -> Answer<u64>,
}

impl Named for DriverSpans {
    const NAME: &'static str = "driver-spans/1";
}

/// Extension of a driver: it pins memory of the host. `this` is as in [`DriverSpans`].
#[repr(C)]
#[derive(StableAbi)]
pub struct DriverPinning {
    /// See [`Driver::pin`](crate::driver::Driver::pin).
    pub pin: extern "C" fn(this: *const (), device: u32, memory: HostMemory, bytes: u64) -> Answer<()>,
    /// See [`Driver::unpin`](crate::driver::Driver::unpin).
    pub unpin: extern "C" fn(this: *const (), device: u32, memory: HostMemory) -> Answer<()>,
}

impl Named for DriverPinning {
    const NAME: &'static str = "driver-pinning/1";
}

/// [`Launch`](crate::driver::Launch) on the wire.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawLaunch<'a> {
    /// The kernel.
    pub kernel: u64,
    /// Work items.
    pub items: [u64; 3],
    /// Work items of a group.
    pub group: [u64; 3],
    /// Arguments.
    pub args: RSlice<'a, RawArg>,
}

/// The end of an operation.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawFinished {
    /// 0 while the operation is under way.
    pub ended: u32,
    /// Nanoseconds on the device; `u64::MAX` if unknown.
    pub nanos: u64,
}

/// The wire form of [`Driver`](crate::driver::Driver). No method unwinds.
#[sabi_trait]
pub trait WireDriver: Send + Sync + 'static {
    /// See [`Driver::devices`](crate::driver::Driver::devices).
    fn devices(&self) -> Answer<RVec<RawDeviceInfo>>;
    /// See [`Driver::allocate`](crate::driver::Driver::allocate).
    fn allocate(&self, device: u32, bytes: u64) -> Answer<u64>;
    /// See [`Driver::free`](crate::driver::Driver::free).
    fn free(&self, device: u32, buffer: u64) -> Answer<()>;
    /// See [`Driver::copy_in`](crate::driver::Driver::copy_in).
    fn copy_in(&self, from: HostMemory, to: RawDeviceMemory, rows: RawRows, order: RawOrder<'_>) -> Answer<u64>;
    /// See [`Driver::copy_out`](crate::driver::Driver::copy_out).
    fn copy_out(&self, from: RawDeviceMemory, to: HostMemory, rows: RawRows, order: RawOrder<'_>) -> Answer<u64>;
    /// See [`Driver::copy_across`](crate::driver::Driver::copy_across).
    fn copy_across(
        &self,
        from: RawDeviceMemory,
        to: RawDeviceMemory,
        rows: RawRows,
        order: RawOrder<'_>,
    ) -> Answer<u64>;
    /// See [`Driver::load`](crate::driver::Driver::load).
    fn load(&self, device: u32, source: RawSource<'_>) -> Answer<u64>;
    /// See [`Driver::kernel`](crate::driver::Driver::kernel).
    fn kernel(&self, device: u32, module: u64, entry: RStr<'_>) -> Answer<u64>;
    /// See [`Driver::launch`](crate::driver::Driver::launch).
    fn launch(&self, device: u32, launch: RawLaunch<'_>, order: RawOrder<'_>) -> Answer<u64>;
    /// See [`Driver::mark`](crate::driver::Driver::mark).
    fn mark(&self, device: u32, queue: u32) -> Answer<u64>;
    /// See [`Driver::poll`](crate::driver::Driver::poll).
    fn poll(&self, device: u32, token: u64) -> Answer<RawFinished>;
    /// See [`Driver::wait`](crate::driver::Driver::wait).
    fn wait(&self, device: u32, token: u64) -> Answer<RawFinished>;
    /// See [`Driver::raw`](crate::driver::Driver::raw): 0 context, 1 device, 2 queue, 3 buffer; 0 if there is none.
    fn raw(&self, device: u32, kind: u32, number: u64) -> Answer<u64>;
    /// The driver's [`extension`](crate::abi::extension) of this name, if it offers one.
    #[sabi(last_prefix_field)]
    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension>;
}
