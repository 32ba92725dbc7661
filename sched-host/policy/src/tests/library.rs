//! Shipped policies, and finding policies.

use super::{Node, parse, shown, stock};
use crate::{FlatMachine, Source, check, expand, library};
use insta::assert_snapshot;
use std::fs;

#[test]
fn every_shipped_policy_is_valid_and_explained() {
    for shipped in library() {
        let policies = parse(shipped.name, shipped.text).expect("it parses");
        assert_eq!(policies.len(), 1, "{}", shipped.name);
        assert_eq!(policies[0].name, shipped.name, "the file is named like its policy");
        assert_eq!(policies[0], shipped.policy());
        assert!(policies[0].summary().len() > 20, "{} has a header", shipped.name);
        let findings = check(&policies[0], &stock());
        assert!(findings.is_empty(), "{}: {findings:?}", shipped.name);
        for workers in [1, 2, 64] {
            assert!(expand(&policies[0], &stock(), &FlatMachine { workers }).is_ok(), "{}", shipped.name);
        }
        let plan = expand(&policies[0], &stock(), &Node { cores: 4, gpus: 2 }).expect("it fits any machine");
        let leaves = plan.nodes.iter().filter_map(|node| node.leaf_worker).filter(|worker| worker.0 < 10).count();
        assert_eq!(leaves, 10, "{} has every worker", shipped.name);
    }
}

#[test]
fn every_parameter_of_shipped_policies_is_explained() {
    for shipped in library() {
        let (mut comment, mut explained) = (String::new(), String::new());
        for line in shipped.text.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("//") {
                comment = comment + text + "\n";
                continue;
            }
            let entry = line.split([' ', '{']).next().and_then(|name| stock().get(name).cloned());
            for param in entry.iter().flat_map(|entry| &entry.info.params) {
                let above = comment.contains(&param.name) || comment.to_lowercase().contains("as above");
                assert!(above, "{}: `{line}` without a word on `{}`", shipped.name, param.name);
            }
            for setting in line.split(' ').filter(|word| word.contains('=') && !line.starts_with("shared")) {
                let name = setting.split('=').next().unwrap_or(setting);
                assert!(comment.contains(setting) || explained.contains(name), "{}: `{setting}`", shipped.name);
            }
            explained += &std::mem::take(&mut comment);
        }
    }
}

#[test]
fn finds_shipped_policies_by_either_name() {
    for shipped in library() {
        let modular = shipped.name.replacen("tree-", "modular-", 1);
        for name in [shipped.name, &modular] {
            let policy = Source::find(name).and_then(|source| source.policy()).expect("it is shipped");
            assert_eq!(policy, shipped.policy());
        }
    }
}

#[test]
fn finds_policies_in_files() {
    let dir = tempfile::tempdir().expect("a place for files");
    let one = dir.path().join("one.kdl");
    let two = dir.path().join("two.kdl");
    fs::write(&one, r#"policy "a" { fifo { worker } }"#).expect("written");
    fs::write(&two, r#"policy "alpha" { fifo { worker } }; policy "beta" { prio { worker } }"#).expect("written");
    let find = |name: &str| Source::find(name).and_then(|source| source.policy());
    let message = |name: &str| {
        let text = shown(&find(name).unwrap_err());
        text.replace(dir.path().to_str().expect("a plain name"), "DIR")
    };
    let (one, two) = (one.display(), two.display());
    assert_eq!(find(&one.to_string()).expect("the only one").name, "a");
    assert_eq!(find(&format!("{two}#beta")).expect("named").name, "beta");
    assert_snapshot!(message(&two.to_string()), @r"
      × DIR/two.kdl: 1 error

    Error: policy::choice

      × `DIR/two.kdl` holds 2 policies
      help: name one: `DIR/two.kdl#alpha`, `DIR/two.kdl#beta`
    ");
    assert_snapshot!(message(&format!("{two}#bta")), @r"
      × DIR/two.kdl: 1 error

    Error: policy::choice

      × `DIR/two.kdl` holds no policy `bta`
      help: did you mean `DIR/two.kdl#beta`?
    ");
    assert_snapshot!(message(&format!("{}/three.kdl", dir.path().display())), @r"
      × DIR/three.kdl: 1 error

    Error: policy::unreadable

      × `DIR/three.kdl` cannot be read: No such file or directory (os error 2)
      help: give the path of a policy file, or the name of a shipped policy
    ");
    assert_snapshot!(message(&dir.path().display().to_string()), @r"
      × DIR: 1 error

    Error: policy::unreadable

      × `DIR` cannot be read: Is a directory (os error 21)
    ");
}

#[test]
fn unknown_names_get_a_suggestion() {
    let message = |name: &str| shown(&Source::find(name).unwrap_err());
    assert_snapshot!(message("tree-eagr"), @r"
      × policy `tree-eagr`: 1 error

    Error: policy::unknown

      × there is no policy `tree-eagr`
      help: did you mean `tree-eager`?
            a policy of your own is given by the path of its file, which ends in `.kdl`
    ");
    assert_snapshot!(message("eager"), @r"
      × policy `eager`: 1 error

    Error: policy::unknown

      × there is no policy `eager`
      help: did you mean `tree-eager`?
            a policy of your own is given by the path of its file, which ends in `.kdl`
    ");
    assert_snapshot!(message("modular-quantum"), @r"
      × policy `modular-quantum`: 1 error

    Error: policy::unknown

      × there is no policy `modular-quantum`
      help: shipped policies: tree-eager, tree-eager-prefetching, tree-eager-prio, tree-prio, tree-prio-
            prefetching, tree-random, tree-random-prefetching, tree-random-prio, tree-random-prio-prefetching,
            tree-ws, tree-heft, tree-heft-prio, tree-heft2, tree-pheft, tree-heft-ws, tree-heteroprio, tree-
            replan, tree-replan-spare, tree-plan, tree-block-cyclic, tree-dmda, tree-dmdap, tree-dmdar, tree-
            dmdas
            a policy of your own is given by the path of its file, which ends in `.kdl`
    ");
}

#[test]
fn an_empty_name_is_said_to_be_empty() {
    let message = |name: &str| shown(&Source::find(name).unwrap_err());
    for name in ["", "  ", "+mct.beta=2.0"] {
        let shown = message(name);
        assert!(shown.contains("the name of the policy is empty\n"), "{shown}");
        assert!(shown.contains("shipped policies: tree-eager, ") && !shown.contains("did you mean"), "{shown}");
    }
    // Nothing of these is like `tree-ws`, which has the shortest name.
    for name in ["#", "xy"] {
        assert!(message(name).contains(&format!("there is no policy `{name}`\n")), "{}", message(name));
        assert!(!message(name).contains("did you mean"), "{}", message(name));
    }
    assert!(message("wz").contains("did you mean `tree-ws`?"), "{}", message("wz"));
}
