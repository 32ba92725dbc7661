use super::super::described::Described;
use super::super::tables::{CProspect, Table};
use super::*;
use crate::abi::object_of;
use crate::info::{Family, Info};
use crate::params::Params;
use crate::rig::{FakeChild, Rig};
use std::ffi::c_void;
use std::mem::{MaybeUninit, zeroed};

/// Number of children that the component below asks about at once.
const AT_ONCE: u32 = 8;

/// Asks for the prospects of all children, some at once, and pushes the task to the last of them that can execute it.
unsafe extern "C" fn push_to_the_last(_own: *mut c_void, node: *const CNode, task: RawTask) -> u32 {
    let (mut asked, mut last) = (0, NO_ID);
    loop {
        let mut some: [MaybeUninit<CProspect>; AT_ONCE as usize] = [const { MaybeUninit::uninit() }; _];
        // SAFETY: it is the node of this call, and there is room for this many.
        let told = unsafe { ahead::child_prospects(node, task, asked, 0, some.as_mut_ptr().cast(), AT_ONCE) };
        for (child, prospect) in (asked..).zip(&some[..told as usize]) {
            // SAFETY: it was written.
            if unsafe { prospect.assume_init_ref() }.able > 0 {
                last = child;
            }
        }
        asked += told;
        if told < AT_ONCE {
            // SAFETY: as above.
            return unsafe { push_to(node, last, task) };
        }
    }
}

#[test]
fn the_prospects_of_some_children_cost_no_more_than_these() {
    // SAFETY: numbers that are 0, null pointers and absent functions.
    let mut table: Table = unsafe { zeroed() };
    table.push_task = Some(push_to_the_last);
    let info = Info::new("last", Family::ResourceMapping, "").describe();
    let bridge = super::super::bridge::Bridge::build(&Described { info, table }, &Params::default());
    let object = object_of(bridge.expect("it has no state"));
    let rig = (0..20).fold(Rig::from_object(object).workers(20), |rig, worker| rig.child(FakeChild::worker(worker)));
    let task = rig.task().make();
    assert_eq!(rig.push(task), Ok(()));
    assert_eq!(rig.child_tasks(Child(19)), [task]);
    assert_eq!(rig.service_calls("expected_length"), 20, "each child is asked about once");
}
