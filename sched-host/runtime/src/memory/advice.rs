//! What the program says about its data ahead of tasks: where it will be used, that it will not, or that its value is
//! of no use any more.
//!
//! Each is an access to the data in its turn that is no task, so what tasks see does not depend on when it happens.

use super::hints::Hint;
use crate::core::{Core, TaskPlace};
use crate::data::{DataHeader, Places};
use crate::task::cancel::cancelled;
use crate::task::complete::aside;
use crate::task::failure::Outcome;
use crate::task::record::RareFields;
use crate::task::scratch::WorkerScratch;
use crate::task::submit::Submitter;
use crate::wait::DataError;
use crate::wait::data::Data;
use sched_core::MemoryNode;
use sched_graph::{AccessMode, ContextId};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    Unused,
    Invalid,
    Wanted(MemoryNode),
}

/// Why tasks that read data do not run after it was invalidated.
const INVALIDATED: &str = "the program has invalidated the data";

impl Submitter {
    /// Declares data, or a part of it, unused for now: after all tasks submitted so far that use it, its
    /// [replicas](Self::replicated) are dropped, except a valid one. Later tasks that use it wait for that, and create
    /// new replicas. The memory for an array or a matrix on a memory node is given back when the last of its parts has
    /// been let go there. No effect with one memory node, or for data without replicas.
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended.
    pub fn wont_use<D: Data>(&self, handle: &D) -> Result<(), DataError> {
        let header = handle.header();
        self.core.check_use(header, AccessMode::Read)?;
        if self.has_replicas(header) {
            if let Some(capture) = self.core.capture() {
                capture.note_unused(header, self.core.submitted());
            }
            self.advise(header, AccessMode::ReadWrite, Advice::Unused);
        }
        Ok(())
    }

    /// Copies data, or a part of it, to a memory node ahead of the tasks that will use it there: after all tasks
    /// submitted so far that write it, by a thread of that node. Later tasks that write it wait for the copy. No effect
    /// with one memory node, for data without replicas, where the value is already, on a node without workers, and
    /// while 1024 copies wait for that thread, those ahead of queued tasks included.
    ///
    /// ```
    /// use sched_runtime::{Plan, Runtime};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// // Two groups of one worker, as if each had its own memory.
    /// let runtime = Runtime::builder().registry(components).workers(2).memory_nodes(2).build()?;
    /// let x = runtime.array(vec![1.0; 1000]);
    /// let halves = x.partition(&Plan::ranges(2))?;
    /// runtime.prefetch(&halves[1], 1)?;
    /// runtime.wait_all()?;
    /// assert_eq!(runtime.transfers()[0].bytes, 4000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended; [`DataError::NoMemoryNode`] if there is no such memory node.
    pub fn prefetch<D: Data>(&self, handle: &D, memory_node: u32) -> Result<(), DataError> {
        let header = handle.header();
        self.core.check_use(header, AccessMode::Read)?;
        let nodes = self.core.backend.memories.as_ref().map_or(1, |memories| memories.nodes());
        if memory_node as usize >= nodes {
            return Err(DataError::NoMemoryNode { node: memory_node, nodes });
        }
        if self.has_replicas(header) {
            self.advise(header, AccessMode::Read, Advice::Wanted(MemoryNode(memory_node)));
        }
        Ok(())
    }

    /// Declares the value of data, or of a part of it, of no use any more: after all tasks submitted so far that use
    /// it. Replicas are dropped as by [`wont_use`](Self::wont_use), and until a task [writes](crate::Write) it
    /// completely, it counts as data that was not computed: reading it is an error, and tasks that read it are
    /// cancelled.
    ///
    /// ```
    /// use sched_runtime::{Runtime, Write};
    /// # use std::sync::Arc;
    /// # let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    /// # let runtime = Runtime::builder().registry(components).workers(1).build()?;
    /// let set = runtime.codelet::<(Write<u64>,), ()>("set").cpu("set", |_, (x,)| *x = 2).build();
    /// let x = runtime.register(1);
    /// runtime.invalidate(&x)?;
    /// let error = runtime.read(&x).map(|x| *x).unwrap_err();
    /// assert!(error.to_string().contains("the program has invalidated the data"));
    /// runtime.task(&set, (&x,)).submit()?;
    /// assert_eq!(*runtime.read(&x)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Foreign`] if the handle belongs to another runtime, [`DataError::Loan`] if the scope that lent the
    /// data has ended.
    pub fn invalidate<D: Data>(&self, handle: &D) -> Result<(), DataError> {
        let header = handle.header();
        self.core.check_use(header, AccessMode::ReadWrite)?;
        self.advise(header, AccessMode::ReadWrite, Advice::Invalid);
        Ok(())
    }

    /// Whether data may have replicas on several memory nodes.
    fn has_replicas(&self, header: &DataHeader) -> bool {
        self.core.backend.memories.is_some() && matches!(header.places, Places::Replicated(_) | Places::Part(_))
    }

    fn advise(&self, header: &Arc<DataHeader>, mode: AccessMode, advice: Advice) {
        let rare = RareFields { advice: Some((Arc::clone(header), advice)), ..RareFields::default() };
        self.enter_turn(header, mode, rare);
    }
}

impl Core {
    /// Follows an advice whose turn has come; the entry ends now, or when the data is there. It holds the data no
    /// longer then: the program may take it back.
    #[cold]
    pub(crate) fn follow_advice(
        &self,
        task: TaskPlace,
        header: Arc<DataHeader>,
        advice: Advice,
        scratch: &mut WorkerScratch,
    ) {
        let sequence = &task.slot.head().sequence;
        match advice {
            Advice::Wanted(node) => {
                let hint = Hint::Data { header, turn: task.slot.id() };
                if self.backend.memories.as_ref().is_some_and(|memories| memories.add_hint(node, hint)) {
                    return;
                }
            }
            Advice::Unused => aside(sequence, "the drop of a replica", || let_go(&header)),
            Advice::Invalid => {
                aside(sequence, "the drop of a replica", || let_go(&header));
                self.note_invalid(task, &header, INVALIDATED);
            }
        }
        self.own_accesses.ended.fetch_add(1, SeqCst);
        scratch.end_later(task.slot.id(), Outcome::Done);
    }
}

impl Core {
    /// Notes, in the turn of an access that writes, that data has no value: tasks that read it are cancelled, until one
    /// writes it completely. `why` is the reason that readers get.
    #[cold]
    pub(crate) fn note_invalid(&self, turn: TaskPlace, header: &DataHeader, why: &str) {
        let cause = cancelled(turn.slot, String::new(), None, why);
        let outcome = Outcome::Cancelled(Arc::clone(&cause));
        self.outcomes.note_bad(ContextId::DEFAULT, cause.task, &outcome, &cause, false);
        header.note_bad(cause.task);
    }
}

/// Drops all replicas of data but a valid one, in a writer's turn.
fn let_go(header: &DataHeader) {
    match &header.places {
        Places::Replicated(copies) => copies.let_go(),
        Places::Part(part) => part.let_go(),
        Places::One(_) | Places::Lent(_) => {}
    }
}
