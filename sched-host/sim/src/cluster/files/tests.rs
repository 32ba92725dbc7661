use super::*;
use std::time::Duration;

/// All problems, with their places.
fn problems(found: Result<Cluster, Findings>) -> Vec<String> {
    let errors = found.expect_err("it is wrong");
    let line = |problem: &Finding| match problem.position() {
        Some((_, line, column)) => format!("{line}:{column}: {problem}"),
        None => problem.to_string(),
    };
    errors.findings().iter().map(line).collect()
}

#[test]
fn names_tell_nodes_shape_and_network() {
    let cluster = Cluster::named("cluster:3×5,latency=1us,bandwidth=2GB/s,switch=2:3GB/s:7ns").expect("it is right");
    assert_eq!((cluster.nodes.len(), cluster.workers()), (3, 15));
    assert_eq!((cluster.network.latency, cluster.network.bandwidth), (Duration::from_micros(1), 2.0));
    let level = SwitchLevel { nodes: 2, uplink: 3.0, latency: Duration::from_nanos(7) };
    assert_eq!(cluster.network.switches, [level]);
    assert!(Cluster::is_named("cluster:nonsense") && !Cluster::is_named("numa-2x12"));
}

#[test]
fn a_file_is_a_clusters_by_its_node_however_the_name_is_written() {
    let file = tempfile::NamedTempFile::with_suffix(".kdl").expect("there is room");
    let is_clusters = |text: &str| {
        std::fs::write(file.path(), text).expect("there is room");
        Cluster::is_named(&file.path().display().to_string())
    };
    for text in ["cluster \"c\" {}", "\"cluster\" \"c\" {}", r#""clus\u{74}er" "c" {}"#] {
        assert!(is_clusters(text), "{text}");
    }
    for text in ["platform \"cluster\" {}", "// cluster", r#"platform "a \" b" {}"#, "", "}"] {
        assert!(!is_clusters(text), "{text}");
    }
}

#[test]
fn large_clusters_are_possible_and_errors_name_the_cluster() {
    assert!(Cluster::named("cluster:1024x12").is_ok() && Cluster::named("cluster:16384x64").is_ok());
    for name in ["cluster:4x0", "cluster:4xnosuch"] {
        let errors = Cluster::named(name).expect_err("it has no shape");
        assert_eq!(errors.to_string(), format!("{name}: 1 error"));
    }
}

#[test]
fn wrong_names_say_what_is_wrong() {
    for (name, problem) in [
        ("cluster:4", "`cluster:4` has no number of nodes and shape, such as 4x12"),
        ("cluster:0x12", "`cluster:0x12` does not have 1 to 16384 nodes"),
        ("cluster:4x0", "a node cannot have 0 cores: 1 to 65536 are possible"),
        ("cluster:4xcpu9-gpu4", "there is no platform `cpu9-gpu4`"),
        ("cluster:64x65536", "64 nodes of 65536 workers are more than 1048576 workers, the maximum"),
        (
            "cluster:4x4,latency=1us,latency=2us",
            "`cluster:4x4,latency=1us,latency=2us` has `latency` twice: leave one of them out",
        ),
        ("cluster:4x12,fast", "`fast` in `cluster:4x12,fast` is no option"),
        (
            "cluster:4x12,speed=3",
            "`speed=3` in `cluster:4x12,speed=3` is none of latency, bandwidth, foreign-task, receive, copy and switch",
        ),
        (
            "cluster:4x12,latency=3",
            "`latency=3` in `cluster:4x12,latency=3` needs a time, such as \"10 us\" (units: ns, us, ms, s)",
        ),
        (
            "cluster:4x12,switch=4:1GB/s,switch=6:1GB/s",
            "a switch with 6 nodes cannot stand above switches with 4: levels go from the nodes upwards, and each has a \
             multiple of the nodes of that below",
        ),
    ] {
        assert_eq!(problems(Cluster::named(name)), [problem]);
    }
}

