//! The tiled LU factorisation without pivoting as tasks.

pub(super) mod on_arrays;

use super::elimination::{Alone, Elimination, WithOne, WithTwo};
use super::figures::run_measured;
use super::ranks::{OnRanks, OnTiles, Spread, Submit, Work};
use super::{AnyMatrix, Factored, Workload, WorkloadError, make_tiles, out_of_range, register, sum_up, take_back};
use crate::linalg::{Entries, MatrixMarketError, RandomMatrix, ReadLimits, SquareTiles, Tile, Tiling, read_general};
use crate::linalg::{LuStep, NoLuFactors, Precision, check_dominance, flops, lu_norms, lu_steps};
use crate::linalg::{gemm_nn, getrf, trsm_column, trsm_row};
use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Codelet, Handle, Runtime};
use std::path::Path;

/// Replaces a matrix by its LU factors, without pivoting: a task for each of its [`lu_steps`], ordered by their
/// accesses to tiles.
///
/// This certainly succeeds if the matrix is diagonally dominant. A zero pivot is reported as
/// [`WorkloadError::ZeroPivot`] with its row; the tasks that depend on it do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Lu;

impl Workload for Lu {
    const NAME: &'static str = "lu";
    const ON_DEVICES: &'static [&'static str] = &["trsm_row", "trsm_column", "gemm"];
    type Tiles = SquareTiles;
    type Factors = SquareTiles;

    fn random(order: usize, seed: u64) -> AnyMatrix {
        Box::new(RandomMatrix::dominant(order, seed))
    }

    fn read(path: &Path, limits: ReadLimits) -> Result<AnyMatrix, MatrixMarketError> {
        Ok(Box::new(read_general(path, limits)?))
    }

    fn tasks(n: f64) -> f64 {
        n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    }

    fn numbers(n: f64, tile_size: f64) -> f64 {
        (n * tile_size).powi(2)
    }

    fn cut(matrix: &(dyn Entries + Sync), tile_size: usize) -> SquareTiles {
        let tiling = Tiling::new(matrix.order(), tile_size);
        SquareTiles::from_tiles(tiling, make_tiles(matrix, tiling, tiling.square_tiles().collect()))
    }

    fn run_in(
        runtime: &Runtime,
        matrix: SquareTiles,
        precision: Precision,
    ) -> Result<Factored<SquareTiles>, WorkloadError> {
        match precision {
            Precision::Single => return on_arrays::run::<f32>(runtime, matrix),
            Precision::Double if !runtime.devices().is_empty() => return on_arrays::run::<f64>(runtime, matrix),
            Precision::Double => {}
        }
        let tiling = matrix.tiling();
        let tiles = register(runtime, matrix.into_tiles());
        let elimination = Elimination::new(runtime, Self::NAME);
        let kernels = Kernels::new(&elimination, tiling);
        let submit = || lu_steps(tiling.n_tiles()).try_for_each(|step| kernels.submit(runtime, step, &tiles));
        let figures = run_measured(runtime, flops::lu(tiling.order()), submit)?;
        if let Some(error) = elimination.failure() {
            return Err((*error).into());
        }
        Ok(Factored { factors: SquareTiles::from_tiles(tiling, take_back(runtime, tiles)?), figures })
    }

    fn residual(matrix: &(dyn Entries + Sync), factors: &SquareTiles) -> f64 {
        sum_up(factors.tiling().square_tiles().collect(), |(i, j)| lu_norms(matrix, factors, i, j))
    }

    fn caveat(matrix: &(dyn Entries + Sync), precision: Precision) -> Option<String> {
        let found = check_dominance(matrix).err();
        let found = found.map(|found| {
            format!("nothing is pivoted, which is sure to go well only where the diagonal dominates; {found}")
        });
        found.or_else(|| out_of_range(matrix, precision))
    }
}

impl OnRanks for Lu {
    fn spread<'c>(
        cluster: &'c Cluster,
        matrix: &(dyn Entries + Sync),
        tile_size: usize,
        precision: Precision,
    ) -> Result<OnTiles<'c, SquareTiles>, ClusterError> {
        let spread = Spread::new(cluster, matrix, tile_size);
        if precision == Precision::Single {
            return on_arrays::spread::<f32>(spread, matrix);
        }
        if spread.has_devices()? {
            return on_arrays::spread::<f64>(spread, matrix);
        }
        let tiling = spread.tiling;
        let tiles = spread.matrix(matrix, tiling.square_tiles())?;
        let elimination = Elimination::new(cluster.runtime(), Self::NAME);
        let kernels = Kernels::new(&elimination, tiling);
        Ok(OnTiles::new(flops::lu(tiling.order()), Spreading { spread, tiles, elimination, kernels }))
    }
}

