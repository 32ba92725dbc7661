//! The tasks of the factorisation on arrays: in either precision, and on devices.

pub(crate) mod by_hand;

use super::Cholesky;
use crate::linalg::{
    CholeskyStep, Entries, LowerTiles, NotPositiveDefinite, NotPositiveDefiniteMatrix, Number, TileMut, TileRef,
    Tiling, cholesky_steps, flops, on_views as on_core,
};
use crate::workload::arrays::{
    Codelets, Kernels, by_library, cuda_math, over_blocks, register, sizes, take_back, tile,
};
use crate::workload::figures::run_measured;
use crate::workload::ranks::{OnTiles, Spread, Submit, Work};
use crate::workload::{Factored, Workload, WorkloadError};
use sched_cluster::ClusterError;
use sched_cublas::{CudaMath, CudaQueue, Diagonal, Op, Side, Triangle};
use sched_graph::Where;
use sched_runtime::{ArrayHandle, Codelet, DeviceSlice, Read, ReadWrite, Runtime};
use std::sync::{Arc, OnceLock};

/// The kernels of devices.
pub(crate) const KERNELS: Kernels =
    Kernels { workload: Cholesky::NAME, text: include_str!("../../linalg/kernels/cholesky.cl") };

/// Rows and columns that a work item of `gemm` and `syrk` computes.
const BLOCK: (usize, usize) = (8, 4);

/// Maximum number of work items in a group of `gemm` and `syrk`.
const GROUP: usize = 32;

/// Rows that a work item of `trsm` computes.
const ROWS: usize = 8;

type Alone<T> = (ReadWrite<[T]>,);
type WithOne<T> = (Read<[T]>, ReadWrite<[T]>);
type WithTwo<T> = (Read<[T]>, Read<[T]>, ReadWrite<[T]>);

/// Where kernels run that devices have, and which of NVIDIA's libraries compute them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice<'a> {
    pub(crate) only: Option<&'a Where>,
    /// `None` for the kernels of this project.
    pub(crate) math: Option<&'static CudaMath>,
}

/// See [`Workload::run`].
pub(crate) fn run<T: Number>(
    runtime: &Runtime,
    matrix: LowerTiles,
    choice: Choice<'_>,
) -> Result<Factored<LowerTiles>, WorkloadError> {
    let tiling = matrix.tiling();
    let tiles = register::<T>(runtime, matrix.into_tiles());
    let tasks = Tasks::new(runtime, tiling, choice);
    let submit = || cholesky_steps(tiling.n_tiles()).try_for_each(|step| tasks.submit(runtime, step, &tiles));
    let figures = run_measured(runtime, flops::cholesky(tiling.order()), submit)?;
    if let Some(error) = tasks.failure.get() {
        return Err((*error).into());
    }
    let shapes = tiling.lower_tiles().map(|(i, j)| (tiling.size(i), tiling.size(j)));
    Ok(Factored { factors: LowerTiles::from_tiles(tiling, take_back(runtime, tiles, shapes)?), figures })
}

/// See [`OnRanks::spread`](crate::workload::OnRanks::spread).
pub(super) fn spread<'c, T: Number>(
    spread: Spread<'c>,
    matrix: &(dyn Entries + Sync),
) -> Result<OnTiles<'c, LowerTiles>, ClusterError> {
    let Spread { cluster, tiling } = spread;
    let tiles = spread.arrays::<T>(matrix, tiling.lower_tiles())?;
    let runtime = cluster.runtime();
    let tasks = Tasks::new(runtime, tiling, Choice { only: None, math: cuda_math(runtime) });
    Ok(OnTiles::new(flops::cholesky(tiling.order()), Spreading { spread, tiles, tasks }))
}

/// The tiles among ranks.
struct Spreading<'c, T: Number> {
    spread: Spread<'c>,
    tiles: Vec<ArrayHandle<T>>,
    tasks: Tasks<T>,
}

