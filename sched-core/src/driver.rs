//! Device drivers: what a plugin implements so that a host runs tasks on a kind of device.
//!
//! A driver lists its devices, allocates and frees their memory, copies data, compiles kernels and launches them. The
//! host does everything else: it has a worker and a memory node for each device, decides which data is where, evicts
//! what does not fit, and chooses what runs. So a driver keeps no state beyond that of its devices.
//!
//! A crate of type `cdylib` implements [`Driver`] and exports it with [`export_driver!`](crate::export_driver). The
//! host finds, checks and loads it as it does with components: see [`abi`](crate::abi).
//!
//! Where devices are driven one by one, [`Device`] and [`Devices`] are less to write: [`DriverOf`] finds the device of
//! each call.
//!
//! # Order and completion
//!
//! Copies and launches return at once, with a [`Token`]. Operations in one queue of a device begin in the order of
//! their calls; those in different queues may overlap. An operation begins when the operations whose tokens it names in
//! [`Order::after`] have ended. The host asks for the end with [`Driver::poll`] or [`Driver::wait`] until one reports
//! it; the token is not used afterwards. Operations on a buffer that [`Driver::free`] names have ended.
//!
//! # Threads
//!
//! Any thread may call any method at any time. The host launches kernels of one device from one thread.
//!
//! # Errors
//!
//! An error names its [kind](DriverErrorKind), on which the host acts: it evicts data after
//! [`OutOfMemory`](DriverErrorKind::OutOfMemory), and no longer uses a device after [`Lost`](DriverErrorKind::Lost). The
//! message is for people: it says what the vendor's library said. A panic is caught, and is an error like others.

mod devices;
mod errors;
pub mod export;
mod kernel_cache;

pub use crate::abi::driver::HostMemory;
pub use devices::{Device, Devices, Direction, DriverOf, Found};
pub use errors::{DriverError, DriverErrorKind};
pub use kernel_cache::KernelCache;

use crate::workers::Arch;

/// What a driver is, which the host can show without opening it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverInfo {
    /// Name by which users choose its devices: `opencl` in `--devices opencl:0`.
    pub name: &'static str,
    /// Architecture of the workers of its devices.
    pub arch: Arch,
    /// One-line description.
    pub doc: &'static str,
    /// Restriction that users should know, such as "not run on a device"; may be empty.
    pub note: &'static str,
    /// Whether `all` leaves its devices out, so that they are used only where the driver is named.
    pub on_request: bool,
}

impl DriverInfo {
    /// A driver without restrictions.
    #[must_use]
    pub const fn new(name: &'static str, arch: Arch, doc: &'static str) -> DriverInfo {
        DriverInfo { name, arch, doc, note: "", on_request: false }
    }
}

/// A device of a driver, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceNumber(pub u32);

/// A device.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceInfo {
    /// Name of the model.
    pub name: String,
    /// Vendor and versions of the library and the device.
    pub version: String,
    /// Memory in bytes.
    pub memory: u64,
    /// Largest buffer in bytes.
    pub largest_buffer: u64,
    /// Number of compute units.
    pub compute_units: u32,
    /// Number of queues, at least 1. Queue 0 is for kernels; with two or more, the host copies through the last.
    pub queues: u32,
    /// Whether kernels can use double precision.
    pub double_precision: bool,
    /// Whether the device uses the host's memory.
    pub shares_host_memory: bool,
    /// NUMA node of the host that is nearest, if known.
    pub numa_node: Option<u32>,
}

/// Device memory, numbered by its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BufferId(pub u64);

/// A compiled module of kernels, numbered by its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ModuleId(pub u64);

/// A kernel of a module, numbered by its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelId(pub u64);

/// An operation under way, numbered by its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// What others than the host put into a queue from some moment on, numbered by its driver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpanId(pub u64);

