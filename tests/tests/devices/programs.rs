//! What programs compute with devices is what they compute in order.

use super::{On, axpy, fill, scale, with_devices};
use proptest::prelude::*;
use sched_host::runtime::{ArrayHandle, DeviceChoice, Partition, Plan, Runtime};

/// Arrays of the random programs, and their length.
const ARRAYS: usize = 3;
const LENGTH: usize = 12;

/// A step of a program: on the core, on a device, or where the policy wants.
#[derive(Clone, Debug)]
enum Step {
    Fill { part: usize, value: i8, on: On },
    Scale { part: usize, factor: i8, on: On },
    Axpy { from: usize, to: usize, factor: i8, on: On },
    Read { part: usize },
    Add { part: usize },
    Prefetch { part: usize, node: u32 },
    LetGo { part: usize },
}

/// Parts of an array: the whole, its halves and its thirds.
const PARTS: [(usize, usize); 6] = [(0, 12), (0, 6), (6, 12), (0, 4), (4, 8), (8, 12)];

fn step() -> impl Strategy<Value = Step> {
    let part = || 0..ARRAYS * PARTS.len();
    let on = || prop_oneof![Just(On::Cores), Just(On::Devices), Just(On::Both)];
    prop_oneof![
        2 => (part(), any::<i8>(), on()).prop_map(|(part, value, on)| Step::Fill { part, value, on }),
        3 => (part(), -2i8..3, on()).prop_map(|(part, factor, on)| Step::Scale { part, factor, on }),
        5 => (part(), part(), -2i8..3, on()).prop_map(|(from, to, factor, on)| Step::Axpy { from, to, factor, on }),
        1 => part().prop_map(|part| Step::Read { part }),
        1 => part().prop_map(|part| Step::Add { part }),
        1 => (part(), 0u32..3).prop_map(|(part, node)| Step::Prefetch { part, node }),
        1 => part().prop_map(|part| Step::LetGo { part }),
    ]
}

/// The parts of one array.
struct Divided {
    whole: ArrayHandle<f64>,
    halves: Partition<ArrayHandle<f64>>,
    thirds: Partition<ArrayHandle<f64>>,
}

impl Divided {
    fn new(runtime: &Runtime) -> Divided {
        let whole = runtime.array((0..LENGTH).map(|value| value as f64).collect());
        let divide = |count| whole.partition(&Plan::ranges(count)).expect("it can be divided");
        let (halves, thirds) = (divide(2), divide(3));
        Divided { whole, halves, thirds }
    }

    fn part(&self, number: usize) -> &ArrayHandle<f64> {
        match number {
            0 => &self.whole,
            1 | 2 => &self.halves[number - 1],
            _ => &self.thirds[number - 3],
        }
    }
}

/// Runs a program with devices, and in order; both results must be equal.
fn check(policy: &str, steps: &[Step], memory: u64) {
    let devices: DeviceChoice = "fake:0,fake:1".parse().expect("it names devices");
    let runtime = with_devices("none").policy(policy).devices(devices.memory_limit(memory));
    let runtime = runtime.build().expect("it starts");
    let all = [On::Cores, On::Devices, On::Both];
    let of = |on: On| all.iter().position(|other| *other == on).expect("it is one of them");
    let (fills, scales, axpys) =
        (all.map(|on| fill(&runtime, on)), all.map(|on| scale(&runtime, on)), all.map(|on| axpy(&runtime, on)));
    let arrays: Vec<Divided> = (0..ARRAYS).map(|_| Divided::new(&runtime)).collect();
    let mut expected = vec![(0..LENGTH).map(|value| value as f64).collect::<Vec<f64>>(); ARRAYS];
    let place = |part: usize| (part / PARTS.len(), PARTS[part % PARTS.len()]);
    let handle = |part: usize| arrays[part / PARTS.len()].part(part % PARTS.len());
    for step in steps {
        match *step {
            Step::Fill { part, value, on } => {
                let (array, (begin, end)) = place(part);
                expected[array][begin..end].fill(f64::from(value));
                runtime.task_with(&fills[of(on)], f64::from(value), (handle(part),)).submit().expect("it is taken");
            }
            Step::Scale { part, factor, on } => {
                let (array, (begin, end)) = place(part);
                expected[array][begin..end].iter_mut().for_each(|value| *value *= f64::from(factor));
                runtime.task_with(&scales[of(on)], f64::from(factor), (handle(part),)).submit().expect("it is taken");
            }
            Step::Axpy { from, to, factor, on } if place(from).0 != place(to).0 => {
                let ((from_array, (first, last)), (array, (begin, end))) = (place(from), place(to));
                let source = expected[from_array][first..last].to_vec();
                let sums = expected[array][begin..end].iter_mut().zip(source);
                sums.for_each(|(y, x)| *y += f64::from(factor) * x);
                let task = runtime.task_with(&axpys[of(on)], f64::from(factor), (handle(from), handle(to)));
                task.submit().expect("it is taken");
            }
            Step::Axpy { .. } => {}
            Step::Read { part } => {
                let (array, (begin, end)) = place(part);
                let read = runtime.read(handle(part)).expect("it was computed");
                assert_eq!(*read, expected[array][begin..end]);
            }
            Step::Add { part } => {
                let (array, (begin, end)) = place(part);
                expected[array][begin..end].iter_mut().for_each(|value| *value += 1.0);
                let mut written = runtime.write(handle(part)).expect("it was computed");
                written.iter_mut().for_each(|value| *value += 1.0);
            }
            Step::Prefetch { part, node } => runtime.prefetch(handle(part), node).expect("there is such a node"),
            Step::LetGo { part } => runtime.wont_use(handle(part)).expect("it is of this runtime"),
        }
    }
    runtime.wait_all().expect("no task fails");
    for (array, expected) in arrays.into_iter().zip(expected) {
        let Divided { whole, halves, thirds } = array;
        drop((halves, thirds));
        let values = runtime.unregister(whole).expect("it was computed").expect("it is the last handle");
        assert_eq!(values, expected);
    }
    let left: u64 = runtime.memory_nodes().iter().map(|node| node.replica_bytes).sum();
    assert_eq!(left, 0, "memory is counted until it is given back");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_programs_compute_what_they_compute_in_order(
        steps in prop::collection::vec(step(), 1..60),
        policy in prop::sample::select(vec!["tree-eager", "tree-ws", "tree-dmdar", "tree-heft", "tree-random", "tree-eager-prefetching"]),
    ) {
        check(policy, &steps, 1 << 20);
    }

    /// Two arrays fit on a device, and programs have three: so what is on it is evicted again and again.
    #[test]
    fn random_programs_do_so_where_devices_have_room_for_two_arrays(
        steps in prop::collection::vec(step(), 1..60),
        policy in prop::sample::select(vec!["tree-eager", "tree-ws", "tree-dmdar", "tree-heft", "tree-random"]),
    ) {
        check(policy, &steps, 2 * 8 * LENGTH as u64);
    }
}

