//! Several simulations at once.

use crate::values::positive;
use miette::{IntoDiagnostic, WrapErr};
use rayon::iter::{ParallelBridge, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::thread::{Builder, available_parallelism, scope};

/// How many simulations run at once.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct JobOptions {
    /// Policies and seeds that are simulated at once: results are the same, but each takes longer, and memory of its own
    /// [default: one for each hardware thread that may be used]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    jobs: Option<usize>,
}

impl JobOptions {
    /// Threads for this many pieces of work.
    ///
    /// # Errors
    /// If there are not as many as were asked for.
    pub(crate) fn start(&self, count: usize) -> miette::Result<Jobs> {
        let wanted = self.jobs.or_else(|| available_parallelism().ok().map(NonZeroUsize::get)).unwrap_or(1);
        let threads = wanted.min(count);
        let named = |number| format!("job {}", number + 1);
        // Components of third parties find the stack that the main thread would have.
        let pool = || ThreadPoolBuilder::new().num_threads(threads).thread_name(named).stack_size(STACK).build();
        let pool = match (threads > 1).then(pool).transpose() {
            // Nobody asked for them, and the result is the same.
            Err(_) if self.jobs.is_none() => None,
            pool => pool.into_diagnostic().wrap_err_with(|| format!("{threads} threads could not be started"))?,
        };
        Ok(Jobs { pool, beside: wanted > 1 })
    }
}

/// Bytes of the stack of a job: what Linux gives to a program's first thread.
const STACK: usize = 8 << 20;

/// See the [module](self).
pub(crate) struct Jobs {
    /// `None` if one piece of work follows the other, on the thread that asks.
    pool: Option<ThreadPool>,
    /// Whether anything is done beside that.
    beside: bool,
}

impl Jobs {
    /// What `work` makes of each piece, in their order. Pieces are made and begun in that order too.
    pub(crate) fn each<P: Send, R: Send>(
        &self,
        pieces: impl Iterator<Item = P> + Send,
        work: impl Fn(P) -> R + Sync,
    ) -> Vec<R> {
        let Some(pool) = &self.pool else { return pieces.map(work).collect() };
        let numbered = || pieces.enumerate().par_bridge().map(|(number, piece)| (number, work(piece)));
        let mut results: Vec<(usize, R)> = pool.install(|| numbered().collect());
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Does `aside` beside `work`, or after it where one thing is done at a time.
    pub(crate) fn beside<A, B: Send>(&self, work: impl FnOnce() -> A, aside: impl Fn() -> B + Sync) -> (A, B) {
        scope(|scope| {
            let other = self.beside.then(|| Builder::new().spawn_scoped(scope, &aside).ok()).flatten();
            let worked = work();
            let ended = other.map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            (worked, ended.unwrap_or_else(&aside))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    fn jobs(wanted: usize, count: usize) -> Jobs {
        JobOptions { jobs: Some(wanted) }.start(count).expect("there are threads")
    }

    #[test]
    fn results_are_in_the_order_of_the_pieces() {
        let pieces: Vec<usize> = (0..100).collect();
        for wanted in [1, 2, 7] {
            let squares = jobs(wanted, pieces.len()).each(pieces.iter(), |piece| piece * piece);
            assert!(squares.iter().enumerate().all(|(number, square)| *square == number * number), "{wanted} jobs");
        }
    }

    #[test]
    fn as_many_run_at_once_as_were_asked_for() {
        // They wait for each other, so that fewer would never end.
        let all = Barrier::new(3);
        assert_eq!(jobs(3, 9).each(0..9, |_| all.wait().is_leader()).into_iter().filter(|it| *it).count(), 3);
        let both = Barrier::new(2);
        jobs(2, 1).beside(|| both.wait(), || both.wait());
    }

    #[test]
    fn one_piece_of_work_stays_on_this_thread() {
        let here = std::thread::current().id();
        let is_here = |_: usize| std::thread::current().id() == here;
        assert_eq!(jobs(4, 1).each(0..1, is_here), [true]);
        let alone = jobs(1, 5);
        assert_eq!(alone.each(0..2, is_here), [true, true]);
        let mut ended = false;
        let (_, aside) = alone.beside(|| ended = true, || is_here(0));
        assert!(ended && aside);
    }
}
