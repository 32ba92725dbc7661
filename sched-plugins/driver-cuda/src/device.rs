//! One CUDA device.

use super::compiler;
use cudarc::driver::result::{self, DriverError as CudaError, event, module, primary_ctx, stream};
use cudarc::driver::sys::{self, CUdevice_attribute, CUevent_flags, CUmemorytype, CUresult};
use sched_core::driver::{
    Arg, BufferId, DeviceInfo, DeviceMemory, Direction, DriverError, DriverErrorKind, Finished, HostMemory,
    KernelCache, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, SpanId, Token,
};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of streams: one for kernels, one for copies.
const QUEUES: usize = 2;

/// Threads of a block where the launch leaves the choice.
const THREADS: u64 = 256;

/// How long a thread asks again and again whether an operation has ended, before it sleeps until then. To be woken
/// takes 10 µs after an operation of microseconds and 35 after a longer one (H200), so at most about twice the time is
/// spent.
const ASKS_FOR: Duration = Duration::from_micros(50);

/// The events around an operation, as numbers: CUDA's handles may be used by any thread.
#[derive(Clone, Copy, Debug)]
struct Events {
    begin: usize,
    end: usize,
}

/// A device with its primary context.
#[derive(Debug)]
pub(crate) struct Device {
    info: DeviceInfo,
    context: usize,
    streams: [usize; QUEUES],
    /// Compute capability, as the compiler names it: 80.
    capability: c_int,
    /// What the compiler made before.
    compiled: KernelCache,
    operations: Mutex<HashMap<Token, Events>>,
}

/// An error, by the function that returned it.
pub(crate) fn failure(function: &str, error: CudaError) -> DriverError {
    let kind = match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => DriverErrorKind::OutOfMemory,
        CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_INVALID_DEVICE => DriverErrorKind::NoDevice,
        CUresult::CUDA_ERROR_INVALID_PTX | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => DriverErrorKind::Build,
        // After these the context, and everything in it, is of no use.
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_LAUNCH_FAILED
        | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | CUresult::CUDA_ERROR_ASSERT
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED => DriverErrorKind::Lost,
        CUresult::CUDA_ERROR_INVALID_VALUE
        | CUresult::CUDA_ERROR_INVALID_HANDLE
        | CUresult::CUDA_ERROR_NOT_FOUND
        | CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => DriverErrorKind::Invalid,
        _ => DriverErrorKind::Other,
    };
    DriverError::new(kind, format!("{function}: {error:?}"))
}

fn invalid(message: impl Into<String>) -> DriverError {
    DriverError::new(DriverErrorKind::Invalid, message)
}

/// Records a new event in a stream of the context that is current.
fn record(stream: sys::CUstream) -> Result<usize, DriverError> {
    let event =
        event::create(CUevent_flags::CU_EVENT_BLOCKING_SYNC).map_err(|error| failure("cuEventCreate", error))?;
    // SAFETY: both are of this context.
    unsafe { event::record(event, stream) }.map_err(|error| failure("cuEventRecord", error))?;
    Ok(event as usize)
}

impl Device {
    /// Takes the primary context of a device, and makes its streams.
    pub(crate) fn open(number: c_int) -> Result<Device, DriverError> {
        let device = result::device::get(number).map_err(|error| failure("cuDeviceGet", error))?;
        // SAFETY: the device is one that CUDA has named; the context is kept for the life of the process.
        let context =
            unsafe { primary_ctx::retain(device) }.map_err(|error| failure("cuDevicePrimaryCtxRetain", error))?;
        // SAFETY: the context was just made.
        unsafe { result::ctx::set_current(context) }.map_err(|error| failure("cuCtxSetCurrent", error))?;
        let attribute = |what| {
            // SAFETY: as above.
            unsafe { result::device::get_attribute(device, what) }
                .map_err(|error| failure("cuDeviceGetAttribute", error))
        };
        let queue = || {
            let made = stream::create(stream::StreamKind::NonBlocking);
            made.map(|stream| stream as usize).map_err(|error| failure("cuStreamCreate", error))
        };
        let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: as above.
        let memory =
            unsafe { result::device::total_mem(device) }.map_err(|error| failure("cuDeviceTotalMem", error))? as u64;
        let info = DeviceInfo {
            name: result::device::get_name(device).map_err(|error| failure("cuDeviceGetName", error))?,
            version: format!("compute capability {major}.{minor}"),
            // The context and the modules need some.
            memory: memory - memory / 16,
            largest_buffer: memory,
            compute_units: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
            queues: QUEUES as u32,
            double_precision: true,
            shares_host_memory: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0,
            numa_node: None,
        };
        Ok(Device {
            info,
            context: context as usize,
            streams: [queue()?, queue()?],
            capability: 10 * major + minor,
            compiled: KernelCache::of_user(),
            operations: Mutex::default(),
        })
    }

