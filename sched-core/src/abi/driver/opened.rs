//! A driver, as a host uses it.

use super::attendant::{Attendant, Attended, DriverCall};
use super::{Answer, DriverObject, DriverPinning, DriverRoot, DriverSpans, HostMemory};
use super::{
    RawArg, RawDeviceInfo, RawDeviceMemory, RawDriverError, RawFinished, RawLaunch, RawOrder, RawRemarks, RawRows,
    RawSource,
};
use crate::abi::extension::{Named, RawExtension};
use crate::driver::{
    Arg, BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, Finished, KernelId,
    Launch, ModuleId, Order, RawObject, Rows, Source, SpanId, Token,
};
use crate::workers::Arch;
use abi_stable::std_types::RResult;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// [`DriverInfo`](crate::driver::DriverInfo), as a host reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriverSummary {
    /// Name of the driver.
    pub name: String,
    /// Architecture of the workers of its devices.
    pub arch: Arch,
    /// One-line description.
    pub doc: String,
    /// Restriction that users should know; may be empty.
    pub note: String,
    /// Whether `all` leaves its devices out, so that they are used only where the driver is named.
    pub on_request: bool,
}

/// A driver that can be opened.
#[derive(Clone, Copy)]
pub struct DriverHandle {
    root: &'static DriverRoot,
}

impl fmt::Debug for DriverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DriverHandle")
    }
}

impl DriverHandle {
    /// The driver of a plugin.
    #[must_use]
    pub fn new(root: &'static DriverRoot) -> DriverHandle {
        DriverHandle { root }
    }

    /// A driver that is compiled in.
    #[must_use]
    pub fn of<D: Driver>() -> DriverHandle {
        DriverHandle { root: Box::leak(Box::new(super::root_of::<D>())) }
    }

    /// Address that tells drivers apart.
    #[must_use]
    pub fn address(self) -> usize {
        std::ptr::from_ref(self.root).addr()
    }

    /// What the driver is.
    ///
    /// # Errors
    /// What is wrong with its description, in one line.
    pub fn summary(self) -> Result<DriverSummary, String> {
        let info = (self.root.info)();
        let name = info.name.to_string();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(plain) || ["none", "all"].contains(&name.as_str()) {
            return Err(format!("the name of its driver is `{name}`, expected lower-case words joined by `-`"));
        }
        let arch = u8::try_from(info.arch).ok().and_then(Arch::new).filter(|arch| *arch != Arch::CPU);
        let Some(arch) = arch else {
            return Err(format!("the architecture of its driver is number {}, expected 1 to 31", info.arch));
        };
        Ok(DriverSummary {
            name,
            arch,
            doc: info.doc.to_string(),
            note: info.note.to_string(),
            on_request: info.flags & 1 != 0,
        })
    }

    /// Opens the driver.
    ///
    /// # Errors
    /// The driver's.
    pub fn open(self) -> Result<OpenedDriver, DriverError> {
        self.open_with(None)
    }

    /// Opens the driver, all calls of which are followed from the first one on.
    ///
    /// # Errors
    /// The driver's.
    pub fn open_attended(self, attendant: Box<dyn Attendant>) -> Result<OpenedDriver, DriverError> {
        self.open_with(Some(attendant))
    }

    fn open_with(self, attendant: Option<Box<dyn Attendant>>) -> Result<OpenedDriver, DriverError> {
        let inside = Attended::new(attendant.as_deref(), DriverCall::Open);
        let object = read((self.root.open)())?;
        let (spans, pinning) = (offered(&object, DriverSpans::NAME), offered(&object, DriverPinning::NAME));
        drop(inside);
        Ok(OpenedDriver { spans, pinning, object, attendant })
    }
}

/// A driver that is open. Its methods are those of [`Driver`].
pub struct OpenedDriver {
    spans: Option<Offered>,
    pinning: Option<Offered>,
    object: DriverObject,
    attendant: Option<Box<dyn Attendant>>,
}

/// An extension of a driver that is open.
struct Offered(RawExtension);

// SAFETY: tables do not change, and any thread may call any function of a driver.
unsafe impl Send for Offered {}
// SAFETY: as above.
unsafe impl Sync for Offered {}

/// Bytes of the host that are pinned while this is there, where the driver gains by that.
pub struct PinnedBytes<'a> {
    driver: &'a OpenedDriver,
    device: DeviceNumber,
    bytes: &'a mut [u8],
    is_pinned: bool,
}

impl PinnedBytes<'_> {
    fn memory(&mut self) -> HostMemory {
        // SAFETY: the bytes are borrowed until they have been unpinned. To pin them is no use of them.
        unsafe { HostMemory::new(self.bytes.as_mut_ptr(), self.bytes.len() as u64) }
    }
}

impl Deref for PinnedBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for PinnedBytes<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

impl Drop for PinnedBytes<'_> {
    fn drop(&mut self) {
        if self.is_pinned {
            let memory = self.memory();
            // What a lost device has pinned is of no use to it.
            let _ = self.driver.unpin(self.device, memory);
        }
    }
}

