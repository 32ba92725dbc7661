//! Wraps a component in its stable object, and stops panics at that boundary.

use crate::abi::ComponentObject;
use crate::abi::component::{WireComponent, object_of};
use crate::abi::extension::{ComponentExecution, ComponentState, Named, RawExecution, RawExtension};
use crate::abi::task::RawTask;
use crate::abi::wire::{RawNode, RawPush};
use crate::component::{Component, Execution, ExecutionEnd, Report};
use crate::node::{Child, Node};
use crate::task::Task;
use abi_stable::std_types::{ROption, RSlice, RStr, RString, RVec, Tuple2};
use std::any::Any;
use std::cell::RefCell;
use std::mem::{ManuallyDrop, offset_of};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Puts a component behind the stable interface. Hosts use it for components that are compiled in, plugins for their
/// own.
pub fn adapt<C: Component>(component: C) -> ComponentObject {
    object_of(Adapter {
        execution: ComponentExecution { started: started::<C>, ended: ended::<C> },
        state: ComponentState { export: export::<C>, import: import::<C> },
        component: ManuallyDrop::new(component),
    })
}

/// A component, and the tables of its extensions, whose functions get a pointer to their table.
#[repr(C)]
struct Adapter<C> {
    execution: ComponentExecution,
    state: ComponentState,
    component: ManuallyDrop<C>,
}

/// The adapter that has an extension at `this`, `offset` bytes from its start.
///
/// # Safety
/// The host calls with the pointer that the adapter of this type offered, as long as the component is there.
unsafe fn adapter_of<'a, C>(this: *const (), offset: usize) -> &'a Adapter<C> {
    // SAFETY: the pointer was made from one to the whole adapter, in `extension`.
    unsafe { &*this.byte_sub(offset).cast::<Adapter<C>>() }
}

extern "C" fn started<C: Component>(this: *const (), node: &RawNode, task: &RawExecution) {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<C>(this, offset_of!(Adapter<C>, execution)) };
    guarded(node, (), || adapter.component.task_started(Node::new(node), &Execution::of(task)));
}

extern "C" fn ended<C: Component>(this: *const (), node: &RawNode, task: &RawExecution) {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<C>(this, offset_of!(Adapter<C>, execution)) };
    let (execution, end) = (Execution::of(task), ExecutionEnd::of(task));
    guarded(node, (), || adapter.component.task_ended(Node::new(node), &execution, &end));
}

extern "C" fn export<C: Component>(this: *const (), node: &RawNode) -> ROption<RVec<u8>> {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<C>(this, offset_of!(Adapter<C>, state)) };
    guarded(node, ROption::RNone, || adapter.component.export(Node::new(node)).map(RVec::from).into())
}

extern "C" fn import<C: Component>(this: *const (), node: &RawNode, state: RSlice<'_, u8>) {
    // SAFETY: see `adapter_of`.
    let adapter = unsafe { adapter_of::<C>(this, offset_of!(Adapter<C>, state)) };
    guarded(node, (), || adapter.component.import(Node::new(node), state.as_slice()));
}

impl<C> Drop for Adapter<C> {
    /// Catches a panic in the component's drop: unwinding out of `extern "C"` code would end the process. There is no
    /// host left to report it to; a rig in the same library asks for it.
    fn drop(&mut self) {
        // SAFETY: the component is dropped only here, and not used afterwards.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(&mut self.component) }));
        if let Err(payload) = dropped {
            let message = caught(payload);
            let _ = DROP_PANIC.try_with(|last| last.replace(Some(message)));
        }
    }
}

thread_local! {
    static DROP_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The message of the last panic in the drop of a component on this thread, once. The component is one of this library:
/// a plugin has its own copy of this one.
#[cfg(feature = "rig")]
pub(crate) fn drop_panic() -> Option<String> {
    DROP_PANIC.with(RefCell::take)
}

/// Runs `body`; if it panics, reports the panic to the host and returns `otherwise`.
///
/// Unwinding drops the tasks that `body` owned, which returns them to the host. The host takes back those that the
/// component had stored: it knows where each task is.
fn guarded<T>(node: &RawNode, otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(answer) => answer,
        Err(payload) => {
            node.host().report_panic(node.call(), RStr::from(caught(payload).as_str()));
            otherwise
        }
    }
}

/// Number of characters of a panic's message that are kept: `assert_eq!` prints whole lists.
const LONGEST: usize = 2000;

/// The message of a panic that was caught, whose payload is not dropped: that may panic again.
pub(crate) fn caught(payload: Box<dyn Any + Send>) -> String {
    let message = panic_message(&*payload);
    std::mem::forget(payload);
    message
}

/// The message of a panic, and its location if this library's hook recorded it.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let mut text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.replace_range(end.., "…");
    }
    match crate::export::last_panic_location() {
        Some(location) => format!("{text} (at {location})"),
        None => text,
    }
}

impl<C: Component> WireComponent for Adapter<C> {
    fn push_task(&self, node: &RawNode, task: RawTask) -> RawPush {
        guarded(node, RawPush::TAKEN, || {
            // SAFETY: the host gives the task away with this call.
            let task = unsafe { Task::from_raw(task) };
            match self.component.push_task(Node::new(node), task) {
                Ok(()) => RawPush::TAKEN,
                Err(refused) => RawPush { refused: refused.task.into_raw(), why: refused.why.code() },
            }
        })
    }

    fn pull_task(&self, node: &RawNode, to: u32) -> RawTask {
        guarded(node, RawTask::NONE, || match self.component.pull_task(Node::new(node), Child(to)) {
            Some(task) => task.into_raw(),
            None => RawTask::NONE,
        })
    }

    fn can_push(&self, node: &RawNode, to: u32) -> bool {
        guarded(node, false, || self.component.can_push(Node::new(node), Child(to)))
    }

    fn can_pull(&self, node: &RawNode) -> bool {
        guarded(node, false, || self.component.can_pull(Node::new(node)))
    }

    fn estimated_end(&self, node: &RawNode) -> u64 {
        guarded(node, 0, || self.component.estimated_end(Node::new(node)).as_nanos())
    }

    fn estimated_load(&self, node: &RawNode) -> f64 {
        guarded(node, 0.0, || self.component.estimated_load(Node::new(node)))
    }

    fn notify_change_workers(&self, node: &RawNode) {
        guarded(node, (), || self.component.notify_change_workers(Node::new(node)));
    }

    fn drain(&self, node: &RawNode) -> RVec<RawTask> {
        guarded(node, RVec::new(), || {
            self.component.drain_at(Node::new(node)).into_iter().map(Task::into_raw).collect()
        })
    }

    fn describe(&self, node: &RawNode) -> RVec<Tuple2<RString, RString>> {
        guarded(node, RVec::new(), || {
            let mut report = Report::default();
            self.component.describe_at(Node::new(node), &mut report);
            report.facts().iter().map(|(name, value)| Tuple2(name.as_str().into(), value.as_str().into())).collect()
        })
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        let this = std::ptr::from_ref(self);
        match name.as_str() {
            // SAFETY: the host keeps the component, which it never moves, as long as it uses what is offered.
            ComponentExecution::NAME => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Adapter<C>, execution)).cast::<ComponentExecution>())
            }),
            // SAFETY: as above.
            ComponentState::NAME => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Adapter<C>, state)).cast::<ComponentState>())
            }),
            _ => ROption::RNone,
        }
    }
}

#[cfg(test)]
mod tests;
