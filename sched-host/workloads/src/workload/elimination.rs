//! Factorisations that eliminate by pivots and stop at a bad one: the common part of the tasks of Cholesky and LU.

use crate::linalg::Tile;
use sched_model::Model;
use sched_runtime::{AccessList, Codelet, CodeletBuilder, Read, ReadWrite, Runtime};
use std::sync::{Arc, OnceLock};

/// Accesses of kernels that modify one tile: alone, with one read tile, or with two.
pub(super) type Alone = (ReadWrite<Tile>,);
pub(super) type WithOne = (Read<Tile>, ReadWrite<Tile>);
pub(super) type WithTwo = (Read<Tile>, Read<Tile>, ReadWrite<Tile>);

/// One factorisation. After a failure its kernels do nothing, to save the work.
pub(super) struct Elimination<'a, E> {
    runtime: &'a Runtime,
    workload: &'static str,
    failure: Arc<OnceLock<E>>,
}

impl<'a, E: Send + Sync + 'static> Elimination<'a, E> {
    pub(super) fn new(runtime: &'a Runtime, workload: &'static str) -> Self {
        Elimination { runtime, workload, failure: Arc::default() }
    }

    /// The failure, if any.
    pub(super) fn failure(&self) -> Option<&E> {
        self.failure.get()
    }

    /// A codelet whose model is named after workload and kernel, such as `lu_gemm`.
    fn codelet<L: AccessList, S: Send + 'static>(&self, kernel: &str) -> CodeletBuilder<L, S> {
        self.runtime.codelet(kernel).model(Model::history(format!("{}_{kernel}", self.workload)))
    }

    /// A codelet that factors a diagonal tile.
    pub(super) fn pivot<S: Send + 'static>(
        &self,
        kernel: &str,
        factor: impl Fn(&S, &mut Tile) -> Result<(), E> + Send + Sync + 'static,
    ) -> Codelet<Alone, S> {
        let failure = Arc::clone(&self.failure);
        let kernel = self.codelet(kernel).cpu("faer", move |context, (tile,)| {
            // Each of these tasks waits for the previous one, so the first bad pivot is the only one.
            if failure.get().is_none()
                && let Err(error) = factor(context.params, tile)
            {
                let _ = failure.set(error);
            }
        });
        kernel.build()
    }

    /// A codelet that modifies a tile and reads another one.
    pub(super) fn with_one<S: Send + 'static>(
        &self,
        kernel: &str,
        change: fn(&Tile, &mut Tile),
    ) -> Codelet<WithOne, S> {
        let failure = Arc::clone(&self.failure);
        let kernel = self.codelet(kernel).cpu("faer", move |_, (a, changed)| {
            if failure.get().is_none() {
                change(a, changed);
            }
        });
        kernel.build()
    }

    /// A codelet that modifies a tile and reads two others.
    pub(super) fn with_two<S: Send + 'static>(
        &self,
        kernel: &str,
        change: fn(&Tile, &Tile, &mut Tile),
    ) -> Codelet<WithTwo, S> {
        let failure = Arc::clone(&self.failure);
        let kernel = self.codelet(kernel).cpu("faer", move |_, (a, b, changed)| {
            if failure.get().is_none() {
                change(a, b, changed);
            }
        });
        kernel.build()
    }
}
