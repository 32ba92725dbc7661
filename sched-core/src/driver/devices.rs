//! Drivers whose devices have nothing in common but the vendor's library.

use super::{
    BufferId, DeviceInfo, DeviceMemory, DeviceNumber, Driver, DriverError, DriverErrorKind, DriverInfo, Finished,
    HostMemory, KernelId, Launch, ModuleId, Order, RawObject, Rows, Source, SpanId, Token, errors,
};

/// Direction of a copy between the host and a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the host to the device.
    In,
    /// From the device to the host.
    Out,
}

/// One device: the methods of a [`Driver`] without its number, which mean the same. See [`DriverOf`].
#[expect(clippy::missing_errors_doc, reason = "the errors are those of the methods of a driver")]
pub trait Device: Send + Sync + Sized + 'static {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// See [`Driver::allocate`].
    fn allocate(&self, bytes: u64) -> Result<BufferId, DriverError>;

    /// See [`Driver::free`].
    fn free(&self, buffer: BufferId);

    /// See [`Driver::copy_in`] and [`Driver::copy_out`].
    fn copy(
        &self,
        host: HostMemory,
        memory: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
        direction: Direction,
    ) -> Result<Token, DriverError>;

    /// See [`Driver::copy_across`].
    fn copy_to(
        &self,
        target: &Self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let _ = (target, from, to, rows, order);
        Err(errors::no_copies_across())
    }

    /// See [`Driver::load`].
    fn load(&self, source: Source<'_>) -> Result<ModuleId, DriverError>;

    /// See [`Driver::kernel`].
    fn kernel(&self, module: ModuleId, entry: &str) -> Result<KernelId, DriverError>;

    /// See [`Driver::launch`].
    fn launch(&self, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError>;

    /// See [`Driver::mark`].
    fn mark(&self, queue: u32) -> Result<Token, DriverError>;

    /// See [`Driver::begin_span`].
    fn begin_span(&self, queue: u32) -> Result<SpanId, DriverError> {
        let _ = queue;
        Err(errors::no_spans())
    }

    /// See [`Driver::end_span`].
    fn end_span(&self, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        let _ = span;
        self.mark(queue)
    }

    /// See [`Driver::pin`].
    fn pin(&self, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        let _ = (memory, bytes);
        Err(errors::no_pinning())
    }

    /// See [`Driver::unpin`].
    fn unpin(&self, memory: HostMemory) {
        let _ = memory;
    }

    /// See [`Driver::poll`].
    fn poll(&self, token: Token) -> Result<Option<Finished>, DriverError>;

    /// See [`Driver::wait`].
    fn wait(&self, token: Token) -> Result<Finished, DriverError>;

    /// See [`Driver::raw`].
    fn raw(&self, object: RawObject) -> Option<u64>;
}

/// What finds the devices of a kind; [`DriverOf`] makes a driver of it.
pub trait Devices: Send + Sync + 'static {
    /// What the driver is.
    const INFO: DriverInfo;

    /// A device.
    type Device: Device;

    /// See [`Driver::open`].
    ///
    /// # Errors
    /// [`DriverErrorKind::Unavailable`] without the vendor's library.
    fn find() -> Result<Found<Self::Device>, DriverError>;
}

/// The devices of a kind that there are.
#[derive(Debug)]
pub struct Found<D> {
    devices: Vec<D>,
    remarks: Vec<String>,
}

impl<D> From<Vec<D>> for Found<D> {
    fn from(devices: Vec<D>) -> Found<D> {
        Found { devices, remarks: Vec::new() }
    }
}

impl<D> Found<D> {
    /// The devices that could be opened. Those that could not are left out, with a [remark](Driver::remarks): each of
    /// `opened` has the words for a device, and the device or why it is left out.
    ///
    /// # Errors
    /// The first error, if there are devices and all are left out.
    pub fn of(opened: impl IntoIterator<Item = (String, Result<D, DriverError>)>) -> Result<Found<D>, DriverError> {
        let (mut found, mut first) = (Found::from(Vec::new()), None);
        for (name, device) in opened {
            match device {
                Ok(device) => found.devices.push(device),
                Err(error) => {
                    found.remarks.push(format!("{name} is left out: {error}"));
                    let message = format!("{name}: {}", error.message);
                    first.get_or_insert_with(|| DriverError::new(error.kind, message));
                }
            }
        }
        match first {
            Some(error) if found.devices.is_empty() => Err(error),
            _ => Ok(found),
        }
    }
}