#[test]
fn a_chain_on_a_device_does_not_visit_the_host() {
    let runtime = with_devices("fake:0").build().expect("it starts");
    let scale = scale(&runtime, On::Devices);
    let x = runtime.array(vec![1.0; 100]);
    for _ in 0..10 {
        runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
    }
    runtime.wait_all().expect("no task fails");
    let moved: Vec<(u32, u32, u64)> = runtime.transfers().iter().map(|of| (of.from, of.to, of.count)).collect();
    assert_eq!(moved, [(0, 1, 1)], "one copy to the device");
    assert_eq!(*runtime.read(&x).expect("it was computed"), [1024.0; 100]);
}

#[test]
fn what_is_written_without_being_read_is_not_copied() {
    let runtime = with_devices("fake:0").build().expect("it starts");
    let fill = fill(&runtime, On::Devices);
    let x = runtime.array(vec![1.0; 100]);
    runtime.task_with(&fill, 3.0, (&x,)).submit().expect("it is taken");
    assert_eq!(*runtime.read(&x).expect("it was computed"), [3.0; 100]);
    let moved: Vec<(u32, u32)> = runtime.transfers().iter().map(|of| (of.from, of.to)).collect();
    assert_eq!(moved, [(1, 0)], "only back");
}

#[test]
fn evicted_data_is_written_back_only_if_the_device_alone_has_it() {
    let choice: DeviceChoice = "fake:0".parse().expect("it names a device");
    let runtime = with_devices("none").devices(choice.memory_limit(800)).build().expect("it starts");
    let (scale, axpy) = (scale(&runtime, On::Devices), axpy(&runtime, On::Devices));
    let arrays: Vec<ArrayHandle<f64>> = (0..3).map(|_| runtime.array(vec![1.0; 50])).collect();
    runtime.task_with(&scale, 2.0, (&arrays[0],)).submit().expect("it is taken");
    runtime.task_with(&axpy, 1.0, (&arrays[1], &arrays[2])).submit().expect("it is taken");
    runtime.wait_all().expect("no task fails");
    assert_eq!(runtime.devices()[0].evictions, 1);
    let back: Vec<u64> = runtime.transfers().iter().filter(|of| of.to == 0).map(|of| of.count).collect();
    assert_eq!(back, [1], "the first array, which was written");
    assert_eq!(*runtime.read(&arrays[0]).expect("it was computed"), [2.0; 50]);
    runtime.task_with(&scale, 2.0, (&arrays[0],)).submit().expect("it is taken");
    runtime.wait_all().expect("no task fails");
    let back: Vec<u64> = runtime.transfers().iter().filter(|of| of.to == 0).map(|of| of.count).collect();
    assert_eq!(back, [1], "the second array is on the host anyway, and goes first");
}
