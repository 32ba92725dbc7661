//! Scopes: tasks on data that still belongs to the program.
//!
//! # Safety
//!
//! A scope lends values that live for `'env`, which is longer than the call of [`Runtime::scope`]. At its end that call
//! takes a writer's turn at each of them, which is after all tasks that use it, and then [ends](Loan::end) the loan:
//! the uses in progress are waited for, and whoever comes later finds that there is nothing to use. This does not
//! depend on the turn, so it also holds where the run has stalled, and handles may leave the scope. The call itself
//! cannot be left behind without the end, since the scope is a local variable of it that the program only ever borrows.

use crate::data::array::{ArrayHandle, Element, MatrixHandle, register_whole};
use crate::data::layout::{LayoutError, MatrixLayout};
use crate::data::loan::{LentValue, Loan};
use crate::data::storage::Storage;
use crate::data::{DataHeader, Handle, Places};
use crate::task::submit::Submitter;
use crate::wait::{DataError, Turn};
use crate::{AccessMode, Runtime};
use parking_lot::Mutex;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// Lends values of the program to tasks; see [`Runtime::scope`]. Tasks are submitted through it too.
pub struct Scope<'env> {
    submitter: Submitter,
    lent: Mutex<Vec<Lent>>,
    /// Neither longer nor shorter.
    env: PhantomData<fn(&'env ()) -> &'env ()>,
}

/// A value that was lent.
struct Lent {
    header: Arc<DataHeader>,
    loan: Arc<Loan>,
    /// Takes the reference away that the handle has, if it has one.
    end: Option<Box<dyn Fn() + Send>>,
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("lent", &self.lent.lock().len()).finish_non_exhaustive()
    }
}

impl Deref for Scope<'_> {
    type Target = Submitter;

    fn deref(&self) -> &Submitter {
        &self.submitter
    }
}

impl Runtime {
    /// Calls `body` with a [`Scope`], which lends values that the program owns to tasks, without copying them. When it
    /// returns, all tasks that use these values have ended, also if `body` panics. They may then be used again.
    ///
    /// ```
    /// use sched_runtime::{Plan, Read, ReadWrite, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
    /// let axpy = runtime
    ///     .codelet::<(Read<f64>, Read<[f64]>, ReadWrite<[f64]>), ()>("axpy")
    ///     .cpu("axpy", |_, (a, x, y)| x.iter().zip(y).for_each(|(x, y)| *y += a * x))
    ///     .build();
    /// let (a, x, mut y) = (3.0, vec![1.0; 1000], vec![0.5; 1000]);
    /// runtime.scope(|scope| {
    ///     let (a, x, y) = (scope.lend_ref(&a), scope.array_ref(&x), scope.array(&mut y));
    ///     let plan = Plan::ranges(4);
    ///     for (x, y) in x.partition(&plan)?.iter().zip(&y.partition(&plan)?) {
    ///         scope.task(&axpy, (&a, x, y)).submit()?;
    ///     }
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })??;
    /// assert_eq!(y, [3.5; 1000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Values have to live longer than the scope, and are lent until its end:
    ///
    /// ```compile_fail,E0597
    /// # fn f(runtime: sched_runtime::Runtime) {
    /// runtime.scope(|scope| {
    ///     let mut inside = vec![0.0; 10];
    ///     scope.array(&mut inside);
    /// });
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0499
    /// # fn f(runtime: sched_runtime::Runtime) {
    /// let mut x = vec![0.0; 10];
    /// runtime.scope(|scope| {
    ///     scope.array(&mut x);
    ///     x[0] = 1.0;
    /// });
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0499
    /// # fn f(runtime: sched_runtime::Runtime) {
    /// let mut x = 1.0;
    /// runtime.scope(|scope| (scope.lend(&mut x), scope.lend(&mut x)));
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # fn f(runtime: sched_runtime::Runtime) {
    /// let mut x = vec![1.0];
    /// runtime.scope(|scope| (scope.array(&mut x), scope.array_ref(&x)));
    /// # }
    /// ```
    ///
    /// Values that only one thread may use are not lent:
    ///
    /// ```compile_fail,E0277
    /// # fn f(runtime: sched_runtime::Runtime) {
    /// let mut x = std::cell::Cell::new(1.0);
    /// runtime.scope(|scope| drop(scope.lend(&mut x)));
    /// # }
    /// ```
    ///
    /// A handle that leaves the scope is of no use: tasks with it are refused
    /// ([`SubmitError::Loan`](crate::SubmitError::Loan)), or fail if they were submitted while the scope ended.
    ///
    /// # Errors
    /// [`DataError::Bad`] if a task failed that should have written a value: the failure is then still reported by
    /// [`wait_all`](Runtime::wait_all). [`DataError::Stalled`] if the run makes no progress; tasks that are left do not
    /// use the values any more. A guard of [`read`](Runtime::read) or [`write`](Runtime::write) on lent data that is
    /// kept longer than the scope keeps the scope from ending at all.
    ///
    /// # Panics
    /// If a task of this runtime calls it, which might wait for itself; and if `body` does.
    pub fn scope<'env, R>(&self, body: impl FnOnce(&Scope<'env>) -> R) -> Result<R, DataError> {
        self.core.refuse_inside("a scope is waited for");
        let submitter = Submitter { core: Arc::clone(&self.core) };
        let scope = Scope { submitter, lent: Mutex::default(), env: PhantomData };
        let result = body(&scope);
        scope.end().map(|()| result)
    }
}

