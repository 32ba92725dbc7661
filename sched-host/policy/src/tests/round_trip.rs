//! Printed policies read back as what they were.

use super::{EAGER, HEFT, parse, policy};
use crate::{Component, Each, Element, Level, Override, Policy, Shared, Use};
use insta::assert_snapshot;
use proptest::prelude::*;
use sched_core::{Arch, Value};

#[test]
fn prints_the_way_people_write() {
    let heft = policy(HEFT).doc("Completion times.\n\nFor GPUs.");
    assert_snapshot!(heft.to_kdl(), @r#"
    // Completion times.
    //
    // For GPUs.
    policy "tree-heft" {
        prio {
            perfmodel-select {
                perfmodel {
                    mct alpha=1.0 beta=2.0 {
                        each "worker" {
                            prio ntasks-threshold=30 {
                                use "leaf"
                            }
                        }
                    }
                }
                calibrator {
                    eager-calibration {
                        use "leaf"
                    }
                }
                no-perfmodel {
                    eager {
                        use "leaf"
                    }
                }
            }
        }
        shared "leaf" each="worker" {
            best-implementation {
                worker
            }
        }
    }
    "#);
}

#[test]
fn a_built_policy_equals_the_same_read_from_text() {
    let worker = Each::new(Level::Worker).child(Component::new("worker"));
    let built = Policy::new("tree-eager", Component::new("fifo").child(Component::new("eager").child(worker)));
    assert_eq!(built, policy(EAGER));
}

fn name() -> impl Strategy<Value = String> {
    let word =
        prop_oneof!["[a-z][a-z0-9-]{0,8}", "\\PC{1,6}", ".{1,4}", Just("true".to_owned()), Just("-1".to_owned())];
    word.prop_filter("a word of the language, or no name", |name| {
        !["policy", "shared", "override", "each", "use"].contains(&name.as_str()) && !name.contains(char::is_control)
    })
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::INFINITE | prop::num::f64::SUBNORMAL;
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        number.prop_map(Value::Float),
        any::<String>().prop_map(Value::Text),
    ]
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(Level::ALL.to_vec())
}

fn arch() -> impl Strategy<Value = Option<Arch>> {
    prop::option::of((0..32u8).prop_map(|number| Arch::new(number).expect("32 of them")))
}

fn component(children: impl Strategy<Value = Vec<Element>>) -> impl Strategy<Value = Element> {
    let params = prop::collection::vec((name(), value()), 0..3);
    (name(), params, children).prop_map(|(name, params, children)| {
        let component =
            params.into_iter().fold(Component::new(name), |component, (name, value)| component.set(name, value));
        Element::from(children.into_iter().fold(component, Component::child))
    })
}

fn part() -> impl Strategy<Value = Element> {
    let leaf = prop_oneof![component(Just(Vec::new())), name().prop_map(|name| Use::new(name).into())];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let children = prop::collection::vec(inner, 0..4);
        let some = prop::option::of(prop::collection::btree_set(0..200u32, 1..9));
        let filters = (arch(), some.clone(), some);
        let each = (level(), filters, children.clone()).prop_map(|(level, (arch, only, except), children)| {
            let each = Each { arch, ..Each::new(level) };
            let each = only.into_iter().fold(each, Each::only);
            let each = except.into_iter().fold(each, Each::except);
            Element::from(children.into_iter().fold(each, Each::child))
        });
        prop_oneof![component(children), each]
    })
}

fn shared() -> impl Strategy<Value = Shared> {
    let head = (name(), prop::option::of(level()), arch(), any::<bool>());
    (head, part()).prop_map(|((name, each, arch, between_contexts), child)| Shared {
        each,
        arch,
        between_contexts,
        ..Shared::new(name, child)
    })
}

fn chosen() -> impl Strategy<Value = Override> {
    (name(), prop::option::of(".{0,6}")).prop_map(|(name, from)| match from {
        Some(from) => Override::new(name).from(from),
        None => Override::new(name),
    })
}

fn doc() -> impl Strategy<Value = String> {
    // White space at the end of a line, and at the end of the comment, says nothing.
    prop::collection::vec("( {0,3}[!-~é→]{1,8}){0,4}", 0..4).prop_map(|lines| lines.join("\n").trim_end().to_owned())
}

proptest! {
    #[test]
    fn printed_policies_read_back(
        name in name(),
        doc in doc(),
        root in prop::collection::vec(part(), 0..3),
        shared in prop::collection::vec(shared(), 0..3),
        overrides in prop::collection::vec(chosen(), 0..3),
    ) {
        let mut policy = Policy::new(name, Component::new("replaced"));
        policy.doc = doc;
        policy.root = root;
        policy.shared = shared;
        policy.overrides = overrides;
        let text = policy.to_kdl();
        let read = crate::read("printed", &text);
        prop_assert!(read.findings.is_empty(), "{text}\n{:?}", read.findings);
        prop_assert_eq!(&read.policies[..], std::slice::from_ref(&policy), "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z\"{}=# \n;/\\\\-]{0,60}") {
        let _ = parse("any", &text);
    }
}
