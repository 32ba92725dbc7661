//! The tasks of the factorisation on arrays: in either precision, and on devices, which apply reflectors that cores
//! have computed.

use super::Qr;
use crate::linalg::qr_kernels::on_views as on_core;
use crate::linalg::{
    Apply, Entries, Number, QrStep, QrTiles, SquareTiles, TileMut, TileRef, Tiling, factor_shape, flops, qr_steps,
};
use crate::workload::arrays::{Codelets, Kernels, register, sizes, take_back, tile};
use crate::workload::figures::run_measured;
use crate::workload::ranks::{OnTiles, Spread, Submit, Work};
use crate::workload::{Factored, Workload, WorkloadError};
use sched_cluster::ClusterError;
use sched_runtime::{ArrayHandle, Codelet, KernelCall, Read, ReadWrite, Runtime, Write};

/// The kernels of devices.
pub(crate) const KERNELS: Kernels = Kernels { workload: Qr::NAME, text: include_str!("../../linalg/kernels/qr.cl") };

/// Work items of a group, and the columns of a tile that it changes.
const GROUP: (usize, usize) = (32, 8);

/// The accesses of each kernel, in the order of its arguments.
type Geqrt<T> = (ReadWrite<[T]>, Write<[T]>, Write<[T]>);
type Unmqr<T> = (Read<[T]>, Read<[T]>, ReadWrite<[T]>);
type Tsqrt<T> = (ReadWrite<[T]>, ReadWrite<[T]>, Write<[T]>);
type Tsmqr<T> = (Read<[T]>, Read<[T]>, ReadWrite<[T]>, ReadWrite<[T]>);

/// See [`Workload::run_in`].
pub(super) fn run<T: Number>(runtime: &Runtime, matrix: QrTiles) -> Result<Factored<QrTiles>, WorkloadError> {
    let tiling = matrix.tiling();
    let data = Data::<T> {
        tiling,
        matrix: register(runtime, matrix.matrix.into_tiles()),
        panels: register(runtime, matrix.panels),
        factors: register(runtime, matrix.factors),
    };
    let tasks = Tasks::new(runtime, tiling);
    let submit = || qr_steps(tiling.n_tiles()).try_for_each(|step| tasks.submit(runtime, step, &data));
    let figures = run_measured(runtime, flops::qr(tiling.order()), submit)?;
    let size = |i| tiling.size(i);
    let matrix = take_back(runtime, data.matrix, tiling.square_tiles().map(|(i, j)| (size(i), size(j))))?;
    let factors = QrTiles {
        matrix: SquareTiles::from_tiles(tiling, matrix),
        panels: take_back(runtime, data.panels, (0..tiling.n_tiles()).map(|k| (size(k), size(k))))?,
        factors: take_back(runtime, data.factors, tiling.lower_tiles().map(|(_, k)| factor_shape(size(k))))?,
    };
    Ok(Factored { factors, figures })
}

/// See [`OnRanks::spread`](crate::workload::OnRanks::spread).
pub(super) fn spread<'c, T: Number>(
    spread: Spread<'c>,
    matrix: &(dyn Entries + Sync),
) -> Result<OnTiles<'c, QrTiles>, ClusterError> {
    let Spread { cluster, tiling } = spread;
    let size = |i| tiling.size(i);
    let panels = (0..tiling.n_tiles()).map(|k| ((k, k), (size(k), size(k))));
    let factors = tiling.lower_tiles().map(|(i, k)| ((i, k), factor_shape(size(k))));
    let data = Data::<T> {
        tiling,
        matrix: spread.arrays(matrix, tiling.square_tiles())?,
        panels: spread.zero_arrays(panels)?,
        factors: spread.zero_arrays(factors)?,
    };
    let tasks = Tasks::new(cluster.runtime(), tiling);
    Ok(OnTiles::new(flops::qr(tiling.order()), Spreading { spread, data, tasks }))
}

/// The tiles among ranks.
struct Spreading<'c, T: Number> {
    spread: Spread<'c>,
    data: Data<T>,
    tasks: Tasks<T>,
}

impl<T: Number> Work<QrTiles> for Spreading<'_, T> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spread { cluster, tiling } = self.spread;
        qr_steps(tiling.n_tiles()).try_for_each(|step| self.tasks.submit(cluster, step, &self.data))
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn gather(self: Box<Self>) -> Result<Option<QrTiles>, ClusterError> {
        let Spreading { spread, data: Data { tiling, matrix, panels, factors }, .. } = *self;
        let size = |i| tiling.size(i);
        let matrix = spread.gathered_arrays(matrix, tiling.square_tiles().map(|(i, j)| (size(i), size(j))))?;
        let panels = spread.gathered_arrays(panels, (0..tiling.n_tiles()).map(|k| (size(k), size(k))))?;
        let factors = spread.gathered_arrays(factors, tiling.lower_tiles().map(|(_, k)| factor_shape(size(k))))?;
        Ok(matrix.zip(panels).zip(factors).map(|((matrix, panels), factors)| {
            let matrix = SquareTiles::from_tiles(tiling, matrix);
            QrTiles { matrix, panels, factors }
        }))
    }
}

/// The tiles as data of a runtime.
struct Data<T> {
    tiling: Tiling,
    matrix: Vec<ArrayHandle<T>>,
    panels: Vec<ArrayHandle<T>>,
    factors: Vec<ArrayHandle<T>>,
}

impl<T> Data<T> {
    fn tile(&self, i: usize, j: usize) -> &ArrayHandle<T> {
        &self.matrix[self.tiling.square_index(i, j)]
    }

