//! Puts a driver behind the stable interface, and stops panics at that boundary.

use super::{Answer, DriverObject, DriverPinning, DriverRoot, DriverSpans, HostMemory, WireDriver, WireDriver_TO};
use super::{
    RawArg, RawDeviceInfo, RawDeviceMemory, RawDriverError, RawDriverInfo, RawFinished, RawLaunch, RawOrder,
    RawRemarks, RawRows, RawSource,
};
use crate::abi::extension::{Named, RawExtension};
use crate::adapter::caught;
use crate::driver::{
    Arg, BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, Finished, KernelId,
    Launch, ModuleId, Order, RawObject, Rows, Source, SpanId, Token,
};
use abi_stable::std_types::{RBox, ROption, RResult, RStr, RString, RVec};
use abi_stable::type_level::downcasting::TD_Opaque;
use std::mem::{ManuallyDrop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The root of a plugin that offers this driver.
#[must_use]
pub const fn root_of<D: Driver>() -> DriverRoot {
    DriverRoot { info: info::<D>, open: open::<D> }
}

extern "C" fn info<D: Driver>() -> RawDriverInfo {
    let info = D::INFO;
    RawDriverInfo {
        name: info.name.into(),
        arch: u32::from(info.arch.number()),
        doc: info.doc.into(),
        note: info.note.into(),
        flags: u32::from(info.on_request),
        extras: RVec::new(),
    }
}

extern "C" fn open<D: Driver>() -> Answer<DriverObject> {
    let adapter = |driver: D| {
        let texts = driver.remarks().into_iter().map(RString::from).collect();
        Adapter {
            remarks: RawRemarks { texts },
            spans: DriverSpans { begin: begin_span::<D>, end: end_span::<D> },
            pinning: DriverPinning { pin: pin::<D>, unpin: unpin::<D> },
            driver: ManuallyDrop::new(driver),
        }
    };
    fenced(|| D::open().map(|driver| WireDriver_TO::from_ptr(RBox::new(adapter(driver)), TD_Opaque)))
}

/// A driver, and the tables of its extensions, whose functions get a pointer to their table.
#[repr(C)]
struct Adapter<D> {
    remarks: RawRemarks,
    spans: DriverSpans,
    pinning: DriverPinning,
    driver: ManuallyDrop<D>,
}

/// The adapter that has an extension at `this`, `offset` bytes from its start.
///
/// # Safety
/// The host calls with the pointer that the adapter of this type offered, while the driver is open.
unsafe fn adapter_of<'a, D>(this: *const (), offset: usize) -> &'a Adapter<D> {
    // SAFETY: the pointer was made from one to the whole adapter, in `extension`.
    unsafe { &*this.byte_sub(offset).cast::<Adapter<D>>() }
}

extern "C" fn begin_span<D: Driver>(this: *const (), device: u32, queue: u32) -> Answer<u64> {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<D>(this, offset_of!(Adapter<D>, spans)) };
    fenced(|| adapter.driver.begin_span(DeviceNumber(device), queue).map(|span| span.0))
}

extern "C" fn end_span<D: Driver>(this: *const (), device: u32, queue: u32, span: u64) -> Answer<u64> {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<D>(this, offset_of!(Adapter<D>, spans)) };
    fenced(|| adapter.driver.end_span(DeviceNumber(device), queue, SpanId(span)).map(|token| token.0))
}

extern "C" fn pin<D: Driver>(this: *const (), device: u32, memory: HostMemory, bytes: u64) -> Answer<()> {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<D>(this, offset_of!(Adapter<D>, pinning)) };
    fenced(|| adapter.driver.pin(DeviceNumber(device), memory, bytes))
}

extern "C" fn unpin<D: Driver>(this: *const (), device: u32, memory: HostMemory) -> Answer<()> {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<D>(this, offset_of!(Adapter<D>, pinning)) };
    fenced(|| {
        adapter.driver.unpin(DeviceNumber(device), memory);
        Ok(())
    })
}

