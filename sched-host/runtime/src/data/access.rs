//! Typed accesses of a codelet: what a kernel receives for each handle.

use crate::data::{Begun, DataHeader, Handle, InOrder, OfTask, PadId, Reading, Scratchpad, Writing};
use parking_lot::{MappedMutexGuard, MutexGuard};
use sched_core::WorkerId;
use sched_graph::AccessMode;
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// Gets each access of a task to data.
pub(crate) type Visitor<'v, 'h> = dyn FnMut(&'h Arc<DataHeader>, AccessMode) + 'v;

/// One access of a codelet: its mode, the handle that the application passes, and the view that the kernel receives.
pub trait Access: 'static {
    /// Argument passed by the application.
    type Handle: Clone + Send + 'static;
    #[doc(hidden)]
    type Guard<'a>;
    /// View of the kernel.
    type View<'a>;
    /// Whether it is one to a scratchpad.
    #[doc(hidden)]
    const IS_SCRATCH: bool = false;

    /// Visits the scratchpads.
    #[doc(hidden)]
    fn visit_pads(_handle: &Self::Handle, _visitor: &mut dyn FnMut(PadId)) {}
    /// The handle of a task in an order of its own.
    #[doc(hidden)]
    fn own(handle: &Self::Handle, _of_task: &OfTask) -> Self::Handle {
        handle.clone()
    }
    /// The handle of a task in the order of the data.
    #[doc(hidden)]
    #[inline(always)]
    fn lend(handle: &Self::Handle, _in_order: &InOrder) -> Self::Handle {
        Self::own(handle, &OfTask(()))
    }
    #[doc(hidden)]
    fn visit<'h>(handle: &'h Self::Handle, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode));
    #[doc(hidden)]
    fn each(handle: &mut Self::Handle, visitor: &mut dyn FnMut(&mut dyn Any)) {
        visitor(handle);
    }
    #[doc(hidden)]
    fn guard(handle: &Self::Handle, worker: WorkerId, begun: Begun) -> Self::Guard<'_>;
    #[doc(hidden)]
    fn view<'g>(guard: &'g mut Self::Guard<'_>) -> Self::View<'g>;
}

/// The kernel reads a `T`: it sees `&T`.
pub struct Read<T: ?Sized>(PhantomData<fn(&T)>);
/// The kernel overwrites a `T` and does not use its old value: it sees `&mut T`.
pub struct Write<T: ?Sized>(PhantomData<fn(&T)>);
/// The kernel reads and writes a `T`: it sees `&mut T`.
pub struct ReadWrite<T: ?Sized>(PhantomData<fn(&T)>);
/// The kernel reads and writes a `T`, and such tasks may run in any order: it sees `&mut T`.
pub struct Commute<T: ?Sized>(PhantomData<fn(&T)>);
/// The kernel uses a `T` that belongs to the worker: it sees `&mut T`.
pub struct Scratch<T>(PhantomData<fn() -> T>);
/// The kernel has any number of accesses of one kind: it sees a `Vec` of their views.
pub struct Many<A>(PhantomData<fn() -> A>);

impl<T: Send + Sync + 'static> Access for Read<T> {
    type Handle = Handle<T>;
    type Guard<'a> = Reading<'a, T>;
    type View<'a> = &'a T;

    fn own(handle: &Handle<T>, of_task: &OfTask) -> Handle<T> {
        handle.to_use(of_task)
    }

    #[inline(always)]
    fn lend(handle: &Handle<T>, in_order: &InOrder) -> Handle<T> {
        handle.lend(in_order)
    }

    fn visit<'h>(handle: &'h Handle<T>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        visitor(handle.header(), AccessMode::Read);
    }

    #[inline(always)]
    fn guard(handle: &Handle<T>, worker: WorkerId, _begun: Begun) -> Reading<'_, T> {
        handle.value().read_by(worker)
    }

    fn view<'g>(guard: &'g mut Reading<'_, T>) -> &'g T {
        guard
    }
}

