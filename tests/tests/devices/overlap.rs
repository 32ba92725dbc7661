//! Copies for the next task go on while a kernel runs, and what waits for a kernel does not wait for the next.

use super::{On, SOURCE, scale, with_devices};
use sched_core::{Arch, WorkerId};
use sched_driver_fake::{hold_copies, hold_kernels};
use sched_host::runtime::{KernelCall, Outcome, Read, ReadWrite};
use sched_host::trace::Event;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

#[test]
fn the_next_inputs_are_copied_while_a_kernel_runs() {
    for policy in ["tree-eager", "tree-prio", "tree-heft", "tree-ws"] {
        let runtime = with_devices("fake:16").policy(policy).build().expect("it starts");
        let on_device = scale(&runtime, On::Devices);
        let arrays = [1.0, 2.0, 3.0].map(|value| runtime.array(vec![value; 8]));
        let (copies, kernels) = (hold_copies(16), hold_kernels(16));
        for array in &arrays {
            runtime.task_with(&on_device, 10.0, (array,)).submit().expect("it is taken");
        }
        drop(copies);
        kernels.wait_for_one();
        // The first kernel does not end before the inputs of the second have arrived.
        kernels.wait_for_copies(2);
        drop(kernels);
        runtime.wait_all().expect("no task fails");
        for (array, value) in arrays.iter().zip([10.0, 20.0, 30.0]) {
            assert_eq!(*runtime.read(array).expect("it was computed"), [value; 8], "{policy}");
        }
    }
}

/// The kernels of this device have ended when they are launched.
#[test]
fn what_waits_for_a_kernel_that_has_ended_does_not_wait_for_the_next() {
    let runtime = with_devices("fake:0").policy("tree-eager").build().expect("it starts");
    let (first, second) = (runtime.array(vec![1.0; 8]), runtime.array(vec![2.0; 8]));
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let after = runtime.codelet::<(Read<[f64]>,), ()>("after").cpu("after", move |_, (x,)| {
        let _ = sender.send(x[0]);
    });
    let last = runtime.codelet::<(ReadWrite<[f64]>,), ()>("last").opencl(SOURCE, "scale", move |(), (x,)| {
        // Far longer than the test takes: it ends the test where nothing comes.
        let seen = receiver.lock().expect("nobody has panicked").recv_timeout(Duration::from_secs(60));
        KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(seen.unwrap_or(f64::NAN))
    });
    let (on_device, after, last) = (scale(&runtime, On::Devices), after.build(), last.build());
    runtime.task_with(&on_device, 10.0, (&first,)).submit().expect("it is taken");
    runtime.task(&after, (&first,)).submit().expect("it is taken");
    runtime.task(&last, (&second,)).submit().expect("it is taken");
    runtime.wait_all().expect("no task fails");
    assert_eq!(*runtime.read(&second).expect("it was computed"), [20.0; 8]);
}

/// Its kernels have ended when they are launched: their begin is noted before.
#[test]
fn a_trace_shows_the_kernels_of_a_device_without_threads() {
    let runtime = with_devices("fake:0").policy("tree-eager").trace(100).build().expect("it starts");
    let array = runtime.array(vec![1.0; 8]);
    let (begun, has_begun) = channel();
    let (ended, has_ended) = channel();
    let (has_begun, has_ended) = (Mutex::new(has_begun), Mutex::new(has_ended));
    let wait = |receiver: &Mutex<Receiver<()>>| {
        receiver.lock().expect("nobody has panicked").recv_timeout(Duration::from_secs(60)).expect("it comes")
    };
    let on_core = runtime.codelet::<(), ()>("core").cpu("core", move |_, ()| wait(&has_begun)).build();
    let behind = runtime.codelet::<(), ()>("behind").cpu("behind", move |_, ()| {
        let _ = ended.send(());
    });
    let on_device = runtime.codelet::<(ReadWrite<[f64]>,), ()>("device").opencl(SOURCE, "scale", move |(), (x,)| {
        let _ = begun.send(());
        wait(&has_ended);
        KernelCall::over([x.len() as usize]).arg(&x).arg(x.offset()).arg(x.len()).arg(2.0)
    });
    let first = runtime.task(&on_core, ()).submit().expect("it is taken");
    runtime.task(&behind.build(), ()).after([first]).submit().expect("it is taken");
    runtime.task(&on_device.build(), (&array,)).submit().expect("it is taken");
    runtime.wait_all().expect("no task fails");
    let trace = runtime.take_trace().expect("it was asked for");
    let place = |is_it: fn(&Event) -> bool| trace.events.iter().position(|stamped| is_it(&stamped.event));
    let begin = place(|event| matches!(event, Event::Started { worker: WorkerId(1), .. }));
    let end = place(|event| matches!(event, Event::Ended { worker: WorkerId(0), .. }));
    assert!(begin.is_some() && begin < end, "{:?}", trace.events);
}

