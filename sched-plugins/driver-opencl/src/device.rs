//! One OpenCL device.

use super::program::{self, text};
use super::shared::Shared;
use super::status::error;
use super::turns::{Command, Turns};
use super::version;
use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_marker_with_wait_list, enqueue_nd_range_kernel,
    enqueue_read_buffer, enqueue_read_buffer_rect, enqueue_write_buffer, enqueue_write_buffer_rect, flush,
};
use cl3::context::{CL_CONTEXT_PLATFORM, create_context};
use cl3::device::{
    CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION, get_device_info,
};
use cl3::event::{
    CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START, get_event_info,
    get_event_profiling_info, release_event, wait_for_events,
};
use cl3::kernel::{create_kernel, set_kernel_arg};
use cl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use cl3::types::{CL_FALSE, cl_command_queue};
use cl3::types::{cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_platform_id, cl_program};
use sched_core::driver::{
    Arg, BufferId, DeviceInfo, DeviceMemory, Direction, DriverError, DriverErrorKind, Finished, HostMemory,
    KernelCache, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, Token,
};
use std::collections::HashSet;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// Number of queues: one for kernels, one for copies.
const QUEUES: usize = 2;

/// The queue of kernels.
const KERNELS: u32 = 0;

/// The token of a copy that the thread which asked for it has made: events are no null pointers.
const ENDED: Token = Token(0);

/// Status of a command that has ended well (`CL_COMPLETE`).
const COMPLETE: cl_int = 0;

/// Time between two looks at an operation that cannot be waited for.
const ASKS_EVERY: Duration = Duration::from_micros(50);

/// Taken for writing by who has the vendor's compiler run, and for reading by who launches what is compiled: PoCL 3.1
/// does not come back where several threads compile at once, and compiles a kernel when it is first launched with a
/// size.
static COMPILER: RwLock<()> = RwLock::new(());

/// A kernel with the sizes of a launch.
type Launched = (usize, [usize; 3], [usize; 3]);

/// A device with its context. Handles are kept as numbers, since OpenCL's may be used by any thread.
#[derive(Debug)]
pub(crate) struct Device {
    info: DeviceInfo,
    /// The platform with its version, whose compiler is used.
    compiler: String,
    /// What the compiler made before.
    compiled: KernelCache,
    id: usize,
    context: usize,
    queues: [usize; QUEUES],
    /// Kernels, by number.
    kernels: Mutex<Vec<usize>>,
    /// What was launched before, which is compiled.
    launched: Mutex<HashSet<Launched>>,
    /// Memory that it shares with the host, if it does.
    shared: Option<Shared>,
    /// Taken while a command is put into a queue: OpenCL keeps arguments in the kernel, and PoCL's devices without
    /// threads run a command on the thread that brings it, and get lost where several do.
    enqueuing: Turns,
}

impl Device {
    /// Makes the context and the queues of a device.
    pub(crate) fn open(platform: cl_platform_id, device: cl_device_id) -> Result<Device, DriverError> {
        let properties = [CL_CONTEXT_PLATFORM, platform as isize, 0];
        let context = create_context(&[device], properties.as_ptr(), None, null_mut())
            .map_err(|status| error("clCreateContext", status))?;
        let queue = || {
            // SAFETY: the context is that of the device.
            unsafe { create_command_queue(context, device, CL_QUEUE_PROFILING_ENABLE) }
                .map(|queue| queue as usize)
                .map_err(|status| error("clCreateCommandQueue", status))
        };
        Ok(Device {
            info: describe(device)?,
            compiler: version::of_compiler(platform),
            compiled: KernelCache::of_user(),
            id: device as usize,
            context: context as usize,
            queues: [queue()?, queue()?],
            kernels: Mutex::default(),
            launched: Mutex::default(),
            shared: Shared::of(device, context),
            enqueuing: Turns::default(),
        })
    }

    fn queue(&self, number: u32) -> Result<cl_command_queue, DriverError> {
        let queue = self.queues.get(number as usize).map(|queue| *queue as cl_command_queue);
        queue.ok_or_else(|| DriverError::new(DriverErrorKind::Invalid, format!("there is no queue {number}")))
    }

