//! Raw closures that call libraries, here the stand-in of cuBLAS and cuSOLVER on fake devices: every argument of every
//! call is compared with plain loops.

use super::with_devices;
use sched_core::Arch;
use sched_host::cublas::{CudaMath, CudaMathError, CudaQueue, Diagonal, Op, Side, Triangle};
use sched_host::linalg::Number;
use sched_host::model::{Model, Models, Quantity, Variant};
use sched_host::runtime::{DeviceSlice, Outcome, Read, ReadWrite, Runtime};
use sched_test_support::has_compiler;
use sched_tests::cuda::{CUBLAS, CUSOLVER, libraries};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// The stand-in, loaded once.
fn math() -> Option<&'static CudaMath> {
    static LOADED: OnceLock<(CudaMath, TempDir)> = OnceLock::new();
    let load = || {
        let folder = libraries(&[CUBLAS, CUSOLVER]);
        (CudaMath::load(&[folder.path().to_owned()]).expect("all functions are there"), folder)
    };
    has_compiler().then(|| &LOADED.get_or_init(load).0)
}

/// Numbers that differ from each other; a well-conditioned triangle if the matrix is square.
fn numbers(rows: usize, columns: usize, seed: usize) -> Vec<f64> {
    let number = |at: usize| ((at * 37 + seed * 101) % 89) as f64 / 89.0 - 0.4;
    let entry = |at: usize| number(at) + if at % rows == at / rows { 3.0 } else { 0.0 };
    (0..rows * columns).map(entry).collect()
}

/// Element (i, j) of op(x), where x has this many rows.
fn at(x: &[f64], rows: usize, op: Op, i: usize, j: usize) -> f64 {
    if op == Op::Transposed { x[j + i * rows] } else { x[i + j * rows] }
}

fn shape(op: Op, rows: usize, columns: usize) -> (usize, usize) {
    if op == Op::Transposed { (columns, rows) } else { (rows, columns) }
}

/// What a call makes of `c`, in a task that reads `a` and `b`.
fn computed<T: Number>(
    runtime: &Runtime,
    (a, b, c): (Vec<T>, Vec<T>, Vec<T>),
    call: impl Fn(&CudaQueue<'_>, [&DeviceSlice<T>; 3]) -> Result<(), CudaMathError> + Send + Sync + 'static,
) -> Vec<T> {
    let math = math().expect("the caller asked");
    type Access<T> = (Read<[T]>, Read<[T]>, ReadWrite<[T]>);
    let codelet = runtime
        .codelet::<Access<T>, ()>("library")
        .device_raw(Arch::OPENCL, "stand-in", move |device, (), (a, b, c)| call(&math.on(device)?, [&a, &b, &c]))
        .build();
    let (a, b, c) = (runtime.array(a), runtime.array(b), runtime.array(c));
    runtime.task(&codelet, (&a, &b, &c)).submit().expect("it is taken");
    runtime.wait_all().expect("no task fails");
    runtime.read(&c).expect("it was computed").to_vec()
}

fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    let far = found.iter().zip(expected).position(|(a, b)| (a - b).abs() > 1e-12 * b.abs().max(1.0));
    assert_eq!((found.len(), far), (expected.len(), None), "{what}: {found:?}, expected {expected:?}");
}

const OPS: [Op; 2] = [Op::None, Op::Transposed];

#[test]
fn gemm_is_a_product_with_every_operation() {
    if math().is_none() {
        return;
    }
    let runtime = with_devices("fake:6").build().expect("it starts");
    let (m, n, k) = (5, 4, 3);
    for (ta, tb) in OPS.into_iter().flat_map(|ta| OPS.map(|tb| (ta, tb))) {
        let ((ar, ac), (br, bc)) = (shape(ta, m, k), shape(tb, k, n));
        let (a, b, c) = (numbers(ar, ac, 1), numbers(br, bc, 2), numbers(m, n, 3));
        let found = computed(&runtime, (a.clone(), b.clone(), c.clone()), move |queue, [a, b, c]| {
            let (a, b, c) = (queue.matrix(a, ar, ac)?, queue.matrix(b, br, bc)?, queue.matrix(c, m, n)?);
            queue.gemm(-2.0, (a, ta), (b, tb), 0.5, c)
        });
        let entry = |place: usize| {
            let (i, j) = (place % m, place / m);
            let sum: f64 = (0..k).map(|p| at(&a, ar, ta, i, p) * at(&b, br, tb, p, j)).sum();
            -2.0 * sum + 0.5 * c[place]
        };
        assert_near(&found, &(0..m * n).map(entry).collect::<Vec<f64>>(), &format!("{ta:?} {tb:?}"));
    }
}

