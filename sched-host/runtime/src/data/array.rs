//! Arrays and matrices of plain values, which have parts.

use super::access::{Access, Commute, Read, ReadWrite, Write};
use super::layout::{LayoutError, MatrixLayout};
use super::loan::Loan;
use super::plan::{Partition, PartitionError, Plan};
use super::storage::Storage;
use super::view::{MatrixMut, MatrixRef};
use super::whole::{Part, PartGuard, Whole};
use super::{Begun, DataHeader, Places};
use crate::core::Core;
use crate::parallel::crew::even;
use crate::parallel::share::TeamAccess;
use crate::task::submit::Submitter;
use crate::worker::this_worker;
use sched_core::WorkerId;
use sched_graph::{AccessMode, Region};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Values that an array or a matrix may have: plain ones, which are copied as bytes. (Arrays of values without a size are
/// refused when the program is compiled.)
pub trait Element: Copy + Send + Sync + 'static {}

impl<T: Copy + Send + Sync + 'static> Element for T {}

/// An array of plain values, or a part of one: codelets name it with [`Read<[T]>`](Read), [`Write<[T]>`](Write),
/// [`ReadWrite<[T]>`](ReadWrite) or [`Commute<[T]>`](Commute), and kernels see slices.
///
/// Made with [`Submitter::array`]. Cheap to clone; the values are dropped with the last handle to the array or to any
/// of its parts, and the last task that names one.
///
/// Tasks may name the whole and its parts in any order. The result is as if the tasks ran one after the other in the
/// order of their submission; those that use disjoint parts, or only read, run at once. On one memory node nothing is
/// ever copied. With several, a worker copies to its node what the task needs and is not there yet, from wherever it
/// is: so a task that names the whole gathers the parts.
///
/// ```
/// use sched_runtime::{Plan, Read, ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let scale = runtime
///     .codelet::<(ReadWrite<[f64]>,), f64>("scale")
///     .cpu("scale", |context, (part,)| part.iter_mut().for_each(|value| *value *= context.params))
///     .build();
/// let copy = runtime
///     .codelet::<(Read<[f64]>, ReadWrite<[f64]>), ()>("copy")
///     .cpu("copy", |_, (from, to)| to.copy_from_slice(from))
///     .build();
/// let x = runtime.array(vec![1.0; 1000]);
/// let quarters = x.partition(&Plan::ranges(4))?;
/// for quarter in &quarters {
///     runtime.task_with(&scale, 3.0, (quarter,)).submit()?; // these four at once
/// }
/// runtime.task_with(&scale, 2.0, (&x,)).submit()?; // after them, on all values
/// runtime.task(&copy, (&quarters[0], &quarters[3])).submit()?; // after that
/// assert_eq!(runtime.read(&x)?.iter().sum::<f64>(), 6000.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArrayHandle<T> {
    header: Arc<DataHeader>,
    of: PhantomData<fn() -> T>,
}

/// A matrix of plain values, or a part of one: codelets name it with [`Read<Matrix<T>>`](Matrix) and so on, and kernels
/// see a [`MatrixRef`] or a [`MatrixMut`].
///
/// Made with [`Submitter::matrix`]. What is said of [arrays](ArrayHandle) holds for matrices too.
///
/// ```
/// use sched_runtime::{Matrix, MatrixLayout, Plan, Read, ReadWrite, Runtime};
/// # use std::sync::Arc;
/// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
/// # let runtime = Runtime::builder().registry(components).workers(2).build()?;
/// let add_row = runtime
///     .codelet::<(Read<Matrix<f64>>, ReadWrite<Matrix<f64>>), ()>("add row")
///     .cpu("add_row", |_, (row, mut to)| {
///         for line in 0..to.rows() {
///             to.row_mut(line).iter_mut().zip(row.row(0)).for_each(|(to, from)| *to += from);
///         }
///     })
///     .build();
/// let a = runtime.matrix(vec![1.0; 12], MatrixLayout::row_major(3, 4))?;
/// let (rows, halves) = (a.partition(&Plan::rows(3))?, a.partition(&Plan::blocks(1, 2))?);
/// runtime.task(&add_row, (&rows[0], &rows[2])).submit()?;
/// let quarter = halves.at(0, 1).partition(&Plan::rows(3))?;
/// runtime.task(&add_row, (&quarter[2], &quarter[1])).submit()?;
/// assert_eq!(runtime.read(&a)?.as_slice().unwrap(), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MatrixHandle<T> {
    header: Arc<DataHeader>,
    of: PhantomData<fn() -> T>,
}

/// Names a matrix, or a part of one, among the accesses of a codelet: `Read<Matrix<f64>>`. There are no values of this
/// type; the application has a [`MatrixHandle`].
pub struct Matrix<T>([T]);

