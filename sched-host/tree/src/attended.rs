//! A component whose calls are noted, and that is not waited for without end when a tree is taken down.
//!
//! `push_task`, `pull_task` and the other calls of a run are [noted](super::attendance) and made; the first ones and a
//! sample of the others are [witnessed](super::witness). Where the component declares that the host can do without the
//! call, the host does so between two witnessed calls, unless the component was seen to lie. The calls that happen
//! while a tree is built, exchanged or taken down are made by a thread of their own, and are waited for with patience:
//! `drain`, `export`, `import` and the destructor, also that of a component that never comes into a tree. One that does
//! not come back is a fault; a drain gives no tasks then: the host takes them through the ledger, as it does for a
//! component that panicked. The thread stays behind, and with it the component.

use super::attendance::{Inside, Method, Post, PostNumber};
use super::call::Call;
use super::claims::{Claims, Declaration};
use super::deaf::Deaf;
use super::listener::Table;
use super::node::{TreeNode, record};
use super::witness::{Witness, note_lie};
use sched_core::abi::component::WireComponent;
use sched_core::abi::extension::{ComponentState, Named, RawExtension};
use sched_core::abi::std_types::{ROption, RSlice, RStr, RString, RVec, Tuple2};
use sched_core::abi::wire::{NO_ID, RawNode, RawPush};
use sched_core::abi::{ComponentObject, RawTask, object_of};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long a call is waited for that builds a component, hands on its state, drains it or drops it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// See the [module](self).
#[repr(C)]
struct Attended {
    /// Hands on what the component has learnt, if it offers that.
    state: ComponentState,
    /// Empty once the component is dropped, or left behind.
    inner: Option<Arc<ComponentObject>>,
    post: Arc<PostNumber>,
    claims: Claims,
    /// Number of calls so far.
    calls: AtomicU64,
    /// Whether a task was pushed to it.
    touched: AtomicBool,
    /// Whether a declaration was seen not to hold.
    lied: AtomicBool,
}

/// Number of calls of a component that are witnessed at first.
const FIRST: u64 = 1024;

/// Afterwards, one call out of this number is witnessed.
const PERIOD: u64 = 64;

/// How a call is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// What the component does is compared with what it declares.
    Witnessed,
    /// The component declares what the host relies on, and was not seen to do otherwise.
    Trusted,
    Plain,
}

/// The component, attended at this post, with these declarations.
pub(super) fn attended(component: ComponentObject, post: Arc<PostNumber>, claims: Claims) -> ComponentObject {
    object_of(Attended {
        state: ComponentState { export, import },
        inner: Some(Arc::new(component)),
        post,
        claims,
        calls: AtomicU64::new(0),
        touched: AtomicBool::new(false),
        lied: AtomicBool::new(false),
    })
}

/// The node that a call is made at.
fn node_of<'a>(raw: &RawNode, call: &'a Call<'a>) -> Option<&'a TreeNode> {
    call.tree.nodes.get(raw.host().place().id as usize)
}

impl Attended {
    /// How the next call is made.
    fn way(&self) -> Way {
        // A sample need not count calls that happen at once, and an atomic addition would cost each of them.
        let number = self.calls.load(Relaxed);
        self.calls.store(number + 1, Relaxed);
        match number < FIRST || number.is_multiple_of(PERIOD) {
            true => Way::Witnessed,
            false if self.lied.load(Relaxed) => Way::Plain,
            false => Way::Trusted,
        }
    }

    /// Notes that a call was seen to be as declared, or not.
    fn conclude(&self, lied: bool) {
        if lied {
            self.lied.store(true, Relaxed);
        }
    }

    fn note(&self, method: Method) -> (&ComponentObject, Inside) {
        let Some(inner) = &self.inner else { unreachable!("a component is there until it is dropped") };
        (inner, Inside::new(&self.post, method))
    }
}

impl WireComponent for Attended {
    fn push_task(&self, node: &RawNode, task: RawTask) -> RawPush {
        let (inner, _inside) = self.note(Method::PushTask);
        if !self.touched.load(Relaxed) {
            self.touched.store(true, Relaxed);
        }
        let call = record(node.call());
        match node_of(node, call).filter(|_| self.way() == Way::Witnessed) {
            Some(at) => {
                let (answer, seen) = Witness::of(at, node.call(), |raw| inner.push_task(raw, task));
                self.conclude(seen.of_push(&self.claims, task, answer));
                answer
            }
            None => inner.push_task(node, task),
        }
    }

