//! The tasks of the factorisation on arrays: in either precision, and on devices.

use super::Lu;
use crate::linalg::lu_kernels::on_views as on_core;
use crate::linalg::{
    Entries, LuStep, NoLuFactors, Number, SquareTiles, TileMut, TileRef, Tiling, ZeroPivot, flops, lu_steps,
};
use crate::workload::arrays::{Codelets, Kernels, by_library, over_blocks, register, sizes, take_back, tile};
use crate::workload::figures::run_measured;
use crate::workload::ranks::{OnTiles, Spread, Submit, Work};
use crate::workload::{Factored, Workload, WorkloadError};
use sched_cluster::ClusterError;
use sched_cublas::{CudaQueue, Diagonal, Op, Side, Triangle};
use sched_runtime::{ArrayHandle, Codelet, DeviceSlice, Read, ReadWrite, Runtime};
use std::sync::{Arc, OnceLock};

/// The kernels of devices.
pub(crate) const KERNELS: Kernels = Kernels { workload: Lu::NAME, text: include_str!("../../linalg/kernels/lu.cl") };

/// Rows and columns that a work item of `gemm_nn` computes, the columns of one of `trsm_row`, and the rows of one of
/// `trsm_column`.
const BLOCK: (usize, usize) = (8, 4);

type Alone<T> = (ReadWrite<[T]>,);
type WithOne<T> = (Read<[T]>, ReadWrite<[T]>);
type WithTwo<T> = (Read<[T]>, Read<[T]>, ReadWrite<[T]>);

/// See [`Workload::run_in`].
pub(super) fn run<T: Number>(runtime: &Runtime, matrix: SquareTiles) -> Result<Factored<SquareTiles>, WorkloadError> {
    let tiling = matrix.tiling();
    let tiles = register::<T>(runtime, matrix.into_tiles());
    let tasks = Tasks::new(runtime, tiling);
    let submit = || lu_steps(tiling.n_tiles()).try_for_each(|step| tasks.submit(runtime, step, &tiles));
    let figures = run_measured(runtime, flops::lu(tiling.order()), submit)?;
    if let Some(error) = tasks.failure.get() {
        return Err((*error).into());
    }
    let shapes = tiling.square_tiles().map(|(i, j)| (tiling.size(i), tiling.size(j)));
    Ok(Factored { factors: SquareTiles::from_tiles(tiling, take_back(runtime, tiles, shapes)?), figures })
}

/// See [`OnRanks::spread`](crate::workload::OnRanks::spread).
pub(super) fn spread<'c, T: Number>(
    spread: Spread<'c>,
    matrix: &(dyn Entries + Sync),
) -> Result<OnTiles<'c, SquareTiles>, ClusterError> {
    let Spread { cluster, tiling } = spread;
    let tiles = spread.arrays::<T>(matrix, tiling.square_tiles())?;
    let tasks = Tasks::new(cluster.runtime(), tiling);
    Ok(OnTiles::new(flops::lu(tiling.order()), Spreading { spread, tiles, tasks }))
}

/// The tiles among ranks.
struct Spreading<'c, T: Number> {
    spread: Spread<'c>,
    tiles: Vec<ArrayHandle<T>>,
    tasks: Tasks<T>,
}

impl<T: Number> Work<SquareTiles> for Spreading<'_, T> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spread { cluster, tiling } = self.spread;
        lu_steps(tiling.n_tiles()).try_for_each(|step| self.tasks.submit(cluster, step, &self.tiles))
    }

    fn failure(&self) -> Option<String> {
        self.tasks.failure.get().map(ToString::to_string)
    }

    fn gather(self: Box<Self>) -> Result<Option<SquareTiles>, ClusterError> {
        let tiling = self.spread.tiling;
        let shapes = tiling.square_tiles().map(|(i, j)| (tiling.size(i), tiling.size(j)));
        let tiles = self.spread.gathered_arrays(self.tiles, shapes)?;
        Ok(tiles.map(|tiles| SquareTiles::from_tiles(tiling, tiles)))
    }
}

/// The codelets.
struct Tasks<T: Number> {
    tiling: Tiling,
    failure: Arc<OnceLock<NoLuFactors>>,
    getrf: Codelet<Alone<T>, LuStep>,
    trsm_row: Codelet<WithOne<T>, LuStep>,
    trsm_column: Codelet<WithOne<T>, LuStep>,
    gemm: Codelet<WithTwo<T>, LuStep>,
}

/// Rows of the tile that is written, its columns, and the columns of the tile left of it that is read.
fn extent(tiling: Tiling, step: LuStep) -> (usize, usize, usize) {
    let (i, j) = step.writes();
    let k = match step {
        LuStep::Getrf { k } => k,
        LuStep::TrsmRow { k, .. } | LuStep::TrsmColumn { k, .. } | LuStep::Gemm { k, .. } => k,
    };
    (tiling.size(i), tiling.size(j), tiling.size(k))
}