/// The driver of devices that are driven one by one, for [`export_driver!`](crate::export_driver).
#[derive(Debug)]
pub struct DriverOf<L: Devices> {
    devices: Vec<L::Device>,
    remarks: Vec<String>,
}

impl<L: Devices> DriverOf<L> {
    fn device(&self, number: DeviceNumber) -> Result<&L::Device, DriverError> {
        self.devices.get(number.0 as usize).ok_or_else(|| {
            let (name, count) = (L::INFO.name, self.devices.len());
            let message = format!("there is no device `{name}:{}`: there are {count}", number.0);
            DriverError::new(DriverErrorKind::NoDevice, message)
        })
    }
}

impl<L: Devices> Driver for DriverOf<L> {
    const INFO: DriverInfo = L::INFO;

    fn open() -> Result<DriverOf<L>, DriverError> {
        let Found { devices, remarks } = L::find()?;
        Ok(DriverOf { devices, remarks })
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.devices.iter().map(|device| device.info().clone()).collect()
    }

    fn allocate(&self, device: DeviceNumber, bytes: u64) -> Result<BufferId, DriverError> {
        self.device(device)?.allocate(bytes)
    }

    fn free(&self, device: DeviceNumber, buffer: BufferId) {
        if let Ok(device) = self.device(device) {
            device.free(buffer);
        }
    }

    fn copy_in(&self, from: HostMemory, to: DeviceMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(to.device)?.copy(from, to, rows, order, Direction::In)
    }

    fn copy_out(&self, from: DeviceMemory, to: HostMemory, rows: Rows, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(from.device)?.copy(to, from, rows, order, Direction::Out)
    }

    fn copy_across(
        &self,
        from: DeviceMemory,
        to: DeviceMemory,
        rows: Rows,
        order: Order<'_>,
    ) -> Result<Token, DriverError> {
        let target = self.device(to.device)?;
        self.device(from.device)?.copy_to(target, from, to, rows, order)
    }

    fn load(&self, device: DeviceNumber, source: Source<'_>) -> Result<ModuleId, DriverError> {
        self.device(device)?.load(source)
    }

    fn kernel(&self, device: DeviceNumber, module: ModuleId, entry: &str) -> Result<KernelId, DriverError> {
        self.device(device)?.kernel(module, entry)
    }

    fn launch(&self, device: DeviceNumber, launch: Launch<'_>, order: Order<'_>) -> Result<Token, DriverError> {
        self.device(device)?.launch(launch, order)
    }

    fn mark(&self, device: DeviceNumber, queue: u32) -> Result<Token, DriverError> {
        self.device(device)?.mark(queue)
    }

    fn begin_span(&self, device: DeviceNumber, queue: u32) -> Result<SpanId, DriverError> {
        self.device(device)?.begin_span(queue)
    }

    fn end_span(&self, device: DeviceNumber, queue: u32, span: SpanId) -> Result<Token, DriverError> {
        self.device(device)?.end_span(queue, span)
    }

    fn pin(&self, device: DeviceNumber, memory: HostMemory, bytes: u64) -> Result<(), DriverError> {
        self.device(device)?.pin(memory, bytes)
    }

    fn unpin(&self, device: DeviceNumber, memory: HostMemory) {
        if let Ok(device) = self.device(device) {
            device.unpin(memory);
        }
    }

    fn poll(&self, device: DeviceNumber, token: Token) -> Result<Option<Finished>, DriverError> {
        self.device(device)?.poll(token)
    }

    fn wait(&self, device: DeviceNumber, token: Token) -> Result<Finished, DriverError> {
        self.device(device)?.wait(token)
    }

    fn raw(&self, device: DeviceNumber, object: RawObject) -> Option<u64> {
        self.device(device).ok()?.raw(object)
    }
}
