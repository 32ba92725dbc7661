//! Factorisations on several ranks: tiles are dealt to the ranks in turn, each task runs where the tile is that it
//! writes.

use super::figures::Figures;
use super::{Factored, Workload, make_tiles};
use crate::linalg::{Entries, Number, Precision, Tile, Tiling};
use sched_cluster::{Cluster, ClusterError};
use sched_runtime::context::SchedContext;
use sched_runtime::{AccessList, ArrayHandle, Codelet, Data, Handle, Runtime, SubmitError};
use std::time::Instant;

/// A factorisation that several ranks do together.
pub trait OnRanks: Workload {
    /// Makes the tiles of a matrix on the ranks that own them, with numbers of this precision. All ranks call it.
    ///
    /// # Errors
    /// What fails on one rank fails on all, with the same word.
    ///
    /// # Panics
    /// If `tile_size` is 0.
    fn spread<'c>(
        cluster: &'c Cluster,
        matrix: &(dyn Entries + Sync),
        tile_size: usize,
        precision: Precision,
    ) -> Result<OnTiles<'c, Self::Factors>, ClusterError>;

    /// Makes the tiles of a matrix on the ranks that own them, factorises it, and gathers the factors on rank 0. Each
    /// rank gets its own figures. All ranks call it.
    ///
    /// # Errors
    /// What fails on one rank fails on all, with the same word.
    ///
    /// # Panics
    /// If `tile_size` is 0.
    fn run_on(
        cluster: &Cluster,
        matrix: &(dyn Entries + Sync),
        tile_size: usize,
    ) -> Result<Factored<Option<Self::Factors>>, ClusterError> {
        let spread = Self::spread(cluster, matrix, tile_size, Precision::Double)?;
        let Factored { factors, figures } = run_each(cluster, vec![(cluster.runtime().default_context(), spread)])?;
        Ok(Factored { factors: factors.into_iter().next().flatten(), figures })
    }
}

/// A factorisation whose tiles are on the ranks that own them.
pub struct OnTiles<'c, F> {
    /// Operations.
    flops: f64,
    work: Box<dyn Work<F> + 'c>,
}

impl<'c, F> OnTiles<'c, F> {
    pub(super) fn new(flops: f64, work: impl Work<F> + 'c) -> OnTiles<'c, F> {
        OnTiles { flops, work: Box::new(work) }
    }
}

/// What a factorisation on ranks does. All ranks call each of these.
pub(super) trait Work<F> {
    /// Submits its tasks.
    fn submit(&self) -> Result<(), ClusterError>;

    /// Why there is no result, where a task has found that out.
    fn failure(&self) -> Option<String>;

    /// Takes the tiles out of the cluster, and makes factors of them on rank 0.
    fn gather(self: Box<Self>) -> Result<Option<F>, ClusterError>;
}

/// Factorises several matrices at once, each in a scheduling context of this rank, and gathers their factors on rank 0.
/// Each rank gets its own figures, of all of them. All ranks call it, with their own contexts.
///
/// # Errors
/// What fails on one rank fails on all, with the same word.
pub fn run_each<F>(
    cluster: &Cluster,
    all: Vec<(SchedContext, OnTiles<'_, F>)>,
) -> Result<Factored<Vec<Option<F>>>, ClusterError> {
    cluster.wait_all()?;
    let before = cluster.runtime().stats();
    let began = Instant::now();
    for (context, on_tiles) in &all {
        context.with(|| on_tiles.work.submit())?;
    }
    cluster.wait_all()?;
    let makespan = began.elapsed();
    let flops = all.iter().map(|(_, on_tiles)| on_tiles.flops).sum();
    let figures = Figures::between(&before, &cluster.runtime().stats(), makespan, flops);
    for (_, on_tiles) in &all {
        agree(cluster, on_tiles.work.failure())?;
    }
    let factors = all.into_iter().map(|(_, on_tiles)| on_tiles.work.gather()).collect::<Result<_, _>>()?;
    Ok(Factored { factors, figures })
}

/// Whether there is a result on all ranks; otherwise the reason of the rank that has one.
fn agree(cluster: &Cluster, failure: Option<String>) -> Result<(), ClusterError> {
    let words = cluster.exchange(failure.unwrap_or_default().as_bytes())?;
    match words.iter().find(|word| !word.is_empty()) {
        None => Ok(()),
        Some(word) => Err(ClusterError::Failed(vec![String::from_utf8_lossy(word).into_owned()])),
    }
}

/// Where tasks are submitted: to one runtime, or on all ranks.
pub(super) trait Submit {
    type Error;

    fn submit<'t, L: AccessList, P: Send + 'static>(
        &'t self,
        codelet: &'t Codelet<L, P>,
        params: P,
        data: L::Passed<'t>,
        priority: i32,
    ) -> Result<(), Self::Error>;
}

impl Submit for Runtime {
    type Error = SubmitError;

    fn submit<'t, L: AccessList, P: Send + 'static>(
        &'t self,
        codelet: &'t Codelet<L, P>,
        params: P,
        data: L::Passed<'t>,
        priority: i32,
    ) -> Result<(), SubmitError> {
        self.task_with(codelet, params, data).priority(priority).submit().map(drop)
    }
}

impl Submit for Cluster {
    type Error = ClusterError;

    fn submit<'t, L: AccessList, P: Send + 'static>(
        &'t self,
        codelet: &'t Codelet<L, P>,
        params: P,
        data: L::Passed<'t>,
        priority: i32,
    ) -> Result<(), ClusterError> {
        self.submit_with(codelet, params, data, |task| task.priority(priority)).map(drop)
    }
}

/// A tiled matrix among ranks.
#[derive(Clone, Copy)]
pub(super) struct Spread<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) tiling: Tiling,
}

