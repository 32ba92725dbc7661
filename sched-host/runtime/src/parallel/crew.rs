//! The workers that execute a task, one or the members of a combined worker, and how they run together.
//!
//! A kernel that several workers run borrows data, so all must have returned before it has: they are *scoped* threads.
//! The first member runs on the thread of its own worker; the others run on threads of a pool that the combined worker
//! keeps, each bound like its member, while the members' own threads are parked in the
//! [gathering](sched_sync::gathering). (Lending data to a worker's own thread for the duration of a call would require
//! `unsafe`.)

use crate::task::submit::Submitter;
use crate::wait::barrier::Barrier;
use crate::worker::acting::Acting;
use crate::worker::executed_here;
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sched_core::WorkerId;
use sched_machine::topology::BindingPlan;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

/// The combined workers of a runtime, with their threads.
pub(crate) struct Crews {
    /// Number of the first combined worker.
    first: u32,
    crews: Vec<Standing>,
    binding: Option<BindingPlan>,
}

/// One combined worker.
struct Standing {
    members: Box<[WorkerId]>,
    /// Threads of all members but the first, created on first use.
    pool: OnceLock<Result<ThreadPool, String>>,
}

impl Crews {
    pub(crate) fn new(workers: usize, combined: &[Box<[WorkerId]>], binding: Option<BindingPlan>) -> Crews {
        let standing = |members: &[WorkerId]| Standing { members: members.into(), pool: OnceLock::new() };
        let crews = combined.iter().map(|members| standing(members)).collect();
        Crews { first: workers as u32, crews, binding }
    }

    /// The crew of a combined worker.
    pub(crate) fn of<'a>(&'a self, combined: WorkerId, submitter: &'a Submitter) -> Crew<'a> {
        let standing = &self.crews[(combined.0 - self.first) as usize];
        Crew { members: &standing.members, submitter, together: Some((self, standing)) }
    }

    /// # Panics
    /// If the system gives no threads; the task then fails.
    fn pool<'a>(&self, standing: &'a Standing) -> &'a ThreadPool {
        let make = || {
            let members = standing.members.to_vec();
            let binding = self.binding.clone();
            let others = members.len() - 1;
            let name = format!("team-{}", members[0].0);
            let bind = move |index: usize| {
                if let Some(plan) = &binding
                    && let Err(why) = plan.bind_current_thread(members[index + 1].0 as usize)
                {
                    tracing::warn!("a thread of a team is not bound: {why}");
                }
            };
            let pool = ThreadPoolBuilder::new()
                .num_threads(others)
                .thread_name(move |index| format!("{name}-{}", index + 1))
                .start_handler(bind)
                .build();
            pool.map_err(|why| why.to_string())
        };
        match standing.pool.get_or_init(make) {
            Ok(pool) => pool,
            Err(why) => panic!("the threads of a team could not be started: {why}"),
        }
    }
}

/// The workers that execute a task.
#[derive(Clone, Copy)]
pub(crate) struct Crew<'a> {
    pub(crate) members: &'a [WorkerId],
    pub(crate) submitter: &'a Submitter,
    /// Present if there are several members.
    together: Option<(&'a Crews, &'a Standing)>,
}

impl<'a> Crew<'a> {
    /// A crew of one worker.
    pub(crate) fn alone(worker: &'a WorkerId, submitter: &'a Submitter) -> Crew<'a> {
        Crew { members: std::slice::from_ref(worker), submitter, together: None }
    }

    /// The first member, whose thread this is.
    pub(crate) fn first(&self) -> WorkerId {
        self.members[0]
    }

    /// Lets the calling thread run on the processing units of all members, until the result is dropped.
    pub(crate) fn widen(&self) -> Widened<'a> {
        self.bind(self.members);
        Widened { crew: *self }
    }

    fn bind(&self, members: &[WorkerId]) {
        let Some((crews, _)) = self.together else { return };
        let Some(plan) = &crews.binding else { return };
        let workers: Vec<usize> = members.iter().map(|member| member.index()).collect();
        if let Err(why) = plan.bind_current_thread_to(&workers) {
            tracing::warn!("a team is not bound: {why}");
        }
    }

    /// Runs `body` for all members at once, and returns when all have returned. Resumes the first panic.
    pub(crate) fn run(&self, body: &(impl Fn(Team<'_>) + Sync)) {
        let pool = self.together.map(|(crews, standing)| crews.pool(standing));
        let barrier = Barrier::new(self.members.len());
        let failure: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
        let (core, context) = (&*self.submitter.core, executed_here(&self.submitter.core));
        let member = |rank: usize| {
            let _acting = context.map(|context| Acting::for_task(core, context));
            let team = Team { crew: self, rank, barrier: Some(&barrier) };
            match catch_unwind(AssertUnwindSafe(|| body(team))) {
                Ok(()) => barrier.leave(),
                Err(payload) => {
                    barrier.break_up();
                    let mut failure = failure.lock();
                    if failure.is_none() && !Barrier::is_consequence(&*payload) {
                        *failure = Some(payload);
                    } else {
                        // The drop of a payload may panic in turn.
                        std::mem::forget(payload);
                    }
                }
            }
        };
        match pool {
            Some(pool) => pool.in_place_scope(|scope| {
                scope.spawn_broadcast(|_, thread| member(thread.index() + 1));
                member(0);
            }),
            None => member(0),
        }
        if let Some(payload) = failure.into_inner() {
            resume_unwind(payload);
        }
        assert!(!barrier.is_broken(), "a member of the team returned while others waited for it at a barrier");
    }
}

/// See [`Crew::widen`].
pub(crate) struct Widened<'a> {
    crew: Crew<'a>,
}