fn offered(driver: &DriverObject, name: &str) -> Option<Offered> {
    driver.extension(name.into()).into_option().map(Offered)
}

impl fmt::Debug for OpenedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenedDriver")
    }
}

fn read<T>(answer: Answer<T>) -> Result<T, DriverError> {
    match answer {
        RResult::ROk(value) => Ok(value),
        RResult::RErr(RawDriverError { kind, message }) => {
            Err(DriverError::new(DriverErrorKind::of_code(kind), message.to_string()))
        }
    }
}

fn memory(of: DeviceMemory) -> RawDeviceMemory {
    RawDeviceMemory { device: of.device.0, buffer: of.buffer.0, offset: of.offset, pitch: of.pitch }
}

fn extent(rows: Rows) -> RawRows {
    RawRows { bytes: rows.bytes, count: rows.count }
}

fn end(raw: RawFinished) -> Finished {
    Finished { nanos: Some(raw.nanos).filter(|nanos| *nanos != u64::MAX) }
}

fn info(raw: RawDeviceInfo) -> DeviceInfo {
    DeviceInfo {
        name: raw.name.to_string(),
        version: raw.version.to_string(),
        memory: raw.memory,
        largest_buffer: raw.largest_buffer,
        compute_units: raw.compute_units,
        queues: raw.queues.max(1),
        double_precision: raw.flags & 1 != 0,
        shares_host_memory: raw.flags & 2 != 0,
        numa_node: Some(raw.numa_node).filter(|node| *node != u32::MAX),
    }
}

fn raw_arg(arg: &Arg) -> RawArg {
    match *arg {
        Arg::Buffer(buffer) => RawArg { kind: 0, size: 8, value: buffer.0 },
        Arg::Scalar { bytes, size } => RawArg { kind: 1, size: u32::from(size), value: u64::from_ne_bytes(bytes) },
        Arg::Local(bytes) => RawArg { kind: 2, size: 0, value: bytes },
    }
}

/// Calls `body` with an order on the wire.
fn ordered(order: Order<'_>, body: impl FnOnce(RawOrder<'_>) -> Answer<u64>) -> Result<Token, DriverError> {
    let after: Vec<u64> = order.after.iter().map(|token| token.0).collect();
    read(body(RawOrder { queue: order.queue, after: after.as_slice().into() })).map(Token)
}

