//! Threads of the program get out of the way of workers.
//!
//! They are not bound, so the operating system may put one on the PU of a bound worker, although another PU is idle: it
//! favours the PU of who wakes a thread. The two take turns then, a time slice each, until the system balances its
//! load, which takes it several slices: far longer than most waits. So a thread moves by itself. It binds itself to the
//! PU where it should be, which moves it at once, and takes its own binding back: it stays there until there is a
//! reason to move it.

use super::BindingPlan;

impl BindingPlan {
    /// Moves the calling thread, which is `worker` for now or about to be, to the PU of that worker, if it runs on that
    /// of another one. Without a worker it moves to a [free PU](Self::free_pus). Its binding is the same afterwards: if
    /// that does not allow the PU, or the plan is for another machine, the thread stays where it is.
    ///
    /// ```
    /// use sched_machine::topology::{BindingPlan, Topology};
    /// let plan = BindingPlan::new(&Topology::this_machine()?, 1)?;
    /// plan.step_aside(Some(0)); // This thread is to be worker 0.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step_aside(&self, worker: Option<usize>) {
        if self.hwloc.is_some() {
            self.leave_worker(worker);
        }
    }

    #[cfg(target_os = "linux")]
    fn leave_worker(&self, worker: Option<usize>) {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
        let here = sched_getcpu();
        let place = |worker: usize| self.workers.get(worker).map(|place| place.pu as usize);
        let is_right = worker.and_then(place) == Some(here);
        if is_right || !u32::try_from(here).is_ok_and(|here| self.by_pu.contains_key(&here)) {
            return;
        }
        let wanted = match worker {
            Some(worker) => place(worker),
            None => self.free_pus(None).first().map(|pu| *pu as usize),
        };
        let Some(wanted) = wanted.filter(|pu| *pu < CpuSet::MAX_CPU) else { return };
        let Ok(before) = sched_getaffinity(None) else { return };
        if before.is_set(wanted) {
            let mut there = CpuSet::new();
            there.set(wanted);
            // If it is refused, the thread is where it was.
            let _ = sched_setaffinity(None, &there).and_then(|()| sched_setaffinity(None, &before));
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "other systems move threads differently")]
    fn leave_worker(&self, _worker: Option<usize>) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::topology::{BindingPlan, Topology};
    use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

    #[test]
    fn a_thread_that_is_bound_stays_and_one_that_moves_keeps_its_binding() {
        let machine = Topology::this_machine().expect("it is explored");
        let workers = BindingPlan::default_workers(&machine);
        let plan = BindingPlan::new(&machine, workers).expect("a worker for each unit");
        let before = sched_getaffinity(None).expect("this thread has one");
        for place in plan.workers() {
            // Bound to the unit of a worker, it may go nowhere else.
            plan.bind_current_thread(place.worker).expect("the unit is allowed");
            let bound = sched_getaffinity(None).expect("this thread has one");
            plan.step_aside(Some((place.worker + 1) % workers));
            assert_eq!((sched_getcpu(), sched_getaffinity(None).ok()), (place.pu as usize, Some(bound)));
            // (From here on the system may move it too, so where it runs is not looked at.)
            sched_setaffinity(None, &before).expect("it had this one");
            plan.step_aside(Some((place.worker + 1) % workers));
            assert_eq!(sched_getaffinity(None).ok(), Some(before));
        }
    }

    #[test]
    fn a_plan_for_another_machine_moves_nobody() {
        let plan = BindingPlan::new(&Topology::from_synthetic("core:4 pu:1").expect("it is right"), 4);
        let before = sched_getaffinity(None).ok();
        plan.expect("four workers").step_aside(Some(3));
        assert_eq!(sched_getaffinity(None).ok(), before);
    }
}
