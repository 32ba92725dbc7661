//! Data is copied to a device ahead of tasks that lie in a queue for it.

use super::{On, axpy, scale, with_devices};
use sched_core::{Build, BuildError, Child, Component, Family, Info, MemoryNode, Node, Offer, Params, Push, Task};
use sched_driver_fake::{FakeDriver, hold_copies, hold_kernels};
use sched_host::plugin::Registry;
use sched_host::runtime::ReadWrite;
use sched_tests::hold::Hold;
use sched_tests::stock::policy;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Those of the second task are copied by the worker of the device; those of the others since their queue asks for it.
#[test]
fn the_inputs_of_queued_tasks_are_copied_while_a_kernel_runs() {
    const TASKS: usize = 6;
    for policy in ["tree-random", "tree-random-prio"] {
        let runtime = with_devices("fake:17").policy(policy).build().expect("it starts");
        let on_device = axpy(&runtime, On::Devices);
        let arrays = |value: f64| [(); TASKS].map(|()| runtime.array(vec![value; 8]));
        let (from, to) = (arrays(3.0), arrays(1.0));
        let kernels = hold_kernels(17);
        for (from, to) in from.iter().zip(&to) {
            runtime.task_with(&on_device, 2.0, (from, to)).submit().expect("it is taken");
        }
        kernels.wait_for_one();
        // The first kernel does not end before the inputs of all have arrived.
        kernels.wait_for_copies(2 * TASKS);
        drop(kernels);
        runtime.wait_all().expect("no task fails");
        for array in to {
            let values = runtime.unregister(array).expect("it was computed").expect("it is the last handle");
            assert_eq!(values, [7.0; 8], "{policy}");
        }
    }
}

/// Asks for the data of each task on the device, and has the core execute it, if that can.
struct Misleads;

impl Build for Misleads {
    const INFO: Info = Info::new("misleads", Family::ResourceMapping, "Misleads those who copy.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Misleads)
    }
}

impl Component for Misleads {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.prefetch_to(MemoryNode(1), &task);
        let able = node.children().find(|child| node.child_can_execute(*child, &task));
        node.push_to(able.unwrap_or(Child(0)), task)
    }
}

#[test]
fn what_is_being_copied_for_a_task_is_not_written_meanwhile() {
    let mut registry = Registry::compiled_in();
    registry.add_builtin("test", vec![Offer::of::<Misleads>()]).expect("it is sound");
    registry.add_driver::<FakeDriver>("tests");
    let tree = r#"misleads { each "worker" { fifo { worker } } }"#;
    let builder = with_devices("fake:18").registry(Arc::new(registry)).policy_value(policy(tree)).unchecked();
    let runtime = builder.build().expect("it starts");
    let (sender, started) = channel();
    let add = runtime.codelet::<(ReadWrite<[f64]>,), ()>("add").cpu("add", move |_, (x,)| {
        let _ = sender.send(());
        x.iter_mut().for_each(|value| *value += 1.0);
    });
    let (add, x) = (add.build(), runtime.array(vec![1.0; 8]));
    let busy = Hold::new(&runtime).worker();
    let copies = hold_copies(18);
    runtime.task(&add, (&x,)).submit().expect("it is taken");
    copies.wait_for_one();
    drop(busy);
    // As long as a wrong kernel would need to begin; a right one does not.
    let early = started.recv_timeout(Duration::from_millis(50));
    assert!(early.is_err(), "the values were written while they were copied");
    drop(copies);
    runtime.wait_all().expect("no task fails");
    // What arrived on the device is out of date.
    let scale = scale(&runtime, On::Devices);
    runtime.task_with(&scale, 3.0, (&x,)).submit().expect("it is taken");
    assert_eq!(runtime.unregister(x).expect("it was computed").expect("it is the last handle"), [6.0; 8]);
}
