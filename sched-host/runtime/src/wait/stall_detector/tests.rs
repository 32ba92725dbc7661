use super::*;
use crate::Runtime;
use std::sync::Arc;

#[test]
fn tasks_that_wait_for_an_exchange_of_a_tree_are_no_stall() {
    let components = Arc::new(sched_tree::plugin::Registry::compiled_in());
    let runtime = Runtime::builder().registry(components).workers(1).bind(false).build().expect("it starts");
    let empty = runtime.context("nobody's").workers([]).build().expect("the policy fits");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).context(&empty).submit().expect("the task is sound");
    let (core, context, mut detector) = (&runtime.core, &*empty.context, StallDetector::default());
    let mut stalls = |_| detector.look(core, Some(context), Duration::ZERO).is_some();
    let changing = core.roster.default.changing.lock();
    assert_eq!([(); 3].map(&mut stalls), [false; 3], "however long it takes");
    drop(changing);
    assert_eq!([(); 2].map(&mut stalls), [false, true], "two looks agree");
    empty.add_workers([0]).expect("there is this worker");
    runtime.wait_all().expect("every task runs");
}
