//! What the application reads and writes itself, in its turn.

use super::Turn;
use crate::data::array::{ArrayHandle, Element, MatrixHandle};
use crate::data::reduction::Reduction;
use crate::data::view::{MatrixMut, MatrixRef};
use crate::data::whole::PartGuard;
use crate::data::{DataHeader, Handle, LastTurn, Reading, Writing};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Handles to data that the application can [read](crate::Runtime::read), [write](crate::Runtime::write) and
/// [take back](crate::Runtime::unregister): [`Handle`], [`ArrayHandle`], [`MatrixHandle`] and
/// [`Reduction`].
pub trait Data: Sized + 'static {
    /// Result of a read.
    type Reading<'a>
    where
        Self: 'a;
    /// Result of a write.
    type Writing<'a>
    where
        Self: 'a;
    /// What was registered.
    type Value;

    #[doc(hidden)]
    fn header(&self) -> &Arc<DataHeader>;
    #[doc(hidden)]
    fn reading<'a>(&'a self, turn: Turn<'a>) -> Self::Reading<'a>;
    #[doc(hidden)]
    fn writing<'a>(&'a self, turn: Turn<'a>) -> Self::Writing<'a>;
    /// [`writing`](Self::writing) for one who replaces the value: what is lost of it does not matter.
    #[doc(hidden)]
    fn replacing<'a>(&'a self, turn: Turn<'a>) -> Self::Writing<'a> {
        self.writing(turn)
    }
    #[doc(hidden)]
    fn into_value(self, turn: &LastTurn) -> Result<Self::Value, Self>;
    /// Whether there may be no other handle.
    #[doc(hidden)]
    fn is_only(&self) -> bool {
        true
    }
    /// Whether tasks may reduce it.
    #[doc(hidden)]
    fn is_reduced(&self) -> bool {
        false
    }
    /// Exchanges this handle and `other` in the arguments of a recorded task.
    #[doc(hidden)]
    fn exchange(&self, other: &Self, place: &mut dyn Any);
}

impl<T: Send + Sync + 'static> Data for Handle<T> {
    type Reading<'a> = ReadData<'a, T>;
    type Writing<'a> = WriteData<'a, T>;
    type Value = T;

    fn header(&self) -> &Arc<DataHeader> {
        self.header()
    }

    fn reading<'a>(&'a self, turn: Turn<'a>) -> ReadData<'a, T> {
        ReadData { guard: self.value().read_in_place(), _turn: turn }
    }

    fn writing<'a>(&'a self, turn: Turn<'a>) -> WriteData<'a, T> {
        WriteData { guard: self.value().write_in_place(), _turn: turn }
    }

    fn replacing<'a>(&'a self, turn: Turn<'a>) -> WriteData<'a, T> {
        WriteData { guard: self.value().overwrite_in_place(), _turn: turn }
    }

    fn into_value(self, turn: &LastTurn) -> Result<T, Handle<T>> {
        if self.header().loan().is_some() {
            return Err(self);
        }
        Ok(self.try_take(turn)?.into_value().expect("it was not lent"))
    }

    fn is_only(&self) -> bool {
        self.is_only()
    }

    fn is_reduced(&self) -> bool {
        self.value().is_reduced()
    }

    fn exchange(&self, other: &Handle<T>, place: &mut dyn Any) {
        if let Some(place) = place.downcast_mut::<Handle<T>>() {
            exchange(self, other, place, |handle| handle.header().id);
        } else if let Some(place) = place.downcast_mut::<Reduction<T>>() {
            let (one, other) = (Reduction::of_handle(self.clone()), Reduction::of_handle(other.clone()));
            exchange(&one, &other, place, |handle| handle.header().id);
        }
    }
}

impl<T: Send + Sync + 'static> Data for Reduction<T> {
    type Reading<'a> = ReadData<'a, T>;
    type Writing<'a> = WriteData<'a, T>;
    type Value = T;

    fn header(&self) -> &Arc<DataHeader> {
        (**self).header()
    }

    fn reading<'a>(&'a self, turn: Turn<'a>) -> ReadData<'a, T> {
        (**self).reading(turn)
    }

    fn writing<'a>(&'a self, turn: Turn<'a>) -> WriteData<'a, T> {
        (**self).writing(turn)
    }

    fn replacing<'a>(&'a self, turn: Turn<'a>) -> WriteData<'a, T> {
        (**self).replacing(turn)
    }

    fn into_value(self, turn: &LastTurn) -> Result<T, Reduction<T>> {
        self.into_handle().into_value(turn).map_err(Reduction::of_handle)
    }

    fn is_only(&self) -> bool {
        (**self).is_only()
    }

    fn is_reduced(&self) -> bool {
        true
    }

    fn exchange(&self, other: &Reduction<T>, place: &mut dyn Any) {
        (**self).exchange(&**other, place);
    }
}