    /// Makes the context that of this thread.
    fn enter(&self) -> Result<(), DriverError> {
        // SAFETY: the context is kept for the life of the process.
        unsafe { result::ctx::set_current(self.context as sys::CUcontext) }
            .map_err(|error| failure("cuCtxSetCurrent", error))
    }

    fn stream(&self, number: u32) -> Result<sys::CUstream, DriverError> {
        let stream = self.streams.get(number as usize).map(|stream| *stream as sys::CUstream);
        stream.ok_or_else(|| invalid(format!("there is no queue {number}")))
    }

    /// Puts an operation into a stream, after those that it waits for and between two events.
    fn start(
        &self,
        order: Order<'_>,
        operation: impl FnOnce(sys::CUstream) -> Result<(), DriverError>,
    ) -> Result<Token, DriverError> {
        self.enter()?;
        let stream = self.stream(order.queue)?;
        for token in order.after {
            if let Some(events) = self.events(*token) {
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                // SAFETY: the event is there until the host has seen the end of its operation.
                unsafe { stream::wait_event(stream, events.end as sys::CUevent, flags) }
                    .map_err(|error| failure("cuStreamWaitEvent", error))?;
            }
        }
        let begin = record(stream)?;
        if let Err(error) = operation(stream) {
            // SAFETY: nobody else uses the event.
            let _ = unsafe { event::destroy(begin as sys::CUevent) };
            return Err(error);
        }
        self.end_at(stream, begin)
    }

    /// A token for what is in a stream between an event there and now.
    fn end_at(&self, stream: sys::CUstream, begin: usize) -> Result<Token, DriverError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let events = Events { begin, end: record(stream)? };
        let token = Token(NEXT.fetch_add(1, Relaxed));
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).insert(token, events);
        Ok(token)
    }

    fn events(&self, token: Token) -> Option<Events> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).get(&token).copied()
    }

    /// Loads PTX, which ends with a zero, or a binary, whose header has its size.
    fn load_image(image: &[u8]) -> Result<ModuleId, DriverError> {
        // SAFETY: the image is one of these.
        let loaded = unsafe { module::load_data(image.as_ptr().cast()) };
        loaded
            .map(|module| ModuleId(module as u64))
            .map_err(|error| DriverError { kind: DriverErrorKind::Build, ..failure("cuModuleLoadData", error) })
    }

    /// Compiles CUDA C, unless that was done before.
    fn load_text(&self, text: &str, options: &str) -> Result<ModuleId, DriverError> {
        let compiler = compiler::version()?;
        let options = format!("{options} --gpu-architecture=compute_{}", self.capability);
        let driver = format!("CUDA {}", crate::version()?);
        let compile = || {
            let image = zero_ended(compiler::compile(text, &options)?);
            Ok((Device::load_image(&image)?, image))
        };
        // A file may end with anything.
        let load = |image: &[u8]| Device::load_image(&zero_ended(image.to_vec()));
        self.compiled.obtain(&[text, &options, &self.info.name, &driver, &compiler], load, compile)
    }

    /// Forgets an operation that has ended.
    fn end(&self, token: Token, events: Events, ended: Result<(), CudaError>) -> Result<Finished, DriverError> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
        let (begin, end) = (events.begin as sys::CUevent, events.end as sys::CUevent);
        // SAFETY: both are recorded, and nobody else uses them: the host does not use the token any more.
        let millis = unsafe {
            let millis = event::elapsed(begin, end).ok();
            let _ = (event::destroy(begin), event::destroy(end));
            millis
        };
        ended.map_err(|error| failure("an operation", error))?;
        Ok(Finished { nanos: millis.map(|millis| (f64::from(millis) * 1e6) as u64) })
    }
}

