use std::error::Error;
use std::path::Path;

use miette::Diagnostic;

use super::{restricted, two_memories};
use crate::topology::{Level, Object, Topology, TopologyError};

fn titles(objects: &[&Object]) -> Vec<String> {
    objects.iter().map(|object| object.title()).collect()
}

fn refusal(description: &str) -> String {
    Topology::from_synthetic(description).expect_err(description).to_string()
}

#[test]
fn a_synthetic_machine_has_every_level_that_it_names() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("node:2 package:1 l3:1 core:8 pu:2")?;
    let counts = Level::ALL.map(|level| (level, machine.level(level).len()));
    let expected = [
        (Level::Machine, 1),
        (Level::Numa, 2),
        (Level::Package, 2),
        (Level::L3, 2),
        (Level::Core, 16),
        (Level::Pu, 32),
    ];
    for (level, count) in counts {
        let wanted = expected.iter().find(|(name, _)| *name == level).map_or(0, |(_, count)| *count);
        assert_eq!(count, wanted, "{level}");
    }
    assert!(!machine.is_this_machine());
    assert_eq!(machine.pus(), (0..32).collect::<Vec<_>>());
    assert_eq!(machine.allowed_pus(), machine.pus());
    Ok(())
}

#[test]
fn very_wide_machines_are_read_quickly_and_have_no_level_that_they_do_not_name() -> Result<(), Box<dyn Error>> {
    for (description, cores, pus) in [
        ("pu:16384", 0, 16384),
        ("core:8192 pu:2", 8192, 16384),
        ("package:2 core:2000 pu:2", 4000, 8000),
        // A prime number of objects cannot be divided into groups.
        ("pu:1021", 0, 1021),
    ] {
        let machine = Topology::from_synthetic(description)?;
        let counts = [Level::Group, Level::Core, Level::Pu].map(|level| machine.level(level).len());
        assert_eq!(counts, [0, cores, pus], "{description}");
        assert_eq!(machine.pus(), (0..pus as u32).collect::<Vec<_>>());
        assert_eq!(machine.distance(0, pus as u32 - 1), machine.distance(0, pus as u32 / 2), "{description}");
    }
    // Groups of the description stay.
    assert_eq!(Topology::from_synthetic("group:2 group:300 pu:2")?.level(Level::Group).len(), 602);
    assert!(refusal("core:999 pu:x").contains("core:999 pu:x"));
    Ok(())
}

#[test]
fn numa_nodes_are_levels_of_the_tree_that_enclose_their_pus() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("node:2 package:1 core:2 pu:1")?;
    for node in machine.level(Level::Numa) {
        let inside: Vec<u32> = node.walk().filter(|o| o.level == Level::Pu).filter_map(|o| o.os_index).collect();
        assert_eq!(inside, node.pus);
        assert_eq!(node.memory_bytes, Some(1 << 30));
    }
    assert_eq!(machine.numa_of(3).map(Object::title).as_deref(), Some("numa 1"));
    assert_eq!(machine.numa_of(4), None);
    Ok(())
}

#[test]
fn a_second_memory_beside_the_first_is_listed_with_its_pus() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_xml_file(&two_memories())?;
    let nodes = machine.level(Level::Numa);
    assert_eq!(titles(&nodes), ["numa 0", "numa 1", "numa 2", "numa 3"]);
    assert_eq!(nodes[3].pus, [4, 5, 6, 7]);
    assert_eq!(nodes[3].memory_bytes, Some(4 << 30));
    assert_eq!(titles(&machine.containing(Level::Numa, 5)), ["numa 2", "numa 3"]);
    assert_eq!(machine.numa_of(5).map(Object::title).as_deref(), Some("numa 2"));
    Ok(())
}

#[test]
fn objects_that_contain_a_pu_are_found_at_each_level() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("package:2 l2:2 core:2 pu:2")?;
    assert_eq!(titles(&machine.containing(Level::Core, 5)), ["core 2"]);
    assert_eq!(titles(&machine.containing(Level::L2, 5)), ["l2 1"]);
    assert_eq!(titles(&machine.containing(Level::Package, 15)), ["package 1"]);
    assert_eq!(machine.core_of(15).map(Object::title).as_deref(), Some("core 7"));
    assert!(machine.containing(Level::Package, 16).is_empty());
    assert!(machine.containing(Level::Die, 5).is_empty());
    Ok(())
}

#[test]
fn distance_grows_with_what_is_not_shared() -> Result<(), Box<dyn Error>> {
    let machine = Topology::from_synthetic("package:2 l2:2 core:2 pu:2")?;
    let ways = [0, 1, 2, 4, 8].map(|other| machine.distance(0, other));
    assert!(ways.is_sorted_by(|near, far| near < far), "{ways:?}");
    assert_eq!(ways[0], Some(0));
    assert_eq!(machine.distance(0, 16), None);
    Ok(())
}

#[test]
fn this_machine_allows_this_process_something() -> Result<(), Box<dyn Error>> {
    let machine = Topology::this_machine()?;
    assert!(!machine.allowed_pus().is_empty());
    assert!(machine.allowed_pus().iter().all(|&pu| machine.root().contains(pu)));
    assert_eq!(machine.level(Level::Pu).len(), machine.pus().len());
    Ok(())
}

#[test]
fn an_xml_file_says_which_pus_may_be_used() {
    let machine = restricted();
    assert_eq!(machine.allowed_pus(), [0, 1, 2, 3]);
    assert_eq!(machine.pus().len(), 8);
}

