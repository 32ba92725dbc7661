//! Copies for the next task go on while a kernel runs.

use super::{On, scale, with_devices};
use sched_driver_fake::{hold_copies, hold_kernels};

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
