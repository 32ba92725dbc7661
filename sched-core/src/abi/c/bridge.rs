//! A component in C behind the same stable object as one in Rust.

use super::described::{Described, text};
use super::held::Held;
use super::services::SERVICES;
use super::tables::{CNode, RawValue, Table};
use crate::abi::component::WireComponent;
use crate::abi::extension::{ComponentExecution, ComponentState, Named, RawExecution, RawExtension};
use crate::abi::task::RawTask;
use crate::abi::wire::{NO_ID, RawNode, RawPush};
use crate::node::Node;
use crate::params::{BuildError, Params, Value};
use abi_stable::std_types::{ROption, RSlice, RStr, RString, RVec, Tuple2};
use parking_lot::Mutex;
use std::ffi::{CString, c_char, c_void};
use std::mem::offset_of;

/// A component in C, and the tables of its extensions, whose functions get a pointer to their table.
#[repr(C)]
pub(super) struct Bridge {
    execution: ComponentExecution,
    state: ComponentState,
    table: Table,
    /// Its state, as `build` gave it.
    own: *mut c_void,
    pub(super) held: Held,
}

// SAFETY: `msched.h` requires that any thread may call a component.
unsafe impl Send for Bridge {}
// SAFETY: `msched.h` requires that several threads may call it at once.
unsafe impl Sync for Bridge {}

/// What a component may hand over during a call, beside its answer.
pub(super) enum Sink {
    Nothing,
    Tasks(RVec<RawTask>),
    Facts(RVec<Tuple2<RString, RString>>),
    /// What is left to a successor, if anything.
    State(Option<Vec<u8>>),
}

/// A call of a component, for the services that it asks for meanwhile.
pub(super) struct Inside<'a> {
    pub(super) raw: &'a RawNode,
    pub(super) bridge: &'a Bridge,
    pub(super) sink: Mutex<Sink>,
}

impl Inside<'_> {
    pub(super) fn node(&self) -> Node<'_> {
        Node::new(self.raw)
    }

    /// Reports that the component broke its contract, or gave up: it is taken out of the tree.
    #[cold]
    pub(super) fn fault(&self, message: &str) {
        self.raw.host().report_panic(self.raw.call(), message.into());
    }
}

/// Bytes of the message of a failed `build`.
const MESSAGE: usize = 512;

impl Bridge {
    /// Builds a component from the values of its parameters.
    pub(super) fn build(described: &Described, params: &Params) -> Result<Bridge, BuildError> {
        let execution = ComponentExecution { started, ended };
        let state = ComponentState { export, import };
        let bridge = |own| Bridge { execution, state, table: described.table, own, held: Held::default() };
        let Some(build) = described.table.build else { return Ok(bridge(std::ptr::null_mut())) };
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for param in &described.info.params {
            let mut value = RawValue { integer: 0, number: 0.0, text: std::ptr::null() };
            match params.get(&param.name).unwrap_or(&param.default) {
                Value::Bool(flag) => value.integer = i64::from(*flag),
                Value::Int(integer) => value.integer = *integer,
                Value::Float(number) => value.number = *number,
                Value::Text(words) => {
                    let words = CString::new(words.as_str())
                        .map_err(|_| BuildError::new(format!("`{}` contains a zero byte", param.name)))?;
                    value.text = words.as_ptr();
                    texts.push(words);
                }
            }
            values.push(value);
        }
        let mut message = [0 as c_char; MESSAGE];
        // SAFETY: the stamp says that the function has this type; the values, in the order of the declarations, and the
        // room for a message live through the call.
        let own = unsafe { build(values.as_ptr(), message.as_mut_ptr(), MESSAGE) };
        drop(texts);
        if own.is_null() {
            message[MESSAGE - 1] = 0;
            // SAFETY: the last byte is zero.
            let words = unsafe { text(message.as_ptr()) }.unwrap_or_default();
            let words = if words.is_empty() { "its `build` gave no reason".to_owned() } else { words };
            return Err(BuildError::new(words));
        }
        Ok(bridge(own))
    }