#[test]
fn syrk_changes_one_triangle() {
    if math().is_none() {
        return;
    }
    let runtime = with_devices("fake:6").build().expect("it starts");
    let (n, k) = (4, 3);
    for (triangle, op) in [Triangle::Lower, Triangle::Upper].into_iter().flat_map(|of| OPS.map(|op| (of, op))) {
        let (rows, columns) = shape(op, n, k);
        let (a, c) = (numbers(rows, columns, 1), numbers(n, n, 2));
        let found = computed(&runtime, (a.clone(), vec![0.0], c.clone()), move |queue, [a, _, c]| {
            queue.syrk(triangle, -1.0, (queue.matrix(a, rows, columns)?, op), 1.0, queue.matrix(c, n, n)?)
        });
        let entry = |place: usize| {
            let (i, j) = (place % n, place / n);
            let sum: f64 = (0..k).map(|p| at(&a, rows, op, i, p) * at(&a, rows, op, j, p)).sum();
            c[place] - if (triangle == Triangle::Lower) == (i >= j) || i == j { sum } else { 0.0 }
        };
        assert_near(&found, &(0..n * n).map(entry).collect::<Vec<f64>>(), &format!("{triangle:?} {op:?}"));
    }
}

#[test]
fn trsm_solves_from_either_side() {
    if math().is_none() {
        return;
    }
    let runtime = with_devices("fake:6").build().expect("it starts");
    let (m, n) = (5, 4);
    let sides = [Side::Left, Side::Right].into_iter().flat_map(|side| OPS.map(|op| (side, op)));
    let kinds = [Triangle::Lower, Triangle::Upper]
        .into_iter()
        .flat_map(|of| [Diagonal::NonUnit, Diagonal::Unit].map(|diagonal| (of, diagonal)));
    for ((side, op), (triangle, diagonal)) in sides.flat_map(|side| kinds.clone().map(move |kind| (side, kind))) {
        let order = if side == Side::Left { m } else { n };
        let (a, b) = (numbers(order, order, 1), numbers(m, n, 2));
        let x = computed(&runtime, (a.clone(), vec![0.0], b.clone()), move |queue, [a, _, b]| {
            let a = (queue.matrix(a, order, order)?, triangle, op, diagonal);
            queue.trsm(side, a, queue.matrix(b, m, n)?)
        });
        // The triangle that counts, with zeros beside it.
        let entry = |place: usize| match (place % order, place / order) {
            (i, j) if i == j && diagonal == Diagonal::Unit => 1.0,
            (i, j) if i == j || (triangle == Triangle::Lower) == (i > j) => a[place],
            _ => 0.0,
        };
        let whole: Vec<f64> = (0..order * order).map(entry).collect();
        let product = |place: usize| {
            let (i, j) = (place % m, place / m);
            match side {
                Side::Left => (0..m).map(|p| at(&whole, m, op, i, p) * x[p + j * m]).sum(),
                Side::Right => (0..n).map(|p| x[i + p * m] * at(&whole, n, op, p, j)).sum::<f64>(),
            }
        };
        let what = format!("{side:?} {triangle:?} {op:?} {diagonal:?}");
        assert_near(&(0..m * n).map(product).collect::<Vec<f64>>(), &b, &what);
    }
}

#[test]
fn single_precision_has_functions_of_its_own() {
    if math().is_none() {
        return;
    }
    let runtime = with_devices("fake:6").build().expect("it starts");
    let (a, b, c) = (vec![1f32, 2.0, 3.0, 4.0], vec![5f32, 6.0, 7.0, 8.0], vec![1f32; 4]);
    let found = computed(&runtime, (a, b, c), |queue, [a, b, c]| {
        let (a, b, c) = (queue.matrix(a, 2, 2)?, queue.matrix(b, 2, 2)?, queue.matrix(c, 2, 2)?);
        queue.gemm(1.0, (a, Op::None), (b, Op::None), 1.0, c)
    });
    assert_eq!(found, [24.0, 35.0, 32.0, 47.0]);
}

/// A·Aᵀ plus a diagonal.
fn positive(n: usize) -> Vec<f64> {
    let a = numbers(n, n, 3);
    let entry = |place: usize| {
        let (i, j) = (place % n, place / n);
        (0..n).map(|p| a[i + p * n] * a[j + p * n]).sum::<f64>() + if i == j { 1.0 } else { 0.0 }
    };
    (0..n * n).map(entry).collect()
}

