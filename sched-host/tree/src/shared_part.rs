//! Parts of policies that contexts share: one component, with a node in the tree of each context.
//!
//! # How it works
//!
//! A definition `shared "name" between-contexts=#true` has one instance for all contexts of a ledger whose policies
//! have it. The component of each of its nodes exists once ([`SharedPart`]). Each tree has a node of its own for it, a
//! *view*: with the parents and the workers of its context, and the children that all views have. So a component pushes
//! to, and pulls from, the context whose call it answers; [`workers`](sched_core::Node::workers) are all workers below,
//! [`workers_in_context`](sched_core::Node::workers_in_context) those of that context.
//!
//! A task in such a part belongs to the part: a worker of any context that shares it may execute it. The ledger notes
//! the view through which it came, so tasks of a tree are still those that its numbers hold.
//!
//! # What the views tell each other
//!
//! Calls of several trees are in one component at a time, and each tree has a gate of its own. A tree never calls
//! another; it leaves a note, and wakes workers that see to it:
//!
//! - *Room.* A push that is refused is noted at its view, then tried once more. A pull through another view that takes
//!   a task finds the note, and wakes the workers of the view that was refused: what waits above it moves at their
//!   pull. Of a pull that takes the task before the second attempt, that attempt profits; one that comes after it sees
//!   the note.
//! - *Failure.* A component that fails in one context fails in all. The other trees quarantine their views at their
//!   next call into it, or when a worker of theirs finds nothing to do, for which one is woken
//!   ([`Fallback::call_attention`]). A task in it may be in the hands of a call of another tree, so tasks are not taken
//!   back before each tree was alone once and has *sealed* its view: no call of it is inside any more, and none
//!   follows. The tree that seals the last view takes all tasks. Calls of the others go on meanwhile, past their views:
//!   a task that they take along is held by none of these (`takes_along` in `moves.rs`).
//!
//! # A tree is exchanged
//!
//! One exchange at a time involves shared parts ([`SharedParts::exchanging`]); calls of other trees go on meanwhile.
//! The component of a part that the next tree has as well, or that another tree has, stays where it is, with its tasks:
//! each is noted at a view below which a worker can execute it, that of the next tree if possible. If there is none,
//! the exchange is refused, since a component that others use cannot be drained. The last tree that has a part drains
//! it.

mod moves;
mod viewed;

pub(crate) use moves::Staying;

use super::Part;
use super::attendance::PostNumber;
use super::attended::Unplaced;
use super::backlog::Queued;
use super::fallback::Fallback;
use super::ledger::{NodeId, NodeNumber};
use super::swap::SwapError;
use parking_lot::{Mutex, MutexGuard};
use sched_core::abi::{ComponentObject, object_of};
use sched_core::{WorkerId, WorkerSet};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::*, fence};
use std::sync::{Arc, Weak};
use viewed::{Nothing, Viewed};

/// Code of [`Refusal::Full`](sched_core::Refusal).
const FULL: u32 = 1;

/// What a [`Part`] has in common with parts of other trees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Name of the definition that it belongs to.
    pub part: String,
    /// The text of that definition, on which all trees agree.
    pub text: String,
    /// Its own name.
    pub name: String,
    /// What it is, and where it comes from: trees agree on that too.
    pub definition: String,
}

/// A component with a node in each of several trees.
pub(super) struct SharedPart {
    sharing: Sharing,
    component: ComponentObject,
    /// Where its calls are noted, if they are.
    pub(super) post: Option<Arc<PostNumber>>,
    /// Expected length of its queue, which all views note.
    pub(super) queued: Queued,
    /// Whether the component stores tasks, so that it may be full.
    stores: bool,
    failed: AtomicBool,
    /// Whether a push through some view was refused.
    waits: AtomicBool,
    views: Mutex<Vec<Arc<View>>>,
}

/// The node of a shared part in one tree.
struct View {
    /// First number of the tree.
    tree: NodeNumber,
    number: NodeNumber,
    /// The workers below that are in the context.
    workers: WorkerSet,
    fallback: Arc<Fallback>,
    /// A push through this view was refused, and tasks may wait above it for room.
    waits: AtomicBool,
    /// The component failed, and no call of the tree is inside it or enters it.
    sealed: AtomicBool,
}

