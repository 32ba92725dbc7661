//! The tiled Cholesky factorisation as tasks.

use super::figures::Meter;
use super::{Figures, WorkloadError};
use crate::linalg::{NotPositiveDefiniteMatrix, Step, Tile, TiledMatrix, Tiling, cholesky_steps, flops};
use crate::linalg::{gemm, potrf, syrk, trsm};
use crate::runtime::{Codelet, Handle, Read, ReadWrite, Runtime, SubmitError};
use std::sync::{Arc, OnceLock};

/// A matrix that was factored, and how that went.
#[derive(Clone, PartialEq, Debug)]
pub struct Factored {
    /// The Cholesky factor.
    pub factor: TiledMatrix,
    /// The figures of the run.
    pub figures: Figures,
}

/// Replaces the symmetric `matrix` by its Cholesky factor: a task for each of its [`cholesky_steps`], more urgent the
/// longer the chain of tasks behind it is, and ordered by the tiles that they name.
///
/// Only the lower triangle is read, as in [`cholesky_in_place`](crate::linalg::cholesky_in_place).
///
/// # Errors
/// [`WorkloadError::NotPositiveDefinite`] with the row of the bad pivot: the tasks behind it then do nothing.
/// [`WorkloadError::Run`] when nothing moves any more.
pub fn cholesky(runtime: &Runtime, matrix: TiledMatrix) -> Result<Factored, WorkloadError> {
    let tiling = matrix.tiling();
    let register = |tile: Tile| {
        let bytes = tile.bytes() as u64;
        runtime.register_sized(tile, bytes)
    };
    let tiles: Vec<Handle<Tile>> = matrix.into_tiles().into_iter().map(register).collect();
    let bad_pivot = BadPivot::default();
    let kernels = Kernels::new(runtime, tiling, &bad_pivot);

    let meter = Meter::start(runtime);
    for step in cholesky_steps(tiling.n_tiles()) {
        kernels.submit(runtime, step, &tiles)?;
    }
    let ended = runtime.wait_all();
    let figures = meter.stop(flops::cholesky(tiling.order()));
    ended?;
    if let Some(error) = bad_pivot.get() {
        return Err((*error).into());
    }
    let mut factor = Vec::with_capacity(tiles.len());
    for tile in tiles {
        factor.push(runtime.unregister(tile)?.expect("tasks let go of their tiles when they end"));
    }
    Ok(Factored { factor: TiledMatrix::from_tiles(tiling, factor), figures })
}

/// Where the factorisation failed, once it has. Kernels look at it first, so that nothing is done in vain.
type BadPivot = Arc<OnceLock<NotPositiveDefiniteMatrix>>;

/// The tile that a kernel changes alone, with one that it reads, with two.
type Alone = (ReadWrite<Tile>,);
type WithOne = (Read<Tile>, ReadWrite<Tile>);
type WithTwo = (Read<Tile>, Read<Tile>, ReadWrite<Tile>);

/// The codelets.
struct Kernels {
    tiling: Tiling,
    potrf: Codelet<Alone, Step>,
    trsm: Codelet<WithOne, Step>,
    syrk: Codelet<WithOne, Step>,
    gemm: Codelet<WithTwo, Step>,
}

impl Kernels {
    fn new(runtime: &Runtime, tiling: Tiling, bad_pivot: &BadPivot) -> Kernels {
        let failed = || {
            let bad_pivot = Arc::clone(bad_pivot);
            move || bad_pivot.get().is_some()
        };
        let note = Arc::clone(bad_pivot);
        let (trsm_failed, syrk_failed, gemm_failed) = (failed(), failed(), failed());
        Kernels {
            tiling,
            potrf: runtime
                .codelet("potrf")
                .cpu("faer", move |context, (a,)| {
                    // Each of these tasks waits for the one before, so that the first bad pivot is the only one.
                    if note.get().is_none()
                        && let Err(in_tile) = potrf(a)
                    {
                        let (k, _) = Step::writes(context.params);
                        let _ = note.set(NotPositiveDefiniteMatrix::new(tiling, k, in_tile));
                    }
                })
                .build(),
            trsm: runtime
                .codelet("trsm")
                .cpu("faer", move |_, (l, b)| {
                    if !trsm_failed() {
                        trsm(l, b);
                    }
                })
                .build(),
            syrk: runtime
                .codelet("syrk")
                .cpu("faer", move |_, (a, c)| {
                    if !syrk_failed() {
                        syrk(a, c);
                    }
                })
                .build(),
            gemm: runtime
                .codelet("gemm")
                .cpu("faer", move |_, (a, b, c)| {
                    if !gemm_failed() {
                        gemm(a, b, c);
                    }
                })
                .build(),
        }
    }