macro_rules! writing_access {
    ($access:ident, $write:ident) => {
        impl<T: Send + Sync + 'static> Access for $access<T> {
            type Handle = Handle<T>;
            type Guard<'a> = Writing<'a, T>;
            type View<'a> = &'a mut T;

            fn own(handle: &Handle<T>, of_task: &OfTask) -> Handle<T> {
                handle.to_use(of_task)
            }

            #[inline(always)]
            fn lend(handle: &Handle<T>, in_order: &InOrder) -> Handle<T> {
                handle.lend(in_order)
            }

            fn visit<'h>(handle: &'h Handle<T>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
                visitor(handle.header(), AccessMode::$access);
            }

            #[inline(always)]
            fn guard(handle: &Handle<T>, worker: WorkerId, _begun: Begun) -> Writing<'_, T> {
                handle.value().$write(worker)
            }

            fn view<'g>(guard: &'g mut Writing<'_, T>) -> &'g mut T {
                guard
            }
        }
    };
}

writing_access!(Write, overwrite_by);
writing_access!(ReadWrite, write_by);
writing_access!(Commute, write_by);

impl<T: Send + 'static> Access for Scratch<T> {
    type Handle = Scratchpad<T>;
    type Guard<'a> = MappedMutexGuard<'a, T>;
    type View<'a> = &'a mut T;
    const IS_SCRATCH: bool = true;

    fn visit_pads(handle: &Scratchpad<T>, visitor: &mut dyn FnMut(PadId)) {
        visitor(handle.id());
    }

    fn visit<'h>(_handle: &'h Scratchpad<T>, _visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {}

    fn guard(handle: &Scratchpad<T>, worker: WorkerId, _begun: Begun) -> MappedMutexGuard<'_, T> {
        let pad = handle.pads.of_worker[worker.index()].try_lock().expect("a worker runs one task at a time");
        MutexGuard::map(pad, |pad| pad.get_or_insert_with(&handle.pads.make))
    }

    fn view<'g>(guard: &'g mut MappedMutexGuard<'_, T>) -> &'g mut T {
        guard
    }
}

impl<A: Access> Access for Many<A> {
    type Handle = Vec<A::Handle>;
    type Guard<'a> = Vec<A::Guard<'a>>;
    type View<'a> = Vec<A::View<'a>>;
    const IS_SCRATCH: bool = A::IS_SCRATCH;

    fn visit_pads(handles: &Vec<A::Handle>, visitor: &mut dyn FnMut(PadId)) {
        handles.iter().for_each(|handle| A::visit_pads(handle, visitor));
    }

    fn own(handles: &Vec<A::Handle>, of_task: &OfTask) -> Vec<A::Handle> {
        handles.iter().map(|handle| A::own(handle, of_task)).collect()
    }

    fn lend(handles: &Vec<A::Handle>, in_order: &InOrder) -> Vec<A::Handle> {
        handles.iter().map(|handle| A::lend(handle, in_order)).collect()
    }

    fn visit<'h>(handles: &'h Vec<A::Handle>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
        handles.iter().for_each(|handle| A::visit(handle, visitor));
    }

    fn each(handles: &mut Vec<A::Handle>, visitor: &mut dyn FnMut(&mut dyn Any)) {
        handles.iter_mut().for_each(|handle| A::each(handle, visitor));
    }

    fn guard(handles: &Vec<A::Handle>, worker: WorkerId, begun: Begun) -> Vec<A::Guard<'_>> {
        handles.iter().map(|handle| A::guard(handle, worker, begun)).collect()
    }

    fn view<'g>(guards: &'g mut Vec<A::Guard<'_>>) -> Vec<A::View<'g>> {
        guards.iter_mut().map(A::view).collect()
    }
}