impl<'env> Scope<'env> {
    /// Lends an array, which can be divided into [parts](ArrayHandle::partition).
    pub fn array<T: Element>(&self, values: &'env mut [T]) -> ArrayHandle<T> {
        ArrayHandle::of_header(self.lend_array(NonNull::from(values), true))
    }

    /// Lends an array for reading.
    pub fn array_ref<T: Element>(&self, values: &'env [T]) -> ArrayHandle<T> {
        ArrayHandle::of_header(self.lend_array(NonNull::from(values), false))
    }

    /// Lends a matrix, which can be divided into [parts](MatrixHandle::partition): of ndarray, for example, what
    /// `as_slice_mut` returns.
    ///
    /// # Errors
    /// If the values are no matrix of this layout; see [`LayoutError`].
    pub fn matrix<T: Element>(
        &self,
        values: &'env mut [T],
        layout: MatrixLayout,
    ) -> Result<MatrixHandle<T>, LayoutError> {
        let span = layout.check(values.len())?;
        Ok(MatrixHandle::of_header(self.lend_whole(NonNull::from(values).cast::<T>(), layout, span, false, true)))
    }

    /// Lends a matrix for reading.
    ///
    /// # Errors
    /// If the values are no matrix of this layout; see [`LayoutError`].
    pub fn matrix_ref<T: Element>(
        &self,
        values: &'env [T],
        layout: MatrixLayout,
    ) -> Result<MatrixHandle<T>, LayoutError> {
        let span = layout.check(values.len())?;
        Ok(MatrixHandle::of_header(self.lend_whole(NonNull::from(values).cast::<T>(), layout, span, false, false)))
    }

    /// Lends a matrix of another library, such as faer, by its pointer and its strides.
    ///
    /// # Errors
    /// If several elements of the layout are at one place.
    ///
    /// # Safety
    /// All elements of the layout are there and initialized, and nobody else uses them until the scope ends.
    pub unsafe fn matrix_from_raw<T: Element>(
        &self,
        first: NonNull<T>,
        layout: MatrixLayout,
    ) -> Result<MatrixHandle<T>, LayoutError> {
        let span = layout.check(usize::MAX)?;
        Ok(MatrixHandle::of_header(self.lend_whole(first, layout, span, false, true)))
    }

    /// Lends any value.
    pub fn lend<T: Send + Sync + 'static>(&self, value: &'env mut T) -> Handle<T> {
        self.lend_value(NonNull::from(value), true)
    }

    /// Lends any value for reading.
    pub fn lend_ref<T: Send + Sync + 'static>(&self, value: &'env T) -> Handle<T> {
        self.lend_value(NonNull::from(value), false)
    }

    fn lend_array<T: Element>(&self, values: NonNull<[T]>, is_writable: bool) -> Arc<DataHeader> {
        let length = values.len();
        self.lend_whole(values.cast::<T>(), MatrixLayout::array(length), length, true, is_writable)
    }

    fn lend_whole<T: Element>(
        &self,
        first: NonNull<T>,
        layout: MatrixLayout,
        span: usize,
        is_array: bool,
        is_writable: bool,
    ) -> Arc<DataHeader> {
        let loan = Arc::new(Loan::new(is_writable));
        // SAFETY: the values live for `'env`, and are borrowed for as long; what is lent for reading is not written.
        let storage = unsafe { Storage::lent(first, layout, span) };
        let header = register_whole::<T>(&self.submitter.core, storage, is_array, Some(Arc::clone(&loan)));
        self.lent.lock().push(Lent { header: Arc::clone(&header), loan, end: None });
        header
    }

    fn lend_value<T: Send + Sync + 'static>(&self, value: NonNull<T>, is_writable: bool) -> Handle<T> {
        let loan = Arc::new(Loan::new(is_writable));
        // SAFETY: the value lives for `'env`, and is borrowed for as long.
        let value = unsafe { LentValue::new(value, is_writable) };
        let handle = Handle::lent(value, &self.submitter.core, Arc::clone(&loan));
        let lent = handle.clone();
        let end = Box::new(move || lent.value().end_loan());
        self.lent.lock().push(Lent { header: Arc::clone(handle.header()), loan, end: Some(end) });
        handle
    }

    /// Ends all loans, once their tasks have ended. Returns the first reason why a value was not computed.
    fn end(&self) -> Result<(), DataError> {
        let lent = std::mem::take(&mut *self.lent.lock());
        let results: Vec<Result<(), DataError>> = lent.into_iter().map(|lent| lent.end(&self.submitter)).collect();
        results.into_iter().collect()
    }
}

impl Drop for Scope<'_> {
    /// Ends the loans after a panic too.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Lent {
    /// Waits for the tasks that use the value, and ends the loan. Returns whether the value was computed.
    fn end(self, submitter: &Submitter) -> Result<(), DataError> {
        let header = Arc::clone(&self.header);
        let turn = Turn::take(submitter, &header, AccessMode::ReadWrite)?;
        let brought = turn.check(&header);
        // In the turn: tasks that were submitted meanwhile come later, and find the loan ended.
        drop(self);
        brought
    }
}

impl Drop for Lent {
    /// Whatever happened before: nobody uses the value afterwards.
    fn drop(&mut self) {
        self.loan.end();
        if let Places::Part(part) = &self.header.places {
            part.whole.unpin_home();
        }
        if let Some(end) = self.end.take() {
            end();
        }
    }
}
