//! Machines to judge policies on: those of StarPU's reference data, machines made from them, and described ones.

use sched_host::graph::TaskGraph;
use sched_host::graph::bound::Bounds;
use sched_host::sim::Platform;
use sched_host::sim::platform::KernelTime;
use std::path::Path;
use std::time::Duration;

/// A machine.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) platform: Platform,
    /// Its name in StarPU's tables, if it is one of those, unchanged.
    pub(crate) starpu: Option<&'static str>,
    /// Whether it has measured lengths of single-precision tiles, for those who wrote StarPU's models.
    pub(crate) is_measured: bool,
}

/// Two groups of four GPUs, fast links within each, a slow one between them.
const ISLANDS: &str = r#"platform "islands" {
    memory "ram"
    repeat 8 { memory "gpu{}" size="16 GB" device=#true; }
    switch "left"; switch "right"; switch "pci-left"; switch "pci-right"
    link "ram" "pci-left" bandwidth="12 GB/s" latency="5 us"
    link "ram" "pci-right" bandwidth="12 GB/s" latency="5 us"
    link "pci-left" "gpu0" bandwidth="12 GB/s" latency="5 us"
    link "pci-left" "gpu1" bandwidth="12 GB/s" latency="5 us"
    link "pci-left" "gpu2" bandwidth="12 GB/s" latency="5 us"
    link "pci-left" "gpu3" bandwidth="12 GB/s" latency="5 us"
    link "pci-right" "gpu4" bandwidth="12 GB/s" latency="5 us"
    link "pci-right" "gpu5" bandwidth="12 GB/s" latency="5 us"
    link "pci-right" "gpu6" bandwidth="12 GB/s" latency="5 us"
    link "pci-right" "gpu7" bandwidth="12 GB/s" latency="5 us"
    link "left" "gpu0" bandwidth="40 GB/s" latency="1 us"; link "left" "gpu1" bandwidth="40 GB/s" latency="1 us"
    link "left" "gpu2" bandwidth="40 GB/s" latency="1 us"; link "left" "gpu3" bandwidth="40 GB/s" latency="1 us"
    link "right" "gpu4" bandwidth="40 GB/s" latency="1 us"; link "right" "gpu5" bandwidth="40 GB/s" latency="1 us"
    link "right" "gpu6" bandwidth="40 GB/s" latency="1 us"; link "right" "gpu7" bandwidth="40 GB/s" latency="1 us"
    workers "cpu" count=16 arch="cpu" memory="ram" package=0
    repeat 8 { workers "gpu" arch="cuda" memory="gpu{}" speed=20.0 pipeline=2; }
    expected-transfers contention=4.0
    OVERHEADS
    KERNELS
}"#;

/// Eight cores, a GPU, and one that is a quarter as fast.
const BIG_AND_SMALL: &str = r#"platform "big-small" {
    memory "ram"
    memory "big" size="16 GB" device=#true
    memory "small" size="4 GB" device=#true
    link "ram" "big" bandwidth="12 GB/s" latency="9 us"
    link "ram" "small" bandwidth="6 GB/s" latency="9 us"
    workers "cpu" count=8 arch="cpu" memory="ram" package=0
    workers "gpu" arch="cuda" memory="big" speed=20.0 pipeline=2
    workers "slow" arch="cuda" memory="small" speed=5.0 pipeline=2
    expected-transfers contention=2.0
    OVERHEADS
    KERNELS
}"#;

/// Two packages of 24 cores, and nothing else.
const CORES: &str = r#"platform "cores" {
    memory "ram0"; memory "ram1"
    link "ram0" "ram1" bandwidth="30 GB/s" latency="1 us"
    workers "cpu" count=24 arch="cpu" memory="ram0" package=0
    workers "cpu1" count=24 arch="cpu" memory="ram1" package=1
    OVERHEADS
    KERNELS
}"#;

/// Four GPUs, each behind one switch more than the one before.
const CHAIN: &str = r#"platform "chain" {
    memory "ram"
    repeat 4 { memory "gpu{}" size="12 GB" device=#true; switch "s{}"; }
    link "ram" "s0" bandwidth="10 GB/s" latency="3 us"
    link "s0" "s1" bandwidth="10 GB/s" latency="3 us"
    link "s1" "s2" bandwidth="10 GB/s" latency="3 us"
    link "s2" "s3" bandwidth="10 GB/s" latency="3 us"
    repeat 4 { link "s{}" "gpu{}" bandwidth="10 GB/s" latency="3 us"; }
    workers "cpu" count=8 arch="cpu" memory="ram" package=0
    repeat 4 { workers "gpu" arch="cuda" memory="gpu{}" speed=20.0 pipeline=2; }
    expected-transfers contention=4.0
    OVERHEADS
    KERNELS
}"#;