/// The tiles among ranks.
struct Spreading<'c> {
    spread: Spread<'c>,
    tiles: Vec<Handle<Tile>>,
    elimination: Elimination<'c, NoLuFactors>,
    kernels: Kernels,
}

impl Work<SquareTiles> for Spreading<'_> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spreading { spread: Spread { cluster, tiling }, tiles, kernels, .. } = self;
        let n = tiling.n_tiles();
        lu_steps(n).try_for_each(|step| {
            if let LuStep::Getrf { k } = step
                && let Some(before) = k.checked_sub(1)
            {
                // Nobody reads that column and that row any more.
                let places = (before..n).map(|i| (i, before)).chain((k..n).map(|j| (before, j)));
                self.spread.flush(places.map(|(i, j)| &tiles[tiling.square_index(i, j)]))?;
            }
            kernels.submit(*cluster, step, tiles)
        })
    }

    fn failure(&self) -> Option<String> {
        self.elimination.failure().map(ToString::to_string)
    }

    fn gather(self: Box<Self>) -> Result<Option<SquareTiles>, ClusterError> {
        let tiles = self.spread.gathered(self.tiles)?;
        Ok(tiles.map(|tiles| SquareTiles::from_tiles(self.spread.tiling, tiles)))
    }
}

/// The codelets.
struct Kernels {
    tiling: Tiling,
    getrf: Codelet<Alone, LuStep>,
    trsm_row: Codelet<WithOne, LuStep>,
    trsm_column: Codelet<WithOne, LuStep>,
    gemm: Codelet<WithTwo, LuStep>,
}

impl Kernels {
    fn new(elimination: &Elimination<'_, NoLuFactors>, tiling: Tiling) -> Kernels {
        Kernels {
            tiling,
            getrf: elimination.pivot("getrf", move |step: &LuStep, tile| {
                getrf(tile).map_err(|in_tile| NoLuFactors::new(tiling, step.writes().0, in_tile))
            }),
            trsm_row: elimination.with_one("trsm_row", trsm_row),
            trsm_column: elimination.with_one("trsm_column", trsm_column),
            gemm: elimination.with_two("gemm", gemm_nn),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: LuStep, tiles: &[Handle<Tile>]) -> Result<(), S::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Matrix, lu_in_place};
    use crate::workload::testing::{check_figures, runtime};
    use proptest::prelude::*;

    #[test]
    fn the_factors_are_those_of_the_sequential_steps_bit_for_bit() {
        for (policy, workers) in [("tree-eager", 1), ("tree-eager", 3), ("tree-eager-prefetching", 2)] {
            let runtime = runtime(policy, workers);
            for (order, tile_size) in [(0, 4), (1, 4), (60, 12), (61, 12), (7, 100)] {
                let a = RandomMatrix::dominant(order, 5);
                let mut expected = SquareTiles::cut(&a, tile_size);
                assert_eq!(Lu::cut(&a, tile_size), expected);
                let factored = Lu::run(&runtime, expected.clone()).expect("the diagonal dominates");
                lu_in_place(&mut expected).expect("the diagonal dominates");
                assert_eq!(factored.factors, expected);
                assert!(Lu::residual(&a, &expected) <= Lu::tolerance(order));
                check_figures::<Lu>(&factored.figures, expected.tiling(), workers);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_zero_pivot_is_named_by_its_row_and_the_runtime_can_be_used_on(order in 1usize..50, tile_size in 1usize..20, at in any::<prop::sample::Index>()) {
            let bad = at.index(order);
            let matrix = Matrix::from_fn(order, |r, c| if r == c && r != bad { 1.0 } else { 0.0 }).unwrap();
            let runtime = runtime("tree-eager", 2);
            match Lu::run(&runtime, SquareTiles::cut(&matrix, tile_size)) {
                Err(WorkloadError::ZeroPivot(error)) => prop_assert_eq!(error.row, bad + 1),
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert!(Lu::run(&runtime, Lu::cut(&RandomMatrix::dominant(order, 1), tile_size)).is_ok());
        }
    }
}
