//! Memory of the host that devices copy from is pinned, as long as it is theirs to use.

use super::{On, scale, with_devices};
use sched_driver_fake::pinned;

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