    fn submit(&self, runtime: &Runtime, step: Step, tiles: &[Handle<Tile>]) -> Result<(), SubmitError> {
        let tile = |(i, j)| &tiles[self.tiling.lower_index(i, j)];
        let urgency = i32::try_from(step.priority(self.tiling.n_tiles())).unwrap_or(i32::MAX);
        let written = tile(step.writes());
        match step {
            Step::Potrf { .. } => runtime.task_with(&self.potrf, step, (written,)).priority(urgency).submit(),
            Step::Trsm { k, .. } => {
                runtime.task_with(&self.trsm, step, (tile((k, k)), written)).priority(urgency).submit()
            }
            Step::Syrk { k, i } => {
                runtime.task_with(&self.syrk, step, (tile((i, k)), written)).priority(urgency).submit()
            }
            Step::Gemm { k, i, j } => {
                runtime.task_with(&self.gemm, step, (tile((i, k)), tile((j, k)), written)).priority(urgency).submit()
            }
        }
        .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{RandomSpd, SymmetricMatrix, cholesky_in_place};
    use crate::plugin::Registry;
    use proptest::prelude::*;
    use sched_components::{
        flow_control::Fifo, resource_mapping::Eager, special_purpose::BestImplementation, worker::Simple,
    };
    use sched_core::Offer;

    fn runtime(policy: &str, workers: usize) -> Runtime {
        let offers =
            vec![Offer::of::<Fifo>(), Offer::of::<Eager>(), Offer::of::<BestImplementation>(), Offer::of::<Simple>()];
        let mut registry = Registry::empty();
        registry.add_builtin("sched-components", offers).expect("the stock components are good");
        let builder = Runtime::builder().registry(Arc::new(registry)).policy(policy).workers(workers);
        builder.build().expect("the shipped policies start")
    }

    #[test]
    fn the_factor_is_that_of_the_sequential_steps_bit_for_bit() {
        for (policy, workers) in [("tree-eager", 1), ("tree-eager", 3), ("tree-eager-prefetching", 2)] {
            let runtime = runtime(policy, workers);
            for (order, tile_size) in [(0, 4), (1, 4), (60, 12), (61, 12), (7, 100)] {
                let mut expected = TiledMatrix::cut(&RandomSpd::new(order, 5), tile_size);
                let factored = cholesky(&runtime, expected.clone()).expect("the matrix is positive definite");
                cholesky_in_place(&mut expected).expect("the matrix is positive definite");
                assert_eq!(factored.factor, expected);
                let steps = cholesky_steps(expected.tiling().n_tiles()).len() as u64;
                let figures = factored.figures;
                assert_eq!(figures.tasks, steps);
                assert_eq!(figures.per_worker.len(), workers);
                let makespan = figures.makespan.as_secs_f64();
                assert!(figures.per_worker.iter().all(|worker| (0.0..=makespan).contains(&worker.busy_s)));
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
            match cholesky(&runtime, TiledMatrix::cut(&matrix, tile_size)) {
                Err(WorkloadError::NotPositiveDefinite(error)) => prop_assert_eq!(error.row, bad + 1),
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert!(cholesky(&runtime, TiledMatrix::cut(&RandomSpd::new(order, 1), tile_size)).is_ok());
        }
    }
}