/// Where and when an operation runs.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Queue of the device.
    pub queue: u32,
    /// Operations of the same device that end before.
    pub after: &'a [Token],
}

/// Rows in a buffer of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMemory {
    /// The device.
    pub device: DeviceNumber,
    /// The buffer.
    pub buffer: BufferId,
    /// Byte of the buffer at which the first row begins.
    pub offset: u64,
    /// Bytes from the begin of a row to the next.
    pub pitch: u64,
}

/// Extent of a copy: bytes that are contiguous, repeated at the pitches of both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// Bytes of a row.
    pub bytes: u64,
    /// Number of rows.
    pub count: u64,
}

/// Code of kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'a> {
    /// Text in the language of the driver, with options for its compiler.
    Text {
        /// The text.
        text: &'a str,
        /// Options for the compiler.
        options: &'a str,
    },
    /// What the driver's own compiler, or another, has made: PTX, a program binary.
    Binary(&'a [u8]),
}

/// A kernel with its arguments and sizes.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: KernelId,
    /// Number of work items in each dimension, a multiple of the group size.
    pub items: [u64; 3],
    /// Work items of a group in each dimension; 0 in the first leaves the choice to the driver.
    pub group: [u64; 3],
    /// Arguments, in order.
    pub args: &'a [Arg],
}

/// Argument of a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arg {
    /// A buffer of the device.
    Buffer(BufferId),
    /// A number, as its bytes in the order of the machine.
    Scalar {
        /// The bytes; those beyond `size` are 0.
        bytes: [u8; 8],
        /// Number of bytes.
        size: u8,
    },
    /// Memory that the work items of a group share, by its size in bytes.
    Local(u64),
}

macro_rules! scalar_arg {
    ($($number:ty),*) => {
        $(impl From<$number> for Arg {
            fn from(number: $number) -> Arg {
                let mut bytes = [0; 8];
                bytes[..size_of::<$number>()].copy_from_slice(&number.to_ne_bytes());
                Arg::Scalar { bytes, size: size_of::<$number>() as u8 }
            }
        })*
    };
}

scalar_arg!(i32, u32, i64, u64, f32, f64);

/// An operation that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Finished {
    /// Nanoseconds that it took on the device, if the driver measures that.
    pub nanos: Option<u64>,
}

/// A thing of the vendor's library that kernels of other libraries need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawObject {
    /// The context: `cl_context`, `CUcontext`.
    Context,
    /// The device: `cl_device_id`, `CUdevice`.
    Device,
    /// A queue: `cl_command_queue`, `CUstream`.
    Queue(u32),
    /// A buffer: `cl_mem`, `CUdeviceptr`.
    Buffer(BufferId),
}

