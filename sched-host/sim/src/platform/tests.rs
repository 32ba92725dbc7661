use super::*;
use crate::Simulation;
use sched_core::Arch;
use sched_graph::{AccessMode, Datum, Task, TaskGraph};
use sched_policy::{Level, Machine};

fn errors(text: &str) -> Vec<String> {
    let errors = Platform::parse("mine.kdl", text).expect_err("the text is wrong");
    let line = |problem: &sched_text::Finding| match problem.position() {
        Some((_, line, column)) => format!("{line}:{column}: {problem}"),
        None => problem.to_string(),
    };
    errors.findings().iter().map(line).collect()
}

#[test]
fn every_shipped_platform_is_sound_and_says_where_its_figures_come_from() {
    for shipped in library() {
        let platform = find(shipped.name).unwrap_or_else(|errors| panic!("{errors}: {:?}", errors.findings()));
        assert_eq!(platform.name, shipped.name);
        assert!(platform.doc.contains("Published"), "{}", shipped.name);
        for (kind, class) in ["potrf", "trsm", "syrk", "gemm"]
            .iter()
            .flat_map(|kind| (0..platform.classes.len()).map(move |class| (kind, class)))
        {
            assert!(platform.kernels.get(kind, class).is_some(), "{kind} on {}", platform.classes[class].name);
        }
    }
}

#[test]
fn transfers_between_gpus_pass_both_of_their_links() {
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let names = |from, to| -> Vec<&str> {
        platform
            .route(MemoryNode(from), MemoryNode(to))
            .links
            .iter()
            .map(|link| platform.links[*link].name.as_str())
            .collect()
    };
    assert_eq!(names(1, 2), ["gpu0-bridge", "bridge-gpu1"]);
    assert_eq!(names(0, 3), ["ram-bridge", "bridge-gpu2"]);
    assert_eq!(platform.route(MemoryNode(0), MemoryNode(3)).latency, 10_000);
    assert_eq!(platform.expected_transfer(MemoryNode(0), MemoryNode(3), 11_500_000), 3_010_000);
    assert_eq!(platform.expected_transfer(MemoryNode(2), MemoryNode(2), 11_500_000), 0);
}

#[test]
fn starpu_lists_main_memories_first_and_the_nearest_to_each_device() {
    let text = r#"platform "x" {
        memory "gpu" device=#true
        memory "near"
        memory "far"
        memory "alone"
        memory "spare" device=#true
        link "near" "gpu" bandwidth="10 GB/s" latency="5 us"
        link "far" "near" bandwidth="4 GB/s" latency="2 us"
        workers "far" count=2 arch="cpu" memory="far"
        workers "near" count=2 arch="cpu" memory="near"
        workers "gpu" arch="cuda" memory="gpu"
        kernel "*" { on "far" time="1 ms"; on "near" time="1 ms"; on "gpu" time="1 ms"; }
    }"#;
    let bus = Platform::parse("mine.kdl", text).expect("it is sound").starpu_bus();
    // Near, far, alone and the device.
    let mega = 1_000_000;
    assert_eq!(bus.nodes(), 4);
    assert_eq!([bus.transfer(0, 3, mega), bus.transfer(1, 3, mega)], [Some(105.0), Some(257.0)]);
    assert_eq!([bus.transfer(2, 3, mega), bus.transfer(2, 2, mega)], [None, Some(0.0)]);
    assert_eq!(bus.affinity, [[0, 1, 2]]);
    assert_eq!((bus.config.cpus, bus.config.cuda, bus.config.opencl), (5, 1, 0));
}

#[test]
fn a_platform_of_starpus_gives_the_bus_that_it_was_made_of() {
    let Some(directory) = sched_test_support::reference_data("starpu-sampling") else { return };
    let sampling = sched_model::starpu::Sampling::load(&directory, "mirage").expect("it is sound");
    let measured = sampling.bus.expect("both matrices are there");
    let bus = Platform::from_starpu(&directory, "mirage").expect("it is sound").starpu_bus();
    assert_eq!((bus.nodes(), bus.config.cpus, bus.config.cuda), (4, measured.config.cpus, measured.config.cuda));
    for (from, to) in (1..4).flat_map(|device| [(0, device), (device, 0)]) {
        let [ours, theirs] = [&bus, &measured].map(|bus| bus.transfer(from, to, 1 << 22).expect("there is a link"));
        // Each was measured in a run of its own, and latencies of the machine are rounded to microseconds.
        assert!((ours / theirs - 1.0).abs() < 0.01, "{from} to {to}: {ours} µs and {theirs} µs");
    }
}

