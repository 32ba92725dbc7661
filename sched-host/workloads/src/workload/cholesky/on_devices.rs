//! The tasks of the factorisation where there are devices: tiles are arrays, which devices can hold, and every kernel
//! but the pivot's has an implementation in OpenCL C.

pub(crate) mod by_hand;

use super::Cholesky;
use crate::linalg::{
    CholeskyStep, LowerTiles, NotPositiveDefiniteMatrix, Tile, TileMut, TileRef, Tiling, cholesky_steps, flops,
    on_views as kernels,
};
use crate::workload::figures::run_measured;
use crate::workload::{Factored, Workload, WorkloadError};
use sched_model::Model;
use sched_runtime::{
    ArrayHandle, Codelet, CodeletBuilder, DeviceAccessList, DeviceSlice, KernelCall, KernelSource, Read, ReadWrite,
    Runtime, SubmitError,
};
use std::sync::{Arc, OnceLock};

/// Source of the kernels.
const SOURCE: &str = include_str!("../../linalg/kernels/cholesky.cl");

/// Options of its compiler for double precision.
const DOUBLE: &str = "-DREAL=double -DREAL4=double4 -DREAL8=double8";

/// Rows and columns that a work item of `gemm` and `syrk` computes, and rows of one of `trsm`.
const BLOCK: (usize, usize) = (8, 4);
const ROWS: usize = 8;

type Alone = (ReadWrite<[f64]>,);
type WithOne = (Read<[f64]>, ReadWrite<[f64]>);
type WithTwo = (Read<[f64]>, Read<[f64]>, ReadWrite<[f64]>);

/// Where kernels may run that have an implementation for devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Places {
    Everywhere,
    DevicesOnly,
}

/// See [`Workload::run`].
pub(crate) fn run(
    runtime: &Runtime,
    matrix: LowerTiles,
    places: Places,
) -> Result<Factored<LowerTiles>, WorkloadError> {
    let tiling = matrix.tiling();
    let tiles: Vec<ArrayHandle<f64>> =
        matrix.into_tiles().into_iter().map(|tile| runtime.array(tile.into_values())).collect();
    let kernels = Kernels::new(runtime, tiling, places);
    let submit = || cholesky_steps(tiling.n_tiles()).try_for_each(|step| kernels.submit(runtime, step, &tiles));
    let figures = run_measured(runtime, flops::cholesky(tiling.order()), submit)?;
    if let Some(error) = kernels.failure.get() {
        return Err((*error).into());
    }
    let taken = tiles.into_iter().zip(tiling.lower_tiles()).map(|(tile, (i, j))| {
        let values = runtime.unregister(tile)?.expect("tasks let go of their tiles when they end");
        Ok(Tile::from_values(tiling.size(i), tiling.size(j), &values))
    });
    let taken = taken.collect::<Result<Vec<Tile>, WorkloadError>>()?;
    Ok(Factored { factors: LowerTiles::from_tiles(tiling, taken), figures })
}

/// The codelets.
struct Kernels {
    tiling: Tiling,
    failure: Arc<OnceLock<NotPositiveDefiniteMatrix>>,
    potrf: Codelet<Alone, CholeskyStep>,
    trsm: Codelet<WithOne, CholeskyStep>,
    syrk: Codelet<WithOne, CholeskyStep>,
    gemm: Codelet<WithTwo, CholeskyStep>,
}

/// Rows of the tiles of a step: those of the tile that is written, its columns, and the columns of what is read.
#[derive(Clone, Copy)]
struct Sizes {
    m: usize,
    n: usize,
    k: usize,
}

impl Sizes {
    fn of(tiling: Tiling, step: CholeskyStep) -> Sizes {
        let (i, j) = step.writes();
        let k = match step {
            CholeskyStep::Potrf { k } | CholeskyStep::Trsm { k, .. } => k,
            CholeskyStep::Syrk { k, .. } | CholeskyStep::Gemm { k, .. } => k,
        };
        Sizes { m: tiling.size(i), n: tiling.size(j), k: tiling.size(k) }
    }
}

/// Adds a tile with its leading dimension to the arguments of a kernel.
fn tile(call: KernelCall, values: &DeviceSlice<f64>, rows: usize) -> KernelCall {
    call.arg(values).arg(values.offset()).arg(rows as u32)
}

/// A call with a work item for each block of this many rows and columns.
fn over_blocks(rows: usize, columns: usize, block: (usize, usize)) -> KernelCall {
    KernelCall::over([rows.div_ceil(block.0).max(1), columns.div_ceil(block.1).max(1)])
}

