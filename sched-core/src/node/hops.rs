//! The hops that move tasks, and those that announce work or room.

use super::{Child, Node, Parent};
use crate::abi::wire::NO_ID;
use crate::component::{Push, Refusal, Refused};
use crate::mutex::assert_none_held;
use crate::task::Task;

impl Node<'_> {
    /// *Hop.* Pushes `task` to a child.
    ///
    /// # Errors
    /// The child's refusal, with the task.
    #[inline]
    pub fn push_to(&self, child: Child, task: Task) -> Push {
        assert_none_held("push_to");
        let answer = self.raw.host().push_to(self.raw.call(), child.0, task.into_raw());
        match Task::received(answer.refused) {
            None => Ok(()),
            Some(task) => Err(Refused::new(task, Refusal::from_code(answer.why))),
        }
    }

    /// *Hop.* Pulls a task from a parent.
    #[inline]
    #[must_use]
    pub fn pull_from(&self, parent: Parent) -> Option<Task> {
        assert_none_held("pull_from");
        Task::received(self.raw.host().pull_from(self.raw.call(), parent.0))
    }

    /// *Hop.* Pulls from each parent in order, until one gives a task.
    ///
    /// A parent may push tasks to this component instead, and give none. So a component that stores tasks looks at what
    /// it has once more when it gets none here: the worker that pulls is awake, and nobody wakes it for them.
    #[inline]
    #[must_use]
    pub fn pull_from_parents(&self) -> Option<Task> {
        assert_none_held("pull_from_parents");
        Task::received(self.raw.host().pull_from(self.raw.call(), NO_ID))
    }

    /// *Hop.* Tells each parent in order that there is room here, until one sends a task. Returns whether one did.
    #[inline]
    #[must_use = "whether something was sent"]
    pub fn parents_can_push(&self) -> bool {
        assert_none_held("parents_can_push");
        self.raw.host().parents_can_push(self.raw.call())
    }

    /// *Hop.* Tells a child that there is work here. Returns whether a worker was woken.
    #[inline]
    pub fn child_can_pull(&self, child: Child) -> bool {
        assert_none_held("child_can_pull");
        self.raw.host().child_can_pull(self.raw.call(), child.0)
    }

    /// *Hop.* Tells each child in order that there is work here, until a worker is woken. Costs almost nothing while no
    /// worker sleeps.
    ///
    /// Where a component below [pushes on pull](crate::Info::pushes_on_pull), [`can_push`](crate::Component::can_push)
    /// of this one may be called before it returns, and the task may be gone then; it returns true if it is.
    #[inline]
    pub fn children_can_pull(&self) -> bool {
        assert_none_held("children_can_pull");
        self.raw.host().child_can_pull(self.raw.call(), NO_ID)
    }

    /// *Hop.* Wakes one sleeping worker below that can use what was pushed. Returns whether there was one.
    #[inline]
    pub fn wake_one(&self) -> bool {
        assert_none_held("wake_one");
        self.raw.host().wake(self.raw.call(), false)
    }

    /// *Hop.* Wakes all sleeping workers below. Returns whether there were any.
    #[inline]
    pub fn wake_all(&self) -> bool {
        assert_none_held("wake_all");
        self.raw.host().wake(self.raw.call(), true)
    }

    /// *Hop.* The pump of the StarPU handbook: takes tasks with `pop` and pushes them to `child` until none is left,
    /// the child [has no more room](Self::child_has_room), or one is refused, which `unpop` restores to its position.
    /// Returns whether any task was moved.
    ///
    /// A worker that looks while the refused task is away finds nothing, and sleeps: when it is back, [tell the
    /// children](Self::children_can_pull).
    pub fn pump(&self, child: Child, mut pop: impl FnMut() -> Option<Task>, unpop: impl FnOnce(Task)) -> bool {
        let mut moved = false;
        // The child has just said that there is room for a first one.
        while (!moved || self.child_has_room(child))
            && let Some(task) = pop()
        {
            match self.push_to(child, task) {
                Ok(()) => moved = true,
                Err(refused) => {
                    unpop(refused.task);
                    break;
                }
            }
        }
        moved
    }
}