#[test]
fn a_platform_has_the_levels_that_policies_go_over() {
    let platform = find("numa-2x12").expect("it is shipped");
    let count = |level| platform.groups(level).len();
    assert_eq!([Level::Worker, Level::MemoryNode, Level::Package, Level::Arch].map(count), [24, 2, 2, 1]);
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let archs: Vec<String> = platform.groups(Level::Arch).into_iter().map(|group| group.label).collect();
    assert_eq!(archs, ["cpu", "cuda"]);
    assert_eq!(platform.archs().iter().collect::<Vec<_>>(), [Arch::CPU, Arch::CUDA]);
    assert_eq!(platform.groups(Level::Numa).len(), 1);
}

#[test]
fn all_that_is_wrong_with_a_platform_is_said() {
    let text = r#"platform "x" {
    memory "ram" sise="3 GB"
    memory "gpu" size="3 parsec"
    workers "cpu" count=0 arch="cup" memory="rma"
    link "ram" "gup" latency="1 us"
    kernal "a" { }
    kernel "b" { on "cpu" }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r#"
    2:18: `memory` has no property `sise`
    3:23: `size` is "3 parsec"
    4:25: `count` is 0
    4:32: there is no architecture `cup`
    4:45: there is no memory `rma`
    5:5: `link` has no `bandwidth`
    6:5: `kernal` cannot stand in a platform
    7:18: `on` says in one way how long a kernel takes
    "#);
}

