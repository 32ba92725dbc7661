//! Policies and machines of a size for which anything quadratic takes minutes.

use super::{HEFT, catalogue, policy, shown};
use crate::{FlatMachine, Fold, check, expand};

const MANY: usize = 10_000;

/// One element for each number, a line each.
fn lines(element: impl Fn(usize) -> String) -> String {
    (0..MANY).map(|number| element(number) + "\n").collect()
}

#[test]
fn many_siblings_are_checked_laid_out_and_drawn() {
    let leaf = "shared \"leaf\" each=\"worker\" { worker }";
    let siblings = lines(|_| "eager { use \"leaf\" }".to_owned());
    let policy = policy(&format!("policy \"p\" {{ fifo {{ eager {{\n{siblings}}}; }}; {leaf}; }}"));
    let plan = expand(&policy, &catalogue(), &FlatMachine { workers: 2 }).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(plan.nodes.len(), MANY + 4);
    assert!(plan.to_text(Fold::Runs).contains("eager × 10000"));
    assert_eq!(plan.areas().len(), 2);
}

#[test]
fn one_problem_in_many_places_is_one_error_that_counts_them() {
    let leaves = lines(|_| "eager { each \"worker\" { worker; }; }".to_owned());
    let several = policy(&format!("policy \"p\" {{ fifo {{ eager {{\n{leaves}}}; }}; }}"));
    let why = expand(&several, &catalogue(), &FlatMachine { workers: 2 }).expect_err("each worker has many leaves");
    let shown = shown(&why);
    assert!(shown.contains("9980 further places not shown") && shown.len() < 10_000, "{}", shown.len());

    let unknown = lines(|number| format!("c{} {{ worker; }}", number % 5_000));
    let unknown = policy(&format!("policy \"p\" {{ eager {{\n{unknown}}}; }}"));
    assert_eq!(check(&unknown, &catalogue()).len(), 5_000, "one for each name");
}

#[test]
fn many_parameters_of_one_component_are_all_reported() {
    const NAMES: usize = 5 * MANY / 2;
    let set: String = (0..2 * NAMES).map(|number| format!(" p{}=1", number % NAMES)).collect();
    let policy = policy(&format!("policy \"p\" {{ fifo{set} {{ worker; }}; }}"));
    let findings = check(&policy, &catalogue());
    let count = |said: &str| findings.iter().filter(|finding| finding.message().contains(said)).count();
    assert_eq!((count("has no parameter `p"), count("of `fifo` is set twice")), (2 * NAMES, NAMES));
}

#[test]
fn long_chains_of_definitions_are_checked_and_refused() {
    let chain = lines(|number| format!("shared \"s{number}\" {{ eager {{ use \"s{}\"; }}; }}", number + 1));
    let last = format!("shared \"s{MANY}\" {{ eager {{ each \"worker\" {{ worker; }}; }}; }}");
    let chain = policy(&format!("policy \"p\" {{ fifo {{ use \"s0\"; }}\n{chain}{last}; }}"));
    assert!(check(&chain, &catalogue()).is_empty());
    let why = expand(&chain, &catalogue(), &FlatMachine { workers: 2 }).expect_err("no stack is that deep");
    assert_eq!(why.findings()[0].message(), "`eager` has 128 components above it, the maximum");
}

#[test]
fn more_paths_than_can_be_tried_are_counted_and_refused() {
    let levels = |count: u32| {
        let shared = |name: String, next: u32| {
            format!("shared \"{name}\" {{ eager {{ use \"a{next}\"; use \"b{next}\"; }}; }}\n")
        };
        let both = |level: u32| ["a", "b"].map(|side| shared(format!("{side}{level}"), level + 1)).concat();
        let middle: String = (0..count).map(both).collect();
        let last = ["a", "b"].map(|side| format!("shared \"{side}{count}\" {{ eager {{ use \"leaf\"; }}; }}\n"));
        policy(&format!(
            "policy \"p\" {{ fifo {{ eager {{ use \"a0\"; use \"b0\"; }}; }}\n{middle}{}\n\
             shared \"leaf\" each=\"worker\" {{ worker; }}; }}",
            last.concat()
        ))
    };
    assert!(expand(&levels(15), &catalogue(), &FlatMachine { workers: 2 }).is_ok(), "65 536 paths lead to each worker");
    for count in [16, 100] {
        let why = expand(&levels(count), &catalogue(), &FlatMachine { workers: 2 }).expect_err("paths without end");
        let [finding] = why.findings() else { panic!("{why:?}") };
        assert!(finding.message().starts_with("there are 131072 paths from the root to `"), "{finding}");
        assert_eq!((finding.id(), finding.position().is_some()), ("V6", true));
    }
}

#[test]
fn shared_leaves_of_many_workers_are_drawn() {
    let plan = expand(&policy(HEFT), &catalogue(), &FlatMachine { workers: 4_000 });
    let plan = plan.unwrap_or_else(|why| panic!("{why:?}"));
    let drawn = plan.to_text(Fold::Runs);
    assert!(drawn.contains("× 4000 (workers 0-3999)") && drawn.lines().count() < 40, "{drawn}");
}
