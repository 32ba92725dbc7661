//! Implementations of codelets for devices.

use super::access::{DeviceAccessList, DeviceRef};
use super::kernels::KernelSource;
use super::{Device, KERNELS};
use crate::parallel::crew::Crew;
use crate::parallel::{Code, Implementation};
use crate::task::codelet::CodeletBuilder;
use crate::task::verdict::KernelError;
use sched_core::Arch;
use sched_core::driver::{Arg, BufferId, DriverError, DriverErrorKind, Launch, Order, RawObject, SpanId, Token};
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;

/// Sizes and arguments of a kernel on a device.
#[derive(Clone, Debug)]
#[must_use]
pub struct KernelCall {
    items: [u64; 3],
    group: [u64; 3],
    args: SmallVec<[Arg; 16]>,
}

fn dimensions<const N: usize>(sizes: [usize; N]) -> [u64; 3] {
    const { assert!(N >= 1 && N <= 3, "kernels have one to three dimensions") };
    std::array::from_fn(|at| sizes.get(at).map_or(1, |size| *size as u64))
}

impl KernelCall {
    /// A call over this number of work items in each of one to three dimensions. With a [group](Self::group) the
    /// numbers are rounded up to whole groups: the kernel has to ignore those beyond the end of the data.
    pub fn over<const N: usize>(items: [usize; N]) -> KernelCall {
        KernelCall { items: dimensions(items), group: [0; 3], args: SmallVec::new() }
    }

    /// Sets the number of work items of a group in each dimension; by default the driver chooses.
    pub fn group<const N: usize>(mut self, sizes: [usize; N]) -> KernelCall {
        self.group = dimensions(sizes);
        for (items, group) in self.items.iter_mut().zip(self.group) {
            *items = items.next_multiple_of(group.max(1));
        }
        self
    }

    /// Adds an argument: an array, a matrix, or a number of the type that the kernel declares.
    pub fn arg(mut self, arg: impl Into<Arg>) -> KernelCall {
        self.args.push(arg.into());
        self
    }

    /// Adds memory that the work items of a group share, as an argument.
    pub fn local(mut self, bytes: usize) -> KernelCall {
        self.args.push(Arg::Local(bytes as u64));
        self
    }
}

/// A device, for implementations that call a library of its vendor.
pub struct RawDevice<'a> {
    device: &'a Device,
    /// Begun when the closure asks for the queue, so that what it does before is not measured.
    span: Cell<Option<SpanId>>,
}

impl Drop for RawDevice<'_> {
    /// Ends the span of a closure that panicked, whose work may use the buffers.
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            let _ = self.device.finish(self.device.end_span(Some(span)));
        }
    }
}

impl fmt::Debug for RawDevice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawDevice").field(&self.device.name()).finish()
    }
}

impl RawDevice<'_> {
    /// Name of the driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.device.kind
    }

    /// Number of the device among those of its driver.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.device.number.0
    }

    /// The context: `cl_context`, `CUcontext`. A `CUcontext` is made that of this thread, as libraries of CUDA expect.
    ///
    /// # Errors
    /// If the driver has no such thing.
    pub fn context(&self) -> Result<u64, DriverError> {
        self.object(RawObject::Context)
    }

    /// The queue in which the library puts its work: `cl_command_queue`, `CUstream`. The task ends when what is in the
    /// queue then has ended.
    ///
    /// # Errors
    /// If the driver has no such thing.
    pub fn queue(&self) -> Result<u64, DriverError> {
        let queue = self.object(RawObject::Queue(KERNELS))?;
        if self.span.get().is_none() {
            self.span.set(self.device.begin_span()?);
        }
        Ok(queue)
    }

    /// A buffer: `cl_mem`, `CUdeviceptr`.
    ///
    /// # Errors
    /// If the driver has no such thing.
    pub fn buffer(&self, buffer: BufferId) -> Result<u64, DriverError> {
        self.object(RawObject::Buffer(buffer))
    }

    /// Memory for the library to work in, of at least this size: the buffer, to pass to [`buffer`](Self::buffer). All
    /// closures of the device get the same, so it holds nothing from one to the next.
    ///
    /// # Errors
    /// If it does not fit, after everything was evicted that can be.
    pub fn scratch(&self, bytes: usize) -> Result<BufferId, DriverError> {
        self.device.room(bytes as u64)
    }

    /// A place of four bytes on the device for a status of the library, such as the `devInfo` of cuSOLVER: a buffer, as
    /// [`buffer`](Self::buffer) returns it, and the place in it in bytes. The number that is there when the work has ended
    /// is given to `check`, whose error makes the task fail. One closure can ask for one.
    ///
    /// # Errors
    /// If there is no memory left, or the driver has no such thing.
    pub fn status(
        &self,
        check: impl FnOnce(i32) -> Result<(), String> + Send + 'static,
    ) -> Result<(u64, u64), DriverError> {
        let status = self.device.status(Box::new(check))?;
        let place = (self.buffer(status.buffer)?, status.offset);
        self.device.note_status(status);
        Ok(place)
    }

    fn object(&self, object: RawObject) -> Result<u64, DriverError> {
        let raw = self.device.driver.raw(self.device.number, object)?;
        let missing = || DriverError::new(DriverErrorKind::Unsupported, format!("the driver has no {object:?}"));
        raw.ok_or_else(missing)
    }
}