/// The worker is copying for the next task when the kernel ends.
#[test]
fn a_trace_shows_when_the_device_has_ended_a_kernel() {
    let runtime = with_devices("fake:26").policy("tree-eager").trace(100).build().expect("it starts");
    let (on_device, [x, y]) = (scale(&runtime, On::Devices), [(); 2].map(|()| runtime.array(vec![1.0; 8])));
    let first = runtime.task_with(&on_device, 2.0, (&x,)).submit().expect("it is taken");
    runtime.wait(first).expect("it ends");
    let copies = hold_copies(26);
    let task = runtime.task_with(&on_device, 2.0, (&x,)).submit().expect("it is taken");
    runtime.task_with(&on_device, 2.0, (&y,)).submit().expect("it is taken");
    copies.wait_for_one();
    // Longer than such a kernel.
    std::thread::sleep(Duration::from_millis(50));
    drop(copies);
    runtime.wait_all().expect("no task fails");
    let trace = runtime.take_trace().expect("it was asked for");
    let last = |is_it: &dyn Fn(&Event) -> bool| trace.events.iter().rposition(|stamped| is_it(&stamped.event));
    let end = last(&|event| matches!(event, Event::Ended { task: id, .. } if id.sequence() == task.sequence()));
    let arrival = last(&|event| matches!(event, Event::TransferEnded(_)));
    assert!(end.is_some() && end < arrival, "{:?}", trace.events);
}

/// The thread that drives the device registers it, and has it in the host's memory.
#[test]
fn what_the_end_of_a_task_on_a_device_registers_is_not_on_the_device() {
    let runtime = with_devices("fake:16").policy("tree-eager").build().expect("it starts");
    let (on_device, on_core) = (scale(&runtime, On::Devices), scale(&runtime, On::Cores));
    let array = runtime.array(vec![1.0; 8]);
    let (give, take) = channel();
    let submitter = (*runtime).clone();
    let register = move |_: &Outcome| give.send(submitter.array(vec![7.0; 8])).expect("the test waits for it");
    runtime.task_with(&on_device, 10.0, (&array,)).on_end(register).submit().expect("it is taken");
    let registered = take.recv_timeout(Duration::from_secs(60)).expect("the task ends");
    assert_eq!(*runtime.read(&registered).expect("it was registered"), [7.0; 8]);
    for (codelet, expected) in [(&on_core, 14.0), (&on_device, 28.0)] {
        runtime.task_with(codelet, 2.0, (&registered,)).submit().expect("it is taken");
        assert_eq!(*runtime.read(&registered).expect("it was computed"), [expected; 8]);
    }
}

/// An implementation that is a closure runs while the device executes the kernel of another task.
#[test]
fn a_closure_behind_a_kernel_belongs_to_its_own_task() {
    let runtime = with_devices("fake:25").policy("tree-eager").build().expect("it starts");
    let array = runtime.array(vec![1.0; 8]);
    let (send, receive) = channel();
    let note = runtime.codelet::<(), ()>("note").cpu("note", move |_, ()| _ = send.send(())).build();
    let nests = runtime.codelet::<(), ()>("nests").implementation(Arch::OPENCL, "nests", move |context, ()| {
        context.nest().task(&note, ()).submit().expect("it is part of this task");
    });
    let (on_device, nests) = (scale(&runtime, On::Devices), nests.nests().build());
    let (copies, kernels) = (hold_copies(25), hold_kernels(25));
    runtime.task_with(&on_device, 10.0, (&array,)).submit().expect("it is taken");
    let outer = runtime.task(&nests, ()).submit().expect("it is taken");
    drop(copies);
    kernels.wait_for_one();
    receive.recv_timeout(Duration::from_secs(60)).expect("the nested task runs");
    assert_eq!(runtime.wait(outer).expect("it ends"), Outcome::Done);
    drop(kernels);
    runtime.wait_all().expect("no task fails");
    assert_eq!(*runtime.read(&array).expect("it was computed"), [10.0; 8]);
}