impl<D> Drop for Adapter<D> {
    /// Catches a panic in the driver's drop: unwinding out of `extern "C"` code would end the process.
    fn drop(&mut self) {
        // SAFETY: the driver is dropped only here, and not used afterwards.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(&mut self.driver) }));
        if let Err(payload) = dropped {
            // Dropping a panic payload may panic again.
            std::mem::forget(payload);
        }
    }
}

/// Runs `body`; a panic is an error.
fn fenced<T>(body: impl FnOnce() -> Result<T, DriverError>) -> Answer<T> {
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|payload| Err(DriverError::new(DriverErrorKind::Panicked, caught(payload))));
    match result {
        Ok(value) => RResult::ROk(value),
        Err(error) => RResult::RErr(RawDriverError { kind: error.kind.code(), message: error.message.into() }),
    }
}

/// Runs `body` with an order, whose tokens are converted.
fn ordered<T>(order: RawOrder<'_>, body: impl FnOnce(Order<'_>) -> Result<T, DriverError>) -> Answer<T> {
    fenced(|| {
        let after: Vec<Token> = order.after.iter().copied().map(Token).collect();
        body(Order { queue: order.queue, after: &after })
    })
}

fn memory(raw: RawDeviceMemory) -> DeviceMemory {
    let RawDeviceMemory { device, buffer, offset, pitch } = raw;
    DeviceMemory { device: DeviceNumber(device), buffer: BufferId(buffer), offset, pitch }
}

fn rows(raw: RawRows) -> Rows {
    Rows { bytes: raw.bytes, count: raw.count }
}

fn arg(raw: &RawArg) -> Result<Arg, DriverError> {
    match raw.kind {
        0 => Ok(Arg::Buffer(BufferId(raw.value))),
        1 => Ok(Arg::Scalar { bytes: raw.value.to_ne_bytes(), size: u8::try_from(raw.size).unwrap_or(8).min(8) }),
        2 => Ok(Arg::Local(raw.value)),
        kind => Err(unknown("argument", kind)),
    }
}

fn unknown(what: &str, kind: u32) -> DriverError {
    DriverError::new(DriverErrorKind::Unsupported, format!("the {what} of kind {kind} is of a later version"))
}

