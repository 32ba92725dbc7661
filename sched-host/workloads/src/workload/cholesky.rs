//! The tiled Cholesky factorisation as tasks.

pub(crate) mod on_arrays;

use super::arrays::cuda_math;
use super::elimination::{Alone, Elimination, WithOne, WithTwo};
use super::figures::run_measured;
use super::ranks::{OnRanks, OnTiles, Spread, Submit, Work};
use super::{AnyMatrix, Factored, Workload, WorkloadError, make_tiles, register, sum_up, take_back};
use crate::linalg::{
    CholeskyStep, LowerTiles, NotPositiveDefiniteMatrix, Precision, Tile, Tiling, cholesky_steps, flops,
};
use crate::linalg::{Entries, MatrixMarketError, RandomSpd, ReadLimits, read_symmetric, tile_norms};
use crate::linalg::{gemm, potrf, syrk, trsm};
use sched_cluster::{Cluster, ClusterError};
use sched_runtime::{Codelet, Handle, Runtime};
use std::path::Path;

/// Replaces a symmetric positive definite matrix by its Cholesky factor: a task for each of its [`cholesky_steps`],
/// ordered by their accesses to tiles.
///
/// Only the lower triangle is read, as in [`cholesky_in_place`](crate::linalg::cholesky_in_place). A bad pivot is
/// reported as [`WorkloadError::NotPositiveDefinite`] with its row; the tasks that depend on it do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Cholesky;

impl Workload for Cholesky {
    const NAME: &'static str = "cholesky";
    const ON_DEVICES: &'static [&'static str] = &["trsm", "syrk", "gemm"];
    type Tiles = LowerTiles;
    type Factors = LowerTiles;

    fn random(order: usize, seed: u64) -> AnyMatrix {
        Box::new(RandomSpd::new(order, seed))
    }

    fn read(path: &Path, limits: ReadLimits) -> Result<AnyMatrix, MatrixMarketError> {
        Ok(Box::new(read_symmetric(path, limits)?))
    }

    fn tasks(n: f64) -> f64 {
        n * (n + 1.0) * (n + 2.0) / 6.0
    }

    fn numbers(n: f64, tile_size: f64) -> f64 {
        n * (n + 1.0) / 2.0 * tile_size.powi(2)
    }

    fn cut(matrix: &(dyn Entries + Sync), tile_size: usize) -> LowerTiles {
        let tiling = Tiling::new(matrix.order(), tile_size);
        LowerTiles::from_tiles(tiling, make_tiles(matrix, tiling, tiling.lower_tiles().collect()))
    }

    fn run_in(
        runtime: &Runtime,
        matrix: LowerTiles,
        precision: Precision,
    ) -> Result<Factored<LowerTiles>, WorkloadError> {
        let everywhere = || on_arrays::Choice { only: None, math: cuda_math(runtime) };
        match precision {
            Precision::Single => return on_arrays::run::<f32>(runtime, matrix, everywhere()),
            Precision::Double if !runtime.devices().is_empty() => {
                return on_arrays::run::<f64>(runtime, matrix, everywhere());
            }
            Precision::Double => {}
        }
        let tiling = matrix.tiling();
        let tiles = register(runtime, matrix.into_tiles());
        let elimination = Elimination::new(runtime, Self::NAME);
        let kernels = Kernels::new(&elimination, tiling);
        let submit = || cholesky_steps(tiling.n_tiles()).try_for_each(|step| kernels.submit(runtime, step, &tiles));
        let figures = run_measured(runtime, flops::cholesky(tiling.order()), submit)?;
        if let Some(error) = elimination.failure() {
            return Err((*error).into());
        }
        Ok(Factored { factors: LowerTiles::from_tiles(tiling, take_back(runtime, tiles)?), figures })
    }

    fn residual(matrix: &(dyn Entries + Sync), factor: &LowerTiles) -> f64 {
        sum_up(factor.tiling().lower_tiles().collect(), |(i, j)| tile_norms(matrix, factor, i, j))
    }
}

impl OnRanks for Cholesky {
    fn spread<'c>(
        cluster: &'c Cluster,
        matrix: &(dyn Entries + Sync),
        tile_size: usize,
        precision: Precision,
    ) -> Result<OnTiles<'c, LowerTiles>, ClusterError> {
        let spread = Spread::new(cluster, matrix, tile_size);
        if precision == Precision::Single {
            return on_arrays::spread::<f32>(spread, matrix);
        }
        if spread.has_devices()? {
            return on_arrays::spread::<f64>(spread, matrix);
        }
        let tiling = spread.tiling;
        let tiles = spread.matrix(matrix, tiling.lower_tiles())?;
        let elimination = Elimination::new(cluster.runtime(), Self::NAME);
        let kernels = Kernels::new(&elimination, tiling);
        Ok(OnTiles::new(flops::cholesky(tiling.order()), Spreading { spread, tiles, elimination, kernels }))
    }
}