    /// Waits for the operations that come before another one.
    fn wait_for_all(&self, order: Order<'_>) -> Result<(), DriverError> {
        match waits(order) {
            (0, _) => Ok(()),
            (_, events) => wait_for_events(&events).map_err(|status| error("clWaitForEvents", status)),
        }
    }
}

impl sched_core::driver::Device for Device {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: u64) -> Result<BufferId, DriverError> {
        if let Some(shared) = &self.shared {
            return shared.allocate(bytes).map_err(|status| error("clCreateBuffer", status));
        }
        // SAFETY: the context is there as long as the driver; no memory of the host is passed.
        let made = unsafe { create_buffer(self.context as cl_context, CL_MEM_READ_WRITE, bytes as usize, null_mut()) };
        made.map(|buffer| BufferId(buffer as u64)).map_err(|status| error("clCreateBuffer", status))
    }

    fn free(&self, buffer: BufferId) {
        // SAFETY: the host frees each buffer once, when no operation uses it.
        let _ = unsafe { release_mem_object(buffer.0 as cl_mem) };
        if let Some(shared) = &self.shared {
            shared.free(buffer);
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
        let queue = self.queue(order.queue)?;
        // In the queue of kernels, a copy keeps its turn.
        if order.queue != KERNELS
            && let Some(shared) = &self.shared
        {
            self.wait_for_all(order)?;
            if shared.copy(host, memory, rows, direction) {
                return Ok(ENDED);
            }
        }
        let contiguous = rows.count <= 1 || (memory.pitch == rows.bytes && host.pitch() == rows.bytes);
        let _one_at_a_time = self.enqueuing.take(Command::Copy);
        let copy = Copy { host, memory, rows, direction };
        // SAFETY: the host promises that the rows are in its memory, and in the buffer, until the copy has ended.
        let (function, started) = unsafe {
            match contiguous {
                true => copy.enqueue_at_once(queue, order),
                false => copy.enqueue_by_rows(queue, order),
            }
        };
        begun(queue, function, started)
    }

    /// Compiles a program, unless that was done before.
    fn load(&self, source: Source<'_>) -> Result<ModuleId, DriverError> {
        let _compiles = COMPILER.write();
        let (device, context) = (self.id as cl_device_id, self.context as cl_context);
        let program = match source {
            Source::Text { text, options } => {
                let key = [text, options, &self.info.name, &self.info.version, &self.compiler];
                let load = |binary: &[u8]| program::of_binary(context, device, binary, options);
                let compile = || {
                    let program = program::of_text(context, device, text, options)?;
                    Ok((program, program::binary(program)))
                };
                self.compiled.obtain(&key, load, compile)
            }
            Source::Binary(binary) => program::of_binary(context, device, binary, ""),
        };
        program.map(|program| ModuleId(program as u64))
    }

    fn kernel(&self, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        let _compiles = COMPILER.write();
        let made = create_kernel(module.0 as cl_program, &text(entry)?)
            .map_err(|status| named(&format!("kernel `{entry}`"), error("clCreateKernel", status)))?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.push(made as usize);
        Ok(KernelId(kernels.len() as u64 - 1))
    }

    fn launch(&self, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        let queue = self.queue(order.queue)?;
        let known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(launch.kernel.0 as usize).copied();
        let none = || DriverError::new(DriverErrorKind::Invalid, format!("there is no kernel {}", launch.kernel.0));
        let kernel = known.ok_or_else(none)? as cl_kernel;
        let items = launch.items.map(|items| items as usize);
        let group = launch.group.map(|items| items as usize);
        let (count, events) = waits(order);
        let _one_at_a_time = self.enqueuing.take(Command::Kernel);
        for (index, arg) in launch.args.iter().enumerate() {
            set(kernel, index as u32, arg)
                .map_err(|status| named(&format!("argument {index}"), error("clSetKernelArg", status)))?;
        }
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = launched.insert((kernel as usize, items, group));
        drop(launched);
        let _compiles = is_new.then(|| COMPILER.write());
        let _launches = (!is_new).then(|| COMPILER.read());
        let group = if group[0] == 0 { null() } else { group.as_ptr() };
        // SAFETY: all arguments are set; the buffers are there until the kernel has ended, as the host promises.
        let started =
            unsafe { enqueue_nd_range_kernel(queue, kernel, 3, null(), items.as_ptr(), group, count, list(&events)) };
        begun(queue, "clEnqueueNDRangeKernel", started)
    }

    fn mark(&self, queue: u32) -> Result<Token, DriverError> {
        let queue = self.queue(queue)?;
        let _one_at_a_time = self.enqueuing.take(Command::Kernel);
        // SAFETY: no events are passed.
        begun(queue, "clEnqueueMarkerWithWaitList", unsafe { enqueue_marker_with_wait_list(queue, 0, null()) })
    }

    fn poll(&self, token: Token) -> Result<Option<Finished>, DriverError> {
        if token == ENDED {
            return Ok(Some(Finished::default()));
        }
        let event = token.0 as cl_event;
        let status = get_event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS)
            .map_err(|status| error("clGetEventInfo", status))?
            .to_int();
        if status > COMPLETE {
            return Ok(None);
        }
        let at = |what| get_event_profiling_info(event, what).ok().map(|time| time.to_ulong());
        let nanos = at(CL_PROFILING_COMMAND_START)
            .zip(at(CL_PROFILING_COMMAND_END))
            .and_then(|(start, end)| end.checked_sub(start))
            .filter(|nanos| *nanos > 0);
        // SAFETY: the host does not use the token any more.
        let _ = unsafe { release_event(event) };
        if status < COMPLETE { Err(error("a command", status)) } else { Ok(Some(Finished { nanos })) }
    }

    fn wait(&self, token: Token) -> Result<Finished, DriverError> {
        if token == ENDED {
            return Ok(Finished::default());
        }
        // Says that a command failed, which `poll` says more precisely; or that it cannot wait, as without memory. The
        // command is under way then, and the host would take an error for its end.
        let _ = wait_for_events(&[token.0 as cl_event]);
        loop {
            if let Some(finished) = self.poll(token)? {
                return Ok(finished);
            }
            thread::sleep(ASKS_EVERY);
        }
    }

    fn raw(&self, object: RawObject) -> Option<u64> {
        match object {
            RawObject::Context => Some(self.context as u64),
            RawObject::Device => Some(self.id as u64),
            RawObject::Queue(queue) => self.queues.get(queue as usize).map(|queue| *queue as u64),
            RawObject::Buffer(buffer) => Some(buffer.0),
        }
    }
}