fn source(raw: RawSource<'_>) -> Result<Source<'_>, DriverError> {
    match raw.kind {
        0 => match std::str::from_utf8(raw.content.as_slice()) {
            Ok(text) => Ok(Source::Text { text, options: raw.options.as_str() }),
            Err(error) => Err(DriverError::new(DriverErrorKind::Invalid, format!("the source is no text: {error}"))),
        },
        1 => Ok(Source::Binary(raw.content.as_slice())),
        kind => Err(unknown("source", kind)),
    }
}

fn described(device: DeviceInfo) -> RawDeviceInfo {
    RawDeviceInfo {
        name: device.name.into(),
        version: device.version.into(),
        memory: device.memory,
        largest_buffer: device.largest_buffer,
        compute_units: device.compute_units,
        queues: device.queues,
        flags: u32::from(device.double_precision) | u32::from(device.shares_host_memory) << 1,
        numa_node: device.numa_node.unwrap_or(u32::MAX),
        extras: RVec::new(),
    }
}

fn finished(end: Finished) -> RawFinished {
    RawFinished { ended: 1, nanos: end.nanos.unwrap_or(u64::MAX) }
}

impl<D: Driver> WireDriver for Adapter<D> {
    fn devices(&self) -> Answer<RVec<RawDeviceInfo>> {
        fenced(|| Ok(self.driver.devices().into_iter().map(described).collect()))
    }

    fn allocate(&self, device: u32, bytes: u64) -> Answer<u64> {
        fenced(|| self.driver.allocate(DeviceNumber(device), bytes).map(|buffer| buffer.0))
    }

    fn free(&self, device: u32, buffer: u64) -> Answer<()> {
        fenced(|| {
            self.driver.free(DeviceNumber(device), BufferId(buffer));
            Ok(())
        })
    }

    fn copy_in(&self, from: HostMemory, to: RawDeviceMemory, extent: RawRows, order: RawOrder<'_>) -> Answer<u64> {
        ordered(order, |order| self.driver.copy_in(from, memory(to), rows(extent), order).map(|token| token.0))
    }

    fn copy_out(&self, from: RawDeviceMemory, to: HostMemory, extent: RawRows, order: RawOrder<'_>) -> Answer<u64> {
        ordered(order, |order| self.driver.copy_out(memory(from), to, rows(extent), order).map(|token| token.0))
    }

    fn copy_across(
        &self,
        from: RawDeviceMemory,
        to: RawDeviceMemory,
        extent: RawRows,
        order: RawOrder<'_>,
    ) -> Answer<u64> {
        ordered(order, |order| {
            self.driver.copy_across(memory(from), memory(to), rows(extent), order).map(|token| token.0)
        })
    }

    fn load(&self, device: u32, raw: RawSource<'_>) -> Answer<u64> {
        fenced(|| self.driver.load(DeviceNumber(device), source(raw)?).map(|module| module.0))
    }

    fn kernel(&self, device: u32, module: u64, entry: RStr<'_>) -> Answer<u64> {
        fenced(|| self.driver.kernel(DeviceNumber(device), ModuleId(module), entry.as_str()).map(|kernel| kernel.0))
    }

    fn launch(&self, device: u32, launch: RawLaunch<'_>, order: RawOrder<'_>) -> Answer<u64> {
        ordered(order, |order| {
            let args = launch.args.iter().map(arg).collect::<Result<Vec<Arg>, DriverError>>()?;
            let RawLaunch { kernel, items, group, .. } = launch;
            let launch = Launch { kernel: KernelId(kernel), items, group, args: &args };
            self.driver.launch(DeviceNumber(device), launch, order).map(|token| token.0)
        })
    }

    fn mark(&self, device: u32, queue: u32) -> Answer<u64> {
        fenced(|| self.driver.mark(DeviceNumber(device), queue).map(|token| token.0))
    }

    fn poll(&self, device: u32, token: u64) -> Answer<RawFinished> {
        fenced(|| {
            let end = self.driver.poll(DeviceNumber(device), Token(token))?;
            Ok(end.map_or(RawFinished { ended: 0, nanos: u64::MAX }, finished))
        })
    }

    fn wait(&self, device: u32, token: u64) -> Answer<RawFinished> {
        fenced(|| self.driver.wait(DeviceNumber(device), Token(token)).map(finished))
    }

    fn raw(&self, device: u32, kind: u32, number: u64) -> Answer<u64> {
        fenced(|| {
            let object = match kind {
                0 => RawObject::Context,
                1 => RawObject::Device,
                2 => RawObject::Queue(u32::try_from(number).unwrap_or(u32::MAX)),
                3 => RawObject::Buffer(BufferId(number)),
                _ => return Ok(0),
            };
            Ok(self.driver.raw(DeviceNumber(device), object).unwrap_or(0))
        })
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        // The functions of a table find the adapter behind it, so its pointer is made from that of the whole.
        let this = std::ptr::from_ref(self);
        match name.as_str() {
            // SAFETY: the host uses it while the driver is open, and the adapter is behind a pointer until then.
            RawRemarks::NAME => ROption::RSome(unsafe { RawExtension::of_object(&raw const self.remarks) }),
            // SAFETY: as above.
            DriverSpans::NAME => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Adapter<D>, spans)).cast::<DriverSpans>())
            }),
            // SAFETY: as above.
            DriverPinning::NAME => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Adapter<D>, pinning)).cast::<DriverPinning>())
            }),
            _ => ROption::RNone,
        }
    }
}