/// A tile by its row and its column.
type Index = (usize, usize);

impl<'c> Spread<'c> {
    pub(super) fn new(cluster: &'c Cluster, matrix: &(dyn Entries + Sync), tile_size: usize) -> Spread<'c> {
        Spread { cluster, tiling: Tiling::new(matrix.order(), tile_size) }
    }

    /// The tiles of a matrix; each rank makes its own.
    pub(super) fn matrix(
        &self,
        matrix: &(dyn Entries + Sync),
        tiles: impl Iterator<Item = Index> + Clone,
    ) -> Result<Vec<Handle<Tile>>, ClusterError> {
        let Spread { cluster, tiling } = *self;
        let owner = |(i, j)| cluster.block_cyclic(i, j);
        let own = tiles.clone().filter(|tile| owner(*tile) == cluster.rank()).collect();
        let mut made = make_tiles(matrix, tiling, own).into_iter();
        let register = |(i, j)| {
            let (rows, cols) = (tiling.size(i), tiling.size(j));
            let own = || made.next().expect("a tile was made for each place");
            cluster.register_on(owner((i, j)), own, move || Tile::zeros(rows, cols))
        };
        tiles.map(register).collect()
    }

    /// Tiles of zeros, each with the place of a tile of the matrix, and its own size.
    pub(super) fn zeros(&self, tiles: impl Iterator<Item = (Index, Index)>) -> Result<Vec<Handle<Tile>>, ClusterError> {
        let register = |((i, j), (rows, cols))| {
            let zeros = move || Tile::zeros(rows, cols);
            self.cluster.register_on(self.cluster.block_cyclic(i, j), zeros, zeros)
        };
        tiles.map(register).collect()
    }

    /// Whether a rank has devices, which hold arrays.
    pub(super) fn has_devices(&self) -> Result<bool, ClusterError> {
        let has = self.cluster.exchange(&[u8::from(!self.cluster.runtime().devices().is_empty())])?;
        Ok(has.iter().any(|has| has == &[1]))
    }

    /// The tiles of a matrix as arrays, rounded to this type; each rank makes its own.
    pub(super) fn arrays<T: Number>(
        &self,
        matrix: &(dyn Entries + Sync),
        tiles: impl Iterator<Item = Index> + Clone,
    ) -> Result<Vec<ArrayHandle<T>>, ClusterError> {
        let Spread { cluster, tiling } = *self;
        let owner = |(i, j)| cluster.block_cyclic(i, j);
        let own = tiles.clone().filter(|tile| owner(*tile) == cluster.rank()).collect();
        let mut made = make_tiles(matrix, tiling, own).into_iter();
        let register = |(i, j)| {
            let own = || made.next().expect("a tile was made for each place").into_values();
            cluster.register_array_on(owner((i, j)), tiling.size(i) * tiling.size(j), own)
        };
        tiles.map(register).collect()
    }

    /// Arrays of zeros, each with the place of a tile of the matrix, and its own size.
    pub(super) fn zero_arrays<T: Number>(
        &self,
        tiles: impl Iterator<Item = (Index, Index)>,
    ) -> Result<Vec<ArrayHandle<T>>, ClusterError> {
        let register = |((i, j), (rows, cols)): (Index, Index)| {
            let zeros = || vec![T::default(); rows * cols];
            self.cluster.register_array_on(self.cluster.block_cyclic(i, j), rows * cols, zeros)
        };
        tiles.map(register).collect()
    }

    /// Arrays as tiles of these shapes, all on rank 0.
    pub(super) fn gathered_arrays<T: Number>(
        &self,
        arrays: Vec<ArrayHandle<T>>,
        shapes: impl Iterator<Item = Index>,
    ) -> Result<Option<Vec<Tile>>, ClusterError> {
        arrays.iter().try_for_each(|array| self.cluster.give(array, 0))?;
        self.cluster.wait_all()?;
        let taken = arrays.into_iter().zip(shapes).map(|(array, (rows, columns))| {
            let values = self.cluster.unregister_array(array)?;
            Ok(values.map(|values| Tile::from_values(rows, columns, &values)))
        });
        // All ranks take all of them out.
        let taken: Vec<Option<Tile>> = taken.collect::<Result<_, ClusterError>>()?;
        Ok(taken.into_iter().collect())
    }

    /// Drops copies of tiles that no later task reads.
    pub(super) fn flush<'t, D: Data + 't>(&self, tiles: impl IntoIterator<Item = &'t D>) -> Result<(), ClusterError> {
        tiles.into_iter().try_for_each(|tile| self.cluster.flush(tile))
    }

    /// All tiles, on rank 0.
    pub(super) fn gathered(&self, tiles: Vec<Handle<Tile>>) -> Result<Option<Vec<Tile>>, ClusterError> {
        tiles.iter().try_for_each(|tile| self.cluster.give(tile, 0))?;
        self.cluster.wait_all()?;
        let taken: Vec<Option<Tile>> =
            tiles.into_iter().map(|tile| self.cluster.unregister(tile)).collect::<Result<_, _>>()?;
        Ok(taken.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{RandomMatrix, RandomSpd, SymmetricMatrix};
    use crate::workload::testing::runtime;
    use crate::workload::{Cholesky, Lu, Qr};
    use std::fmt::Debug;

    fn check<W: OnRanks>(matrix: &(dyn Entries + Sync), tile_size: usize)
    where
        W::Factors: Clone + PartialEq + Debug,
    {
        let alone = W::run(&runtime("tree-eager", 2), W::cut(matrix, tile_size)).expect("there is a result");
        for ranks in [1, 2, 3, 4] {
            let found = Cluster::local(
                ranks,
                |_| Ok(runtime("tree-eager", 2)),
                |cluster| W::run_on(cluster, matrix, tile_size),
            );
            let mut found = found.expect("the ranks start").into_iter().map(|found| found.expect("there is a result"));
            let first = found.next().expect("there is rank 0");
            assert!(first.factors == Some(alone.factors.clone()), "{} on {ranks} ranks", W::NAME);
            let others: Vec<_> = found.collect();
            assert!(others.iter().all(|other| other.factors.is_none()));
            let tasks = others.iter().chain([&first]).map(|rank| rank.figures.tasks).sum::<u64>();
            assert_eq!(tasks, alone.figures.tasks);
        }
    }

    #[test]
    fn the_factors_are_those_of_one_rank_bit_for_bit() {
        check::<Cholesky>(&RandomSpd::new(61, 5), 12);
        check::<Lu>(&RandomMatrix::dominant(61, 5), 12);
        check::<Qr>(&RandomMatrix::uniform(61, 5), 12);
        check::<Cholesky>(&RandomSpd::new(7, 5), 100);
        check::<Qr>(&RandomMatrix::uniform(1, 5), 4);
    }

    #[test]
    fn a_bad_pivot_is_the_word_of_every_rank() {
        let bad = |r, c| if r == c { if r == 30 { -1.0 } else { 1.0 } } else { 0.0 };
        let matrix = SymmetricMatrix::from_lower(40, bad).expect("the order is small");
        let words = Cluster::local(
            3,
            |_| Ok(runtime("tree-eager", 1)),
            |cluster| Cholesky::run_on(cluster, &matrix, 8).map(drop),
        );
        let words = words.expect("the ranks start").into_iter();
        let words: Vec<String> = words.map(|word| word.expect_err("there is no factor").to_string()).collect();
        assert!(words[0].contains("31 rows and columns"), "{}", words[0]);
        assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
    }
}