/// The accesses of a codelet: a tuple of up to eight [`Access`] types. `()` has none.
pub trait AccessList: 'static {
    /// Handles, owned by a task.
    type Handles: Clone + Send + 'static;
    /// Handles, as passed by the application.
    type Passed<'a>;
    #[doc(hidden)]
    type Guards<'a>;
    /// Views of the kernel.
    type Views<'a>;
    /// Whether there is no access at all.
    #[doc(hidden)]
    const IS_EMPTY: bool;
    /// Whether there is one to a scratchpad.
    #[doc(hidden)]
    const HAS_SCRATCH: bool;

    /// Visits the scratchpads.
    #[doc(hidden)]
    fn visit_pads(passed: &Self::Passed<'_>, visitor: &mut dyn FnMut(PadId));

    /// The handles of a task in an order of its own.
    #[doc(hidden)]
    fn own(passed: Self::Passed<'_>, of_task: &OfTask) -> Self::Handles;
    /// The handles of a task in the order of its data.
    #[doc(hidden)]
    fn lend(passed: Self::Passed<'_>, in_order: &InOrder) -> Self::Handles;
    #[doc(hidden)]
    fn visit_passed<'h>(passed: &Self::Passed<'h>, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode));
    #[doc(hidden)]
    fn visit<'h>(handles: &'h Self::Handles, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode));
    #[doc(hidden)]
    fn each(handles: &mut Self::Handles, visitor: &mut dyn FnMut(&mut dyn Any));
    #[doc(hidden)]
    fn guards(handles: &Self::Handles, worker: WorkerId, begun: Begun) -> Self::Guards<'_>;
    #[doc(hidden)]
    fn views<'g>(guards: &'g mut Self::Guards<'_>) -> Self::Views<'g>;
}

macro_rules! access_list {
    ($($access:ident $value:ident),*) => {
        #[allow(unused_variables, clippy::unused_unit, non_snake_case)]
        impl<$($access: Access),*> AccessList for ($($access,)*) {
            type Handles = ($($access::Handle,)*);
            type Passed<'a> = ($(&'a $access::Handle,)*);
            type Guards<'a> = ($($access::Guard<'a>,)*);
            type Views<'a> = ($($access::View<'a>,)*);
            const IS_EMPTY: bool = { let names: &[&str] = &[$(stringify!($access)),*]; names.is_empty() };
            const HAS_SCRATCH: bool = $($access::IS_SCRATCH ||)* false;

            fn visit_pads(($($value,)*): &Self::Passed<'_>, visitor: &mut dyn FnMut(PadId)) {
                $($access::visit_pads(*$value, visitor);)*
            }

            fn own(($($value,)*): Self::Passed<'_>, of_task: &OfTask) -> Self::Handles {
                ($($access::own($value, of_task),)*)
            }

            #[inline(always)]
            fn lend(($($value,)*): Self::Passed<'_>, in_order: &InOrder) -> Self::Handles {
                ($($access::lend($value, in_order),)*)
            }

            fn visit_passed<'h>(
                ($($value,)*): &Self::Passed<'h>,
                visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode),
            ) {
                $($access::visit(*$value, visitor);)*
            }

            fn visit<'h>(($($value,)*): &'h Self::Handles, visitor: &mut dyn FnMut(&'h Arc<DataHeader>, AccessMode)) {
                $($access::visit($value, visitor);)*
            }

            fn each(($($value,)*): &mut Self::Handles, visitor: &mut dyn FnMut(&mut dyn Any)) {
                $($access::each($value, visitor);)*
            }

            #[inline(always)]
            fn guards(($($value,)*): &Self::Handles, worker: WorkerId, begun: Begun) -> Self::Guards<'_> {
                ($($access::guard($value, worker, begun),)*)
            }

            #[inline(always)]
            fn views<'g>(($($value,)*): &'g mut Self::Guards<'_>) -> Self::Views<'g> {
                ($($access::view($value),)*)
            }
        }
    };
}

access_list!();
access_list!(A a);
access_list!(A a, B b);
access_list!(A a, B b, C c);
access_list!(A a, B b, C c, D d);
access_list!(A a, B b, C c, D d, E e);
access_list!(A a, B b, C c, D d, E e, F f);
access_list!(A a, B b, C c, D d, E e, F f, G g);
access_list!(A a, B b, C c, D d, E e, F f, G g, H h);
