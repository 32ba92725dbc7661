//! Parallel implementations, which several workers execute together.

pub(crate) mod combined;
pub(crate) mod crew;
pub(crate) mod share;

use self::crew::{Crew, Team};
use self::share::TeamAccessList;
use super::data::Begun;
use super::data::access::AccessList;
use super::task::codelet::{CodeletBuilder, Context, Kernel};
use super::task::verdict::Verdict;
use parking_lot::Mutex;
use sched_core::Arch;

/// Description of an implementation.
pub(crate) struct Implementation {
    pub(crate) arch: Arch,
    pub(crate) name: String,
    /// Maximum number of workers that can execute it together.
    pub(crate) most: u16,
}

impl Implementation {
    fn parallel(name: &str, most: usize) -> Implementation {
        let most = u16::try_from(most).unwrap_or(u16::MAX).max(1);
        Implementation { arch: Arch::CPU, name: name.to_owned(), most }
    }
}

type CrewKernel<L, P> = Box<dyn Fn(&<L as AccessList>::Handles, &P, &Crew<'_>) + Send + Sync>;

/// Code of an implementation.
pub(crate) enum Code<L: AccessList, P> {
    /// Runs on one thread, that of the crew's first member.
    Once(Kernel<L, P>),
    /// Runs on the threads of the whole crew, which it manages itself.
    Together(CrewKernel<L, P>),
}

/// Parallel implementations. They run on combined workers of at most `max_size` workers, if the policy has leaves for
/// such, and on single workers, as a team of one.
impl<L: AccessList, P: Send + 'static> CodeletBuilder<L, P> {
    /// Adds an implementation for CPU cores that the first member of a team of at most `max_size` runs for all; its
    /// thread may run on the processing units of all members. [`Team::run`] runs a part of it on every member.
    pub fn cpu_fork<V: Verdict>(
        self,
        name: &str,
        max_size: usize,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Views<'a>) -> V + Send + Sync + 'static,
    ) -> Self {
        let run = move |handles: &L::Handles, params: &P, crew: &Crew<'_>| {
            let mut guards = L::guards(handles, crew.first(), Begun(()));
            let context = Context { params, worker: crew.first(), team: Team::of(crew) };
            let _widened = crew.widen();
            kernel(&context, L::views(&mut guards)).conclude();
        };
        self.add(Implementation::parallel(name, max_size), Code::Together(Box::new(run)))
    }

    /// Adds an implementation for CPU cores that every member of a team of at most `max_size` runs at once. A member
    /// sees all of the data that it reads, its own part of data that it writes, as [`Share`](super::Share) divides it,
    /// and its own scratchpad. Members meet at [`Team::barrier`]. If one panics or returns an error, the task fails,
    /// and the others unwind from the barrier.
    ///
    /// ```
    /// # use sched_runtime::{Read, ReadWrite, Submitter};
    /// # fn make(submitter: &Submitter) {
    /// let axpy = submitter
    ///     .codelet::<(Read<Vec<f64>>, ReadWrite<Vec<f64>>), f64>("axpy")
    ///     .cpu_spmd("axpy_spmd", 8, |context, (x, part)| {
    ///         // Parts are even: this is where the part of this member begins.
    ///         let team = context.team();
    ///         let begin = (x.len() / team.size()) * team.rank() + team.rank().min(x.len() % team.size());
    ///         part.iter_mut().zip(&x[begin..]).for_each(|(y, x)| *y += context.params * x);
    ///     })
    ///     .build();
    /// # }
    /// ```
    pub fn cpu_spmd<V: Verdict>(
        self,
        name: &str,
        max_size: usize,
        kernel: impl for<'a> Fn(&Context<'_, P>, L::Parts<'a>) -> V + Send + Sync + 'static,
    ) -> Self
    where
        L: TeamAccessList,
        P: Sync,
    {
        let run = move |handles: &L::Handles, params: &P, crew: &Crew<'_>| {
            let mut guards = L::team_guards(handles, crew.members, Begun(()));
            let parts = L::parts(&mut guards, crew.members.len());
            let parts: Vec<Mutex<Option<L::Parts<'_>>>> =
                parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
            crew.run(&|team: Team<'_>| {
                let part = parts[team.rank()].lock().take().expect("each member runs once");
                kernel(&Context { params, worker: team.worker(), team }, part).conclude();
            });
        };
        self.add(Implementation::parallel(name, max_size), Code::Together(Box::new(run)))
    }
}