/// What the device says of itself.
fn describe(device: cl_device_id) -> Result<DeviceInfo, DriverError> {
    let info = |what| get_device_info(device, what).map_err(|status| error("clGetDeviceInfo", status));
    let words = |what| info(what).map(|text| String::from(text).trim_matches(['\0', ' ']).to_owned());
    Ok(DeviceInfo {
        name: words(CL_DEVICE_NAME)?,
        version: format!("{}, driver {}", words(CL_DEVICE_VERSION)?, words(CL_DRIVER_VERSION)?),
        memory: info(CL_DEVICE_GLOBAL_MEM_SIZE)?.to_ulong(),
        largest_buffer: info(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?.to_ulong(),
        compute_units: info(CL_DEVICE_MAX_COMPUTE_UNITS)?.to_uint(),
        queues: QUEUES as u32,
        double_precision: info(CL_DEVICE_DOUBLE_FP_CONFIG).is_ok_and(|config| config.to_ulong() != 0),
        shares_host_memory: info(CL_DEVICE_HOST_UNIFIED_MEMORY).is_ok_and(|shares| shares.to_uint() != 0),
        numa_node: None,
    })
}

/// An error with what it is about.
fn named(what: &str, error: DriverError) -> DriverError {
    DriverError::new(error.kind, format!("{what}: {}", error.message))
}

/// The events that an operation waits for.
fn waits(order: Order<'_>) -> (u32, Vec<cl_event>) {
    let events = order.after.iter().filter(|token| **token != ENDED);
    let events: Vec<cl_event> = events.map(|token| token.0 as cl_event).collect();
    (events.len() as u32, events)
}

/// A list of events, as OpenCL wants it: null without any.
fn list(events: &[cl_event]) -> *const cl_event {
    if events.is_empty() { null() } else { events.as_ptr() }
}

/// Has the device begin what was put in a queue.
fn begun(queue: cl_command_queue, function: &str, started: Result<cl_event, cl_int>) -> Result<Token, DriverError> {
    let event = started.map_err(|status| error(function, status))?;
    flush(queue).map_err(|status| error("clFlush", status))?;
    Ok(Token(event as u64))
}

/// Sets an argument of a kernel.
fn set(kernel: cl_kernel, index: u32, arg: &Arg) -> Result<(), cl_int> {
    match arg {
        Arg::Buffer(buffer) => {
            let handle = buffer.0 as cl_mem;
            // SAFETY: the argument is a buffer, by its handle.
            unsafe { set_kernel_arg(kernel, index, size_of::<cl_mem>(), (&raw const handle).cast()) }
        }
        // SAFETY: there are at least that many bytes.
        Arg::Scalar { bytes, size } => unsafe {
            set_kernel_arg(kernel, index, usize::from(*size), bytes.as_ptr().cast())
        },
        // SAFETY: local memory has a size, and no value.
        Arg::Local(bytes) => unsafe { set_kernel_arg(kernel, index, *bytes as usize, null()) },
    }
}

/// Rows that are to be copied.
struct Copy {
    host: HostMemory,
    memory: DeviceMemory,
    rows: Rows,
    direction: Direction,
}

/// The name of the function that was called, and what it returned.
type Enqueued = (&'static str, Result<cl_event, cl_int>);

impl Copy {
    /// Copies rows that follow one another on both sides.
    ///
    /// # Safety
    /// The rows are in the memory of the host, and in the buffer, until the copy has ended.
    unsafe fn enqueue_at_once(&self, queue: cl_command_queue, order: Order<'_>) -> Enqueued {
        let (buffer, pointer) = (self.memory.buffer.0 as cl_mem, self.host.first().cast::<c_void>());
        let (count, events) = waits(order);
        let (offset, size) = (self.memory.offset as usize, self.rows.bytes as usize * self.rows.count as usize);
        let list = list(&events);
        // SAFETY: as the caller promises.
        unsafe {
            match self.direction {
                Direction::In => (
                    "clEnqueueWriteBuffer",
                    enqueue_write_buffer(queue, buffer, CL_FALSE, offset, size, pointer, count, list),
                ),
                Direction::Out => (
                    "clEnqueueReadBuffer",
                    enqueue_read_buffer(queue, buffer, CL_FALSE, offset, size, pointer, count, list),
                ),
            }
        }
    }

    /// Copies rows with gaps between them.
    ///
    /// # Safety
    /// As for [`enqueue_at_once`](Self::enqueue_at_once).
    #[rustfmt::skip] // A line for each argument of the two calls says less.
    unsafe fn enqueue_by_rows(&self, queue: cl_command_queue, order: Order<'_>) -> Enqueued {
        let (buffer, pointer) = (self.memory.buffer.0 as cl_mem, self.host.first().cast::<c_void>());
        let (count, events) = waits(order);
        let (offset, at_host) = ([self.memory.offset as usize, 0, 0], [0; 3]);
        let region = [self.rows.bytes as usize, self.rows.count as usize, 1];
        let (pitch, host_pitch) = (self.memory.pitch as usize, self.host.pitch() as usize);
        let (offset, at_host, region, list) = (offset.as_ptr(), at_host.as_ptr(), region.as_ptr(), list(&events));
        // SAFETY: as the caller promises.
        unsafe {
            match self.direction {
                Direction::In => ("clEnqueueWriteBufferRect", enqueue_write_buffer_rect(
                    queue, buffer, CL_FALSE, offset, at_host, region, pitch, 0, host_pitch, 0, pointer, count, list,
                )),
                Direction::Out => ("clEnqueueReadBufferRect", enqueue_read_buffer_rect(
                    queue, buffer, CL_FALSE, offset, at_host, region, pitch, 0, host_pitch, 0, pointer, count, list,
                )),
            }
        }
    }
}
