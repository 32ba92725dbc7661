//! Views of a task's data for the members of a team that all run its kernel.

use super::crew::even;
use crate::data::access::{Access, AccessList, Commute, Many, Read, ReadWrite, Scratch, Write};
use crate::data::{Begun, Reading, Writing};
use parking_lot::MappedMutexGuard;
use sched_core::WorkerId;

/// Data that the members of a team can write at once, each its own part.
///
/// ```
/// use sched_runtime::Share;
/// /// Rows of a matrix.
/// struct Rows(Vec<Vec<f64>>);
///
/// impl Share for Rows {
///     type Part<'a> = &'a mut [Vec<f64>];
///
///     fn share(&mut self, size: usize) -> Vec<&mut [Vec<f64>]> {
///         self.0.share(size)
///     }
/// }
/// assert_eq!(Rows(vec![Vec::new(); 5]).share(2).iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 2]);
/// ```
pub trait Share: Send + Sync + 'static {
    /// Part of one member.
    type Part<'a>: Send;

    /// Splits the data for a team of this size: one part for each member, in order of rank.
    fn share(&mut self, size: usize) -> Vec<Self::Part<'_>>;
}

macro_rules! shared_slice {
    ($type:ty $(, $number:ident)?) => {
        /// Consecutive parts whose lengths differ by at most one.
        impl<E: Send + Sync + 'static $(, const $number: usize)?> Share for $type {
            type Part<'a> = &'a mut [E];

            fn share(&mut self, size: usize) -> Vec<&mut [E]> {
                even(self, size).collect()
            }
        }
    };
}

shared_slice!(Vec<E>);
shared_slice!(Box<[E]>);
shared_slice!([E; N], N);

/// An access that all members of a team can have at once: reading any data, or writing data that can be
/// [shared](Share).
pub trait TeamAccess: Access {
    #[doc(hidden)]
    type TeamGuard<'a>;
    /// View of one member.
    type Part<'a>: Send;

    #[doc(hidden)]
    fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> Self::TeamGuard<'a>;
    #[doc(hidden)]
    fn parts<'g>(guard: &'g mut Self::TeamGuard<'_>, size: usize) -> Vec<Self::Part<'g>>;
}

impl<T: Send + Sync + 'static> TeamAccess for Read<T> {
    type TeamGuard<'a> = Reading<'a, T>;
    type Part<'a> = &'a T;

    fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> Self::TeamGuard<'a> {
        Self::guard(handle, members[0], begun)
    }

    fn parts<'g>(guard: &'g mut Reading<'_, T>, size: usize) -> Vec<&'g T> {
        vec![&**guard; size]
    }
}

macro_rules! writing_team_access {
    ($access:ident) => {
        impl<T: Share> TeamAccess for $access<T> {
            type TeamGuard<'a> = Writing<'a, T>;
            type Part<'a> = T::Part<'a>;

            fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> Self::TeamGuard<'a> {
                Self::guard(handle, members[0], begun)
            }

            fn parts<'g>(guard: &'g mut Writing<'_, T>, size: usize) -> Vec<T::Part<'g>> {
                let parts = guard.share(size);
                assert_eq!(parts.len(), size, "`share` gives a part to each member of the team");
                parts
            }
        }
    };
}

writing_team_access!(Write);
writing_team_access!(ReadWrite);
writing_team_access!(Commute);

impl<T: Send + 'static> TeamAccess for Scratch<T> {
    type TeamGuard<'a> = Vec<MappedMutexGuard<'a, T>>;
    type Part<'a> = &'a mut T;

    fn team_guard<'a>(handle: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> Self::TeamGuard<'a> {
        members.iter().map(|member| Self::guard(handle, *member, begun)).collect()
    }

    fn parts<'g>(guards: &'g mut Vec<MappedMutexGuard<'_, T>>, _size: usize) -> Vec<&'g mut T> {
        guards.iter_mut().map(|guard| &mut **guard).collect()
    }
}

impl<A: TeamAccess> TeamAccess for Many<A> {
    type TeamGuard<'a> = Vec<A::TeamGuard<'a>>;
    type Part<'a> = Vec<A::Part<'a>>;

    fn team_guard<'a>(handles: &'a Self::Handle, members: &[WorkerId], begun: Begun) -> Self::TeamGuard<'a> {
        handles.iter().map(|handle| A::team_guard(handle, members, begun)).collect()
    }

    fn parts<'g>(guards: &'g mut Vec<A::TeamGuard<'_>>, size: usize) -> Vec<Vec<A::Part<'g>>> {
        let mut of_member: Vec<Vec<A::Part<'g>>> = (0..size).map(|_| Vec::with_capacity(guards.len())).collect();
        for guard in guards {
            A::parts(guard, size).into_iter().zip(&mut of_member).for_each(|(part, parts)| parts.push(part));
        }
        of_member
    }
}

/// Accesses of a codelet that all members of a team can have at once: each is a [`TeamAccess`].
pub trait TeamAccessList: AccessList {
    #[doc(hidden)]
    type TeamGuards<'a>;
    /// Views of one member.
    type Parts<'a>: Send;

    #[doc(hidden)]
    fn team_guards<'a>(handles: &'a Self::Handles, members: &[WorkerId], begun: Begun) -> Self::TeamGuards<'a>;
    #[doc(hidden)]
    fn parts<'g>(guards: &'g mut Self::TeamGuards<'_>, size: usize) -> Vec<Self::Parts<'g>>;
}

macro_rules! team_access_list {
    ($($access:ident $value:ident),*) => {
        #[allow(unused_variables, unused_mut, clippy::unused_unit, non_snake_case)]
        impl<$($access: TeamAccess),*> TeamAccessList for ($($access,)*) {
            type TeamGuards<'a> = ($($access::TeamGuard<'a>,)*);
            type Parts<'a> = ($($access::Part<'a>,)*);

            fn team_guards<'a>(
                ($($value,)*): &'a Self::Handles,
                members: &[WorkerId],
                begun: Begun,
            ) -> Self::TeamGuards<'a> {
                ($($access::team_guard($value, members, begun),)*)
            }

            fn parts<'g>(($($value,)*): &'g mut Self::TeamGuards<'_>, size: usize) -> Vec<Self::Parts<'g>> {
                $(let mut $value = $access::parts($value, size).into_iter();)*
                (0..size).map(|_| ($($value.next().expect("there is a part for each member"),)*)).collect()
            }
        }
    };
}

team_access_list!();
team_access_list!(A a);
team_access_list!(A a, B b);
team_access_list!(A a, B b, C c);
team_access_list!(A a, B b, C c, D d);
team_access_list!(A a, B b, C c, D d, E e);
team_access_list!(A a, B b, C c, D d, E e, F f);
team_access_list!(A a, B b, C c, D d, E e, F f, G g);
team_access_list!(A a, B b, C c, D d, E e, F f, G g, H h);