impl<T: Number> Tasks<T> {
    fn new(runtime: &Runtime, tiling: Tiling) -> Tasks<T> {
        let failure = Arc::new(OnceLock::new());
        let codelets = Codelets::new(runtime, &KERNELS, T::PRECISION);
        Tasks {
            tiling,
            getrf: getrf(&codelets, tiling, &failure),
            failure,
            trsm_row: trsm_row(&codelets, tiling),
            trsm_column: trsm_column(&codelets, tiling),
            gemm: gemm(&codelets, tiling),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: LuStep, tiles: &[ArrayHandle<T>]) -> Result<(), S::Error> {
        let tile = |(i, j)| &tiles[self.tiling.square_index(i, j)];
        let urgency = i32::try_from(step.priority(self.tiling.n_tiles())).unwrap_or(i32::MAX);
        let written = tile(step.writes());
        match step {
            LuStep::Getrf { .. } => place.submit(&self.getrf, step, (written,), urgency),
            LuStep::TrsmRow { k, .. } => place.submit(&self.trsm_row, step, (tile((k, k)), written), urgency),
            LuStep::TrsmColumn { k, .. } => place.submit(&self.trsm_column, step, (tile((k, k)), written), urgency),
            LuStep::Gemm { k, i, j } => place.submit(&self.gemm, step, (tile((i, k)), tile((k, j)), written), urgency),
        }
    }
}

/// The first bad pivot is noted: each of these tasks waits for the previous one, so it is the only one that counts.
fn getrf<T: Number>(
    codelets: &Codelets<'_>,
    tiling: Tiling,
    failure: &Arc<OnceLock<NoLuFactors>>,
) -> Codelet<Alone<T>, LuStep> {
    let noted = Arc::clone(failure);
    let on_cores = codelets.on_cores::<Alone<T>, LuStep>("getrf").cpu("faer", move |context, (tile,)| {
        let (n, _, _) = extent(tiling, *context.params);
        if noted.get().is_none()
            && let Err(in_tile) = on_core::getrf(TileMut::new(n, n, tile))
        {
            let _ = noted.set(NoLuFactors::new(tiling, context.params.writes().0, in_tile));
        }
    });
    let Some(math) = codelets.solver() else { return on_cores.build() };
    let noted = Arc::clone(failure);
    let run = move |queue: &CudaQueue<'_>, step: &LuStep, (a,): (DeviceSlice<T>,)| {
        let (step, noted) = (*step, Arc::clone(&noted));
        let (n, _, _) = extent(tiling, step);
        if noted.get().is_some() {
            return Ok(());
        }
        queue.getrf(queue.matrix(&a, n, n)?, move |info| {
            match usize::try_from(info) {
                Ok(0) => {}
                Ok(column) => {
                    let in_tile = ZeroPivot { row: column - 1 };
                    let _ = noted.set(NoLuFactors::new(tiling, step.writes().0, in_tile));
                }
                Err(_) => return Err(format!("cusolverDnGetrf: argument {} is wrong", -info)),
            }
            Ok(())
        })
    };
    by_library(on_cores, ("cusolver", math), Box::new(run)).build()
}

fn trsm_row<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithOne<T>, LuStep> {
    codelets.everywhere(
        "trsm_row",
        "trsm_row",
        |codelet| {
            codelet.cpu("faer", move |context, (l, b)| {
                let (m, n, _) = extent(tiling, *context.params);
                on_core::trsm_row(TileRef::new(m, m, l), TileMut::new(m, n, b));
            })
        },
        move |step, (l, b)| {
            let (m, n, _) = extent(tiling, *step);
            sizes(tile(tile(over_blocks(n, 1, (BLOCK.1, 1)), &l, m), &b, m), [m, n])
        },
        Some(Box::new(move |queue, step, (l, b)| {
            let (m, n, _) = extent(tiling, *step);
            let (l, b) = (queue.matrix(&l, m, m)?, queue.matrix(&b, m, n)?);
            queue.trsm(Side::Left, (l, Triangle::Lower, Op::None, Diagonal::Unit), b)
        })),
    )
}

fn trsm_column<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithOne<T>, LuStep> {
    codelets.everywhere(
        "trsm_column",
        "trsm_column",
        |codelet| {
            codelet.cpu("faer", move |context, (u, b)| {
                let (m, n, _) = extent(tiling, *context.params);
                on_core::trsm_column(TileRef::new(n, n, u), TileMut::new(m, n, b));
            })
        },
        move |step, (u, b)| {
            let (m, n, _) = extent(tiling, *step);
            sizes(tile(tile(over_blocks(m, 1, (BLOCK.0, 1)), &u, n), &b, m), [m, n])
        },
        Some(Box::new(move |queue, step, (u, b)| {
            let (m, n, _) = extent(tiling, *step);
            let (u, b) = (queue.matrix(&u, n, n)?, queue.matrix(&b, m, n)?);
            queue.trsm(Side::Right, (u, Triangle::Upper, Op::None, Diagonal::NonUnit), b)
        })),
    )
}

/// C := C − A·B, whose model is that of the kernel `gemm`.
fn gemm<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithTwo<T>, LuStep> {
    codelets.everywhere(
        "gemm",
        "gemm_nn",
        |codelet| {
            codelet.cpu("faer", move |context, (a, b, c)| {
                let (m, n, k) = extent(tiling, *context.params);
                on_core::gemm_nn(TileRef::new(m, k, a), TileRef::new(k, n, b), TileMut::new(m, n, c));
            })
        },
        move |step, (a, b, c)| {
            let (m, n, k) = extent(tiling, *step);
            sizes(tile(tile(tile(over_blocks(m, n, BLOCK), &a, m), &b, k), &c, m), [m, n, k])
        },
        Some(Box::new(move |queue, step, (a, b, c)| {
            let (m, n, k) = extent(tiling, *step);
            let (a, b, c) = (queue.matrix(&a, m, k)?, queue.matrix(&b, k, n)?, queue.matrix(&c, m, n)?);
            queue.gemm(T::rounded(-1.0), (a, Op::None), (b, Op::None), T::rounded(1.0), c)
        })),
    )
}
