//! Tiles as arrays of plain values, which devices can hold, and kernels on them that devices have as well. Used where
//! there are devices, and where the numbers are not those of a [`Tile`].

#[cfg(test)]
mod tests;

use super::WorkloadError;
use crate::linalg::{Number, Precision, Tile};
use sched_core::Arch;
use sched_cublas::{CudaMath, CudaMathError, CudaQueue};
use sched_graph::Where;
use sched_model::Model;
use sched_runtime::{
    AccessList, ArrayHandle, Codelet, CodeletBuilder, DeviceAccessList, DeviceNeeds, DeviceSlice, KernelCall,
    KernelSource, Runtime,
};

/// What is in front of the kernels in OpenCL C.
const OPENCL: &str = include_str!("../linalg/kernels/prelude.cl");

/// What makes of the kernels CUDA C.
const CUDA: &str = include_str!("../linalg/kernels/prelude.cu");

/// Registers tiles with a runtime as arrays of this type, rounded to it.
pub(super) fn register<T: Number>(runtime: &Runtime, tiles: Vec<Tile>) -> Vec<ArrayHandle<T>> {
    tiles.into_iter().map(|tile| runtime.array(tile.into_values())).collect()
}

/// Takes arrays back, as tiles of these shapes, after all tasks have ended.
pub(super) fn take_back<T: Number>(
    runtime: &Runtime,
    arrays: Vec<ArrayHandle<T>>,
    shapes: impl Iterator<Item = (usize, usize)>,
) -> Result<Vec<Tile>, WorkloadError> {
    let taken = arrays.into_iter().zip(shapes).map(|(array, (rows, columns))| {
        let values = runtime.unregister(array)?.expect("tasks let go of their tiles when they end");
        Ok(Tile::from_values(rows, columns, &values))
    });
    taken.collect()
}

/// Kernels of a factorisation, in OpenCL C.
pub(crate) struct Kernels {
    /// The factorisation, as in the names of models.
    pub(crate) workload: &'static str,
    /// The text, without what comes in front of it.
    pub(crate) text: &'static str,
}

impl Kernels {
    /// The text in OpenCL C, and the options of its compiler.
    pub(crate) fn opencl(&self, precision: Precision) -> (String, &'static str) {
        let options = match precision {
            Precision::Double => "-DREAL=double -DREAL4=double4 -DREAL8=double8",
            Precision::Single => "-DREAL=float -DREAL4=float4 -DREAL8=float8",
        };
        (format!("{OPENCL}{}", self.text), options)
    }

    /// The text in CUDA C, and the options of its compiler.
    pub(crate) fn cuda(&self, precision: Precision) -> (String, &'static str) {
        let options = match precision {
            Precision::Double => "-default-device -DREAL=double",
            Precision::Single => "-default-device -DREAL=float",
        };
        (format!("{CUDA}{}", self.text), options)
    }
}

/// Makes the codelets of one factorisation.
pub(super) struct Codelets<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) kernels: &'a Kernels,
    pub(super) precision: Precision,
    /// The only places for kernels that devices have, if there is a choice.
    pub(super) only: Option<&'a Where>,
    /// The libraries of NVIDIA, if their devices are used and they are there.
    pub(super) math: Option<&'static CudaMath>,
}

/// The libraries of NVIDIA for a runtime; [`Kernels`] do without them.
pub(crate) fn cuda_math(runtime: &Runtime) -> Option<&'static CudaMath> {
    runtime.has_arch(Arch::CUDA).then(CudaMath::of_this_system)?.ok()
}

/// A kernel of NVIDIA's libraries.
pub(super) type Library<L, S> =
    Box<dyn Fn(&CudaQueue<'_>, &S, <L as DeviceAccessList>::DeviceViews) -> Result<(), CudaMathError> + Send + Sync>;

/// Adds a kernel of NVIDIA's libraries to a codelet.
pub(super) fn by_library<L: DeviceAccessList, S: Send + 'static>(
    codelet: CodeletBuilder<L, S>,
    (name, math): (&str, &'static CudaMath),
    run: Library<L, S>,
) -> CodeletBuilder<L, S> {
    codelet.device_raw(Arch::CUDA, name, move |device, step, views| run(&math.on(device)?, step, views))
}

impl<'a> Codelets<'a> {
    pub(super) fn new(runtime: &'a Runtime, kernels: &'a Kernels, precision: Precision) -> Codelets<'a> {
        Codelets { runtime, kernels, precision, only: None, math: cuda_math(runtime) }
    }

    /// cuSOLVER, if it is there.
    pub(super) fn solver(&self) -> Option<&'static CudaMath> {
        self.math.filter(|math| math.has_solver())
    }

    /// A codelet with the model of the same kernel without devices: their lengths on cores are the same.
    pub(super) fn on_cores<L: AccessList, S: Send + 'static>(&self, kernel: &str) -> CodeletBuilder<L, S> {
        let model = match self.precision {
            Precision::Double => format!("{}_{kernel}", self.kernels.workload),
            Precision::Single => format!("{}_{kernel}_single", self.kernels.workload),
        };
        self.runtime.codelet(kernel).model(Model::history(model))
    }

    /// A codelet of a kernel that devices have as well, as the function `entry` of the text. `call` returns its sizes
    /// and arguments there; `library` takes its place where NVIDIA's libraries are.
    pub(super) fn everywhere<L: DeviceAccessList, S: Send + 'static>(
        &self,
        kernel: &str,
        entry: &str,
        on_core: impl FnOnce(CodeletBuilder<L, S>) -> CodeletBuilder<L, S>,
        call: impl Fn(&S, L::DeviceViews) -> KernelCall + Clone + Send + Sync + 'static,
        library: Option<Library<L, S>>,
    ) -> Codelet<L, S> {
        let codelet = self.on_cores(kernel);
        let codelet = match self.only {
            Some(places) => codelet.only_on(places.clone()),
            None => codelet,
        };
        let codelet = match self.precision {
            Precision::Double => codelet.device_needs(DeviceNeeds::default().double_precision()),
            Precision::Single => codelet,
        };
        let source = |(text, options): (String, &str)| KernelSource::text(text).options(options);
        let opencl = source(self.kernels.opencl(self.precision));
        let codelet = on_core(codelet).device(Arch::OPENCL, opencl, entry, call.clone());
        match self.math.zip(library) {
            Some((math, run)) => by_library(codelet, ("cublas", math), run),
            None => codelet.device(Arch::CUDA, source(self.kernels.cuda(self.precision)), entry, call),
        }
        .build()
    }
}

/// Adds a tile with its leading dimension to the arguments of a kernel.
pub(super) fn tile<T>(call: KernelCall, values: &DeviceSlice<T>, rows: usize) -> KernelCall {
    call.arg(values).arg(values.offset()).arg(rows as u32)
}

/// Adds sizes to the arguments of a kernel.
pub(super) fn sizes<const N: usize>(call: KernelCall, sizes: [usize; N]) -> KernelCall {
    sizes.into_iter().fold(call, |call, size| call.arg(size as u32))
}

/// A call with a work item for each block of this many rows and columns.
pub(super) fn over_blocks(rows: usize, columns: usize, block: (usize, usize)) -> KernelCall {
    KernelCall::over([rows.div_ceil(block.0).max(1), columns.div_ceil(block.1).max(1)])
}