impl SharedPart {
    fn views_but(&self, tree: NodeNumber) -> Vec<Arc<View>> {
        self.views.lock().iter().filter(|view| view.tree != tree).cloned().collect()
    }

    /// Whether it works, and is used by another tree than `renewed`.
    fn is_used(&self, renewed: Option<NodeNumber>) -> bool {
        !self.has_failed() && self.views.lock().iter().any(|view| Some(view.tree) != renewed)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.sharing.name
    }

    /// Whether it failed, in whichever tree.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Notes that the component failed in a call of `tree`.
    pub(super) fn fail(&self, tree: NodeNumber) {
        if !self.failed.swap(true, AcqRel) {
            self.views_but(tree).iter().for_each(|view| view.fallback.call_attention());
        }
    }

    /// Removes the view of a tree that is dropped.
    pub(super) fn leave(&self, tree: NodeNumber) {
        let mut views = self.views.lock();
        views.retain(|view| view.tree != tree);
        // It may have been the last one that was not sealed.
        if let Some(view) = views.first().filter(|_| self.has_failed()) {
            view.fallback.call_attention();
        }
    }

    /// Whether it failed, and calls of other trees may still be inside.
    fn is_left(&self, tree: NodeNumber) -> bool {
        self.has_failed() && self.views_but(tree).iter().any(|view| !view.sealed.load(SeqCst))
    }

    /// Seals the view of a tree that is alone, after a failure. The last tree to do so gets the views, whose tasks it
    /// takes back.
    fn seal(&self, tree: NodeNumber) -> Vec<Arc<View>> {
        let views = self.views.lock();
        let own = views.iter().filter(|view| view.tree == tree);
        own.for_each(|view| view.sealed.store(true, SeqCst));
        if views.iter().all(|view| view.sealed.load(SeqCst)) { views.clone() } else { Vec::new() }
    }

    /// Wakes the workers of other views whose pushes were refused: there is room now.
    fn announce_room(&self, own: &View) {
        fence(SeqCst);
        if self.waits.load(Relaxed) {
            self.wake_refused(own);
        }
    }

    #[cold]
    fn wake_refused(&self, own: &View) {
        self.waits.store(false, SeqCst);
        for view in self.views.lock().iter().filter(|view| view.waits.load(SeqCst)) {
            if std::ptr::eq(Arc::as_ptr(view), own) {
                // Its own tree hears of this room from the component; of other room, from here.
                self.waits.store(true, SeqCst);
            } else if view.waits.swap(false, SeqCst) {
                view.fallback.wake(&view.workers);
            }
        }
    }

    /// The store of another context that has a worker in reach for a task.
    pub(super) fn store_elsewhere(&self, tree: NodeNumber, fits: impl Fn(WorkerId) -> bool) -> Option<Arc<Fallback>> {
        let others = self.views_but(tree).into_iter();
        others.into_iter().find(|view| view.workers.iter().any(&fits)).map(|view| Arc::clone(&view.fallback))
    }
}

/// Shared parts by the name of their definition, and their own. There are several of one name while a tree is
/// exchanged.
type ByName = BTreeMap<(String, String), Vec<Weak<SharedPart>>>;

/// The shared parts of all trees of a ledger.
#[derive(Default)]
pub(super) struct SharedParts {
    all: Mutex<ByName>,
    exchanging: Mutex<()>,
}

impl SharedParts {
    /// While the guard lives, no other tree with shared parts is made or exchanged. The caller is not inside a tree.
    pub(super) fn exchanging(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock()
    }

    /// The part that `part` stands for, if a tree has it. One that only the tree with number `renewed` has does not
    /// count.
    fn find(&self, sharing: &Sharing, renewed: Option<NodeNumber>) -> Result<Option<Arc<SharedPart>>, SwapError> {
        let mut all = self.all.lock();
        let Some(known) = all.get_mut(&(sharing.part.clone(), sharing.name.clone())) else { return Ok(None) };
        known.retain(|part| part.strong_count() > 0);
        let found = known.iter().filter_map(Weak::upgrade).find(|part| part.is_used(renewed));
        match found {
            Some(part) if part.sharing.definition != sharing.definition => Err(SwapError::DefinedOtherwise {
                part: sharing.name.clone(),
                here: sharing.definition.clone(),
                there: part.sharing.definition.clone(),
            }),
            found => Ok(found),
        }
    }

