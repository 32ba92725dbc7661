//! Who may put a command into a queue of a device, one thread at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Copy,
    Kernel,
}

#[derive(Default, Debug)]
struct State {
    is_taken: bool,
    /// Number of threads that wait with a copy.
    copies: usize,
}

/// Turns at a device. Copies come before kernels: a device without threads of its own runs a kernel while it is put
/// into the queue, and who launches one behind the other would take the turn again before a thread wakes that waits
/// with a copy, on which a core depends.
#[derive(Default, Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    given_back: Condvar,
}

/// A turn, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    pub(crate) fn take(&self, command: Command) -> Turn<'_> {
        let mut state = self.state();
        let is_copy = command == Command::Copy;
        state.copies += usize::from(is_copy);
        let must_wait = |state: &mut State| state.is_taken || (!is_copy && state.copies > 0);
        state = self.given_back.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner);
        state.copies -= usize::from(is_copy);
        state.is_taken = true;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().is_taken = false;
        self.0.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn copies_come_before_kernels() {
        let turns = Turns::default();
        let (sender, ended) = channel();
        thread::scope(|scope| {
            let first = turns.take(Command::Kernel);
            let wait_with = |command: Command| {
                let (turns, sender) = (&turns, sender.clone());
                scope.spawn(move || {
                    let _turn = turns.take(command);
                    sender.send(command).expect("the test waits");
                });
            };
            wait_with(Command::Kernel);
            wait_with(Command::Copy);
            while turns.state().copies == 0 {
                thread::yield_now();
            }
            drop(first);
        });
        assert_eq!([ended.recv(), ended.recv()], [Ok(Command::Copy), Ok(Command::Kernel)]);
    }
}