/// Kinds of tasks with their rates in GFlop/s on a core and on a GPU.
const RATES: [(&str, f64, f64); 10] = [
    ("potrf", 22.0, 60.0),
    ("trsm", 27.0, 400.0),
    ("syrk", 28.0, 1000.0),
    ("gemm", 30.0, 1200.0),
    ("getrf", 22.0, 70.0),
    ("trsm_row", 27.0, 400.0),
    ("trsm_column", 27.0, 400.0),
    ("geqrt", 15.0, 40.0),
    ("tsqrt", 18.0, 60.0),
    ("unmqr", 26.0, 500.0),
];

fn described(text: &str) -> Machine {
    let classes: Vec<(&str, bool, f64)> = ["cpu", "cpu1", "cpu2", "cpu3"]
        .map(|class| (class, false, 1.0))
        .into_iter()
        .chain([("gpu", true, 1.0), ("slow", true, 0.25)])
        .filter(|(class, ..)| text.contains(&format!("workers \"{class}\"")))
        .collect();
    let mut kernels = String::new();
    for (kind, cpu, gpu) in RATES.into_iter().chain([("tsmqr", 27.0, 800.0)]) {
        kernels += &format!("kernel \"{kind}\" {{ ");
        for (class, is_gpu, share) in &classes {
            kernels += &format!("on \"{class}\" gflops={:?}; ", share * if *is_gpu { gpu } else { cpu });
        }
        kernels += "}\n";
    }
    if classes.iter().any(|(_, is_gpu, _)| *is_gpu) {
        kernels += "kernel \"stencil\" { ";
        for (class, _, share) in classes.iter().filter(|(_, is_gpu, _)| *is_gpu) {
            kernels += &format!("on \"{class}\" time=\"{} us\"; ", 400.0 / share);
        }
        kernels += "}\n";
    }
    let overheads = "overheads submission=\"1 us\" push=\"1 us\" fetch=\"1 us\" kernel-queueing=\"10 us\" \
                     transfer-queueing=\"10 us\" allocation=\"175 us\"";
    let text = text.replace("OVERHEADS", overheads).replace("KERNELS", &kernels);
    let platform = Platform::parse("described.kdl", &text).unwrap_or_else(|error| panic!("{error:?}"));
    Machine { name: platform.name.clone(), platform, starpu: None, is_measured: false }
}

/// A machine of StarPU's with only `devices` of its devices, and times of the kinds that nobody measured.
fn measured(data: &Path, host: &'static str, devices: Option<usize>) -> Machine {
    let mut platform = Platform::from_starpu(&data.join("starpu-sampling"), host).expect("the directory is sound");
    let mut left = devices.unwrap_or(usize::MAX);
    platform.workers.retain(|worker| {
        let is_device = worker.memory.0 != 0;
        let stays = !is_device || left > 0;
        left -= usize::from(is_device && stays);
        stays
    });
    for (number, class) in platform.classes.iter().enumerate() {
        let is_device = platform.workers.iter().any(|worker| worker.class == number && worker.memory.0 != 0);
        for (kind, cpu, gpu) in RATES.into_iter().chain([("tsmqr", 27.0, 800.0)]) {
            // Double precision, on machines that were measured in single precision: half the rate.
            let gflops = if is_device { gpu / 2.0 } else { cpu / 2.0 };
            if matches!(kind, "geqrt" | "unmqr" | "tsqrt" | "tsmqr") {
                platform.kernels.set(kind, number, KernelTime::Rate { gflops, overhead: Duration::ZERO });
            }
        }
        if is_device {
            platform.kernels.set("stencil", number, KernelTime::Fixed(Duration::from_micros(400)));
        }
        assert!(!class.name.is_empty());
    }
    let name = devices.map_or(host.to_owned(), |devices| format!("{host}-{devices}gpu"));
    Machine { name, platform, starpu: devices.is_none().then_some(host), is_measured: true }
}

/// The machine with `times` as many cores.
fn with_cores(mut machine: Machine, times: usize) -> Machine {
    let workers = &machine.platform.workers;
    let core = *workers.iter().find(|worker| worker.memory.0 == 0).expect("it has cores");
    let more = workers.iter().filter(|worker| worker.memory.0 == 0).count() * (times - 1);
    machine.platform.workers.splice(0..0, std::iter::repeat_n(core, more));
    Machine { name: format!("{}-cores×{times}", machine.name), starpu: None, ..machine }
}