/// Replaces a handle that is one of two by the other.
fn exchange<H: Clone>(one: &H, other: &H, place: &mut H, id: impl Fn(&H) -> u64) {
    if id(place) == id(one) {
        *place = other.clone();
    } else if id(place) == id(other) {
        *place = one.clone();
    }
}

/// Read guard of the application.
pub struct ReadData<'a, T> {
    // Dropped in this order: the value is free before the turn of the next task.
    guard: Reading<'a, T>,
    _turn: Turn<'a>,
}

impl<T> Deref for ReadData<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

/// Write guard of the application.
pub struct WriteData<'a, T> {
    guard: Writing<'a, T>,
    _turn: Turn<'a>,
}

impl<T> Deref for WriteData<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteData<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

macro_rules! guards {
    ($($(#[$doc:meta])* $guard:ident),*) => {
        $(
            $(#[$doc])*
            pub struct $guard<'a, T> {
                guard: PartGuard<'a>,
                _turn: Turn<'a>,
                of: PhantomData<&'a T>,
            }
        )*
    };
}

guards!(
    /// Read guard of the application for an array, which it sees as a slice.
    ReadArray,
    /// Write guard of the application for an array, which it sees as a slice.
    WriteArray,
    /// Read guard of the application for a matrix: see [`view`](Self::view).
    ReadMatrix,
    /// Write guard of the application for a matrix: see [`view_mut`](Self::view_mut).
    WriteMatrix
);

macro_rules! parts_as_data {
    ($handle:ident, $reading:ident, $writing:ident) => {
        impl<T: Element> Data for $handle<T> {
            type Reading<'a> = $reading<'a, T>;
            type Writing<'a> = $writing<'a, T>;
            type Value = Vec<T>;

            fn header(&self) -> &Arc<DataHeader> {
                self.header()
            }

            fn reading<'a>(&'a self, turn: Turn<'a>) -> $reading<'a, T> {
                $reading { guard: self.part().read(None), _turn: turn, of: PhantomData }
            }

            fn writing<'a>(&'a self, turn: Turn<'a>) -> $writing<'a, T> {
                $writing { guard: self.part().write(None), _turn: turn, of: PhantomData }
            }

            fn into_value(self, _turn: &LastTurn) -> Result<Vec<T>, $handle<T>> {
                self.into_values()
            }

            fn exchange(&self, other: &$handle<T>, place: &mut dyn Any) {
                if let Some(place) = place.downcast_mut::<$handle<T>>() {
                    exchange(self, other, place, |handle| handle.header().id);
                }
            }
        }
    };
}

parts_as_data!(ArrayHandle, ReadArray, WriteArray);
parts_as_data!(MatrixHandle, ReadMatrix, WriteMatrix);

impl<T: Element> Deref for ReadArray<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.guard.slice()
    }
}

impl<T: Element> Deref for WriteArray<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.guard.slice()
    }
}

impl<T: Element> DerefMut for WriteArray<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.guard.slice_mut()
    }
}

impl<T: Element> ReadMatrix<'_, T> {
    /// The matrix.
    #[must_use]
    pub fn view(&self) -> MatrixRef<'_, T> {
        self.guard.matrix()
    }

    /// All elements, if they are contiguous: row after row, or column after column.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[T]> {
        self.view().as_slice()
    }
}

impl<T: Element> WriteMatrix<'_, T> {
    /// The matrix, to read.
    #[must_use]
    pub fn view(&self) -> MatrixRef<'_, T> {
        self.guard.matrix()
    }

    /// The matrix.
    #[must_use]
    pub fn view_mut(&mut self) -> MatrixMut<'_, T> {
        self.guard.matrix_mut()
    }
}

macro_rules! shown_as {
    ($($guard:ident: $bound:path, $shown:ident;)*) => {
        $(
            impl<T: $bound + fmt::Debug> fmt::Debug for $guard<'_, T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.$shown().fmt(f)
                }
            }
        )*
    };
}

shown_as! {
    ReadData: Sized, deref;
    WriteData: Sized, deref;
    ReadArray: Element, deref;
    WriteArray: Element, deref;
    ReadMatrix: Element, view;
    WriteMatrix: Element, view;
}