    /// Calls the component, with a node that lives as long. Returns its answer, and what it handed over.
    #[inline]
    fn call<T>(
        &self,
        raw: &RawNode,
        sink: Sink,
        body: impl FnOnce(*mut c_void, &CNode, &Inside<'_>) -> T,
    ) -> (T, Sink) {
        let inside = Inside { raw, bridge: self, sink: Mutex::new(sink) };
        let node = CNode { services: &raw const SERVICES, host: (&raw const inside).cast() };
        let answer = body(self.own, &node, &inside);
        (answer, inside.sink.into_inner())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: the state is that of `build`, and nobody uses it afterwards.
            unsafe { destroy(self.own) };
        }
    }
}

/// The component that has an extension at `this`, `offset` bytes from its start.
///
/// # Safety
/// The host calls with the pointer that the bridge offered, as long as the component is there.
unsafe fn bridge_of<'a>(this: *const (), offset: usize) -> &'a Bridge {
    // SAFETY: the pointer was made from one to the whole bridge, in `extension`.
    unsafe { &*this.byte_sub(offset).cast::<Bridge>() }
}

extern "C" fn export(this: *const (), node: &RawNode) -> ROption<RVec<u8>> {
    // SAFETY: see `bridge_of`.
    let bridge = unsafe { bridge_of(this, offset_of!(Bridge, state)) };
    let Some(export) = bridge.table.export_state else { return ROption::RNone };
    // SAFETY: the stamp says that the function has this type; state and node live through the call.
    match bridge.call(node, Sink::State(None), |own, node, _| unsafe { export(own, node) }) {
        ((), Sink::State(Some(state))) => ROption::RSome(state.into()),
        ((), _) => ROption::RNone,
    }
}

extern "C" fn import(this: *const (), node: &RawNode, state: RSlice<'_, u8>) {
    // SAFETY: see `bridge_of`.
    let bridge = unsafe { bridge_of(this, offset_of!(Bridge, state)) };
    if let Some(import) = bridge.table.import_state {
        let bytes = state.as_slice();
        // SAFETY: as above; the bytes live through the call.
        bridge.call(node, Sink::Nothing, |own, node, _| unsafe {
            import(own, node, bytes.as_ptr().cast(), bytes.len());
        });
    }
}

extern "C" fn started(this: *const (), node: &RawNode, task: &RawExecution) {
    // SAFETY: see `bridge_of`.
    let bridge = unsafe { bridge_of(this, offset_of!(Bridge, execution)) };
    if let Some(started) = bridge.table.task_started {
        // SAFETY: the stamp says that the function has this type; state, node and task live through the call.
        bridge.call(node, Sink::Nothing, |own, node, _| unsafe { started(own, node, task) });
    }
}

extern "C" fn ended(this: *const (), node: &RawNode, task: &RawExecution) {
    // SAFETY: see `bridge_of`.
    let bridge = unsafe { bridge_of(this, offset_of!(Bridge, execution)) };
    if let Some(ended) = bridge.table.task_ended {
        // SAFETY: as above.
        bridge.call(node, Sink::Nothing, |own, node, _| unsafe { ended(own, node, task) });
    }
}