#[test]
fn a_bad_description_is_told_where_and_why_it_is_bad() {
    insta::assert_snapshot!(refusal("nood:2 core:x pu:0"), @r#"synthetic topology "nood:2 core:x pu:0": column 1: `nood` is not a level; did you mean `node`?; column 8: `x` is not a count; write a whole number, at least 1; column 15: the count is 0; it must be at least 1"#);
    insta::assert_snapshot!(refusal("package:2 core:4"), @r#"synthetic topology "package:2 core:4": column 11: the last level must be the PUs, such as `pu:2`"#);
    insta::assert_snapshot!(refusal("core:2 core:2 pu"), @r#"synthetic topology "core:2 core:2 pu": column 8: `core` was already given; only groups may be repeated; column 15: the count is missing: write `pu:2`"#);
    insta::assert_snapshot!(refusal("machine:1 core:2 pu:1"), @r#"synthetic topology "machine:1 core:2 pu:1": column 1: the machine encloses all levels and is not written"#);
    insta::assert_snapshot!(refusal("node:2(memory=1GB core:2 pu:1"), @r#"synthetic topology "node:2(memory=1GB core:2 pu:1": column 1: a parenthesis or bracket is not closed"#);
    insta::assert_snapshot!(refusal(""), @r#"synthetic topology "": column 1: it names no level"#);
    insta::assert_snapshot!(refusal("pu:2\0"), @r#"synthetic topology "pu:2\0": column 5: a NUL character cannot be part of it"#);
}

#[test]
fn a_description_of_a_machine_too_large_is_refused_at_once() {
    insta::assert_snapshot!(refusal("node:1000 core:1000 pu:4000000000"), @r#"synthetic topology "node:1000 core:1000 pu:4000000000": column 11: more than 16384 PUs up to here, the maximum; use smaller counts"#);
}

#[test]
fn no_way_of_writing_a_number_passes_the_limit() -> Result<(), Box<dyn Error>> {
    for large in [
        "pu:0x7fffffff",
        "pu:0X7FFFFFFF",
        "pu:017777777777",
        "pu:+2147483647",
        "pu: 2147483647",
        "pu:99999999999999999999",
        "core:40000pu:1",
        "core:0x4000 0x2",
        "core 4:40000 pu:1",
        "(memory=1) node:4(memory=1)core:5000(x) pu:1",
        "node:1 core:16384 [numa] [numa] pu:1",
    ] {
        let refused = refusal(large);
        assert!(refused.contains("more than 16384"), "{refused}");
    }
    for below in ["pu:-1", "core:2(memory=-1) pu:1"] {
        assert!(refusal(below).contains("-1 is below 0"), "{}", refusal(below));
    }
    let refused = refusal("core:2 pu:1(indexes=0,99999999999)");
    assert!(refused.contains("column 23: an index is larger than 65536"), "{refused}");
    for (small, pus) in [
        ("core:2 pu:1(indexes=7,3)", 2),
        ("pu:0x10", 16),
        ("core:010 pu:2", 16),
        ("core:2 3", 6),
        ("core:2 [numa] pu:+3", 6),
    ] {
        assert_eq!(Topology::from_synthetic(small)?.pus().len(), pus, "{small}");
    }
    Ok(())
}

#[test]
fn every_problem_of_a_description_is_marked_in_the_report() {
    let error = Topology::from_synthetic("nood:2 core:x pu:0").expect_err("it has three problems");
    let marked: Vec<(usize, usize)> =
        error.labels().into_iter().flatten().map(|label| (label.offset(), label.len())).collect();
    assert_eq!(marked, [(0, 6), (7, 6), (14, 4)]);
    assert!(error.help().is_some());
}

#[test]
fn a_missing_xml_file_is_an_error_not_a_panic() {
    let error = Topology::from_xml_file(Path::new("no/such/machine.xml")).expect_err("there is no such file");
    assert!(matches!(error, TopologyError::UnreadableXml { .. }));
    insta::assert_snapshot!(error, @"cannot read topology file no/such/machine.xml: No such file or directory (os error 2)");
    assert!(Topology::from_xml_file(&std::env::temp_dir()).is_err(), "a directory is no file");
}

#[test]
fn an_xml_file_that_is_no_topology_is_named_in_the_error() -> Result<(), Box<dyn Error>> {
    let fixture = std::fs::read_to_string(two_memories())?;
    let half = &fixture[..fixture.len() / 2];
    let other = "<?xml version=\"1.0\"?><html><body/></html>";
    let newer = &fixture.replace("version=\"2.0\"", "version=\"9.0\"");
    for garbage in ["", "garbage", "<topology", "<topology/>", other, half, newer] {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), garbage)?;
        let error = Topology::from_xml_file(file.path()).expect_err(garbage);
        assert!(matches!(error, TopologyError::BadXml { .. }), "{error}");
        assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
        let label = error.labels().and_then(|mut labels| labels.next()).expect("it points into the file");
        let source = error.source_code().expect("it has the text");
        let contents = source.read_span(label.inner(), 0, 0)?;
        assert_eq!(contents.name(), file.path().to_str());
        if garbage == newer {
            assert_eq!((contents.line() + 1, contents.column() + 1), (3, 1));
        }
    }
    Ok(())
}

#[test]
fn level_names_are_read_back_and_guessed() {
    for level in Level::ALL {
        assert_eq!(level.name().parse(), Ok(level));
    }
    let error = "packge".parse::<Level>().expect_err("a letter is missing");
    assert_eq!(error.to_string(), "`packge` is not a topology level; did you mean `package`?");
}