    /// Checks that no tree but `renewed` has another definition under these names.
    fn check_texts(&self, texts: &BTreeMap<&str, &str>, renewed: Option<NodeNumber>) -> Result<(), SwapError> {
        let all = self.all.lock();
        for (name, text) in texts {
            let of_name = all.range(((*name).to_owned(), String::new())..).take_while(|((part, _), _)| part == name);
            let parts = of_name.flat_map(|(_, parts)| parts).filter_map(Weak::upgrade);
            if let Some(part) = parts.into_iter().find(|part| part.sharing.text != *text && part.is_used(renewed)) {
                return Err(SwapError::DefinedOtherwise {
                    part: (*name).to_owned(),
                    here: (*text).to_owned(),
                    there: part.sharing.text.clone(),
                });
            }
        }
        Ok(())
    }

    fn add(&self, part: &Arc<SharedPart>) {
        let Sharing { part: of, name, .. } = part.sharing.clone();
        self.all.lock().entry((of, name)).or_default().push(Arc::downgrade(part));
    }
}

/// Where the shared parts of a new tree come from, and what their views know.
pub(super) struct Joining<'a> {
    pub(super) parts: &'a SharedParts,
    /// First number of the new tree.
    pub(super) tree: NodeNumber,
    pub(super) fallback: &'a Arc<Fallback>,
    /// The tree, if any, that the new one replaces by other components.
    pub(super) renewed: Option<NodeNumber>,
}

impl Joining<'_> {
    /// Exchanges the components of shared parts by views of those that exist, or that exist from now on. `attend` makes
    /// a component that is attended. Returns the shared part of each node.
    ///
    /// # Errors
    /// A part exists and is defined otherwise.
    pub(super) fn join(
        &self,
        parts: &mut [Part],
        attend: impl Fn(&Part, ComponentObject) -> (ComponentObject, Option<Arc<PostNumber>>),
    ) -> Result<Vec<Option<Arc<SharedPart>>>, SwapError> {
        let texts = parts.iter().filter_map(|part| part.sharing.as_ref());
        self.parts.check_texts(&texts.map(|sharing| (&*sharing.part, &*sharing.text)).collect(), self.renewed)?;
        let mut found = Vec::with_capacity(parts.len());
        for part in parts.iter() {
            found.push(match &part.sharing {
                Some(sharing) => Some(self.parts.find(sharing, self.renewed)?),
                None => None,
            });
        }
        let mut joined = Vec::with_capacity(parts.len());
        for (index, (part, found)) in parts.iter_mut().zip(found).enumerate() {
            let (Some(sharing), Some(found)) = (part.sharing.clone(), found) else {
                joined.push(None);
                continue;
            };
            let own = std::mem::replace(&mut part.component, Unplaced::new(object_of(Nothing), None));
            let shared = found.unwrap_or_else(|| {
                let (component, post) = attend(part, own.place());
                let shared = Arc::new(SharedPart {
                    sharing,
                    component,
                    post,
                    queued: Queued::default(),
                    stores: part.claims.stores,
                    waits: AtomicBool::new(false),
                    failed: AtomicBool::new(false),
                    views: Mutex::default(),
                });
                self.parts.add(&shared);
                shared
            });
            let view = Arc::new(View {
                tree: self.tree,
                number: self.tree.of(NodeId::at(index)),
                workers: part.workers_in_context.clone(),
                fallback: Arc::clone(self.fallback),
                waits: AtomicBool::new(false),
                sealed: AtomicBool::new(false),
            });
            shared.views.lock().push(Arc::clone(&view));
            part.component = Unplaced::new(object_of(Viewed { part: Arc::clone(&shared), view }), None);
            joined.push(Some(shared));
        }
        Ok(joined)
    }
}