// SAFETY of every call below: the stamp says that the function has this type, the state is that of `build`, and the
// node lives through the call.
impl WireComponent for Bridge {
    fn push_task(&self, node: &RawNode, task: RawTask) -> RawPush {
        let Some(push_task) = self.table.push_task else { return RawPush { refused: task, why: 1 } };
        // Before the call: another thread may pull the task before it comes back.
        self.held.insert(task);
        let body = |own: *mut c_void, node: &CNode, inside: &Inside<'_>| {
            // SAFETY: see above.
            let why = unsafe { push_task(own, node, task) };
            if why == 0 {
                return RawPush::TAKEN;
            }
            if self.held.remove(task) {
                return RawPush { refused: task, why };
            }
            inside.fault("`push_task` refused a task that the component had given away");
            RawPush::TAKEN
        };
        self.call(node, Sink::Nothing, body).0
    }

    fn pull_task(&self, node: &RawNode, to: u32) -> RawTask {
        let Some(pull_task) = self.table.pull_task else { return node.host().pull_from(node.call(), NO_ID) };
        let body = |own: *mut c_void, node: &CNode, inside: &Inside<'_>| {
            // SAFETY: see above.
            let task = unsafe { pull_task(own, node, to) };
            if task.is_none() || self.held.remove(task) {
                return task;
            }
            inside.fault("`pull_task` gave a task that the component does not hold");
            RawTask::NONE
        };
        self.call(node, Sink::Nothing, body).0
    }

    fn can_push(&self, node: &RawNode, to: u32) -> bool {
        let Some(can_push) = self.table.can_push else { return node.host().parents_can_push(node.call()) };
        // SAFETY: see above.
        self.call(node, Sink::Nothing, |own, node, _| unsafe { can_push(own, node, to) } != 0).0
    }

    fn can_pull(&self, node: &RawNode) -> bool {
        let Some(can_pull) = self.table.can_pull else { return node.host().wake(node.call(), false) };
        // SAFETY: see above.
        self.call(node, Sink::Nothing, |own, node, _| unsafe { can_pull(own, node) } != 0).0
    }

    fn estimated_end(&self, node: &RawNode) -> u64 {
        let Some(estimated_end) = self.table.estimated_end else {
            return Node::new(node).earliest_end_below().as_nanos();
        };
        // SAFETY: see above.
        self.call(node, Sink::Nothing, |own, node, _| unsafe { estimated_end(own, node) }).0
    }

    fn estimated_load(&self, node: &RawNode) -> f64 {
        let Some(estimated_load) = self.table.estimated_load else { return Node::new(node).load_below() };
        // SAFETY: see above.
        self.call(node, Sink::Nothing, |own, node, _| unsafe { estimated_load(own, node) }).0
    }

    fn notify_change_workers(&self, node: &RawNode) {
        if let Some(notify) = self.table.notify_change_workers {
            // SAFETY: see above.
            self.call(node, Sink::Nothing, |own, node, _| unsafe { notify(own, node) });
        }
    }

    fn drain(&self, node: &RawNode) -> RVec<RawTask> {
        let Some(drain) = self.table.drain else { return RVec::new() };
        // SAFETY: see above.
        match self.call(node, Sink::Tasks(RVec::new()), |own, node, _| unsafe { drain(own, node) }) {
            ((), Sink::Tasks(tasks)) => tasks,
            ((), _) => RVec::new(),
        }
    }

    fn describe(&self, node: &RawNode) -> RVec<Tuple2<RString, RString>> {
        let Some(describe) = self.table.describe else { return RVec::new() };
        // SAFETY: see above.
        match self.call(node, Sink::Facts(RVec::new()), |own, node, _| unsafe { describe(own, node) }) {
            ((), Sink::Facts(facts)) => facts,
            ((), _) => RVec::new(),
        }
    }

    fn extension(&self, name: RStr<'_>) -> ROption<RawExtension> {
        let hears = self.table.task_started.is_some() || self.table.task_ended.is_some();
        let hands_on = self.table.export_state.is_some() || self.table.import_state.is_some();
        let this = std::ptr::from_ref(self);
        match name.as_str() {
            // SAFETY: the host keeps the component, which it never moves, as long as it uses what is offered.
            ComponentExecution::NAME if hears => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Bridge, execution)).cast::<ComponentExecution>())
            }),
            // SAFETY: as above.
            ComponentState::NAME if hands_on => ROption::RSome(unsafe {
                RawExtension::of_object(this.byte_add(offset_of!(Bridge, state)).cast::<ComponentState>())
            }),
            _ => ROption::RNone,
        }
    }
}