/// The machine with links that are `times` slower.
fn with_slower_links(mut machine: Machine, times: f64) -> Machine {
    machine.platform.links.iter_mut().for_each(|link| link.bandwidth /= times);
    machine.platform.routes.iter_mut().for_each(|route| route.expected.per_byte *= times);
    Machine { name: format!("{}-links/{times}", machine.name), starpu: None, ..machine }
}

/// All machines.
pub(crate) fn all(data: &Path) -> Vec<Machine> {
    vec![
        measured(data, "mirage", None),
        measured(data, "attila", None),
        measured(data, "idgraf", None),
        measured(data, "mirage", Some(1)),
        measured(data, "attila", Some(2)),
        measured(data, "idgraf", Some(4)),
        measured(data, "idgraf", Some(6)),
        with_cores(measured(data, "mirage", None), 3),
        with_slower_links(measured(data, "attila", None), 3.0),
        described(ISLANDS),
        described(BIG_AND_SMALL),
        described(CORES),
        described(CHAIN),
    ]
}

/// Three groups of two GPUs with a fast link between the two; main memory is behind one slow switch.
const PAIRS: &str = r#"platform "pairs" {
    memory "ram"
    repeat 6 { memory "gpu{}" size="16 GB" device=#true; }
    switch "pci"
    link "ram" "pci" bandwidth="16 GB/s" latency="4 us"
    repeat 6 { link "pci" "gpu{}" bandwidth="8 GB/s" latency="4 us"; }
    link "gpu0" "gpu1" bandwidth="30 GB/s" latency="2 us"
    link "gpu2" "gpu3" bandwidth="30 GB/s" latency="2 us"
    link "gpu4" "gpu5" bandwidth="30 GB/s" latency="2 us"
    workers "cpu" count=10 arch="cpu" memory="ram" package=0
    repeat 6 { workers "gpu" arch="cuda" memory="gpu{}" speed=20.0 pipeline=2; }
    expected-transfers contention=3.0
    OVERHEADS
    KERNELS
}"#;

/// Five GPUs, each on a fast link of its own.
const STAR: &str = r#"platform "star" {
    memory "ram"
    repeat 5 { memory "gpu{}" size="16 GB" device=#true; }
    repeat 5 { link "ram" "gpu{}" bandwidth="20 GB/s" latency="6 us"; }
    workers "cpu" count=20 arch="cpu" memory="ram" package=0
    repeat 5 { workers "gpu" arch="cuda" memory="gpu{}" speed=20.0 pipeline=2; }
    OVERHEADS
    KERNELS
}"#;

/// Four packages of five cores.
const PACKAGES: &str = r#"platform "packages" {
    memory "ram0"; memory "ram1"; memory "ram2"; memory "ram3"
    link "ram0" "ram1" bandwidth="15 GB/s" latency="1 us"
    link "ram1" "ram2" bandwidth="15 GB/s" latency="1 us"
    link "ram2" "ram3" bandwidth="15 GB/s" latency="1 us"
    link "ram3" "ram0" bandwidth="15 GB/s" latency="1 us"
    workers "cpu" count=5 arch="cpu" memory="ram0" package=0
    workers "cpu1" count=5 arch="cpu" memory="ram1" package=1
    workers "cpu2" count=5 arch="cpu" memory="ram2" package=2
    workers "cpu3" count=5 arch="cpu" memory="ram3" package=3
    OVERHEADS
    KERNELS
}"#;

/// Machines on which nothing of the policy was chosen.
pub(crate) fn unseen(data: &Path) -> Vec<Machine> {
    let islands = || described(ISLANDS);
    let renamed = |name: &str, machine: Machine| Machine { name: name.to_owned(), ..machine };
    let without = |mut machine: Machine, gone: &[u32]| {
        machine.platform.workers.retain(|worker| !gone.contains(&worker.memory.0));
        machine
    };
    vec![
        with_slower_links(measured(data, "attila", None), 2.0),
        with_slower_links(measured(data, "attila", None), 5.0),
        with_slower_links(measured(data, "mirage", None), 4.0),
        with_slower_links(measured(data, "idgraf", None), 2.0),
        measured(data, "idgraf", Some(3)),
        measured(data, "mirage", Some(2)),
        with_cores(measured(data, "attila", Some(1)), 2),
        with_slower_links(islands(), 3.0),
        renamed("islands-2+3", without(islands(), &[1, 2, 8])),
        described(PAIRS),
        described(STAR),
        described(PACKAGES),
    ]
}

/// The lower bounds of a graph on a platform.
pub(crate) fn bounds(graph: &TaskGraph, platform: &Platform) -> Bounds {
    platform.bounds(graph, &graph.dependencies()).expect("the platform can run it")
}
