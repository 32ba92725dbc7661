//! What an examination is about to do: whoever watches it knows the call that does not come back.

use super::Listener;
use super::step::Step;
use std::cell::RefCell;

/// Writes to the listener, while it is listened to.
pub(super) struct Journal<'a> {
    pub(super) listener: Option<&'a dyn Listener>,
    /// The lines of the current trial.
    pub(super) lines: RefCell<Vec<String>>,
    /// Its steps.
    pub(super) steps: RefCell<Vec<Step>>,
}

impl<'a> Journal<'a> {
    pub(super) fn new(listener: Option<&'a dyn Listener>) -> Journal<'a> {
        Journal { listener, lines: RefCell::default(), steps: RefCell::default() }
    }

    pub(super) fn trial(&self, setting: &str) {
        self.lines.borrow_mut().clear();
        self.steps.borrow_mut().clear();
        if let Some(listener) = self.listener {
            listener.trial(setting);
        }
    }

    pub(super) fn step(&self, words: &str) {
        if let Some(listener) = self.listener {
            listener.call(words);
        }
        self.lines.borrow_mut().push(words.to_owned());
    }

    pub(super) fn answer(&self, words: &str) {
        if let Some(listener) = self.listener {
            listener.came_back(words);
        }
        if let Some(line) = self.lines.borrow_mut().last_mut().filter(|_| !words.is_empty()) {
            *line = format!("{line}: {words}");
        }
    }

    /// A change of the environment.
    pub(super) fn note(&self, words: &str) {
        self.step(words);
        self.answer("");
    }
}