    fn pull_task(&self, node: &RawNode, to: u32) -> RawTask {
        let way = self.way();
        if way == Way::Trusted && self.claims.forwards_pull {
            return node.host().pull_from(node.call(), NO_ID);
        }
        let (inner, _inside) = self.note(Method::PullTask);
        let call = record(node.call());
        match node_of(node, call).filter(|_| way == Way::Witnessed) {
            Some(at) => {
                let (task, seen) = Witness::of(at, node.call(), |raw| inner.pull_task(raw, to));
                self.conclude(seen.of_pull(&self.claims, !self.touched.load(Relaxed), task));
                task
            }
            None => inner.pull_task(node, to),
        }
    }

    fn can_push(&self, node: &RawNode, to: u32) -> bool {
        let (inner, _inside) = self.note(Method::CanPush);
        let call = record(node.call());
        match node_of(node, call).filter(|_| self.way() == Way::Witnessed) {
            Some(at) => {
                let (sent, seen) = Witness::of(at, node.call(), |raw| inner.can_push(raw, to));
                self.conclude(seen.of_can_push(&self.claims, sent));
                sent
            }
            None => inner.can_push(node, to),
        }
    }

    fn can_pull(&self, node: &RawNode) -> bool {
        let (inner, _inside) = self.note(Method::CanPull);
        let call = record(node.call());
        match node_of(node, call).filter(|_| self.way() == Way::Witnessed) {
            Some(at) => {
                let (woke, seen) = Witness::of(at, node.call(), |raw| inner.can_pull(raw));
                self.conclude(seen.of_can_pull(&self.claims, woke));
                woke
            }
            None => inner.can_pull(node),
        }
    }

    fn estimated_end(&self, node: &RawNode) -> u64 {
        let way = if self.claims.end_is_noted { self.way() } else { Way::Plain };
        let call = record(node.call());
        let at = node_of(node, call);
        if let (Way::Trusted, Some(at)) = (way, at) {
            return call.tree.noted_end(call, at);
        }
        let (inner, _inside) = self.note(Method::EstimatedEnd);
        let Some(at) = at.filter(|_| way == Way::Witnessed) else { return inner.estimated_end(node) };
        let before = call.tree.noted_end(call, at);
        let end = inner.estimated_end(node);
        // Other threads may change notes meanwhile, and time may go by.
        if end != before && call.tree.noted_end(call, at) == before && !at.is_quarantined() {
            note_lie(call, at, Declaration::EndIsNoted, Method::EstimatedEnd);
            self.conclude(true);
        }
        end
    }

    fn estimated_load(&self, node: &RawNode) -> f64 {
        let (inner, _inside) = self.note(Method::EstimatedLoad);
        inner.estimated_load(node)
    }

    fn notify_change_workers(&self, node: &RawNode) {
        let (inner, _inside) = self.note(Method::NotifyChangeWorkers);
        inner.notify_change_workers(node);
    }

    fn drain(&self, node: &RawNode) -> RVec<RawTask> {
        let Some(inner) = self.inner.clone() else { return RVec::new() };
        let post = Arc::clone(&self.post);
        let host = Deaf::at(node.host().place());
        let drained = in_time("drain", move || {
            let _inside = Inside::new(&post, Method::Drain);
            let tasks = Handles(host.with(|alone| inner.drain(alone)));
            (tasks, host.into_panic())
        });
        match drained {
            Ok((tasks, panic)) => {
                if let Some(panic) = panic {
                    node.host().report_panic(node.call(), RStr::from(panic.as_str()));
                }
                tasks.0
            }
            Err(Late) => {
                self.post.give_up(Method::Drain);
                RVec::new()
            }
        }
    }

    fn describe(&self, node: &RawNode) -> RVec<Tuple2<RString, RString>> {
        let (inner, _inside) = self.note(Method::Describe);
        inner.describe(node)
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        let offered = self.inner.as_ref().map_or(ROption::RNone, |inner| inner.extension(name));
        if name.as_str() != ComponentState::NAME || offered.is_none() {
            return offered;
        }
        let this = std::ptr::from_ref(self);
        // SAFETY: the host keeps the component, which it never moves, as long as it uses what is offered.
        ROption::RSome(unsafe {
            RawExtension::of_object(this.byte_add(offset_of!(Attended, state)).cast::<ComponentState>())
        })
    }
}