macro_rules! handles {
    ($handle:ident, $name:literal, $array:literal) => {
        impl<T> Clone for $handle<T> {
            fn clone(&self) -> $handle<T> {
                $handle { header: Arc::clone(&self.header), of: PhantomData }
            }
        }

        impl<T> fmt::Debug for $handle<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({}: {})", $name, self.part().whole.id, self.part().region)
            }
        }

        impl<T> $handle<T> {
            pub(crate) fn of_header(header: Arc<DataHeader>) -> $handle<T> {
                $handle { header, of: PhantomData }
            }

            pub(crate) fn header(&self) -> &Arc<DataHeader> {
                &self.header
            }

            pub(crate) fn part(&self) -> &Part {
                part_of(&self.header)
            }

            /// Divides it into parts, with a handle for each. Nothing is copied, and nothing is waited for. Data can be
            /// divided by several plans at once, and parts can be divided again: what is used at the same time may
            /// overlap in any way. Tasks that write overlapping parts run one after the other.
            ///
            /// # Errors
            /// If the plan does not fit; see [`PartitionError`].
            pub fn partition(&self, plan: &Plan) -> Result<Partition<$handle<T>>, PartitionError> {
                let part = self.part();
                let layout = part.layout();
                let (regions, rows, columns) = plan.regions(layout, $array)?;
                let parts = part.divide(&regions).into_iter().map($handle::of_header).collect();
                Ok(Partition { parts, rows, columns })
            }

            /// Takes the values back from the last handle to the whole.
            pub(crate) fn into_values(self) -> Result<Vec<T>, $handle<T>>
            where
                T: Element,
            {
                if self.part().id != sched_graph::PartId::WHOLE || self.part().whole.loan.is_some() {
                    return Err(self);
                }
                let header = Arc::try_unwrap(self.header).map_err($handle::of_header)?;
                let whole = header.into_whole();
                Whole::note_leaving(&whole, true);
                match Arc::try_unwrap(whole) {
                    Ok(whole) => Ok(whole.into_vec().expect("they were not lent")),
                    Err(whole) => {
                        Whole::note_leaving(&whole, false);
                        Err($handle::of_header(Whole::header(whole)))
                    }
                }
            }
        }
    };
}

handles!(ArrayHandle, "ArrayHandle", true);
handles!(MatrixHandle, "MatrixHandle", false);

fn part_of(header: &DataHeader) -> &Part {
    match &header.places {
        Places::Part(part) => part,
        _ => unreachable!("arrays and matrices are parts, of themselves at least"),
    }
}

impl<T> ArrayHandle<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part().region.rows.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its elements, by their indices in the whole array.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.part().region.rows.clone()
    }
}

impl<T> MatrixHandle<T> {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.part().region.rows.len()
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.part().region.columns.len()
    }

    /// Its elements, by their indices in the whole matrix.
    #[must_use]
    pub fn region(&self) -> Region {
        self.part().region.clone()
    }
}

impl Submitter {
    /// Registers an array of plain values, which can be divided into [parts](ArrayHandle::partition).
    pub fn array<T: Element>(&self, values: Vec<T>) -> ArrayHandle<T> {
        let (layout, span) = (MatrixLayout::array(values.len()), values.len());
        let storage = Storage::owned(values, layout, span);
        ArrayHandle::of_header(register_whole::<T>(&self.core, storage, true, None))
    }

    /// Registers a matrix of plain values, which can be divided into [parts](MatrixHandle::partition).
    ///
    /// # Errors
    /// If the values are no matrix of this layout; see [`LayoutError`].
    pub fn matrix<T: Element>(&self, values: Vec<T>, layout: MatrixLayout) -> Result<MatrixHandle<T>, LayoutError> {
        let span = layout.check(values.len())?;
        let storage = Storage::owned(values, layout, span);
        Ok(MatrixHandle::of_header(register_whole::<T>(&self.core, storage, false, None)))
    }
}

/// Registers values with a runtime, which may copy them to its other memory nodes.
pub(crate) fn register_whole<T>(
    core: &Core,
    storage: Storage,
    is_array: bool,
    loan: Option<Arc<Loan>>,
) -> Arc<DataHeader> {
    let storage = match &core.backend.memories {
        Some(memories) => {
            let node = memories.of_new_data(this_worker(core));
            let storage = storage.spread(memories, node);
            storage.claim_home();
            if loan.is_none() {
                storage.pin_home();
            }
            storage
        }
        None => storage,
    };
    Whole::register(storage, size_of::<T>(), is_array, core.id, loan)
}

impl<'a> PartGuard<'a> {
    /// The values of an array.
    pub(crate) fn slice<T: Element>(&self) -> &[T] {
        // SAFETY: the elements of an array are contiguous and of this type; while the guard is there, nobody writes
        // them (see `storage`).
        unsafe { std::slice::from_raw_parts(self.first().as_ptr(), self.layout().rows()) }
    }

