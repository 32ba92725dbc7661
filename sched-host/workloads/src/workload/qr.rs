//! The tiled QR factorisation as tasks.

pub(super) mod on_arrays;

use super::figures::run_measured;
use super::ranks::{OnRanks, OnTiles, Spread, Submit, Work};
use super::{AnyMatrix, Factored, Workload, WorkloadError, make_tiles, register, sum_up, take_back};
use crate::linalg::{Apply, INNER, Precision, QrStep, QrTiles, factor_shape, flops, orthogonality, qr_norms, qr_steps};
use crate::linalg::{Entries, MatrixMarketError, RandomMatrix, ReadLimits, SquareTiles, Tile, Tiling, read_general};
use crate::linalg::{geqrt, tsmqr, tsqrt, unmqr};
use sched_cluster::{Cluster, ClusterError};
use sched_model::Model;
use sched_runtime::{Codelet, Handle, Read, ReadWrite, Runtime, Write};
use std::path::Path;

/// Replaces any matrix by its QR factorisation: a task for each of its [`qr_steps`], ordered by their accesses to
/// tiles.
///
/// The residual is the larger one of ‖A − Q·R‖ / ‖A‖ and the deviation of Q from orthogonality.
#[derive(Clone, Copy, Debug)]
pub struct Qr;

impl Workload for Qr {
    const NAME: &'static str = "qr";
    const ON_DEVICES: &'static [&'static str] = &["unmqr", "tsmqr"];
    type Tiles = QrTiles;
    type Factors = QrTiles;

    fn random(order: usize, seed: u64) -> AnyMatrix {
        Box::new(RandomMatrix::uniform(order, seed))
    }

    fn read(path: &Path, limits: ReadLimits) -> Result<AnyMatrix, MatrixMarketError> {
        Ok(Box::new(read_general(path, limits)?))
    }

    fn tasks(n: f64) -> f64 {
        n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    }

    fn numbers(n: f64, tile_size: f64) -> f64 {
        let factors = n * (n + 1.0) / 2.0 * tile_size * tile_size.min(INNER as f64);
        n * (n + 1.0) * tile_size.powi(2) + factors
    }

    fn cut(matrix: &(dyn Entries + Sync), tile_size: usize) -> QrTiles {
        let tiling = Tiling::new(matrix.order(), tile_size);
        let tiles = make_tiles(matrix, tiling, tiling.square_tiles().collect());
        QrTiles::new(SquareTiles::from_tiles(tiling, tiles))
    }

    fn run_in(runtime: &Runtime, matrix: QrTiles, precision: Precision) -> Result<Factored<QrTiles>, WorkloadError> {
        match precision {
            Precision::Single => return on_arrays::run::<f32>(runtime, matrix),
            Precision::Double if !runtime.devices().is_empty() => return on_arrays::run::<f64>(runtime, matrix),
            Precision::Double => {}
        }
        let tiling = matrix.tiling();
        let data = Data {
            tiling,
            matrix: register(runtime, matrix.matrix.into_tiles()),
            panels: register(runtime, matrix.panels),
            factors: register(runtime, matrix.factors),
        };
        let kernels = Kernels::new(runtime);
        let submit = || qr_steps(tiling.n_tiles()).try_for_each(|step| kernels.submit(runtime, step, &data));
        let figures = run_measured(runtime, flops::qr(tiling.order()), submit)?;
        let factors = QrTiles {
            matrix: SquareTiles::from_tiles(tiling, take_back(runtime, data.matrix)?),
            panels: take_back(runtime, data.panels)?,
            factors: take_back(runtime, data.factors)?,
        };
        Ok(Factored { factors, figures })
    }

    fn residual(matrix: &(dyn Entries + Sync), factors: &QrTiles) -> f64 {
        let residual = sum_up((0..factors.tiling().n_tiles()).collect(), |j| qr_norms(matrix, factors, j));
        let orthogonality = orthogonality(factors);
        // Not `max`, which would ignore a NaN.
        if residual <= orthogonality { orthogonality } else { residual + 0.0 * orthogonality }
    }
}

impl OnRanks for Qr {
    fn spread<'c>(
        cluster: &'c Cluster,
        matrix: &(dyn Entries + Sync),
        tile_size: usize,
        precision: Precision,
    ) -> Result<OnTiles<'c, QrTiles>, ClusterError> {
        let spread = Spread::new(cluster, matrix, tile_size);
        if precision == Precision::Single {
            return on_arrays::spread::<f32>(spread, matrix);
        }
        if spread.has_devices()? {
            return on_arrays::spread::<f64>(spread, matrix);
        }
        let tiling = spread.tiling;
        let panels = (0..tiling.n_tiles()).map(|k| ((k, k), (tiling.size(k), tiling.size(k))));
        let factors = tiling.lower_tiles().map(|(i, k)| ((i, k), factor_shape(tiling.size(k))));
        let data = Data {
            tiling,
            matrix: spread.matrix(matrix, tiling.square_tiles())?,
            panels: spread.zeros(panels)?,
            factors: spread.zeros(factors)?,
        };
        let kernels = Kernels::new(cluster.runtime());
        Ok(OnTiles::new(flops::qr(tiling.order()), Spreading { spread, data, kernels }))
    }
}

/// The tiles among ranks.
struct Spreading<'c> {
    spread: Spread<'c>,
    data: Data,
    kernels: Kernels,
}

