//! Components that cannot be built, or that do not come back, for tests of what is exchanged while it runs.

use sched_core::{Build, BuildError, Component, Family, Info, Node, Param, Params, Push, Storage, Task};
use sched_core::{Child, Refused};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Cannot be built: its constructor refuses, or panics.
#[derive(Debug)]
pub struct Unbuildable;

impl Build for Unbuildable {
    const INFO: Info = Info::new("unbuildable", Family::SpecialPurpose, "Cannot be built.")
        .storage(Storage::None)
        .params(const { &[Param::text("what", "refuse", "what its constructor does: refuse, or panic")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        assert!(params.text("what")? != "panic", "bad on purpose");
        Err(BuildError::new("bad on purpose"))
    }
}

impl Component for Unbuildable {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, sched_core::Refusal::Full))
    }
}

/// Passes tasks on, but does not come back from a push while a [`Held`] is there.
#[derive(Debug)]
pub struct Hanging;

#[derive(Default)]
struct State {
    held: bool,
    hanging: usize,
}

static STATE: Mutex<State> = Mutex::new(State { held: false, hanging: 0 });
static CHANGED: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().expect("nobody panics with it")
}

/// Pushes hang until it is dropped. For one test at a time.
#[derive(Debug)]
pub struct Held(());

/// Makes pushes through [`Hanging`] hang from now on.
#[must_use]
pub fn hold_pushes() -> Held {
    state().held = true;
    Held(())
}

impl Held {
    /// Waits until a push hangs.
    ///
    /// # Panics
    /// If a test that uses it panicked.
    pub fn wait_until_somebody_hangs(&self) {
        let waited = CHANGED.wait_while(state(), |state| state.hanging == 0);
        drop(waited.expect("nobody panics with it"));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        state().held = false;
        CHANGED.notify_all();
    }
}

impl Build for Hanging {
    const INFO: Info = Info::new("hanging", Family::SpecialPurpose, "Does not come back for a while.").forwards_push();

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Hanging)
    }
}

impl Component for Hanging {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut state = state();
        state.hanging += 1;
        CHANGED.notify_all();
        let mut state = CHANGED.wait_while(state, |state| state.held).expect("nobody panics with it");
        state.hanging -= 1;
        drop(state);
        node.push_to(Child(0), task)
    }
}