impl Attended {
    /// What `body` does with the state of the component, on a thread of its own; `None` if the component offers none,
    /// or does not come back in time.
    fn with_state<T: Send + 'static>(
        &self,
        node: &RawNode,
        method: Method,
        body: impl FnOnce(&Table<ComponentState>, &RawNode) -> T + Send + 'static,
    ) -> Option<T> {
        let inner = self.inner.clone()?;
        let post = Arc::clone(&self.post);
        let host = Deaf::at(node.host().place());
        let done = in_time(&method.to_string(), move || {
            let _inside = Inside::new(&post, method);
            let done = Table::of(&inner).map(|table| host.with(|alone| body(&table, alone)));
            (done, host.into_panic())
        });
        match done {
            Ok((done, panic)) => {
                if let Some(panic) = panic {
                    node.host().report_panic(node.call(), RStr::from(panic.as_str()));
                }
                done
            }
            Err(Late) => {
                self.post.give_up(method);
                None
            }
        }
    }
}

/// The component that has its extension at `this`.
///
/// # Safety
/// The host calls with the pointer that the component offered, as long as it is there.
unsafe fn attended_at<'a>(this: *const ()) -> &'a Attended {
    // SAFETY: the pointer was made from one to the whole component, in `extension`.
    unsafe { &*this.byte_sub(offset_of!(Attended, state)).cast::<Attended>() }
}

extern "C" fn export(this: *const (), node: &RawNode) -> ROption<RVec<u8>> {
    // SAFETY: see `attended_at`.
    let attended = unsafe { attended_at(this) };
    let exported = attended.with_state(node, Method::Export, |state, alone| {
        let bytes = (state.table.export)(state.extension.as_ptr(), alone);
        bytes.into_option().map(|bytes| bytes.as_slice().to_vec())
    });
    exported.flatten().map(RVec::from).into()
}

extern "C" fn import(this: *const (), node: &RawNode, state: RSlice<'_, u8>) {
    // SAFETY: see `attended_at`.
    let attended = unsafe { attended_at(this) };
    let bytes = state.as_slice().to_vec();
    attended.with_state(node, Method::Import, move |state, alone| {
        (state.table.import)(state.extension.as_ptr(), alone, bytes.as_slice().into());
    });
}

impl Drop for Attended {
    fn drop(&mut self) {
        drop_in_time(self.inner.take(), &self.post);
    }
}

/// Drops what stands at a post.
fn drop_in_time(inner: impl Send + 'static, post: &Arc<PostNumber>) {
    let at = Arc::clone(post);
    let dropped = in_time("drop", move || {
        let _inside = Inside::new(&at, Method::Drop);
        drop(inner);
    });
    // The tree, whose faults could say so, is gone or about to go.
    if let Err(Late) = dropped
        && let Some(post) = post.give_up(Method::Drop)
    {
        tracing::error!("{post}: `drop` did not come back within {PATIENCE:?} and was left behind");
    }
}

/// A component that is not in a tree yet. If it never comes into one, its destructor is attended as in a tree.
pub struct Unplaced {
    component: Option<ComponentObject>,
    post: Option<Post>,
}

impl Unplaced {
    /// A component whose destructor is attended at this post, if there is one.
    #[must_use]
    pub fn new(component: ComponentObject, post: Option<Post>) -> Unplaced {
        Unplaced { component: Some(component), post }
    }

    /// The component, for its place in a tree.
    pub(super) fn place(mut self) -> ComponentObject {
        let Some(component) = self.component.take() else { unreachable!("it is there until it is placed") };
        component
    }
}

impl Drop for Unplaced {
    fn drop(&mut self) {
        if let (Some(component), Some(post)) = (self.component.take(), self.post.take()) {
            drop_in_time(component, &Arc::new(PostNumber::new(post)));
        }
    }
}

/// What a component gave up, on its way to another thread.
struct Handles(RVec<RawTask>);

// SAFETY: a handle is a pointer to a slot of a ledger, which is never given back, and a generation. What it stands for,
// a task, may be sent to other threads.
unsafe impl Send for Handles {}

/// A call did not come back in time.
#[derive(Debug)]
pub(crate) struct Late;

/// What `body` returns, if it does so within the [`PATIENCE`]. Else its thread is left behind.
pub(crate) fn in_time<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<T, Late> {
    let (send, returned) = mpsc::channel();
    let body = move || {
        let _ = send.send(body());
    };
    // Where no thread can be had, the call is dropped: that is as late as can be.
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|_| Late)?;
    match returned.recv_timeout(PATIENCE) {
        Ok(value) => Ok(value),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(Late),
    }
}