impl Work<QrTiles> for Spreading<'_> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spreading { spread, data, kernels } = self;
        let n = spread.tiling.n_tiles();
        qr_steps(n).try_for_each(|step| {
            if let QrStep::Geqrt { k } = step
                && let Some(before) = k.checked_sub(1)
            {
                // Nobody reads that column and that row any more.
                let column = (before..n).flat_map(|i| [data.tile(i, before), data.factor(i, before)]);
                let row = (k..n).map(|j| data.tile(before, j));
                spread.flush(column.chain(row).chain([&data.panels[before]]))?;
            }
            kernels.submit(spread.cluster, step, data)
        })
    }

    fn failure(&self) -> Option<String> {
        None
    }

    fn gather(self: Box<Self>) -> Result<Option<QrTiles>, ClusterError> {
        let Spreading { spread, data, .. } = *self;
        let (matrix, panels) = (spread.gathered(data.matrix)?, spread.gathered(data.panels)?);
        let parts = matrix.zip(panels).zip(spread.gathered(data.factors)?);
        Ok(parts.map(|((matrix, panels), factors)| {
            let matrix = SquareTiles::from_tiles(spread.tiling, matrix);
            QrTiles { matrix, panels, factors }
        }))
    }
}

/// The tiles as data of a runtime.
struct Data {
    tiling: Tiling,
    matrix: Vec<Handle<Tile>>,
    panels: Vec<Handle<Tile>>,
    factors: Vec<Handle<Tile>>,
}

impl Data {
    fn tile(&self, i: usize, j: usize) -> &Handle<Tile> {
        &self.matrix[self.tiling.square_index(i, j)]
    }

    fn factor(&self, i: usize, k: usize) -> &Handle<Tile> {
        &self.factors[self.tiling.lower_index(i, k)]
    }
}

/// The accesses of each kernel, in the order of its arguments.
type Geqrt = (ReadWrite<Tile>, Write<Tile>, Write<Tile>);
type Unmqr = (Read<Tile>, Read<Tile>, ReadWrite<Tile>);
type Tsqrt = (ReadWrite<Tile>, ReadWrite<Tile>, Write<Tile>);
type Tsmqr = (Read<Tile>, Read<Tile>, ReadWrite<Tile>, ReadWrite<Tile>);

/// The codelets. The reflectors of a diagonal tile are stored in a separate tile, so that the panel below can continue
/// with the diagonal tile while the reflectors are still being applied to the row.
struct Kernels {
    geqrt: Codelet<Geqrt, QrStep>,
    unmqr: Codelet<Unmqr, QrStep>,
    tsqrt: Codelet<Tsqrt, QrStep>,
    tsmqr: Codelet<Tsmqr, QrStep>,
}

impl Kernels {
    fn new(runtime: &Runtime) -> Kernels {
        Kernels {
            geqrt: runtime
                .codelet("geqrt")
                .model(Model::history("qr_geqrt"))
                .cpu("faer", |_, (a, v, t)| geqrt(a, v, t))
                .build(),
            unmqr: runtime
                .codelet("unmqr")
                .model(Model::history("qr_unmqr"))
                .cpu("faer", |_, (v, t, c)| unmqr(v, t, c, Apply::Transposed))
                .build(),
            tsqrt: runtime
                .codelet("tsqrt")
                .model(Model::history("qr_tsqrt"))
                .cpu("faer", |_, (r, a, t)| tsqrt(r, a, t))
                .build(),
            tsmqr: runtime
                .codelet("tsmqr")
                .model(Model::history("qr_tsmqr"))
                .cpu("faer", |_, (v, t, c1, c2)| tsmqr(v, t, c1, c2, Apply::Transposed))
                .build(),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: QrStep, data: &Data) -> Result<(), S::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::qr_in_place;
    use crate::workload::testing::{check_figures, runtime};

    #[test]
    fn the_factors_are_those_of_the_sequential_steps_bit_for_bit() {
        for (policy, workers) in [("tree-eager", 1), ("tree-eager", 3), ("tree-eager-prefetching", 2)] {
            let runtime = runtime(policy, workers);
            for (order, tile_size) in [(0, 4), (1, 4), (60, 12), (61, 40), (7, 100)] {
                let a = RandomMatrix::uniform(order, 5);
                let mut expected = QrTiles::new(SquareTiles::cut(&a, tile_size));
                assert_eq!(Qr::cut(&a, tile_size), expected);
                let factored = Qr::run(&runtime, expected.clone()).expect("every matrix has the factors");
                qr_in_place(&mut expected);
                assert_eq!(factored.factors, expected);
                assert!(Qr::residual(&a, &expected) <= Qr::tolerance(order));
                check_figures::<Qr>(&factored.figures, expected.tiling(), workers);
            }
        }
    }

    #[test]
    fn a_wrong_result_is_not_taken_for_a_right_one() {
        let a = RandomMatrix::uniform(60, 5);
        let mut right = Qr::cut(&a, 20);
        qr_in_place(&mut right);
        // Checking A − Q·R alone would miss a wrong factor that makes Q wrong.
        for wrong in [0.5, f64::NAN] {
            for change in [0, 1, 2] {
                let mut factors = right.clone();
                let tile = match change {
                    0 => factors.matrix.tile_mut(0, 2),
                    1 => &mut factors.panels[1],
                    _ => &mut factors.factors[1],
                };
                let (r, c) = if change == 1 { (3, 1) } else { (1, 3) };
                tile.set(r, c, tile.get(r, c) + wrong);
                let passes = Qr::residual(&a, &factors) <= Qr::tolerance(60);
                assert!(!passes, "{wrong} in {change}");
            }
        }
    }
}