#[test]
fn problems_of_a_file_have_places() {
    let wrong =
        "cluster \"c\" {\n    nodes \"numa-3x12\" count=2\n    network speed=3\n    switch nodes=4\n    link\n}\n";
    let expected = [
        "2:11: `numa-3x12` is no shape of nodes: there is no platform `numa-3x12`",
        "3:13: `network` has no property `speed`",
        "4:5: `switch` has no `uplink`",
        "5:5: `link` cannot stand in a cluster",
    ];
    assert_eq!(problems(Cluster::parse("c.kdl", wrong)), expected);
    assert_eq!(problems(Cluster::parse("c.kdl", "cluster \"c\" {}")), ["1:1: the cluster has no nodes"]);
    let other = problems(Cluster::parse("c.kdl", "policy \"c\" {}"));
    let misplaced = "1:1: `policy` cannot stand in the file of a cluster";
    assert_eq!(other, [misplaced, "the file holds no cluster"]);
}

#[test]
fn platforms_of_nodes_stand_beside_the_cluster() {
    let platform =
        "platform \"mine\" {\n    memory \"ram\"\n    workers \"cpu\" count=3 arch=\"cpu\" memory=\"ram\"\n}\n";
    let cluster =
        "// Größe\ncluster \"c\" {\n    nodes \"mine\" count=2\n    network receive=\"3 us\" copy=\"5 GB/s\"\n}\n";
    let found = Cluster::parse("c.kdl", &format!("{cluster}{platform}")).expect("it is right");
    assert_eq!(found.shared, []);
    let sharing = cluster.replace("count=2", "count=2 cores=3");
    let sharing = Cluster::parse("c.kdl", &format!("{sharing}{platform}")).expect("it is right");
    assert_eq!(sharing.shared, [SharedCores { nodes: 0..2, cores: 3 }]);
    assert_eq!((found.nodes.len(), found.workers()), (2, 6));
    assert_eq!((found.network.receive, found.network.copy), (Duration::from_micros(3), 5.0));
    let wrong = platform.replace("count=3", "count=3 color=4");
    let found = problems(Cluster::parse("c.kdl", &format!("{cluster}{wrong}")));
    assert_eq!(found[0], "8:27: `workers` has no property `color`");
}

#[test]
fn paths_of_platforms_begin_at_the_folder_of_the_cluster() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
        std::fs::write(&path, text).expect("there is room");
        path.to_str().expect("it is text").to_owned()
    };
    let platform = |cores: u32| {
        let workers = format!("workers \"cpu\" count={cores} arch=\"cpu\" memory=\"ram\"");
        format!("platform \"of {cores}\" {{\n memory \"ram\"\n {workers}\n}}\n")
    };
    write("two.kdl", &platform(2));
    write("below/three", &platform(3));
    let five = write("five.kdl", &platform(5));
    let text = format!("cluster \"c\" {{\n nodes \"two.kdl\"\n nodes \"below/three\"\n nodes {five:?}\n}}");
    let file = write("c.kdl", &text);
    let cores = |found: Cluster| found.nodes.iter().map(|node| node.workers.len()).collect::<Vec<_>>();
    assert_eq!(cores(Cluster::named(&file).expect("it is right")), [2, 3, 5]);
    assert_eq!(cores(Cluster::parse(&file, &text).expect("it is right")), [2, 3, 5]);
    let file = write("below/c.kdl", "cluster \"c\" {\n nodes \"../two.kdl\"\n nodes \"three\" count=2\n}");
    assert_eq!(cores(Cluster::named(&file).expect("it is right")), [2, 3, 3]);
    let file = write("below/c.kdl", "cluster \"c\" {\n nodes \"two.kdl\"\n}");
    let problem = problems(Cluster::named(&file)).remove(0);
    assert!(
        problem.starts_with("2:8: `two.kdl` is no shape of nodes") && problem.contains("below/two.kdl"),
        "{problem}"
    );
}