    /// The values of an array, for writing.
    pub(crate) fn slice_mut<T: Element>(&mut self) -> &mut [T] {
        // SAFETY: as in `slice`; the guard is for writing, so nobody else uses the elements.
        unsafe { std::slice::from_raw_parts_mut(self.first().as_ptr(), self.layout().rows()) }
    }

    /// The values of a matrix.
    pub(crate) fn matrix<T: Element>(&self) -> MatrixRef<'_, T> {
        // SAFETY: the layout is that of the elements, which are of this type; while the guard is there, nobody writes
        // them (see `storage`).
        unsafe { MatrixRef::new(self.first().as_ptr(), self.layout()) }
    }

    /// The values of a matrix, for writing.
    pub(crate) fn matrix_mut<T: Element>(&mut self) -> MatrixMut<'_, T> {
        // SAFETY: as in `matrix`; the guard is for writing, so nobody else uses the elements.
        unsafe { MatrixMut::new(self.first().as_ptr(), self.layout()) }
    }
}

macro_rules! part_access {
    ($access:ident, $use:ident, $data:ty, $handle:ident, $view:ty, $as:ident) => {
        impl<T: Element> Access for $access<$data> {
            type Handle = $handle<T>;
            type Guard<'a> = PartGuard<'a>;
            type View<'a> = $view;

            fn visit<'h>(handle: &'h $handle<T>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
                visitor(&handle.header, AccessMode::$access);
            }

            fn guard(handle: &$handle<T>, worker: WorkerId, _begun: Begun) -> PartGuard<'_> {
                handle.part().$use(Some(worker))
            }

            fn view<'g>(guard: &'g mut PartGuard<'_>) -> <Self as Access>::View<'g> {
                guard.$as()
            }
        }
    };
}

part_access!(Read, read, [T], ArrayHandle, &'a [T], slice);
part_access!(Write, write, [T], ArrayHandle, &'a mut [T], slice_mut);
part_access!(ReadWrite, write, [T], ArrayHandle, &'a mut [T], slice_mut);
part_access!(Commute, write, [T], ArrayHandle, &'a mut [T], slice_mut);
part_access!(Read, read, Matrix<T>, MatrixHandle, MatrixRef<'a, T>, matrix);
part_access!(Write, write, Matrix<T>, MatrixHandle, MatrixMut<'a, T>, matrix_mut);
part_access!(ReadWrite, write, Matrix<T>, MatrixHandle, MatrixMut<'a, T>, matrix_mut);
part_access!(Commute, write, Matrix<T>, MatrixHandle, MatrixMut<'a, T>, matrix_mut);

/// A member of a team reads all of it.
macro_rules! team_read {
    ($data:ty, $view:ty, $as:ident) => {
        impl<T: Element> TeamAccess for Read<$data> {
            type TeamGuard<'a> = PartGuard<'a>;
            type Part<'a> = $view;

            fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> PartGuard<'a> {
                Self::guard(handle, members[0], begun)
            }

            fn parts<'g>(guard: &'g mut PartGuard<'_>, size: usize) -> Vec<<Self as TeamAccess>::Part<'g>> {
                vec![guard.$as(); size]
            }
        }
    };
}

/// A member of a team writes its own elements, or rows.
macro_rules! team_write {
    ($access:ident) => {
        impl<T: Element> TeamAccess for $access<[T]> {
            type TeamGuard<'a> = PartGuard<'a>;
            type Part<'a> = &'a mut [T];

            fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> PartGuard<'a> {
                Self::guard(handle, members[0], begun)
            }

            fn parts<'g>(guard: &'g mut PartGuard<'_>, size: usize) -> Vec<&'g mut [T]> {
                even(guard.slice_mut(), size).collect()
            }
        }

        impl<T: Element> TeamAccess for $access<Matrix<T>> {
            type TeamGuard<'a> = PartGuard<'a>;
            type Part<'a> = MatrixMut<'a, T>;

            fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> PartGuard<'a> {
                Self::guard(handle, members[0], begun)
            }

            fn parts<'g>(guard: &'g mut PartGuard<'_>, size: usize) -> Vec<MatrixMut<'g, T>> {
                let mut rest = guard.matrix_mut();
                let share = |left: usize, rest: &MatrixMut<'g, T>| rest.rows().div_ceil(left);
                let mut parts = Vec::with_capacity(size);
                for left in (2..=size).rev() {
                    let rows = share(left, &rest);
                    let (part, others) = rest.split_at_row(rows);
                    parts.push(part);
                    rest = others;
                }
                parts.push(rest);
                parts
            }
        }
    };
}

team_read!([T], &'a [T], slice);
team_read!(Matrix<T>, MatrixRef<'a, T>, matrix);
team_write!(Write);
team_write!(ReadWrite);
team_write!(Commute);