impl Kernels {
    fn new(runtime: &Runtime, tiling: Tiling, places: Places) -> Kernels {
        let failure = Arc::new(OnceLock::new());
        let noted = Arc::clone(&failure);
        let potrf = codelet::<Alone>(runtime, "potrf").cpu("faer", move |context, (tile,)| {
            let step = *context.params;
            let n = Sizes::of(tiling, step).n;
            // Each of these tasks waits for the previous one, so the first bad pivot is the only one.
            if noted.get().is_none()
                && let Err(in_tile) = kernels::potrf(TileMut::new(n, n, tile))
            {
                let _ = noted.set(NotPositiveDefiniteMatrix::new(tiling, step.writes().0, in_tile));
            }
        });
        Kernels {
            tiling,
            failure,
            potrf: potrf.build(),
            trsm: trsm(runtime, tiling, places),
            syrk: syrk(runtime, tiling, places),
            gemm: gemm(runtime, tiling, places),
        }
    }

    fn submit(&self, runtime: &Runtime, step: CholeskyStep, tiles: &[ArrayHandle<f64>]) -> Result<(), SubmitError> {
        let tile = |(i, j)| &tiles[self.tiling.lower_index(i, j)];
        let urgency = i32::try_from(step.priority(self.tiling.n_tiles())).unwrap_or(i32::MAX);
        let written = tile(step.writes());
        match step {
            CholeskyStep::Potrf { .. } => runtime.task_with(&self.potrf, step, (written,)).priority(urgency).submit(),
            CholeskyStep::Trsm { k, .. } => {
                runtime.task_with(&self.trsm, step, (tile((k, k)), written)).priority(urgency).submit()
            }
            CholeskyStep::Syrk { k, i } => {
                runtime.task_with(&self.syrk, step, (tile((i, k)), written)).priority(urgency).submit()
            }
            CholeskyStep::Gemm { k, i, j } => {
                runtime.task_with(&self.gemm, step, (tile((i, k)), tile((j, k)), written)).priority(urgency).submit()
            }
        }
        .map(|_| ())
    }
}

/// A codelet with the model of the same kernel without devices: their lengths on cores are the same.
fn codelet<L: DeviceAccessList>(runtime: &Runtime, kernel: &str) -> CodeletBuilder<L, CholeskyStep> {
    runtime.codelet(kernel).model(Model::history(format!("{}_{kernel}", Cholesky::NAME)))
}

/// The source for double precision.
fn source() -> KernelSource {
    KernelSource::text(SOURCE).options(DOUBLE)
}

fn trsm(runtime: &Runtime, tiling: Tiling, places: Places) -> Codelet<WithOne, CholeskyStep> {
    let codelet = codelet::<WithOne>(runtime, "trsm");
    let on_core = match places {
        Places::DevicesOnly => codelet,
        Places::Everywhere => codelet.cpu("faer", move |context, (l, b)| {
            let Sizes { m, n, .. } = Sizes::of(tiling, *context.params);
            kernels::trsm(TileRef::new(n, n, l), TileMut::new(m, n, b));
        }),
    };
    let on_device = on_core.opencl(source(), "trsm", move |step, (l, b)| {
        let Sizes { m, n, .. } = Sizes::of(tiling, *step);
        let call = tile(tile(over_blocks(m, 1, (ROWS, 1)), &l, n), &b, m);
        call.arg(m as u32).arg(n as u32)
    });
    on_device.build()
}

fn syrk(runtime: &Runtime, tiling: Tiling, places: Places) -> Codelet<WithOne, CholeskyStep> {
    let codelet = codelet::<WithOne>(runtime, "syrk");
    let on_core = match places {
        Places::DevicesOnly => codelet,
        Places::Everywhere => codelet.cpu("faer", move |context, (a, c)| {
            let Sizes { n, k, .. } = Sizes::of(tiling, *context.params);
            kernels::syrk(TileRef::new(n, k, a), TileMut::new(n, n, c));
        }),
    };
    let on_device = on_core.opencl(source(), "syrk", move |step, (a, c)| {
        let Sizes { n, k, .. } = Sizes::of(tiling, *step);
        let call = tile(tile(over_blocks(n, n, BLOCK), &a, n), &c, n);
        call.arg(n as u32).arg(k as u32)
    });
    on_device.build()
}

fn gemm(runtime: &Runtime, tiling: Tiling, places: Places) -> Codelet<WithTwo, CholeskyStep> {
    let codelet = codelet::<WithTwo>(runtime, "gemm");
    let on_core = match places {
        Places::DevicesOnly => codelet,
        Places::Everywhere => codelet.cpu("faer", move |context, (a, b, c)| {
            let Sizes { m, n, k } = Sizes::of(tiling, *context.params);
            kernels::gemm(TileRef::new(m, k, a), TileRef::new(n, k, b), TileMut::new(m, n, c));
        }),
    };
    let on_device = on_core.opencl(source(), "gemm", move |step, (a, b, c)| {
        let Sizes { m, n, k } = Sizes::of(tiling, *step);
        let call = tile(tile(tile(over_blocks(m, n, BLOCK), &a, m), &b, n), &c, m);
        call.arg(m as u32).arg(n as u32).arg(k as u32)
    });
    on_device.build()
}
