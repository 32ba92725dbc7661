//! Factorisations that eliminate by pivots and stop at a bad one: what the tasks of Cholesky and LU share.

use crate::linalg::Tile;
use sched_model::Model;
use sched_runtime::{AccessList, Codelet, CodeletBuilder, Read, ReadWrite, Runtime};
use std::sync::{Arc, OnceLock};

/// The tile that a kernel changes alone, with one that it reads, with two.
pub(super) type Alone = (ReadWrite<Tile>,);
pub(super) type WithOne = (Read<Tile>, ReadWrite<Tile>);
pub(super) type WithTwo = (Read<Tile>, Read<Tile>, ReadWrite<Tile>);

/// One factorisation. Once it has failed its kernels do nothing, so that nothing is done in vain.
pub(super) struct Elimination<'a, E> {
    runtime: &'a Runtime,
    workload: &'static str,
    failure: Arc<OnceLock<E>>,
}

impl<'a, E: Send + Sync + 'static> Elimination<'a, E> {
    pub(super) fn new(runtime: &'a Runtime, workload: &'static str) -> Self {
        Elimination { runtime, workload, failure: Arc::default() }
    }

    /// Where it failed, if it did.
    pub(super) fn failure(&self) -> Option<&E> {
        self.failure.get()
    }

    /// A codelet whose model is called after workload and kernel, such as `lu_gemm`.
    fn codelet<L: AccessList, S: Send + 'static>(&self, kernel: &str) -> CodeletBuilder<L, S> {
        self.runtime.codelet(kernel).model(Model::history(format!("{}_{kernel}", self.workload)))
    }

    /// A codelet that factors a tile of the diagonal.
    pub(super) fn pivot<S: Send + 'static>(
        &self,
        kernel: &str,
        factor: impl Fn(&S, &mut Tile) -> Result<(), E> + Send + Sync + 'static,
    ) -> Codelet<Alone, S> {
        let failure = Arc::clone(&self.failure);
        let kernel = self.codelet(kernel).cpu("faer", move |context, (tile,)| {
            // Each of these tasks waits for the one before, so that the first bad pivot is the only one.
            if failure.get().is_none()
                && let Err(error) = factor(context.params, tile)
            {
                let _ = failure.set(error);
            }
        });
        kernel.build()
    }

    /// A codelet that changes a tile with another one.
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

    /// A codelet that changes a tile with two others.
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
