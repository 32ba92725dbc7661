//! Data that devices of one rank have written is sent to others.

use super::{On, axpy, fill, registry, scale};
use sched_core::Arch;
use sched_host::cluster::{Cluster, ClusterError};
use sched_host::runtime::{DeviceChoice, Runtime, StartError, Where};
use sched_host::workload::{Cholesky, Lu, OnRanks, Qr};

const LEN: usize = 3000;
const PARTS: usize = 6;

/// A rank with devices of its own.
fn rank(number: usize) -> Result<Runtime, StartError> {
    let devices: DeviceChoice = ["fake:8", "fake:9", "fake:10"][number].parse().expect("it names a device");
    Runtime::builder().registry(registry()).workers(1).bind(false).devices(devices).build()
}

/// A program over parts of one array: filled, scaled and added to each other around the ranks.
fn program(cluster: &Cluster, on: [On; 3], rounds: usize) -> Option<Vec<f64>> {
    let runtime = cluster.runtime();
    let (fill, scale, axpy) = (fill(runtime, on[0]), scale(runtime, on[1]), axpy(runtime, on[2]));
    let array = cluster
        .register_array(LEN, PARTS, |places| places.map(|place| place as f64).collect())
        .expect("there is memory");
    for round in 0..rounds {
        for part in 0..PARTS {
            let next = (part + 1 + round) % PARTS;
            let sound = "it is sound";
            if (round + part) % 7 == 3 {
                cluster.submit(runtime.task_with(&fill, round as f64, (&array[part],))).expect(sound);
            }
            if next != part {
                cluster.submit(runtime.task_with(&axpy, 0.5, (&array[part], &array[next]))).expect(sound);
            }
            cluster.submit(runtime.task_with(&scale, 0.75, (&array[part],))).expect(sound);
        }
        // The whole is gathered, changed and goes back to its owners.
        if round == 2 {
            cluster.submit(runtime.task_with(&scale, 2.0, (array.whole(),))).expect("it is sound");
        }
        if round == 3 {
            cluster.redistribute_array(&array, |part| part % cluster.ranks()).expect("there are such ranks");
        }
    }
    cluster.gather_array(array, 1 % cluster.ranks()).expect("all is well")
}

fn values(ranks: usize, on: [On; 3]) -> Vec<f64> {
    let found = Cluster::local(ranks, rank, |cluster| Ok::<_, ClusterError>(program(cluster, on, 6)));
    found.expect("the ranks start").into_iter().flatten().flatten().next().expect("one of them has it")
}

#[test]
fn what_devices_compute_is_sent_to_other_ranks() {
    let expected = values(1, [On::Cores; 3]);
    for ranks in [1, 2, 3] {
        for on in [
            [On::Devices; 3],
            [On::Both; 3],
            [On::Devices, On::Cores, On::Devices],
            [On::Cores, On::Devices, On::Cores],
        ] {
            assert!(values(ranks, on) == expected, "{ranks} ranks, {on:?}");
        }
    }
}

/// Factorises on two ranks, whose devices execute every task that they have a kernel for.
fn factorise<W: OnRanks>() {
    let start = |number: usize| {
        let devices: DeviceChoice = ["fake:8", "fake:9"][number].parse().expect("it names a device");
        let builder = Runtime::builder().registry(registry()).workers(1).bind(false).devices(devices);
        W::ON_DEVICES
            .iter()
            .fold(builder, |builder, kernel| builder.only_on(*kernel, Where::arch(Arch::OPENCL)))
            .build()
    };
    for (order, tile_size) in [(120, 24), (77, 20)] {
        let matrix = W::random(order, 7);
        let body = |cluster: &Cluster| {
            let factored = W::run_on(cluster, &*matrix, tile_size).expect("it has factors");
            let devices: Vec<u32> = cluster.runtime().devices().iter().map(|device| device.worker).collect();
            let stats = cluster.runtime().stats();
            let there: u64 = stats.iter().filter(|of| devices.contains(&of.id)).map(|of| of.tasks).sum();
            assert!(there > 0, "{} of order {order}: rank {} has used its device", W::NAME, cluster.rank());
            Ok::<_, ClusterError>(factored.factors)
        };
        let found = Cluster::local(2, start, body).expect("the ranks start");
        let [Ok(Some(factors)), Ok(None)] = &found[..] else { panic!("rank 0 has the factors") };
        let residual = W::residual(&*matrix, factors);
        assert!(residual <= W::tolerance(order), "{} of order {order}: residual {residual}", W::NAME);
    }
}

#[test]
fn factorisations_on_ranks_use_the_devices_of_each() {
    factorise::<Cholesky>();
    factorise::<Lu>();
    factorise::<Qr>();
}