/// Implementations for devices. They can use [arrays and matrices](super::access::DeviceAccess) of plain values only.
impl<L: DeviceAccessList, P: Send + 'static> CodeletBuilder<L, P> {
    /// Adds a kernel in OpenCL C. `call` returns its sizes and arguments.
    ///
    /// ```
    /// use sched_runtime::{KernelCall, ReadWrite, Submitter};
    ///
    /// # fn make(submitter: &Submitter) {
    /// const SCALE: &str = "
    ///     __kernel void scale(__global double *x, uint offset, uint n, double factor) {
    ///         size_t i = get_global_id(0);
    ///         if (i < n) x[offset + i] *= factor;
    ///     }";
    /// let scale = submitter
    ///     .codelet::<(ReadWrite<[f64]>,), f64>("scale")
    ///     .cpu("scale", |context, (x,)| x.iter_mut().for_each(|value| *value *= context.params))
    ///     .opencl(SCALE, "scale", |factor, (x,)| {
    ///         let n = x.len();
    ///         KernelCall::over([n as usize]).arg(&x).arg(x.offset()).arg(n).arg(*factor)
    ///     })
    ///     .build();
    /// # }
    /// ```
    pub fn opencl(
        self,
        source: impl Into<KernelSource>,
        entry: &str,
        call: impl Fn(&P, L::DeviceViews) -> KernelCall + Send + Sync + 'static,
    ) -> Self {
        self.device(Arch::OPENCL, source, entry, call)
    }

    /// Adds a kernel in CUDA C, or as PTX. `call` returns its sizes and arguments.
    pub fn cuda(
        self,
        source: impl Into<KernelSource>,
        entry: &str,
        call: impl Fn(&P, L::DeviceViews) -> KernelCall + Send + Sync + 'static,
    ) -> Self {
        self.device(Arch::CUDA, source, entry, call)
    }

    /// Adds a kernel for the devices of an architecture, in the language of their driver. `call` returns its sizes and
    /// arguments.
    pub fn device(
        self,
        arch: Arch,
        source: impl Into<KernelSource>,
        entry: &str,
        call: impl Fn(&P, L::DeviceViews) -> KernelCall + Send + Sync + 'static,
    ) -> Self {
        let (source, name) = (source.into(), entry.to_owned());
        self.launching(arch, entry, move |device, params, views| {
            let kernel = device.kernel(&source, &name)?;
            let KernelCall { items, group, args } = call(params, views);
            let launch = Launch { kernel, items, group, args: &args };
            let launched = device.driver.launch(device.number, launch, Order { queue: KERNELS, after: &[] });
            launched.map(|token| (token, true))
        })
    }

    /// Adds an implementation that calls a library of the device's vendor, such as cuBLAS, with its queue and buffers.
    /// `run` puts work into the queue and returns; the task ends when that work has.
    pub fn device_raw<E: fmt::Display>(
        self,
        arch: Arch,
        name: &str,
        run: impl Fn(&RawDevice<'_>, &P, L::DeviceViews) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.launching(arch, name, move |device, params, views| {
            let raw = RawDevice { device, span: Cell::default() };
            let ran = run(&raw, params, views);
            let span = raw.span.take();
            let token = device.end_span(span)?;
            match ran {
                Ok(()) => Ok((token, span.is_some())),
                Err(error) => {
                    // What it has put on the device before it failed uses the buffers.
                    let _ = device.finish(Ok(token));
                    Err(DriverError::new(DriverErrorKind::Other, error.to_string()))
                }
            }
        })
    }

    /// Adds an implementation that `launch` starts, with a token for its end and whether the driver measures its time.
    fn launching(
        self,
        arch: Arch,
        name: &str,
        launch: impl Fn(&Device, &P, L::DeviceViews) -> Result<(Token, bool), DriverError> + Send + Sync + 'static,
    ) -> Self {
        let run = move |handles: &L::Handles, params: &P, crew: &Crew<'_>| {
            let memories = crew.submitter.core.backend.memories.as_ref();
            let device = memories.and_then(|memories| memories.device_of(crew.first()));
            let device = device.expect("a worker of this architecture drives a device");
            let views = L::device_views(handles, &DeviceRef(device));
            match device.note(launch(device, params, views)) {
                Ok((token, is_measured)) => device.note_launched(token, is_measured),
                // As an error of a kernel that has run: see `Verdict`.
                Err(error) => std::panic::resume_unwind(Box::new(KernelError(error.to_string()))),
            }
        };
        self.add(Implementation { arch, name: name.to_owned(), most: 1 }, Code::Together(Box::new(run)))
    }
}