impl<T: Number> Work<LowerTiles> for Spreading<'_, T> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spread { cluster, tiling } = self.spread;
        cholesky_steps(tiling.n_tiles()).try_for_each(|step| self.tasks.submit(cluster, step, &self.tiles))
    }

    fn failure(&self) -> Option<String> {
        self.tasks.failure.get().map(ToString::to_string)
    }

    fn gather(self: Box<Self>) -> Result<Option<LowerTiles>, ClusterError> {
        let tiling = self.spread.tiling;
        let shapes = tiling.lower_tiles().map(|(i, j)| (tiling.size(i), tiling.size(j)));
        let tiles = self.spread.gathered_arrays(self.tiles, shapes)?;
        Ok(tiles.map(|tiles| LowerTiles::from_tiles(tiling, tiles)))
    }
}

/// The codelets.
struct Tasks<T: Number> {
    tiling: Tiling,
    failure: Arc<OnceLock<NotPositiveDefiniteMatrix>>,
    potrf: Codelet<Alone<T>, CholeskyStep>,
    trsm: Codelet<WithOne<T>, CholeskyStep>,
    syrk: Codelet<WithOne<T>, CholeskyStep>,
    gemm: Codelet<WithTwo<T>, CholeskyStep>,
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

impl<T: Number> Tasks<T> {
    fn new(runtime: &Runtime, tiling: Tiling, Choice { only, math }: Choice<'_>) -> Tasks<T> {
        let failure = Arc::new(OnceLock::new());
        let codelets = Codelets { only, math, ..Codelets::new(runtime, &KERNELS, T::PRECISION) };
        Tasks {
            tiling,
            potrf: potrf(&codelets, tiling, &failure),
            failure,
            trsm: trsm(&codelets, tiling),
            syrk: syrk(&codelets, tiling),
            gemm: gemm(&codelets, tiling),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: CholeskyStep, tiles: &[ArrayHandle<T>]) -> Result<(), S::Error> {
        let tile = |(i, j)| &tiles[self.tiling.lower_index(i, j)];
        let urgency = i32::try_from(step.priority(self.tiling.n_tiles())).unwrap_or(i32::MAX);
        let written = tile(step.writes());
        match step {
            CholeskyStep::Potrf { .. } => place.submit(&self.potrf, step, (written,), urgency),
            CholeskyStep::Trsm { k, .. } => place.submit(&self.trsm, step, (tile((k, k)), written), urgency),
            CholeskyStep::Syrk { k, i } => place.submit(&self.syrk, step, (tile((i, k)), written), urgency),
            CholeskyStep::Gemm { k, i, j } => {
                place.submit(&self.gemm, step, (tile((i, k)), tile((j, k)), written), urgency)
            }
        }
    }
}

/// Number of work items in each group of `gemm` and `syrk` on this many rows: groups are equal, with few items that
/// have no rows.
fn group(rows: usize) -> usize {
    let items = rows.div_ceil(BLOCK.0).max(1);
    items.div_ceil(items.div_ceil(GROUP))
}

/// The first bad pivot is noted: each of these tasks waits for the previous one, so it is the only one that counts.
fn potrf<T: Number>(
    codelets: &Codelets<'_>,
    tiling: Tiling,
    failure: &Arc<OnceLock<NotPositiveDefiniteMatrix>>,
) -> Codelet<Alone<T>, CholeskyStep> {
    let noted = Arc::clone(failure);
    let on_cores = codelets.on_cores::<Alone<T>, CholeskyStep>("potrf").cpu("faer", move |context, (tile,)| {
        let step = *context.params;
        let n = Sizes::of(tiling, step).n;
        if noted.get().is_none()
            && let Err(in_tile) = on_core::potrf(TileMut::new(n, n, tile))
        {
            let _ = noted.set(NotPositiveDefiniteMatrix::new(tiling, step.writes().0, in_tile));
        }
    });
    let Some(math) = codelets.solver() else { return on_cores.build() };
    let noted = Arc::clone(failure);
    let run = move |queue: &CudaQueue<'_>, step: &CholeskyStep, (a,): (DeviceSlice<T>,)| {
        let (step, noted) = (*step, Arc::clone(&noted));
        let n = Sizes::of(tiling, step).n;
        if noted.get().is_some() {
            return Ok(());
        }
        queue.potrf(Triangle::Lower, queue.matrix(&a, n, n)?, move |info| {
            match usize::try_from(info) {
                Ok(0) => {}
                Ok(minor) => {
                    let in_tile = NotPositiveDefinite { row: minor - 1 };
                    let _ = noted.set(NotPositiveDefiniteMatrix::new(tiling, step.writes().0, in_tile));
                }
                Err(_) => return Err(format!("cusolverDnPotrf: argument {} is wrong", -info)),
            }
            Ok(())
        })
    };
    by_library(on_cores, ("cusolver", math), Box::new(run)).build()
}

fn trsm<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithOne<T>, CholeskyStep> {
    codelets.everywhere(
        "trsm",
        "trsm",
        |codelet| {
            codelet.cpu("faer", move |context, (l, b)| {
                let Sizes { m, n, .. } = Sizes::of(tiling, *context.params);
                on_core::trsm(TileRef::new(n, n, l), TileMut::new(m, n, b));
            })
        },
        move |step, (l, b)| {
            let Sizes { m, n, .. } = Sizes::of(tiling, *step);
            sizes(tile(tile(over_blocks(m, 1, (ROWS, 1)), &l, n), &b, m), [m, n])
        },
        Some(Box::new(move |queue, step, (l, b)| {
            let Sizes { m, n, .. } = Sizes::of(tiling, *step);
            let (l, b) = (queue.matrix(&l, n, n)?, queue.matrix(&b, m, n)?);
            queue.trsm(Side::Right, (l, Triangle::Lower, Op::Transposed, Diagonal::NonUnit), b)
        })),
    )
}

fn syrk<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithOne<T>, CholeskyStep> {
    codelets.everywhere(
        "syrk",
        "syrk",
        |codelet| {
            codelet.cpu("faer", move |context, (a, c)| {
                let Sizes { n, k, .. } = Sizes::of(tiling, *context.params);
                on_core::syrk(TileRef::new(n, k, a), TileMut::new(n, n, c));
            })
        },
        move |step, (a, c)| {
            let Sizes { n, k, .. } = Sizes::of(tiling, *step);
            sizes(tile(tile(over_blocks(n, n, BLOCK).group([group(n), 1]), &a, n), &c, n), [n, k])
        },
        Some(Box::new(move |queue, step, (a, c)| {
            let Sizes { n, k, .. } = Sizes::of(tiling, *step);
            let (a, c) = (queue.matrix(&a, n, k)?, queue.matrix(&c, n, n)?);
            queue.syrk(Triangle::Lower, T::rounded(-1.0), (a, Op::None), T::rounded(1.0), c)
        })),
    )
}

fn gemm<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<WithTwo<T>, CholeskyStep> {
    codelets.everywhere(
        "gemm",
        "gemm",
        |codelet| {
            codelet.cpu("faer", move |context, (a, b, c)| {
                let Sizes { m, n, k } = Sizes::of(tiling, *context.params);
                on_core::gemm(TileRef::new(m, k, a), TileRef::new(n, k, b), TileMut::new(m, n, c));
            })
        },
        move |step, (a, b, c)| {
            let Sizes { m, n, k } = Sizes::of(tiling, *step);
            sizes(tile(tile(tile(over_blocks(m, n, BLOCK).group([group(m), 1]), &a, m), &b, n), &c, m), [m, n, k])
        },
        Some(Box::new(move |queue, step, (a, b, c)| {
            let Sizes { m, n, k } = Sizes::of(tiling, *step);
            let (a, b, c) = (queue.matrix(&a, m, k)?, queue.matrix(&b, n, k)?, queue.matrix(&c, m, n)?);
            queue.gemm(T::rounded(-1.0), (a, Op::None), (b, Op::Transposed), T::rounded(1.0), c)
        })),
    )
}
