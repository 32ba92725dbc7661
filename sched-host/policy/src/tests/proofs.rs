//! Random valid policies are valid, and each rule finds its mutation of them.

use super::{Node, catalogue, shown};
use crate::{Component, Each, Level, Part, Policy, Shared, Use, check, expand};
use proptest::prelude::*;
use sched_core::Value;
use sched_text::Finding;
use std::collections::BTreeSet;

const LEAF: &str = "leaf";

fn below(name: &str, child: impl Into<Part>) -> Component {
    Component::new(name).child(child)
}

/// A queue of any of the kinds that pump.
fn queue(bounded: impl Strategy<Value = bool>) -> impl Strategy<Value = Component> {
    let bounds = prop_oneof![
        (1..9i64).prop_map(|room| ("ntasks-threshold", Value::Int(room))),
        (1..9i64).prop_map(|room| ("exp-len-threshold", Value::Int(room))),
    ];
    let name = prop_oneof![Just("fifo"), Just("prio")];
    (name, bounded, bounds).prop_map(|(name, bounded, (bound, room))| {
        let queue = Component::new(name);
        if bounded { queue.set(bound, room) } else { queue }
    })
}

/// What stands above one worker, below which no two queues need each other.
fn chain() -> impl Strategy<Value = Part> {
    Just(Part::from(Use::new(LEAF))).prop_recursive(3, 3, 1, |inner| {
        prop_oneof![
            (queue(any::<bool>()), inner.clone()).prop_map(|(queue, part)| queue.child(part).into()),
            inner.prop_map(|part| below("best-implementation", part).into()),
        ]
    })
}

fn selection() -> impl Strategy<Value = Part> {
    let decide = |name: &'static str| chain().prop_map(move |chain| below(name, Each::new(Level::Worker).child(chain)));
    (decide("mct"), decide("eager-calibration"), decide("eager")).prop_map(|(model, calibrate, rest)| {
        let slots = [("perfmodel", model), ("calibrator", calibrate), ("no-perfmodel", rest)];
        let select = Component::new("perfmodel-select");
        slots.into_iter().fold(select, |select, (slot, child)| select.child(below(slot, child))).into()
    })
}

/// What may stand below an unbounded queue.
fn body() -> impl Strategy<Value = Part> {
    let mapping = || prop_oneof![Just("eager"), Just("random")];
    let direct =
        (mapping(), chain()).prop_map(|(name, chain)| below(name, Each::new(Level::Worker).child(chain)).into());
    let nested = (mapping(), mapping(), chain()).prop_map(|(outer, inner, chain)| {
        let inner = below(inner, Each::new(Level::Worker).child(chain));
        below(outer, Each::new(Level::MemoryNode).child(inner)).into()
    });
    prop_oneof![direct, nested, selection()].prop_recursive(3, 4, 1, |inner| {
        prop_oneof![
            (queue(any::<bool>()), inner.clone()).prop_map(|(queue, part)| queue.child(part).into()),
            inner.prop_map(|part| below("best-implementation", part).into()),
        ]
    })
}

/// A valid policy.
fn valid() -> impl Strategy<Value = Policy> {
    let queued = (queue(Just(false)), body()).prop_map(|(queue, body)| queue.child(body));
    // A queue without bound for each worker, below a root that stores nothing.
    let dealt = (prop_oneof![Just("eager"), Just("random")], queue(Just(false)), chain())
        .prop_map(|(name, queue, chain)| below(name, Each::new(Level::Worker).child(queue.child(chain))));
    let pulled = Just(below("lifo", below("eager", Each::new(Level::Worker).child(Use::new(LEAF)))));
    let leaf =
        prop_oneof![Just(Component::new("worker")), Just(below("best-implementation", Component::new("worker"))),];
    (prop_oneof![6 => queued, 2 => dealt, 1 => pulled], leaf)
        .prop_map(|(root, leaf)| Policy::new("random", root).shared(Shared::new(LEAF, leaf).each(Level::Worker)))
}

/// The policy, with `change` made to its root.
fn changed(policy: &Policy, change: impl Fn(Part) -> Component) -> Policy {
    let mut policy = policy.clone();
    let root = policy.root.pop().expect("a valid policy has a root");
    policy.root.push(change(root).into());
    policy
}

/// The policy, broken in one way for each rule.
fn mutations(policy: &Policy) -> Vec<(&'static str, Policy)> {
    let bounded = |root| below("fifo", root).set("ntasks-threshold", Value::Int(2));
    let mut sunk = policy.clone();
    sunk.shared[0].children = vec![Component::new("sink").into()];
    let mut round = policy.clone();
    round.shared.push(Shared::new("round", below("fifo", Use::new("round"))));
    let mut unknown = policy.clone();
    unknown.shared[0].children = vec![Component::new("wroker").into()];
    vec![
        ("V1", changed(policy, bounded)),
        ("V1", changed(policy, |root| below("eager-calibration", root))),
        ("V2", changed(policy, |root| below("fifo", root).child(Use::new(LEAF)))),
        ("V2", changed(policy, |root| below("fifo", Each::new(Level::Worker).child(root)))),
        ("V3", changed(policy, |root| below("lifo", root))),
        ("V4", sunk),
        ("V5", changed(policy, |root| below("fifo", below("mct", root)))),
        ("V6", round),
        ("V7", unknown),
        ("V7", changed(policy, |root| below("fifo", root).set("depth", Value::Int(2)))),
    ]
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.is_error()).map(Finding::id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn valid_policies_are_laid_out_and_pumped(policy in valid(), cores in 1..4u32, gpus in 0..3u32) {
        let findings = check(&policy, &catalogue());
        let found: String = findings.iter().map(|finding| shown(finding)).collect();
        prop_assert!(findings.is_empty(), "{}\n{}", policy.to_kdl(), found);
        let plan = expand(&policy, &catalogue(), &Node { cores, gpus }).map_err(|errors| {
            TestCaseError::fail(format!("{}\n{}", policy.to_kdl(), shown(&errors)))
        })?;
        let areas = plan.areas();
        for area in &areas {
            let still = !area.is_pumped_down(&plan) && !area.below.is_empty();
            prop_assert!(!still, "nothing pumps down in {:?} of\n{}", area, policy.to_kdl());
            let ends = area.below.len() + area.workers.len();
            prop_assert!(ends > 0, "{:?} leads nowhere in\n{}", area, policy.to_kdl());
        }
        // Every node is below some area's top; each reservoir, and the application, has an area of its own.
        let below = areas.iter().flat_map(|area| area.through.iter().chain(&area.below).chain(&area.workers));
        prop_assert_eq!(below.collect::<BTreeSet<_>>().len(), plan.nodes.len());
        let reservoirs = plan.nodes.iter().filter(|node| node.is_reservoir()).count();
        prop_assert_eq!(areas.len(), 1 + reservoirs);
    }

    #[test]
    fn each_rule_finds_its_mutation(policy in valid()) {
        for (id, broken) in mutations(&policy) {
            let findings = check(&broken, &catalogue());
            let found = rules(&findings);
            prop_assert!(found.contains(&id), "not {} but {:?} is found in\n{}", id, found, broken.to_kdl());
            for finding in &findings {
                prop_assert!(finding.position().is_some(), "no place: {}", finding);
            }
            let plan = expand(&broken, &catalogue(), &Node { cores: 1, gpus: 0 });
            prop_assert!(plan.is_err());
        }
    }
}