/// A device driver; see the [module](self).
pub trait Driver: Send + Sync + Sized + 'static {
    /// What it is.
    const INFO: DriverInfo;

    /// Loads the vendor's library and finds the devices. Called once in a process, when a device is asked for.
    ///
    /// # Errors
    /// [`DriverErrorKind::Unavailable`] without the vendor's library.
    fn open() -> Result<Self, DriverError>;

    /// The devices, in an order that does not change; none is no error.
    fn devices(&self) -> Vec<DeviceInfo>;

    /// What users should know of the devices, such as one that is left out, each in one line. Asked for once, when the
    /// driver is open.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Allocates device memory of at least one byte.
    ///
    /// # Errors
    /// [`DriverErrorKind::OutOfMemory`] if it does not fit.
    fn allocate(&self, device: DeviceNumber, bytes: u64) -> Result<BufferId, DriverError>;

    /// Frees a buffer, which no operation uses any more.
    fn free(&self, device: DeviceNumber, buffer: BufferId);

    /// Copies from the host to a device.
    ///
    /// # Errors
    /// Whatever the vendor's library says.
    fn copy_in(&self, from: HostMemory, to: DeviceMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError>;

    /// Copies from a device to the host.
    ///
    /// # Errors
    /// Whatever the vendor's library says.
    fn copy_out(&self, from: DeviceMemory, to: HostMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError>;

    /// Copies from one device of this driver to another, in a queue of the first.
    ///
    /// # Errors
    /// [`DriverErrorKind::Unsupported`] if the two cannot: the host then copies through its own memory.
    fn copy_across(
        &self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let _ = (from, to, rows, order);
        Err(errors::no_copies_across())
    }

    /// Compiles kernels for a device.
    ///
    /// # Errors
    /// [`DriverErrorKind::Build`] with the log of the compiler.
    fn load(&self, device: DeviceNumber, source: Source<'_>) -> Result<ModuleId, DriverError>;

    /// The kernel of this name.
    ///
    /// # Errors
    /// If there is none.
    fn kernel(&self, device: DeviceNumber, module: ModuleId, entry: &str) -> Result<KernelId, DriverError>;

    /// Launches a kernel.
    ///
    /// # Errors
    /// Whatever the vendor's library says of the arguments and sizes.
    fn launch(&self, device: DeviceNumber, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError>;

    /// A token for everything that is in a queue now, including what others than the host have put there.
    ///
    /// # Errors
    /// Whatever the vendor's library says.
    fn mark(&self, device: DeviceNumber, queue: u32) -> Result<Token, DriverError>;

    /// Begins to measure what others than the host put into a queue, until [`end_span`](Self::end_span).
    ///
    /// # Errors
    /// [`DriverErrorKind::Unsupported`] if the driver does not measure that: the host then [marks](Self::mark) the end,
    /// and measures by its own clock.
    fn begin_span(&self, device: DeviceNumber, queue: u32) -> Result<SpanId, DriverError> {
        let _ = (device, queue);
        Err(errors::no_spans())
    }

    /// A token for everything that is in a queue now, like [`mark`](Self::mark); its time is that since the device was
    /// ready to begin what came into the queue after the span had [begun](Self::begin_span). Called once for each span.
    ///
    /// # Errors
    /// Whatever the vendor's library says.
    fn end_span(&self, device: DeviceNumber, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        let _ = span;
        self.mark(device, queue)
    }

    /// Keeps memory of the host where it is, `bytes` bytes that are contiguous, so that copies from and to it are
    /// faster and go on beside the thread that started them. The memory stays allocated until it is
    /// [unpinned](Self::unpin). It serves all devices of the driver, and may share pages with other memory that is
    /// pinned. What is copied at once is pinned as a whole or not at all, and stays so meanwhile.
    ///
    /// # Errors
    /// [`DriverErrorKind::Unsupported`] if that changes nothing for the driver; others if this memory cannot be pinned.
    /// The host copies in any case.
    fn pin(&self, device: DeviceNumber, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        let _ = (device, memory, bytes);
        Err(errors::no_pinning())
    }

    /// Ends what a [`pin`](Self::pin) of the same device and memory began; no operation uses the memory.
    fn unpin(&self, device: DeviceNumber, memory: HostMemory) {
        let _ = (device, memory);
    }

    /// Whether an operation has ended; `None` while it is under way. An error ends it too.
    ///
    /// # Errors
    /// The operation failed, or the device is lost.
    fn poll(&self, device: DeviceNumber, token: Token) -> Result<Option<Finished>, DriverError>;

    /// Waits for the end of an operation, without using the processor where the vendor's library allows that. An error
    /// ends it too: the host then lets others use what it copied from and to, so a driver that cannot wait goes on
    /// asking.
    ///
    /// # Errors
    /// The operation failed, or the device is lost.
    fn wait(&self, device: DeviceNumber, token: Token) -> Result<Finished, DriverError>;

    /// A handle of the vendor's library, as a number; `None` if there is no such thing.
    fn raw(&self, device: DeviceNumber, object: RawObject) -> Option<u64> {
        let _ = (device, object);
        None
    }
}