impl Drop for Widened<'_> {
    fn drop(&mut self) {
        self.crew.bind(&self.crew.members[..1]);
    }
}

/// The workers that execute a task together, as the kernel sees them: [`Context::team`](crate::Context::team).
///
/// An implementation that is not parallel, or that runs on a single worker, has a team of one.
#[derive(Clone, Copy)]
pub struct Team<'a> {
    crew: &'a Crew<'a>,
    rank: usize,
    /// Meeting point, while all members run.
    barrier: Option<&'a Barrier>,
}

impl<'a> Team<'a> {
    /// Team of a kernel that the first member runs for all.
    pub(crate) fn of(crew: &'a Crew<'a>) -> Team<'a> {
        Team { crew, rank: 0, barrier: None }
    }

    pub(crate) fn submitter(&self) -> &'a Submitter {
        self.crew.submitter
    }

    /// Rank of this member, from 0; always 0 in a forking implementation, which the first member runs.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> usize {
        self.crew.members.len()
    }

    /// The worker of this member.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.crew.members[self.rank]
    }

    /// All members, in order of their ranks.
    #[must_use]
    pub fn workers(&self) -> &'a [WorkerId] {
        self.crew.members
    }

    /// Waits until every member has arrived, if all members run: in an SPMD implementation, and inside
    /// [`run`](Self::run). Elsewhere only this member runs, and continues.
    ///
    /// # Panics
    /// If a member panicked, or returned without arriving, so that the barrier would never open. The task then fails
    /// with the panic of that member.
    pub fn barrier(&self) {
        if let Some(barrier) = self.barrier {
            barrier.wait();
        }
    }

    /// In a forking implementation: runs `body` on all members at once, each on the processing unit of its worker, and
    /// returns when all have returned. The borrow checker decides how it may use data of the task:
    /// [`share`](Self::share) splits a slice for the members.
    ///
    /// If all members already run, each is on its own: `body` runs once, for a team of one.
    ///
    /// ```
    /// # use sched_runtime::{ReadWrite, Submitter};
    /// # fn make(submitter: &Submitter) {
    /// let scale = submitter
    ///     .codelet::<(ReadWrite<Vec<f64>>,), f64>("scale")
    ///     .cpu_fork("scale_fork", 8, |context, (vector,)| {
    ///         let (team, factor) = (context.team(), *context.params);
    ///         let parts = team.share(vector);
    ///         team.run(|member| parts.take(member).iter_mut().for_each(|value| *value *= factor));
    ///     })
    ///     .build();
    /// # }
    /// ```
    ///
    /// # Panics
    /// With the panic of the member that panicked first.
    pub fn run(&self, body: impl Fn(Team<'_>) + Sync) {
        match self.barrier {
            None => self.crew.run(&body),
            Some(_) => {
                let worker = self.worker();
                let barrier = Barrier::new(1);
                body(Team { crew: &Crew::alone(&worker, self.crew.submitter), rank: 0, barrier: Some(&barrier) });
            }
        }
    }

    /// Splits a slice into consecutive parts, one for each member, whose lengths differ by at most one.
    pub fn share<'d, E>(&self, data: &'d mut [E]) -> Parts<'d, E> {
        Parts { parts: even(data, self.size()).map(|part| Mutex::new(Some(part))).collect() }
    }
}

impl fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("rank", &self.rank).field("workers", &self.crew.members).finish_non_exhaustive()
    }
}

/// The parts of a slice, one for each member of a team; made with [`Team::share`].
pub struct Parts<'a, E> {
    parts: Vec<Mutex<Option<&'a mut [E]>>>,
}

impl<'a, E> Parts<'a, E> {
    /// The part of this member.
    ///
    /// # Panics
    /// If the member has already taken it, or belongs to another team.
    #[must_use]
    pub fn take(&self, member: Team<'_>) -> &'a mut [E] {
        let part = self.parts.get(member.rank()).and_then(|part| part.lock().take());
        part.expect("each member of the team takes its part once")
    }
}

impl<E> fmt::Debug for Parts<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

/// Consecutive parts whose lengths differ by at most one, longer ones first.
pub(crate) fn even<E>(data: &mut [E], parts: usize) -> impl Iterator<Item = &mut [E]> {
    let (each, longer) = (data.len() / parts, data.len() % parts);
    let mut rest = data;
    (0..parts).map(move |part| {
        let (first, others) = std::mem::take(&mut rest).split_at_mut(each + usize::from(part < longer));
        rest = others;
        first
    })
}