#[test]
fn factors_of_cusolver_make_up_the_matrix_and_bad_pivots_are_reported() {
    if math().is_none() {
        return;
    }
    let runtime = with_devices("fake:6").build().expect("it starts");
    let n = 6;
    let said = Arc::new(Mutex::new(Vec::new()));
    let note = || {
        let said = Arc::clone(&said);
        move |info: i32| {
            said.lock().expect("no test panics with it").push(info);
            Ok(())
        }
    };
    let (whole, noted) = (positive(n), note());
    let l = computed(&runtime, (vec![0.0], vec![0.0], whole.clone()), move |queue, [_, _, a]| {
        queue.potrf(Triangle::Lower, queue.matrix(a, n, n)?, noted.clone())
    });
    let product = |place: usize| -> f64 {
        let (i, j) = (place % n, place / n);
        (0..=i.min(j)).map(|p| l[i + p * n] * l[j + p * n]).sum()
    };
    assert_near(&(0..n * n).map(product).collect::<Vec<f64>>(), &whole, "L·Lᵀ");

    let noted = note();
    let lu = computed(&runtime, (vec![0.0], vec![0.0], whole.clone()), move |queue, [_, _, a]| {
        queue.getrf(queue.matrix(a, n, n)?, noted.clone())
    });
    let product = |place: usize| -> f64 {
        let (i, j) = (place % n, place / n);
        let l = |p: usize| if p == i { 1.0 } else { lu[i + p * n] };
        (0..=i.min(j)).map(|p| l(p) * lu[p + j * n]).sum()
    };
    assert_near(&(0..n * n).map(product).collect::<Vec<f64>>(), &whole, "L·U");

    let (mut bad, noted) = (whole, note());
    bad[3 + 3 * n] = -1.0;
    let _ = computed(&runtime, (vec![0.0], vec![0.0], bad.clone()), move |queue, [_, _, a]| {
        queue.potrf(Triangle::Lower, queue.matrix(a, n, n)?, noted.clone())
    });
    assert_eq!(*said.lock().expect("no test panics with it"), [0, 0, 4]);
}

/// The message of a task whose closure makes this of a matrix of 3 × 2 elements.
fn failure(
    call: impl Fn(&CudaQueue<'_>, &DeviceSlice<f64>) -> Result<(), CudaMathError> + Send + Sync + 'static,
) -> String {
    let runtime = with_devices("fake:6").build().expect("it starts");
    let math = math().expect("the caller asked");
    let codelet = runtime
        .codelet::<(ReadWrite<[f64]>,), ()>("library")
        .device_raw(Arch::OPENCL, "stand-in", move |device, (), (a,)| call(&math.on(device)?, &a))
        .build();
    let x = runtime.array(vec![-1.0; 6]);
    let task = runtime.task(&codelet, (&x,)).submit().expect("it is taken");
    let Outcome::Failed(failure) = runtime.wait(task).expect("it ends") else { panic!("it fails") };
    assert!(runtime.wait_all().is_err());
    failure.message.clone()
}

#[test]
fn what_does_not_fit_fails_the_task_and_says_why() {
    if math().is_none() {
        return;
    }
    let small = failure(|queue, x| queue.matrix(x, 3, 3).map(|_| ()));
    assert_eq!(small, "the driver failed: found an array of 6 elements, expected one of 3 × 3");
    let product = failure(|queue, x| {
        let x = queue.matrix(x, 3, 2)?;
        queue.gemm(1.0, (x, Op::None), (x, Op::None), 0.0, x)
    });
    assert_eq!(product, "the driver failed: the second factor of gemm: found 3 × 2, expected 2 × 2");
    let square = failure(|queue, x| queue.potrf(Triangle::Lower, queue.matrix(x, 3, 2)?, |_| Ok(())));
    assert_eq!(square, "the driver failed: the matrix of potrf: found 3 × 2, expected 3 × 3");
    let said = failure(|queue, x| {
        let check = |info| if info == 0 { Ok(()) } else { Err(format!("pivot {info} is not positive")) };
        queue.potrf(Triangle::Lower, queue.matrix(x, 2, 2)?, check)
    });
    assert_eq!(said, "the driver failed: pivot 1 is not positive");
}

#[test]
fn without_the_libraries_the_error_says_what_is_missing() {
    let empty = tempfile::tempdir().expect("there is room for a folder");
    match CudaMath::load(&[empty.path().to_owned()]) {
        Ok(_) => sched_test_support::skipped("cuBLAS is installed here"),
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.starts_with("libcublas.so cannot be loaded (") && said.contains("SCHED_CUDA_LIBRARIES"),
                "{said}"
            );
        }
    }
}

/// The closure takes its time before it asks for the queue, as a library does that is loaded then.
#[test]
fn the_work_of_a_library_is_as_long_as_the_device_says() {
    const FIRST: Duration = Duration::from_millis(2);
    let runtime = with_devices("fake:5").models(Arc::new(Models::in_memory())).build().expect("it starts");
    let codelet = runtime
        .codelet::<(ReadWrite<[f64]>,), ()>("slow")
        .model(Model::history("slow"))
        .device_raw(Arch::OPENCL, "stand-in", |device, (), _| {
            std::thread::sleep(FIRST);
            device.queue().map(|_| ())
        })
        .build();
    let x = runtime.array(vec![1.0; 8]);
    for _ in 0..12 {
        runtime.task(&codelet, (&x,)).submit().expect("it is taken");
    }
    runtime.wait_all().expect("no task fails");
    let models = runtime.models().expect("they were given");
    let measured = models.find("slow").expect("it is known").measurements();
    let samples = &measured.variants[&(Variant::of(Arch::OPENCL), Quantity::Time)]
        .entries
        .values()
        .next()
        .expect("it was measured")
        .samples;
    let length = samples.midmean().expect("there are samples");
    assert!(samples.count() == 12 && length < FIRST.as_micros() as f64, "{length} µs");
}