    fn factor(&self, i: usize, k: usize) -> &ArrayHandle<T> {
        &self.factors[self.tiling.lower_index(i, k)]
    }
}

/// The codelets.
struct Tasks<T: Number> {
    geqrt: Codelet<Geqrt<T>, QrStep>,
    unmqr: Codelet<Unmqr<T>, QrStep>,
    tsqrt: Codelet<Tsqrt<T>, QrStep>,
    tsmqr: Codelet<Tsmqr<T>, QrStep>,
}

/// Rows of the tiles of a step: the reflectors of column k of tiles, in row i, applied to column j.
#[derive(Clone, Copy)]
struct Sizes {
    i: usize,
    j: usize,
    k: usize,
}

impl Sizes {
    fn of(tiling: Tiling, step: QrStep) -> Sizes {
        let (i, j, k) = match step {
            QrStep::Geqrt { k } => (k, k, k),
            QrStep::Unmqr { k, j } => (k, j, k),
            QrStep::Tsqrt { k, i } => (i, k, k),
            QrStep::Tsmqr { k, i, j } => (i, j, k),
        };
        Sizes { i: tiling.size(i), j: tiling.size(j), k: tiling.size(k) }
    }
}

/// The factor T of `n` reflectors.
fn factor<T: Number>(n: usize, values: &[T]) -> TileRef<'_, T> {
    let (rows, columns) = factor_shape(n);
    TileRef::new(rows, columns, values)
}

fn factor_mut<T: Number>(n: usize, values: &mut [T]) -> TileMut<'_, T> {
    let (rows, columns) = factor_shape(n);
    TileMut::new(rows, columns, values)
}

/// A call with a group for each block of columns.
fn over_columns(columns: usize) -> KernelCall {
    KernelCall::over([GROUP.0, columns.div_ceil(GROUP.1).max(1)]).group([GROUP.0, 1])
}

impl<T: Number> Tasks<T> {
    fn new(runtime: &Runtime, tiling: Tiling) -> Tasks<T> {
        let codelets = Codelets::new(runtime, &KERNELS, T::PRECISION);
        let geqrt = codelets.on_cores::<Geqrt<T>, QrStep>("geqrt").cpu("faer", move |context, (a, v, t)| {
            let Sizes { k, .. } = Sizes::of(tiling, *context.params);
            on_core::geqrt(TileMut::new(k, k, a), TileMut::new(k, k, v), factor_mut(k, t));
        });
        let tsqrt = codelets.on_cores::<Tsqrt<T>, QrStep>("tsqrt").cpu("faer", move |context, (r, a, t)| {
            let Sizes { i, k, .. } = Sizes::of(tiling, *context.params);
            on_core::tsqrt(TileMut::new(k, k, r), TileMut::new(i, k, a), factor_mut(k, t));
        });
        Tasks {
            geqrt: geqrt.build(),
            unmqr: unmqr(&codelets, tiling),
            tsqrt: tsqrt.build(),
            tsmqr: tsmqr(&codelets, tiling),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: QrStep, data: &Data<T>) -> Result<(), S::Error> {
        let urgency = i32::try_from(step.priority(data.tiling.n_tiles())).unwrap_or(i32::MAX);
        match step {
            QrStep::Geqrt { k } => {
                let named = (data.tile(k, k), &data.panels[k], data.factor(k, k));
                place.submit(&self.geqrt, step, named, urgency)
            }
            QrStep::Unmqr { k, j } => {
                let named = (&data.panels[k], data.factor(k, k), data.tile(k, j));
                place.submit(&self.unmqr, step, named, urgency)
            }
            QrStep::Tsqrt { k, i } => {
                let named = (data.tile(k, k), data.tile(i, k), data.factor(i, k));
                place.submit(&self.tsqrt, step, named, urgency)
            }
            QrStep::Tsmqr { k, i, j } => {
                let named = (data.tile(i, k), data.factor(i, k), data.tile(k, j), data.tile(i, j));
                place.submit(&self.tsmqr, step, named, urgency)
            }
        }
    }
}

fn unmqr<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<Unmqr<T>, QrStep> {
    codelets.everywhere(
        "unmqr",
        "unmqr",
        |codelet| {
            codelet.cpu("faer", move |context, (v, t, c)| {
                let Sizes { j, k, .. } = Sizes::of(tiling, *context.params);
                on_core::unmqr(TileRef::new(k, k, v), factor(k, t), TileMut::new(k, j, c), Apply::Transposed);
            })
        },
        move |step, (v, t, c)| {
            let Sizes { j, k, .. } = Sizes::of(tiling, *step);
            let call = tile(tile(over_columns(j), &v, k), &t, factor_shape(k).0);
            sizes(tile(call, &c, k), [k, j])
        },
        None,
    )
}

fn tsmqr<T: Number>(codelets: &Codelets<'_>, tiling: Tiling) -> Codelet<Tsmqr<T>, QrStep> {
    codelets.everywhere(
        "tsmqr",
        "tsmqr",
        |codelet| {
            codelet.cpu("faer", move |context, (v, t, c1, c2)| {
                let Sizes { i, j, k } = Sizes::of(tiling, *context.params);
                let (c1, c2) = (TileMut::new(k, j, c1), TileMut::new(i, j, c2));
                on_core::tsmqr(TileRef::new(i, k, v), factor(k, t), c1, c2, Apply::Transposed);
            })
        },
        move |step, (v, t, c1, c2)| {
            let Sizes { i, j, k } = Sizes::of(tiling, *step);
            let call = tile(tile(over_columns(j), &v, i), &t, factor_shape(k).0);
            sizes(tile(tile(call, &c1, k), &c2, i), [i, k, j])
        },
        None,
    )
}