impl sched_core::driver::Device for Device {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: u64) -> Result<BufferId, DriverError> {
        self.enter()?;
        // SAFETY: the memory is used by copies and kernels only.
        unsafe { result::malloc_sync(bytes as usize) }.map(BufferId).map_err(|error| failure("cuMemAlloc", error))
    }

    fn free(&self, buffer: BufferId) {
        if self.enter().is_ok() {
            // SAFETY: the host frees each buffer once, when no operation uses it.
            let _ = unsafe { result::free_sync(buffer.0) };
        }
    }

    /// Copies rows between the host and the device.
    fn copy(
        &self,
        host: HostMemory,
        memory: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
        direction: Direction,
    ) -> Result<Token, DriverError> {
        let (host_pitch, pitch) = (host.pitch().max(rows.bytes) as usize, memory.pitch.max(rows.bytes) as usize);
        let (first, device) = (host.first().cast::<c_void>(), memory.buffer.0 + memory.offset);
        let (at_host, at_device) = (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_DEVICE);
        let is_in = matches!(direction, Direction::In);
        // Rows are limited in length, and copies at once are not.
        if rows.count <= 1 || (memory.pitch == rows.bytes && host.pitch() == rows.bytes) {
            let bytes = (rows.bytes * rows.count) as usize;
            return self.start(order, |stream| {
                // SAFETY: the host promises that the bytes are on both sides until the copy has ended.
                let (name, started) = unsafe {
                    match is_in {
                        true => ("cuMemcpyHtoDAsync", sys::cuMemcpyHtoDAsync_v2(device, first, bytes, stream)),
                        false => ("cuMemcpyDtoHAsync", sys::cuMemcpyDtoHAsync_v2(first, device, bytes, stream)),
                    }
                };
                started.result().map_err(|error| failure(name, error))
            });
        }
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: if is_in { at_host } else { at_device },
            srcHost: first,
            srcDevice: device,
            srcArray: null_mut(),
            srcPitch: if is_in { host_pitch } else { pitch },
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: if is_in { at_device } else { at_host },
            dstHost: first,
            dstDevice: device,
            dstArray: null_mut(),
            dstPitch: if is_in { pitch } else { host_pitch },
            WidthInBytes: rows.bytes as usize,
            Height: rows.count as usize,
        };
        self.start(order, |stream| {
            // SAFETY: the host promises that the rows are on both sides until the copy has ended.
            unsafe { sys::cuMemcpy2DAsync_v2(&raw const copy, stream) }
                .result()
                .map_err(|error| failure("cuMemcpy2DAsync", error))
        })
    }

    /// Copies rows to another device.
    fn copy_to(
        &self,
        target: &Device,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let contexts = (self.context as sys::CUcontext, target.context as sys::CUcontext);
        self.start(order, |stream| {
            for row in 0..rows.count {
                let source = from.buffer.0 + from.offset + row * from.pitch;
                let place = to.buffer.0 + to.offset + row * to.pitch;
                // SAFETY: the host promises that the rows are in both buffers until the copy has ended.
                unsafe { sys::cuMemcpyPeerAsync(place, contexts.1, source, contexts.0, rows.bytes as usize, stream) }
                    .result()
                    .map_err(|error| failure("cuMemcpyPeerAsync", error))?;
            }
            Ok(())
        })
    }

    /// Loads PTX or a binary, or compiles CUDA C.
    fn load(&self, source: Source<'_>) -> Result<ModuleId, DriverError> {
        self.enter()?;
        match source {
            Source::Text { text, .. } if text.contains(".target ") => {
                Device::load_image(&zero_ended(text.as_bytes().to_vec()))
            }
            Source::Text { text, options } => self.load_text(text, options),
            Source::Binary(binary) => Device::load_image(&zero_ended(binary.to_vec())),
        }
    }

    fn kernel(&self, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        self.enter()?;
        let name = CString::new(entry).map_err(|error| invalid(error.to_string()))?;
        // SAFETY: the module was loaded by `load`, and is never unloaded.
        let found = unsafe { module::get_function(module.0 as sys::CUmodule, name) };
        found.map(|function| KernelId(function as u64)).map_err(|error| {
            let failure = failure("cuModuleGetFunction", error);
            DriverError::new(DriverErrorKind::Invalid, format!("kernel `{entry}`: {}", failure.message))
        })
    }

    fn launch(&self, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        let group = if launch.group[0] == 0 { [launch.items[0].clamp(1, THREADS), 1, 1] } else { launch.group };
        let blocks: Vec<u32> =
            launch.items.iter().zip(group).map(|(items, group)| items.div_ceil(group.max(1)) as u32).collect();
        let mut shared = 0;
        let mut values: Vec<u64> = Vec::with_capacity(launch.args.len());
        for arg in launch.args {
            match arg {
                Arg::Buffer(buffer) => values.push(buffer.0),
                Arg::Scalar { bytes, .. } => values.push(u64::from_ne_bytes(*bytes)),
                // In CUDA that is no argument of the kernel.
                Arg::Local(bytes) => shared += *bytes as u32,
            }
        }
        let mut params: Vec<*mut c_void> = values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let (blocks, threads) =
            ((blocks[0], blocks[1], blocks[2]), (group[0] as u32, group[1] as u32, group[2] as u32));
        self.start(order, |stream| {
            // SAFETY: the function is one that `kernel` returned; CUDA reads as many bytes of each argument as the
            // kernel declares, and there are eight. The buffers are there until the kernel has ended, as the host
            // promises.
            unsafe {
                result::launch_kernel(launch.kernel.0 as sys::CUfunction, blocks, threads, shared, stream, &mut params)
            }
            .map_err(|error| failure("cuLaunchKernel", error))
        })
    }

    fn mark(&self, queue: u32) -> Result<Token, DriverError> {
        self.start(Order { queue, after: &[] }, |_| Ok(()))
    }

    fn begin_span(&self, queue: u32) -> Result<SpanId, DriverError> {
        self.enter()?;
        record(self.stream(queue)?).map(|event| SpanId(event as u64))
    }

    fn end_span(&self, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        self.enter()?;
        self.end_at(self.stream(queue)?, span.0 as usize)
    }

    fn pin(&self, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        self.enter()?;
        // SAFETY: the host promises that the memory is there until it is unpinned.
        unsafe { sys::cuMemHostRegister_v2(memory.first().cast(), bytes as usize, sys::CU_MEMHOSTREGISTER_PORTABLE) }
            .result()
            .map_err(|error| failure("cuMemHostRegister", error))
    }

    fn unpin(&self, memory: HostMemory) {
        if self.enter().is_ok() {
            // SAFETY: the host unpins what it has pinned, which no operation uses.
            let _ = unsafe { sys::cuMemHostUnregister(memory.first().cast()) };
        }
    }

    fn poll(&self, token: Token) -> Result<Option<Finished>, DriverError> {
        self.enter()?;
        let events = self.events(token).ok_or_else(|| invalid(format!("there is no operation {}", token.0)))?;
        // SAFETY: the event is there until the end has been seen, which is now or later.
        match unsafe { event::query(events.end as sys::CUevent) } {
            Err(CudaError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(None),
            ended => self.end(token, events, ended).map(Some),
        }
    }

    fn wait(&self, token: Token) -> Result<Finished, DriverError> {
        self.enter()?;
        let events = self.events(token).ok_or_else(|| invalid(format!("there is no operation {}", token.0)))?;
        let end = events.end as sys::CUevent;
        let began = Instant::now();
        let ended = loop {
            // SAFETY: as in `poll`.
            match unsafe { event::query(end) } {
                Err(CudaError(CUresult::CUDA_ERROR_NOT_READY)) if began.elapsed() < ASKS_FOR => std::hint::spin_loop(),
                // SAFETY: as in `poll`.
                Err(CudaError(CUresult::CUDA_ERROR_NOT_READY)) => break unsafe { event::synchronize(end) },
                ended => break ended,
            }
        };
        self.end(token, events, ended)
    }

    fn raw(&self, object: RawObject) -> Option<u64> {
        match object {
            // Libraries of CUDA use the context of the thread that calls them.
            RawObject::Context => self.enter().ok().map(|()| self.context as u64),
            // A number from 0, which the host knows.
            RawObject::Device => None,
            RawObject::Queue(queue) => self.streams.get(queue as usize).map(|stream| *stream as u64),
            RawObject::Buffer(buffer) => Some(buffer.0),
        }
    }
}

/// Bytes with a zero behind them.
fn zero_ended(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0);
    bytes
}