#[test]
fn cores_are_combined_by_package_memory_and_halves() {
    let combined = |platform: Platform| -> Vec<String> {
        let line = |team: sched_machine::topology::CombinedWorker| format!("{:?} of {}", team.members, team.within);
        platform.combined_workers().into_iter().map(line).collect()
    };
    let mine = |text: &str| Platform::parse("mine.kdl", &format!("platform \"x\" {{ {text} }}")).expect("it is sound");
    let two = mine(
        r#"memory "a"; memory "b"; link "a" "b" bandwidth="1 GB/s"; memory "gpu"; link "a" "gpu" bandwidth="1 GB/s"
        workers "cpu" count=2 memory="a" package=0; workers "gpu" arch="cuda" memory="gpu"
        workers "cpu" count=3 memory="b" package=1"#,
    );
    insta::assert_snapshot!(combined(two).join("\n"), @r"
    [0, 1, 3, 4, 5] of machine
    [0, 1] of memory-node 0
    [3, 4, 5] of memory-node 1
    [3, 4] of memory-node 1
    ");
    let bounded = mine(r#"memory "a"; workers "cpu" count=8; combined-workers min=3 max=4"#);
    assert_eq!(combined(bounded), ["[0, 1, 2, 3] of memory-node 0", "[4, 5, 6, 7] of memory-node 0"]);
    assert_eq!(combined(mine(r#"memory "a"; workers "gpu" arch="cuda" count=4"#)), [""; 0]);
}

#[test]
fn what_is_wrong_about_teams_is_said() {
    let text = r#"platform "x" {
    memory "ram"
    workers "cpu" count=4
    workers "gpu" arch="cuda"
    kernel "a" { on "cpu" time="1 ms" parallel=1.5; }
    kernel "b" { on "cpu" time="1 ms" parallel=0.5 team=2; }
    kernel "c" { on "cpu" time="1 ms" max-team=2; }
    kernel "d" { on "cpu" time="1 ms" team=1; }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r"
    5:18: `parallel` is a share of a task, from 0 to 1
    6:18: `team` says how long a task takes, so `parallel` cannot
    7:18: `max-team` goes with `parallel`
    8:44: `team` is 1
    ");
    let text = r#"platform "x" {
    memory "ram"
    workers "cpu" count=4
    workers "gpu" arch="cuda"
    kernel "a" { on "gpu" time="1 ms" parallel=0.5; }
    kernel "b" { on "cpu" time="1 ms" parallel=0.5; on "cpu" time="1 ms" team=2; }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r"
    5:21: only CPU workers execute tasks together
    6:56: it is said in two ways how long teams take
    ");
}

#[test]
fn what_is_wrong_about_watts_is_said() {
    let text = r#"platform "x" {
    memory "ram"
    workers "cpu" count=4 watts=10 idle-watts="-1 W"
    kernel "a" { on "cpu" time="1 ms" watts="1 parsec"; }
    kernel "b" { on "cpu" time="1 ms"; on "cpu" time="1 ms" team=2 watts="10 W"; }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r#"
    3:33: `watts` is 10
    3:47: `idle-watts` is "-1 W"
    4:45: `watts` is "1 parsec"
    5:40: `watts` is the power of each worker, alone or in a team
    "#);
}

#[test]
fn memories_without_a_way_between_them_are_refused() {
    let text = r#"platform "x" { memory "ram"; memory "gpu"; workers "cpu" memory="ram"; workers "gpu" arch="cuda" memory="gpu"; }"#;
    assert_eq!(errors(text), ["there is no way between the memories `ram` and `gpu`"]);
}

#[test]
fn what_starpu_measured_on_several_cores_says_how_teams_do() {
    use sched_model::starpu::{CodeletFile, Comb, Device, HistoryEntry, Implementation};
    let comb = |cores, mean| {
        let entry =
            HistoryEntry { footprint: 7, size: 64, flops: 0.0, mean, deviation: 0.0, sum: mean, sum2: 0.0, samples: 1 };
        let measured = Implementation { history: vec![entry], ..Implementation::default() };
        Comb { devices: vec![Device { kind: 0, id: 0, cores }], implementations: vec![measured] }
    };
    let file = CodeletFile { combs: vec![comb(1, 80.0), comb(2, 0.0), comb(4, 20.0)] };
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("bus")).expect("there is room");
    std::fs::create_dir_all(path("codelets/45")).expect("there is room");
    std::fs::write(path("codelets/45/wide.here"), file.to_text()).expect("there is room");
    let hosts: String = (0..6).map(|core| format!("<host id=\"CPU{core}\" speed=\"2e9f\"/>")).collect();
    std::fs::write(path("bus/here.platform.v4.xml"), format!("<platform version=\"4\">{hosts}</platform>"))
        .expect("there is room");

    std::fs::write(path("codelets/45/unused.here"), "rubbish").expect("there is room");
    let platform = Platform::from_starpu(directory.path(), "here").expect("nobody needs the damaged file");
    assert!(platform.left_out[0].contains("unused.here:1:1: found `rubbish`"), "{:?}", platform.left_out);
    let zero = "codelets/45/wide.here: the history line of footprint 00000007, with a mean of 0";
    assert!(platform.left_out[1].ends_with(zero), "{:?}", platform.left_out);
    assert_eq!(platform.left_out.len(), 2);
    let mut graph = TaskGraph::new("one");
    let kind = graph.add_kind("wide");
    let task = Task { footprint: Some(7), ..Task::new(kind) };
    let micros = |size| platform.team_length(&graph, &task, 0, size).map(|length| length.as_micros());
    assert_eq!([1, 2, 3, 4, 6].map(micros), [Some(80), Some(40), Some(26), Some(20), None]);
}

/// A directory of StarPU's with a core and a device, links of 10 and 5 GB/s, and these files of its bus.
fn starpu_directory(xml: impl Fn(String) -> String, bus: &[(&str, &str)]) -> tempfile::TempDir {
    let hosts = r#"<host id="CPU0"/>
<host id="CPU1"/>
<host id="CUDA0"><prop id="memsize" value="1000"/></host>
<link id="up" bandwidth="10000000000Bps" latency="0.000003s"/>
<link id="down" bandwidth="5000000000Bps" latency="0.000002s"/>
<route src="RAM" dst="CUDA0" symmetrical="NO"><link_ctn id="up"/><link_ctn id="down"/></route>
<route src="CUDA0" dst="RAM" symmetrical="NO"><link_ctn id="down"/></route>
"#;
    let directory = tempfile::tempdir().expect("there is room");
    let path = |name: &str| directory.path().join("bus").join(name);
    std::fs::create_dir(path("")).expect("there is room");
    let codelets = directory.path().join("codelets/45");
    std::fs::create_dir_all(&codelets).expect("there is room");
    let model = "45 1 1 0 0 1 1 1 0 0 0 0 nan nan 0 0 0 nan nan nan 0\n00000007\t64\t0\t2.0\t0\t20.0\t40.0\t10\n";
    std::fs::write(codelets.join("gemm.here"), model).expect("there is room");
    let text = xml(format!("<platform version=\"4\">\n{hosts}</platform>"));
    std::fs::write(path("here.platform.v4.xml"), text).expect("there is room");
    for (name, text) in [("here.config", "2 # Number of CPUs\n1 # Number of CUDA devices\n")].iter().chain(bus) {
        std::fs::write(path(name), text).expect("there is room");
    }
    directory
}

/// What is said of this directory, without its path.
fn said_of(directory: &tempfile::TempDir) -> String {
    let said = match Platform::from_starpu(directory.path(), "here") {
        Ok(platform) => platform.assumed.join("\n"),
        Err(StarpuError::Several { causes, .. }) => {
            causes.iter().map(ToString::to_string).collect::<Vec<String>>().join("\n")
        }
        Err(error) => error.to_string(),
    };
    said.replace(&directory.path().display().to_string(), "DIR")
}

#[test]
fn a_model_without_measurements_is_told_from_none() {
    let directory = starpu_directory(|xml| xml, &[]);
    let model = "45 1 1 0 0 1 1 0 0 0 0 0 nan nan 0 0 0 nan nan nan 0\n";
    std::fs::write(directory.path().join("codelets/45/syrk.here"), model).expect("there is room");
    let platform = Platform::from_starpu(directory.path(), "here").expect("it is sound");
    let refused = |kind: &str| {
        let mut graph = TaskGraph::new("one");
        let kind = graph.add_kind(kind);
        graph.add_task(Task::new(kind));
        let error = Simulation::new(graph, platform.clone()).policy("tree-eager").run().expect_err("nobody can run it");
        let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
        format!("{error}\n{help}")
    };
    insta::assert_snapshot!(refused("syrk"), @"
    the platform `here` cannot run `syrk` (1 task, first task 1, whose model has no measurement on its workers)
    the models have no measurement of this kind on the cores and devices of the platform: measure it there, or choose the models of a machine where it was
    ");
    assert!(refused("potrf").contains("add `kernel"), "there is no model of it");
}

#[test]
fn transfers_that_starpu_has_not_measured_are_not_free() {
    let whole = [("here.bandwidth", "0 1000\n500 0\n"), ("here.latency", "0 7\n8 0\n")];
    let costs = |bus: &[(&str, &str)]| {
        let directory = starpu_directory(|xml| xml, bus);
        let platform = Platform::from_starpu(directory.path(), "here").expect("it is sound");
        let cost = |from, to| platform.route(MemoryNode(from), MemoryNode(to)).expected;
        let [there, back] = [cost(0, 1), cost(1, 0)].map(|cost| (cost.latency, (cost.per_byte * 1e3).round()));
        (there, back, said_of(&directory))
    };
    assert_eq!(costs(&whole), ((7_000, 2_000.0), (8_000, 4_000.0), String::new()));
    // 5 GB/s, shared by both directions.
    let (there, back, said) = costs(&whole[1..]);
    assert_eq!((there, back), ((5_000, 400.0), (2_000, 400.0)));
    let links = "schedulers expect what the links of here.platform.v4.xml give";
    assert_eq!(said, format!("DIR/bus/here.bandwidth is missing: {links}"));
    let (there, back, said) = costs(&[("here.bandwidth", "0 1000\nnan 0\n"), whole[1]]);
    assert_eq!((there, back), ((7_000, 2_000.0), (2_000, 400.0)));
    assert_eq!(said, format!("DIR/bus/here.bandwidth has no number from CUDA0 to RAM: {links}"));
    let (there, back, said) = costs(&[whole[0], ("here.latency", "0\n")]);
    assert_eq!((there, back), ((5_000, 400.0), (2_000, 400.0)));
    assert_eq!(said, format!("DIR/bus/here.latency has no number from RAM to CUDA0, from CUDA0 to RAM: {links}"));
    let zero = starpu_directory(|xml| xml, &[("here.bandwidth", "0 1000\n0.0 0\n"), whole[1]]);
    insta::assert_snapshot!(said_of(&zero), @"DIR/bus/here.bandwidth:2:1: found `0.0`, expected a bandwidth of more than 0, or nan where none was measured");
}

#[cfg(unix)]
#[test]
fn a_file_of_a_bus_that_is_a_link_to_itself_is_not_missing() {
    let directory = starpu_directory(|xml| xml, &[("here.latency", "0 7\n8 0\n")]);
    let path = directory.path().join("bus/here.bandwidth");
    std::os::unix::fs::symlink(&path, &path).expect("there is room");
    assert!(said_of(&directory).starts_with("DIR/bus/here.bandwidth: it cannot be read: "), "{}", said_of(&directory));
}

#[test]
fn the_memory_of_a_device_is_a_whole_number_of_bytes() {
    let with = |size: &str| {
        said_of(&starpu_directory(|xml| xml.replace("1000\"/></host>", &format!("{size}\"/></host>")), &[]))
    };
    insta::assert_snapshot!(with("5.6e9"), @"DIR/bus/here.platform.v4.xml:4:18: `memsize` is `5.6e9`, expected a whole number of bytes, such as `6442450944`");
    insta::assert_snapshot!(with("-5"), @"DIR/bus/here.platform.v4.xml:4:18: `memsize` is `-5`, expected a whole number of bytes, such as `6442450944`");
}

#[test]
fn what_a_platform_of_starpu_has_twice_is_an_error() {
    let again = "<host id=\"CPU0\"/>\n<link id=\"up\" bandwidth=\"1Bps\" latency=\"0s\"/>\n\
                 <route src=\"RAM\" dst=\"CUDA0\"><link_ctn id=\"up\"/></route>\n</platform>";
    let twice = starpu_directory(|xml| xml.replace("</platform>", again), &[]);
    insta::assert_snapshot!(said_of(&twice), @"
    DIR/bus/here.platform.v4.xml:9:1: a second host `CPU0`, expected only that of line 2: remove one
    DIR/bus/here.platform.v4.xml:10:1: a second link `up`, expected only that of line 5: remove one
    DIR/bus/here.platform.v4.xml:11:1: a second route from `RAM` to `CUDA0`, expected only that of line 7: remove one
    ");
}

#[test]
fn latencies_and_bandwidths_of_a_platform_of_starpu_that_cannot_be_counted() {
    let with = |old: &str, new: &str| starpu_directory(|xml| xml.replace(old, new), &[]);
    // Two of them are more than the range of a number, and no simulation begins with that.
    let long = with("latency=\"0.00000", "latency=\"1000000000");
    let platform = Platform::from_starpu(long.path(), "here").expect("it is sound");
    assert_eq!(platform.route(MemoryNode(0), MemoryNode(1)).latency, u64::MAX);
    let slow = with("\"5000000000", "\"1e-300");
    insta::assert_snapshot!(said_of(&slow), @"DIR/bus/here.platform.v4.xml:6:1: `bandwidth` is `1e-300Bps`, expected a number of Bps, from 1e-290");
}

#[test]
fn a_platform_of_starpu_that_is_no_text_is_an_error_with_its_place() {
    let directory = starpu_directory(|xml| xml, &[]);
    let path = directory.path().join("bus/here.platform.v4.xml");
    let mut bytes = std::fs::read(&path).expect("it was just written");
    bytes[31] = 0xff;
    std::fs::write(&path, bytes).expect("there is room");
    insta::assert_snapshot!(said_of(&directory), @"DIR/bus/here.platform.v4.xml: line 2, column 9: the byte 0xff is not text in UTF-8");
}

#[test]
fn what_would_not_count_is_said() {
    let text = r#"platform "x" {
    memory "ram"
    link "ram" "gup" bandwidth="1 GB/s"
    workers "cpu" count=2
    overheads push="1 us"
    overheads submission="1 us"
    kernel "a" { on "cpu" time="1 ms"; on "cpu" gflops=2.0; }
    kernel "b" { on "cpu" time="1 ms"; on "cpu" team=2 time="1 ms"; on "cpu" team=2 time="2 ms"; }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r#"
    6:5: `overheads` stands twice in the platform
    3:16: there is no memory or switch `gup`
    7:43: it is said twice how long `a` takes on `cpu`
    8:72: it is said twice how long `b` takes on `cpu`
    "#);
}

#[test]
fn what_contradicts_itself_is_said() {
    let text = r#"platform "x" {
    memory "ram"; memory "gpu"
    link "ram" "gpu" bandwidth="1 GB/s"
    link "gpu" "ram" bandwidth="2 GB/s"
    link "gpu" "gpu" bandwidth="2 GB/s"
    workers "cpu" count=2 memory="ram" watts="2 W" idle-watts="3 W"
    kernel "a" { on "cpu" { at "1 MB" "2 ms"; at "2 MB" "3 ms"; at "1000 kB" "4 ms"; } }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @"
    4:5: `gpu` and `ram` are linked twice
    5:16: a link leads from `gpu` to itself
    6:5: `idle-watts` is 3 W, and `watts` is 2 W
    7:65: the time for 1000000 bytes is given twice
    ");
    let full = r#"platform "x" {
    memory "ram"
    workers "cpu" count=65535
    workers "more" count=2
    workers "one" count=1
    workers "another"
}"#;
    insta::assert_snapshot!(errors(full).join("\n"), @"
    4:5: a platform has 65536 workers at most
    6:5: a platform has 65536 workers at most
    ");
}

#[test]
fn what_says_nothing_without_another_is_said() {
    let text = r#"platform "x" {
    memory "ram"
    memory "gpu"
    link "ram" "gpu" bandwidth="6 GB/s" back="5 GB/s" shared=#true
    workers "cpu" memory="ram"
    kernel "a" { on "cpu" time="1 ms" overhead="5 us"; }
    kernel "b" { on "cpu" time="1 ms" a=0.1; }
    kernel "c" { on "cpu" { at "0 B" "1 us"; at "1 MB" "1 ms"; }; }
    combined-workers min=4 max=3
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @"
    4:5: `shared` is for one bandwidth, and `back` is another
    6:18: `overhead` goes with `gflops`
    7:18: `a` and `b` go together
    8:29: a time is given for 0 bytes
    9:5: `min` is 4, and `max` is 3
    ");
    let right = text
        .replace("5 GB", "6 GB")
        .replace("time=\"1 ms\" o", "gflops=1.0 o")
        .replace("time=\"1 ms\" a=0.1", "a=0.1 b=1.0");
    for most in ["max=0", "max=4"] {
        let right = right.replace("0 B", "8 B").replace("max=3", most);
        Platform::parse("mine.kdl", &right).expect("it is sound");
    }
}

#[test]
fn no_few_lines_make_parts_without_end() {
    let text = r#"platform "x" { memory "ram"; workers "cpu"
    repeat 1024 { repeat 1024 { repeat 1024 { switch "s{}" } } }
    repeat 1024 { repeat 1024 { repeat 1024 { kernel "a" { on "cpu" time="1 ms"; } } } }
}"#;
    insta::assert_snapshot!(errors(text).join("\n"), @r#"
    2:54: two places are called `s0`
    3:33: `repeat` makes more than 100000 parts
    3:63: it is said twice how long `a` takes on `cpu`
    "#);
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    let file = tempfile::NamedTempFile::with_suffix(".kdl").expect("there is room");
    std::fs::write(file.path(), b"platform \"x\" {\n  memory \"\xe9\"\n}").expect("there is room");
    let path = file.path().display().to_string();
    let error = find(&path).expect_err("it is in Latin-1");
    let message = error.findings()[0].message();
    assert!(message.contains("line 2, column 11"), "{message}");
}

/// A performance directory with this platform file, of the machine `here`.
fn sampling(machine: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("there is room");
    for folder in ["bus", "codelets/45"] {
        std::fs::create_dir_all(directory.path().join(folder)).expect("there is room");
    }
    let text = format!("<platform version=\"4\">{machine}</platform>");
    std::fs::write(directory.path().join("bus/here.platform.v4.xml"), text).expect("there is room");
    std::fs::write(directory.path().join("bus/here.bandwidth"), "0").expect("there is room");
    std::fs::write(directory.path().join("bus/here.latency"), "0").expect("there is room");
    directory
}

#[test]
fn devices_without_a_link_of_their_own_reach_each_other_through_main_memory() {
    let hosts = r#"<host id="CPU0"/><host id="CPU1"/><host id="CPU2"/><host id="CUDA0"/><host id="CUDA1"/>"#;
    let ends = [("RAM", "CUDA0"), ("CUDA0", "RAM"), ("RAM", "CUDA1"), ("CUDA1", "RAM")];
    let way = |(from, to)| {
        format!(
            r#"<link id="{from}-{to}" bandwidth="1e9Bps" latency="0.001s"/>
            <route src="{from}" dst="{to}"><link_ctn id="{from}-{to}"/></route>"#
        )
    };
    let whole = format!("{hosts}{}", ends.map(way).concat());
    let platform = Platform::from_starpu(sampling(&whole).path(), "here").expect("it is sound");
    let route = platform.route(MemoryNode(1), MemoryNode(2));
    assert_eq!((&route.links[..], route.latency), (&[1, 2][..], 2_000_000));
    let without = format!("{hosts}{}", ends.map(way)[1..].concat());
    let error = Platform::from_starpu(sampling(&without).path(), "here").expect_err("a way is missing");
    assert!(error.to_string().ends_with("xml:1:1: there is no route from RAM to CUDA0"), "{error}");
}

#[test]
fn measurements_of_several_numa_nodes_have_the_devices_behind_them() {
    let hosts = r#"<host id="CPU0"/><host id="CPU1"/><host id="CPU2"/><host id="CUDA0"/><host id="CUDA1"/>"#;
    let link = r#"<link id="Host" bandwidth="6e9Bps" latency="0.000001s"/>"#;
    let ends = [("RAM", "CUDA0"), ("CUDA0", "RAM"), ("RAM", "CUDA1"), ("CUDA1", "RAM"), ("CUDA0", "CUDA1")];
    let way = |(from, to)| format!(r#"<route src="{from}" dst="{to}"><link_ctn id="Host"/></route>"#);
    let directory = sampling(&format!("{hosts}{link}{}", ends.map(way).concat()));
    let write = |what: &str, text: &str| {
        std::fs::write(directory.path().join("bus/here.").with_extension(what), text).expect("there is room");
    };
    // Two NUMA nodes, then two devices, of which the second is near the second node.
    write("bandwidth", "0 9 1000 500\n9 0 400 2000\n800 9 0 100\n9 1600 50 0\n");
    write("latency", "0 1 10 20\n1 0 30 40\n50 60 0 70\n80 90 99 0\n");
    write("config", "3 # Number of CPUs\n2 # Number of NUMA nodes\n2 # Number of CUDA devices\n");
    write("affinity", "# GPU\tNUMA0\tNUMA1\n0\t0\t1\n1\t1\t0\n");
    let platform = Platform::from_starpu(directory.path(), "here").expect("it is sound");
    let expected = |from, to| {
        let cost = platform.route(MemoryNode(from), MemoryNode(to)).expected;
        // Bytes per microsecond: each of two devices has a quarter, as both use the bus in both directions.
        ((cost.latency / 1000), (4e3 / cost.per_byte).round())
    };
    assert_eq!([expected(0, 1), expected(1, 0)], [(10, 1000.0), (50, 800.0)]);
    assert_eq!([expected(0, 2), expected(2, 0)], [(40, 2000.0), (90, 1600.0)]);
    assert_eq!([expected(1, 2), expected(2, 1)], [(70, 100.0), (99, 50.0)]);
}

#[test]
fn a_transfer_alone_has_half_of_a_link_that_it_passes_twice() {
    let hosts = r#"<host id="CPU0"/><host id="CPU1"/><host id="CPU2"/><host id="CUDA0"/><host id="CUDA1"/>"#;
    let ends = [("RAM", "CUDA0"), ("CUDA0", "RAM"), ("RAM", "CUDA1"), ("CUDA1", "RAM"), ("CUDA0", "CUDA1")];
    let way = |(from, to): (&str, &str)| {
        let passed = r#"<link_ctn id="Host"/>"#.repeat(if from == "RAM" || to == "RAM" { 1 } else { 2 });
        format!(r#"<route src="{from}" dst="{to}">{passed}</route>"#)
    };
    let host = r#"<link id="Host" bandwidth="6e9Bps" latency="0.000001s"/>"#;
    let text = format!("{hosts}{host}{}", ends.map(way).concat());
    let platform = Platform::from_starpu(sampling(&text).path(), "here").expect("it is sound").to_text();
    for line in ["ram → cuda0: 6 GB/s after 1 µs", "cuda0 → cuda1: 3 GB/s after 2 µs"] {
        assert!(platform.contains(line), "{platform}");
    }
}

#[test]
fn all_that_is_wrong_with_a_machine_of_starpus_is_said() {
    let machine = r#"<host id="CPU0"/><host id="CPU1"/><host id="CUDA0"/><host/>
<link id="up" bandwidth="-infBps" latency="0s"/>
<link id="down" bandwidth="6e9Bps" latency="-1s"/>
<link id="side" bandwidth="nanBps" latency="0s"/>
<link bandwidth="0Bps" latency="0s"/>
<route src="RAM" dst="CUDA0"><link_ctn id="up"/></route>
<route src="CUDA0" dst="RAM"><link_ctn id="dwon"/></route>"#;
    let directory = sampling(machine);
    std::fs::write(directory.path().join("codelets/45/gemm.here"), "44").expect("there is room");
    let error = Platform::from_starpu(directory.path(), "here").expect_err("all of it is wrong");
    let shown = |error: &dyn miette::Diagnostic| error.to_string().replace(&directory.path().display().to_string(), "");
    let has_place = |part: &dyn miette::Diagnostic| part.labels().is_some() && part.source_code().is_some();
    assert!(miette::Diagnostic::related(&error).into_iter().flatten().all(has_place));
    let related = miette::Diagnostic::related(&error).into_iter().flatten();
    insta::assert_snapshot!(related.map(shown).collect::<Vec<_>>().join("\n"), @r#"
    /codelets/45/gemm.here:1:1: found version 44 of the format, expected 45
    /bus/here.platform.v4.xml:1:75: a `host` without `id`
    /bus/here.platform.v4.xml:2:1: `bandwidth` is `-infBps`, expected a number of Bps, more than 0
    /bus/here.platform.v4.xml:3:1: `latency` is `-1s`, expected a number of s, from 0
    /bus/here.platform.v4.xml:4:1: `bandwidth` is `nanBps`, expected a number of Bps, more than 0
    /bus/here.platform.v4.xml:5:1: a `link` without `id`
    /bus/here.platform.v4.xml:7:30: there is no link `dwon`
    "#);
}

#[test]
fn what_a_graph_was_measured_on_leaves_other_architectures_to_the_platform() {
    let platform = find("cpu9-gpu3").expect("it is shipped");
    let mut graph = sched_graph::generate::cholesky(3, 960);
    let other = graph.add_kind("other");
    graph.add_task(Task::new(other));
    let on = |graph: &TaskGraph, class| -> Vec<Option<Duration>> {
        graph.tasks.iter().map(|task| platform.length(graph, task, class)).collect()
    };
    let modelled = on(&graph, 1);
    let measured = Duration::from_millis(7);
    graph.tasks.iter_mut().for_each(|task| task.lengths = sched_graph::Lengths::default().with(Arch::CPU, measured));
    assert!(on(&graph, 0).iter().all(|length| *length == Some(measured)));
    let (last, named) = (graph.tasks.len() - 1, on(&graph, 1));
    assert_eq!(named[..last], modelled[..last], "the platform names these kernels");
    assert_eq!(named[last], None, "nothing says that this one runs there");
    let seconds = 2.0;
    graph.tasks[last].flops = seconds * 100e9;
    let last = &graph.tasks[last];
    assert_eq!(platform.length(&graph, last, 1), Some(Duration::from_secs_f64(seconds)), "by its operations");
}

#[test]
fn data_that_a_task_names_twice_is_loaded_once() {
    let text = r#"platform "p" {
        memory "ram"
        memory "gpu"
        link "ram" "gpu" bandwidth="1 GB/s"
        workers "gpu" arch="cuda" memory="gpu"
        kernel "k" { on "gpu" time="1 ms" }
    }"#;
    let platform = Platform::parse("p.kdl", text).expect("it is sound");
    let bound = |modes: &[AccessMode]| {
        let mut graph = TaskGraph::new("one task");
        let (kind, data) = (graph.add_kind("k"), graph.add_data(Datum::new(1_000_000)));
        graph.add_task(modes.iter().fold(Task::new(kind), |task, mode| task.access(data, *mode)));
        platform.bounds(&graph, &graph.dependencies()).expect("it can run").transfers
    };
    let once = bound(&[AccessMode::ReadWrite]);
    assert!((once - 0.002).abs() < 1e-6, "{once}");
    assert_eq!(bound(&[AccessMode::Read, AccessMode::ReadWrite, AccessMode::Read]), once);
}

#[test]
fn static_schedules_are_for_the_workers_that_execute_a_kernel_in_a_simulation() {
    let text = r#"platform "p" {
        memory "ram"
        workers "cpu" memory="ram"
        workers "new" arch="cuda" memory="ram"
        workers "old" arch="cuda" memory="ram"
        kernel "k" { on "cpu" time="9 ms"; on "new" time="1 ms" }
        kernel "*" { on "old" time="5 ms" }
    }"#;
    let platform = Platform::parse("p.kdl", text).expect("it is sound");
    let mut graph = TaskGraph::new("one task");
    let kind = graph.add_kind("k");
    graph.add_task(Task::new(kind));
    let problem = platform.problem(&graph).expect("a core can execute it");
    assert_eq!(sched_graph::reference::heft(&problem).makespan(), 0.009);
}

#[test]
fn a_team_works_where_the_data_is_though_some_of_its_members_have_another_memory() {
    let text = r#"platform "p" {
        memory "near"
        memory "far"
        link "near" "far" bandwidth="1 GB/s"
        workers "near" memory="near"
        workers "far" count=3 memory="far"
        kernel "k" { on "near" time="8 ms" parallel=1.0; on "far" time="8 ms" parallel=1.0 }
    }"#;
    let platform = Platform::parse("p.kdl", text).expect("it is sound");
    let mut graph = TaskGraph::new("one task");
    let (kind, data) = (graph.add_kind("k"), graph.add_data(Datum::new(1_000_000_000)));
    graph.add_task(Task::new(kind).access(data, AccessMode::Read));
    let bounds = platform.bounds(&graph, &graph.dependencies()).expect("it can run");
    assert!(bounds.transfers <= 0.002 + 1e-9, "all four take 2 ms near the data: {bounds:?}");
}
