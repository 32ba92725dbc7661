//! The codelets of a runtime, by number.
//!
//! A codelet is listed until its last handle is dropped and its last task has ended. Then its number is given to the
//! next codelet, so that a program may make and drop codelets for as long as it runs.

use super::codelet::CodeletFacts;
use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use std::sync::Arc;

/// The codelets of a runtime, by number.
pub(crate) struct Codelets {
    list: RwLock<List>,
    /// Whether names stay when codelets go, for a trace that names codelets by their numbers.
    keeps_names: bool,
}

#[derive(Default)]
struct List {
    codelets: Vec<Listed>,
    /// Numbers of those that are gone, for the next ones.
    unused: Vec<u32>,
}

enum Listed {
    Codelet(Arc<CodeletFacts>),
    /// A codelet that is gone, and its name if that is kept.
    Gone(Option<String>),
}

impl Codelets {
    pub(crate) fn new(keeps_names: bool) -> Codelets {
        Codelets { list: RwLock::default(), keeps_names }
    }

    /// Adds the codelet that `make` returns for a number.
    pub(crate) fn add(&self, make: impl FnOnce(u32) -> CodeletFacts) -> Arc<CodeletFacts> {
        let list = &mut *self.list.write();
        let number = list.unused.pop().unwrap_or_else(|| {
            list.codelets.push(Listed::Gone(None));
            list.codelets.len() as u32 - 1
        });
        let facts = Arc::new(make(number));
        list.codelets[number as usize] = Listed::Codelet(Arc::clone(&facts));
        facts
    }

    /// Removes a codelet that has neither handles nor tasks.
    pub(super) fn remove(&self, number: u32) {
        let list = &mut *self.list.write();
        let Some(listed) = list.codelets.get_mut(number as usize) else { return };
        let gone = match listed {
            Listed::Codelet(facts) if self.keeps_names => Listed::Gone(Some(facts.name.clone())),
            _ => {
                list.unused.push(number);
                Listed::Gone(None)
            }
        };
        *listed = gone;
    }

    /// The codelet of this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<MappedRwLockReadGuard<'_, CodeletFacts>> {
        RwLockReadGuard::try_map(self.list.read(), |list| match list.codelets.get(number as usize) {
            Some(Listed::Codelet(facts)) => Some(&**facts),
            _ => None,
        })
        .ok()
    }

    /// Names of the codelets, by number.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |listed: &Listed| match listed {
            Listed::Codelet(facts) => facts.name.clone(),
            Listed::Gone(name) => name.clone().unwrap_or_default(),
        };
        self.list.read().codelets.iter().map(name).collect()
    }
}
