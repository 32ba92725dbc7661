//! Accesses of kernels on devices: which data they can name, and what they see of it.

use crate::data::access::{Access, AccessList, Commute, Read, ReadWrite, Write};
use crate::data::array::{ArrayHandle, Matrix, MatrixHandle};
use crate::data::whole::Part;
use crate::device::Device;
use bytemuck::Pod;
use sched_core::driver::{Arg, BufferId};
use std::marker::PhantomData;

/// An access that a kernel on a device can have: to an array or a matrix of [plain](Pod) values, or a part of one.
/// Other data stays with the cores: a codelet that asks for it on a device does not compile.
///
/// ```compile_fail
/// # use sched_runtime::{KernelCall, Read, Submitter};
/// # fn make(submitter: &Submitter) {
/// let sum = submitter.codelet::<(Read<Vec<f64>>,), ()>("sum").opencl("…", "sum", |_, _| KernelCall::over([1]));
/// # }
/// ```
pub trait DeviceAccess: Access {
    /// What the kernel sees.
    type DeviceView;

    #[doc(hidden)]
    fn device_view(handle: &Self::Handle, device: &DeviceRef<'_>) -> Self::DeviceView;
}

/// Accesses that a kernel on a device can have: a tuple of up to eight [`DeviceAccess`] types.
pub trait DeviceAccessList: AccessList {
    /// What the kernel sees.
    type DeviceViews;

    #[doc(hidden)]
    fn device_views(handles: &Self::Handles, device: &DeviceRef<'_>) -> Self::DeviceViews;
}

/// The device that a kernel is about to run on.
pub struct DeviceRef<'a>(pub(crate) &'a Device);

/// Part of a buffer on a device.
#[derive(Clone, Copy, Debug)]
struct Placed {
    buffer: BufferId,
    /// Position of the first element.
    offset: u32,
}

/// An array on a device. Sizes are 32-bit numbers, as kernels take them.
#[derive(Debug)]
pub struct DeviceSlice<T> {
    placed: Placed,
    len: u32,
    of: PhantomData<fn() -> T>,
}

/// A matrix on a device. Sizes are 32-bit numbers, as kernels take them.
#[derive(Debug)]
pub struct DeviceMatrix<T> {
    placed: Placed,
    rows: u32,
    columns: u32,
    row_stride: u32,
    column_stride: u32,
    of: PhantomData<fn() -> T>,
}

/// # Panics
/// If it does not fit, so that the task fails.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("data on a device has fewer than 2^32 elements")
}

impl<T> DeviceSlice<T> {
    /// The buffer, to pass to [`RawDevice::buffer`](super::codelet::RawDevice::buffer).
    #[must_use]
    pub fn buffer(&self) -> BufferId {
        self.placed.buffer
    }

    /// Position of the first element in the buffer, in elements.
    #[must_use]
    pub fn offset(&self) -> u32 {
        self.placed.offset
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> DeviceMatrix<T> {
    /// The buffer, to pass to [`RawDevice::buffer`](super::codelet::RawDevice::buffer).
    #[must_use]
    pub fn buffer(&self) -> BufferId {
        self.placed.buffer
    }

    /// Position of the first element in the buffer, in elements.
    #[must_use]
    pub fn offset(&self) -> u32 {
        self.placed.offset
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Distance from one row to the next, in elements.
    #[must_use]
    pub fn row_stride(&self) -> u32 {
        self.row_stride
    }

    /// Distance from one column to the next, in elements.
    #[must_use]
    pub fn column_stride(&self) -> u32 {
        self.column_stride
    }
}

impl<T> From<&DeviceSlice<T>> for Arg {
    fn from(slice: &DeviceSlice<T>) -> Arg {
        Arg::Buffer(slice.buffer())
    }
}

impl<T> From<&DeviceMatrix<T>> for Arg {
    fn from(matrix: &DeviceMatrix<T>) -> Arg {
        Arg::Buffer(matrix.buffer())
    }
}

/// The place of a part on a device; a part without elements has no buffer, and its kernel gets none.
fn placed(part: &Part, DeviceRef(device): &DeviceRef<'_>, writes: bool) -> Placed {
    let (buffer, offset) = part.on_device(device.worker, device.node, writes).unwrap_or((BufferId(u64::MAX), 0));
    Placed { buffer, offset: narrow(offset) }
}

macro_rules! device_access {
    ($access:ident, $writes:literal) => {
        impl<T: Pod + Send + Sync> DeviceAccess for $access<[T]> {
            type DeviceView = DeviceSlice<T>;

            fn device_view(handle: &ArrayHandle<T>, device: &DeviceRef<'_>) -> DeviceSlice<T> {
                let placed = placed(handle.part(), device, $writes);
                DeviceSlice { placed, len: narrow(handle.len()), of: PhantomData }
            }
        }

        impl<T: Pod + Send + Sync> DeviceAccess for $access<Matrix<T>> {
            type DeviceView = DeviceMatrix<T>;

            fn device_view(handle: &MatrixHandle<T>, device: &DeviceRef<'_>) -> DeviceMatrix<T> {
                let placed = placed(handle.part(), device, $writes);
                let layout = handle.part().layout();
                DeviceMatrix {
                    placed,
                    rows: narrow(layout.rows()),
                    columns: narrow(layout.columns()),
                    row_stride: narrow(layout.row_stride()),
                    column_stride: narrow(layout.column_stride()),
                    of: PhantomData,
                }
            }
        }
    };
}

device_access!(Read, false);
device_access!(Write, true);
device_access!(ReadWrite, true);
device_access!(Commute, true);

macro_rules! device_access_list {
    ($($access:ident $value:ident),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($access: DeviceAccess),*> DeviceAccessList for ($($access,)*) {
            type DeviceViews = ($($access::DeviceView,)*);

            fn device_views(($($value,)*): &Self::Handles, device: &DeviceRef<'_>) -> Self::DeviceViews {
                ($($access::device_view($value, device),)*)
            }
        }
    };
}

device_access_list!();
device_access_list!(A a);
device_access_list!(A a, B b);
device_access_list!(A a, B b, C c);
device_access_list!(A a, B b, C c, D d);
device_access_list!(A a, B b, C c, D d, E e);
device_access_list!(A a, B b, C c, D d, E e, F f);
device_access_list!(A a, B b, C c, D d, E e, F f, G g);
device_access_list!(A a, B b, C c, D d, E e, F f, G g, H h);