/// The tiles among ranks.
struct Spreading<'c> {
    spread: Spread<'c>,
    tiles: Vec<Handle<Tile>>,
    elimination: Elimination<'c, NotPositiveDefiniteMatrix>,
    kernels: Kernels,
}

impl Work<LowerTiles> for Spreading<'_> {
    fn submit(&self) -> Result<(), ClusterError> {
        let Spreading { spread: Spread { cluster, tiling }, tiles, kernels, .. } = self;
        let n = tiling.n_tiles();
        cholesky_steps(n).try_for_each(|step| {
            if let CholeskyStep::Potrf { k } = step
                && let Some(before) = k.checked_sub(1)
            {
                // Nobody reads that column any more.
                self.spread.flush((before..n).map(|i| &tiles[tiling.lower_index(i, before)]))?;
            }
            kernels.submit(*cluster, step, tiles)
        })
    }

    fn failure(&self) -> Option<String> {
        self.elimination.failure().map(ToString::to_string)
    }

    fn gather(self: Box<Self>) -> Result<Option<LowerTiles>, ClusterError> {
        let tiles = self.spread.gathered(self.tiles)?;
        Ok(tiles.map(|tiles| LowerTiles::from_tiles(self.spread.tiling, tiles)))
    }
}

/// The codelets.
struct Kernels {
    tiling: Tiling,
    potrf: Codelet<Alone, CholeskyStep>,
    trsm: Codelet<WithOne, CholeskyStep>,
    syrk: Codelet<WithOne, CholeskyStep>,
    gemm: Codelet<WithTwo, CholeskyStep>,
}

impl Kernels {
    fn new(elimination: &Elimination<'_, NotPositiveDefiniteMatrix>, tiling: Tiling) -> Kernels {
        Kernels {
            tiling,
            potrf: elimination.pivot("potrf", move |step: &CholeskyStep, tile| {
                potrf(tile).map_err(|in_tile| NotPositiveDefiniteMatrix::new(tiling, step.writes().0, in_tile))
            }),
            trsm: elimination.with_one("trsm", trsm),
            syrk: elimination.with_one("syrk", syrk),
            gemm: elimination.with_two("gemm", gemm),
        }
    }

    fn submit<S: Submit>(&self, place: &S, step: CholeskyStep, tiles: &[Handle<Tile>]) -> Result<(), S::Error> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{self, SymmetricMatrix, cholesky_in_place};
    use crate::workload::testing::{check_figures, runtime};
    use proptest::prelude::*;

    #[test]
    fn the_factor_is_that_of_the_sequential_steps_bit_for_bit() {
        for (policy, workers) in [("tree-eager", 1), ("tree-eager", 3), ("tree-eager-prefetching", 2)] {
            let runtime = runtime(policy, workers);
            for (order, tile_size) in [(0, 4), (1, 4), (60, 12), (61, 12), (7, 100)] {
                let a = RandomSpd::new(order, 5);
                let mut expected = LowerTiles::cut(&a, tile_size);
                assert_eq!(Cholesky::cut(&a, tile_size), expected);
                let factored = Cholesky::run(&runtime, expected.clone()).expect("the matrix is positive definite");
                cholesky_in_place(&mut expected).expect("the matrix is positive definite");
                assert_eq!(factored.factors, expected);
                assert_eq!(Cholesky::residual(&a, &expected), linalg::residual(&a, &expected));
                check_figures::<Cholesky>(&factored.figures, expected.tiling(), workers);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_bad_pivot_is_named_by_its_row_and_the_runtime_can_be_used_on(order in 1usize..50, tile_size in 1usize..20, at in any::<prop::sample::Index>()) {
            let bad = at.index(order);
            let matrix = SymmetricMatrix::from_lower(order, |r, c| match r == c {
                true if r == bad => -1.0,
                true => 1.0,
                false => 0.0,
            }).unwrap();
            let runtime = runtime("tree-eager", 2);
            match Cholesky::run(&runtime, LowerTiles::cut(&matrix, tile_size)) {
                Err(WorkloadError::NotPositiveDefinite(error)) => prop_assert_eq!(error.row, bad + 1),
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert!(Cholesky::run(&runtime, LowerTiles::cut(&RandomSpd::new(order, 1), tile_size)).is_ok());
        }
    }
}
