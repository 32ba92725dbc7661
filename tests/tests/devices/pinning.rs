//! Memory of the host that devices copy from is pinned, as long as it is theirs to use.

use super::{On, SOURCE, scale, with_devices};
use sched_core::Arch;
use sched_driver_fake::{hold_copies, pinned};
use sched_host::runtime::{Codelet, KernelCall, Matrix, MatrixLayout, Read, ReadWrite, Submitter};

/// Elements of a mebibyte.
const LARGE: usize = 1 << 17;

#[test]
fn large_arrays_are_pinned_until_they_are_given_back() {
    let runtime = with_devices("fake:19").build().expect("it starts");
    let (x, y, small) = (runtime.array(vec![1.0; LARGE]), runtime.array(vec![1.0; LARGE]), runtime.array(vec![1.0; 8]));
    assert_eq!(pinned(19), [1 << 20, 1 << 20]);
    let values = runtime.unregister(x).expect("it is good").expect("it is the last handle");
    assert_eq!((values.len(), pinned(19).len()), (LARGE, 1));
    drop((y, small));
    assert!(pinned(19).is_empty());
}

#[test]
fn small_arrays_are_pinned_after_many_copies() {
    let runtime = with_devices("fake:20").build().expect("it starts");
    let scale = scale(&runtime, On::Devices);
    let x = runtime.array(vec![1.0; LARGE / 4]);
    for _ in 0..2 {
        assert!(pinned(20).is_empty());
        runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
        drop(runtime.write(&x).expect("it was computed"));
    }
    // Twice to the device and back, a quarter of a mebibyte each time.
    assert_eq!(pinned(20), [1 << 18]);
    drop(x);
    assert!(pinned(20).is_empty());
}

#[test]
fn what_a_scope_lends_is_pinned_when_it_is_copied_and_until_the_scope_ends() {
    let runtime = with_devices("fake:21").build().expect("it starts");
    let scale = scale(&runtime, On::Devices);
    let mut values = vec![1.0; LARGE];
    let ended = runtime.scope(|scope| {
        let x = scope.array(&mut values);
        assert!(pinned(21).is_empty(), "only cores may use it");
        let task = runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
        runtime.wait(task).expect("it ends");
        assert_eq!(pinned(21), [1 << 20]);
        x
    });
    let x = ended.expect("no task fails");
    assert!(pinned(21).is_empty(), "the values are the program's, while there is a handle");
    drop(x);
    assert_eq!(values[LARGE - 1], 2.0);
}

/// Copies an array to a device.
fn look(submitter: &Submitter) -> Codelet<(Read<[f64]>,), ()> {
    let look = submitter.codelet::<(Read<[f64]>,), ()>("look");
    look.device_raw(Arch::OPENCL, "look", |_, (), _| Ok::<(), String>(())).build()
}

/// A copy from memory that is pinned in part is an error.
#[test]
fn what_is_lent_twice_is_copied_where_some_of_it_is_pinned() {
    let runtime = with_devices("fake:28").build().expect("it starts");
    let (look, values) = (look(&runtime), vec![1.0; LARGE]);
    let ended = runtime.scope(|scope| {
        let (half, all) = (scope.array_ref(&values[LARGE / 2..]), scope.array_ref(&values));
        for _ in 0..2 {
            runtime.task(&look, (&half,)).submit().expect("it is taken");
            runtime.wont_use(&half).expect("it is of this runtime");
        }
        runtime.wait_all().expect("no task fails");
        assert_eq!(pinned(28), [1 << 19]);
        runtime.task(&look, (&all,)).submit().expect("it is taken");
        runtime.wait_all().expect("no task fails");
    });
    ended.expect("no task fails");
    assert!(pinned(28).is_empty());
}

/// Memory of an array that is pinned is lent, so it is copied in pieces; and so are the first rows of its columns.
#[test]
fn what_is_lent_of_an_array_is_computed_on_a_device() {
    let runtime = with_devices("fake:32").build().expect("it starts");
    let scale = scale(&runtime, On::Devices);
    let scale_rows = runtime.codelet::<(ReadWrite<Matrix<f64>>,), ()>("rows").opencl(SOURCE, "scale", |(), (x,)| {
        let n = x.column_stride() * (x.columns() - 1) + x.rows();
        KernelCall::over([n as usize]).arg(&x).arg(x.offset()).arg(n).arg(5.0)
    });
    let (scale_rows, x) = (scale_rows.build(), runtime.array(vec![1.0; LARGE]));
    {
        let mut values = runtime.write(&x).expect("it is good");
        let ended = runtime.scope(|scope| {
            let all = scope.array(&mut values);
            runtime.task_with(&scale, 3.0, (&all,)).submit().expect("it is taken");
        });
        ended.expect("no task fails");
        let ended = runtime.scope(|scope| {
            let layout = MatrixLayout::column_major(4, LARGE / 8).strides(1, 8);
            let rows = scope.matrix(&mut values, layout).expect("it fits");
            runtime.task(&scale_rows, (&rows,)).submit().expect("it is taken");
        });
        ended.expect("no task fails");
    }
    let values = runtime.unregister(x).expect("it is good").expect("it is the last handle");
    let expected = |at: usize| if at % 8 < 4 { 15.0 } else { 3.0 };
    assert_eq!((0..LARGE).find(|at| values[*at] != expected(*at)), None);
}

/// The end of what was lent first is no end of the copies of the other.
#[test]
fn what_is_lent_twice_is_copied_while_the_first_loan_ends() {
    let runtime = with_devices("fake:31").build().expect("it starts");
    let (look, values) = (look(&runtime), vec![1.0; LARGE]);
    std::thread::scope(|threads| {
        let ended = runtime.scope(|scope| {
            let [one, other] = [(); 2].map(|()| scope.array_ref(&values));
            runtime.task(&look, (&one,)).submit().expect("it is taken");
            runtime.wait_all().expect("no task fails");
            assert_eq!(pinned(31), [1 << 20]);
            let copies = hold_copies(31);
            runtime.task(&look, (&other,)).submit().expect("it is taken");
            copies.wait_for_one();
            threads.spawn(move || {
                while !pinned(31).is_empty() {
                    std::thread::yield_now();
                }
                drop(copies);
            });
        });
        ended.expect("no task fails");
    });
    runtime.wait_all().expect("no task fails");
}