#[allow(missing_docs, clippy::missing_errors_doc, reason = "they are the methods of `Driver`")]
impl OpenedDriver {
    /// This thread makes a call, as long as the result lives.
    fn inside(&self, call: DriverCall) -> Attended<'_> {
        Attended::new(self.attendant.as_deref(), call)
    }

    pub fn devices(&self) -> Result<Vec<DeviceInfo>, DriverError> {
        let _inside = self.inside(DriverCall::Devices);
        read(self.object.devices()).map(|devices| devices.into_iter().map(info).collect())
    }

    pub fn remarks(&self) -> Vec<String> {
        let _inside = self.inside(DriverCall::Remarks);
        let offered = offered(&self.object, RawRemarks::NAME);
        let Ok((_, remarks)) = self.table::<RawRemarks>(offered.as_ref()) else { return Vec::new() };
        remarks.texts.iter().map(ToString::to_string).collect()
    }

    /// The table of an extension that the driver returned for the name of this type, and the pointer for its functions.
    ///
    /// # Errors
    /// If a driver of an earlier version does not offer it.
    fn table<T: Named>(&self, offered: Option<&Offered>) -> Result<(*const (), &T), DriverError> {
        let lacking =
            || DriverError::new(DriverErrorKind::Unsupported, format!("the driver does not offer `{}`", T::NAME));
        let this = offered.ok_or_else(lacking)?.0.as_ptr();
        // SAFETY: the type is that of the name, and its layout was checked; the table is there while the driver is
        // open, as this borrow says.
        Ok((this, unsafe { &*this.cast::<T>() }))
    }

    pub fn begin_span(&self, device: DeviceNumber, queue: u32) -> Result<SpanId, DriverError> {
        let _inside = self.inside(DriverCall::BeginSpan);
        let (this, spans) = self.table::<DriverSpans>(self.spans.as_ref())?;
        read((spans.begin)(this, device.0, queue)).map(SpanId)
    }

    pub fn end_span(&self, device: DeviceNumber, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::EndSpan);
        let (this, spans) = self.table::<DriverSpans>(self.spans.as_ref())?;
        read((spans.end)(this, device.0, queue, span.0)).map(Token)
    }

    pub fn pin(&self, device: DeviceNumber, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        let _inside = self.inside(DriverCall::Pin);
        let (this, pinning) = self.table::<DriverPinning>(self.pinning.as_ref())?;
        read((pinning.pin)(this, device.0, memory, bytes))
    }

    /// Pins bytes, if there are any, for as long as the result is there.
    pub fn pinned<'a>(&'a self, device: DeviceNumber, bytes: &'a mut [u8]) -> PinnedBytes<'a> {
        let mut pinned = PinnedBytes { driver: self, device, bytes, is_pinned: false };
        let (memory, length) = (pinned.memory(), pinned.bytes.len() as u64);
        pinned.is_pinned = length > 0 && self.pin(device, memory, length).is_ok();
        pinned
    }

    pub fn unpin(&self, device: DeviceNumber, memory: HostMemory) -> Result<(), DriverError> {
        let _inside = self.inside(DriverCall::Unpin);
        let (this, pinning) = self.table::<DriverPinning>(self.pinning.as_ref())?;
        read((pinning.unpin)(this, device.0, memory))
    }

    pub fn allocate(&self, device: DeviceNumber, bytes: u64) -> Result<BufferId, DriverError> {
        let _inside = self.inside(DriverCall::Allocate);
        read(self.object.allocate(device.0, bytes)).map(BufferId)
    }

    pub fn free(&self, device: DeviceNumber, buffer: BufferId) -> Result<(), DriverError> {
        let _inside = self.inside(DriverCall::Free);
        read(self.object.free(device.0, buffer.0))
    }

    pub fn copy_in(
        &self,
        from: HostMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::CopyIn);
        ordered(order, |order| self.object.copy_in(from, memory(to), extent(rows), order))
    }

    pub fn copy_out(
        &self,
        from: DeviceMemory,
        to: HostMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::CopyOut);
        ordered(order, |order| self.object.copy_out(memory(from), to, extent(rows), order))
    }

    pub fn copy_across(
        &self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::CopyAcross);
        ordered(order, |order| self.object.copy_across(memory(from), memory(to), extent(rows), order))
    }

    /// Copies contiguous bytes to a device, and waits for the end.
    pub fn write(&self, from: &[u8], to: DeviceMemory, order: Order<'_>) -> Result<Finished, DriverError> {
        let rows = Rows { bytes: from.len() as u64, count: 1 };
        // SAFETY: the bytes are there until this call returns, when the copy has ended; nobody writes them meanwhile.
        let memory = unsafe { HostMemory::new(from.as_ptr().cast_mut(), from.len() as u64) };
        self.copy_in(memory, to, rows, order).and_then(|token| self.wait(to.device, token))
    }

    /// Copies contiguous bytes from a device, and waits for the end.
    pub fn read(&self, from: DeviceMemory, to: &mut [u8], order: Order<'_>) -> Result<Finished, DriverError> {
        let rows = Rows { bytes: to.len() as u64, count: 1 };
        // SAFETY: the bytes are borrowed until this call returns, when the copy has ended.
        let memory = unsafe { HostMemory::new(to.as_mut_ptr(), to.len() as u64) };
        self.copy_out(from, memory, rows, order).and_then(|token| self.wait(from.device, token))
    }

    pub fn load(&self, device: DeviceNumber, source: Source<'_>) -> Result<ModuleId, DriverError> {
        let _inside = self.inside(DriverCall::Load);
        let raw = match source {
            Source::Text { text, options } => {
                RawSource { kind: 0, content: text.as_bytes().into(), options: options.into() }
            }
            Source::Binary(binary) => RawSource { kind: 1, content: binary.into(), options: "".into() },
        };
        read(self.object.load(device.0, raw)).map(ModuleId)
    }

    pub fn kernel(&self, device: DeviceNumber, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        let _inside = self.inside(DriverCall::Kernel);
        read(self.object.kernel(device.0, module.0, entry.into())).map(KernelId)
    }

    pub fn launch(&self, device: DeviceNumber, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::Launch);
        let args: Vec<RawArg> = launch.args.iter().map(raw_arg).collect();
        let Launch { kernel, items, group, .. } = launch;
        let raw = RawLaunch { kernel: kernel.0, items, group, args: args.as_slice().into() };
        ordered(order, |order| self.object.launch(device.0, raw, order))
    }

    pub fn mark(&self, device: DeviceNumber, queue: u32) -> Result<Token, DriverError> {
        let _inside = self.inside(DriverCall::Mark);
        read(self.object.mark(device.0, queue)).map(Token)
    }

    pub fn poll(&self, device: DeviceNumber, token: Token) -> Result<Option<Finished>, DriverError> {
        let _inside = self.inside(DriverCall::Poll);
        read(self.object.poll(device.0, token.0)).map(|raw| (raw.ended != 0).then(|| end(raw)))
    }

    pub fn wait(&self, device: DeviceNumber, token: Token) -> Result<Finished, DriverError> {
        let _inside = self.inside(DriverCall::Wait);
        read(self.object.wait(device.0, token.0)).map(end)
    }

    pub fn raw(&self, device: DeviceNumber, object: RawObject) -> Result<Option<u64>, DriverError> {
        let _inside = self.inside(DriverCall::Raw);
        let (kind, number) = match object {
            RawObject::Context => (0, 0),
            RawObject::Device => (1, 0),
            RawObject::Queue(queue) => (2, u64::from(queue)),
            RawObject::Buffer(buffer) => (3, buffer.0),
        };
        read(self.object.raw(device.0, kind, number)).map(|raw| Some(raw).filter(|raw| *raw != 0))
    }
}
