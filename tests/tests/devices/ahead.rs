//! Data is copied to a device ahead of tasks that lie in a queue for it.

use super::{On, axpy, fill, scale, with_devices};
use sched_core::{
    Arch, Build, BuildError, Child, Component, Family, Info, MemoryNode, Node, Offer, Params, Push, Task,
};
use sched_driver_fake::{FakeDriver, hold_copies, hold_kernels};
use sched_host::plugin::Registry;
use sched_host::runtime::{Builder, DeviceChoice, Outcome, Read, ReadWrite, Where};
use sched_tests::hold::Hold;
use sched_tests::stock::policy;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
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
        let (copies, kernels) = (hold_copies(17), hold_kernels(17));
        for (from, to) in from.iter().zip(&to) {
            runtime.task_with(&on_device, 2.0, (from, to)).submit().expect("it is taken");
        }
        drop(copies);
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

/// Asks for the data of each task on the memory node that it names, and has its first child that can execute it.
struct Misleads;

impl Build for Misleads {
    const INFO: Info = Info::new("misleads", Family::ResourceMapping, "Misleads those who copy.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(Misleads)
    }
}

impl Component for Misleads {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        node.prefetch_to(MemoryNode(task.sched_data() as u32), &task);
        let able = node.children().find(|child| node.child_can_execute(*child, &task));
        node.push_to(able.unwrap_or(Child(0)), task)
    }
}

/// A runtime with this component over a core and these devices, each of which has room for ten elements.
fn misled(devices: &str) -> Builder {
    let mut registry = Registry::compiled_in();
    registry.add_builtin("test", vec![Offer::of::<Misleads>()]).expect("it is sound");
    registry.add_driver::<FakeDriver>("tests");
    let tree = r#"misleads { each "worker" { fifo { worker } } }"#;
    let choice: DeviceChoice = devices.parse().expect("it names devices");
    let builder = with_devices("none").devices(choice.memory_limit(80)).registry(Arc::new(registry));
    builder.policy_value(policy(tree)).unchecked()
}

#[test]
fn what_is_being_copied_for_a_task_is_not_written_meanwhile() {
    let runtime = misled("fake:18").build().expect("it starts");
    let (sender, started) = channel();
    let add = runtime.codelet::<(ReadWrite<[f64]>,), ()>("add").cpu("add", move |_, (x,)| {
        let _ = sender.send(());
        x.iter_mut().for_each(|value| *value += 1.0);
    });
    let (add, x) = (add.build(), runtime.array(vec![1.0; 8]));
    let busy = Hold::new(&runtime).worker();
    let copies = hold_copies(18);
    runtime.task(&add, (&x,)).sched_data(1).submit().expect("it is taken");
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

/// Where a copy to the host is under way, what another device has written could not be evicted from there, and the next
/// task found no room.
#[test]
fn what_is_being_copied_from_a_device_is_not_written_on_another_meanwhile() {
    let runtime = misled("fake:30,fake:8").build().expect("it starts");
    let (devices, fill) = (runtime.devices(), fill(&runtime, On::Devices));
    let on = |device: usize| Where::worker(devices[device].worker);
    let (x, y) = (runtime.array(vec![1.0; 10]), runtime.array(vec![1.0; 10]));
    let first = runtime.task_with(&fill, 2.0, (&x,)).only_on(on(0)).submit().expect("it is taken");
    runtime.wait(first).expect("it ends");
    // The thread of the device is busy, so that the next task lies in its queue until its data is being copied.
    let ((busy, is_busy), (go_on, goes_on)) = (channel(), channel::<()>());
    let goes_on = Mutex::new(goes_on);
    let waits = runtime.codelet::<(), ()>("waits").device_raw(Arch::OPENCL, "waits", move |_, (), ()| {
        let _ = busy.send(());
        let _ = goes_on.lock().map(|goes_on| goes_on.recv());
        Ok::<(), String>(())
    });
    let look = runtime.codelet::<(Read<[f64]>,), ()>("look");
    let look = look.device_raw(Arch::OPENCL, "look", |_, (), _| Ok::<(), String>(())).build();
    runtime.task(&waits.build(), ()).only_on(on(0)).submit().expect("it is taken");
    is_busy.recv().expect("it begins");
    let copies = hold_copies(30);
    let looks = runtime.task(&look, (&x,)).only_on(on(0)).submit().expect("it is taken");
    copies.wait_for_one();
    drop(go_on);
    runtime.wait(looks).expect("it ends");
    runtime.task_with(&fill, 3.0, (&x,)).only_on(on(1)).submit().expect("it is taken");
    let last = runtime.task_with(&fill, 4.0, (&y,)).only_on(on(1)).submit().expect("it is taken");
    let (sender, ended) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(runtime.wait(last)));
        // As long as the last task would need to find no room.
        let _ = ended.recv_timeout(Duration::from_millis(50)).map(|ended| {
            assert!(matches!(ended, Ok(Outcome::Done)), "{ended:?}");
        });
        drop(copies);
    });
    runtime.wait_all().expect("no task fails");
    assert_eq!(*runtime.read(&x).expect("it was computed"), [3.0; 10]);
    assert_eq!(*runtime.read(&y).expect("it was computed"), [4.0; 10]);
}

/// A value whose copy waits for the program.
struct Slow {
    copying: Sender<()>,
    goes_on: Arc<Mutex<Receiver<()>>>,
}

impl Clone for Slow {
    fn clone(&self) -> Slow {
        let _ = self.copying.send(());
        let _ = self.goes_on.lock().map(|goes_on| goes_on.recv());
        Slow { copying: self.copying.clone(), goes_on: Arc::clone(&self.goes_on) }
    }
}

#[test]
fn an_array_is_given_back_while_something_else_is_copied() {
    let runtime = misled("none").workers(2).memory_nodes(2).build().expect("it starts");
    let ((copying, is_copying), (go_on, goes_on)) = (channel(), channel());
    let slow = runtime.replicated(Slow { copying, goes_on: Arc::new(Mutex::new(goes_on)) }).register();
    let (look, array) =
        (runtime.codelet::<(Read<Slow>,), ()>("look").cpu("look", |_, _| {}).build(), runtime.array(vec![1.0]));
    let busy = Hold::new(&runtime).worker();
    runtime.task(&look, (&slow,)).sched_data(1).submit().expect("it is taken");
    is_copying.recv().expect("it begins");
    let (sender, given_back) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(runtime.unregister(array).is_ok_and(|values| values.is_ok())));
        // Far longer than the test takes.
        let given_back = given_back.recv_timeout(Duration::from_secs(20));
        let _ = go_on.send(());
        assert_eq!(given_back, Ok(true));
    });
    drop(busy);
    runtime.wait_all().expect("no task fails");
}
