//! The simple scheduler and its flags.

use super::{Node, shape, shown, stock};
use crate::{
    Catalogue, Component, Decide, FlatMachine, Level, Limit, Policy, Queue, QueuesBelow, Ready, Recipe, SimpleFlags,
    Source, check, expand, library, parse,
};
use insta::assert_snapshot;
use proptest::prelude::*;
use sched_core::{Family, Info, Value};

fn policy(text: &str) -> Policy {
    let flags = SimpleFlags::parse(text).unwrap_or_else(|errors| panic!("{}", shown(&errors)));
    SimpleFlags::user_choice("simple", &flags, &stock()).unwrap_or_else(|errors| panic!("{}", shown(&errors)))
}

/// The shipped policies that are simple schedulers, with their flags. Those that need no models leave out `impl`, which
/// the handbook's own example does not have.
const SHIPPED: [(&str, &str); 18] = [
    ("tree-eager", "eager decide-workers fifo-above"),
    ("tree-eager-prefetching", "eager decide-workers fifo-above fifos-below ready exp"),
    ("tree-eager-prio", "eager-prio decide-workers fifos-below-prio ready exp"),
    ("tree-prio", "eager decide-workers fifo-above-prio"),
    ("tree-prio-prefetching", "eager decide-workers fifo-above-prio fifos-below-prio ready exp"),
    ("tree-random", "random decide-workers fifo-above fifos-below no-limit impl"),
    ("tree-random-prio", "random decide-workers fifo-above-prio impl"),
    ("tree-random-prefetching", "random decide-workers fifo-above fifos-below ready exp"),
    ("tree-random-prio-prefetching", "random decide-workers fifo-above-prio fifos-below-prio ready exp"),
    ("tree-ws", "work-stealing decide-workers ws-below"),
    ("tree-heft", "mct decide-workers perfmodel fifo-above-prio fifos-below-prio ready exp impl"),
    ("tree-heft-prio", "mct decide-memory-nodes perfmodel fifo-above-prio fifos-below-prio ready exp impl"),
    ("tree-heft2", "heft decide-workers perfmodel fifo-above-prio fifos-below-prio ready exp impl"),
    ("tree-heteroprio", "heteroprio decide-workers perfmodel fifo-above-prio fifos-below-prio ready exp impl"),
    ("tree-dmda", "mct decide-workers perfmodel fifos-below exp no-limit impl"),
    ("tree-dmdap", "mct decide-workers perfmodel fifos-below-prio exp no-limit impl"),
    ("tree-dmdar", "mct decide-workers perfmodel fifos-below ready exp no-limit impl"),
    ("tree-dmdas", "mct decide-workers perfmodel fifos-below-prio ready exp no-limit impl"),
];

#[test]
fn shipped_policies_are_what_their_flags_yield() {
    for (name, flags) in SHIPPED {
        let shipped = Source::find(name).and_then(|source| source.policy()).expect("it is shipped");
        for machine in [Node { cores: 1, gpus: 0 }, Node { cores: 3, gpus: 2 }] {
            assert_eq!(shape(&policy(flags), &machine), shape(&shipped, &machine), "{name}");
        }
    }
    // One is made by hand in another test, one has combined workers, and four choose by a component that StarPU has
    // not.
    assert_eq!(library().len(), SHIPPED.len() + 6);
}

#[test]
fn queues_below_are_as_deep_as_the_decision_wants_to_look_ahead_whoever_made_it() {
    let mine = Info::new("mine", Family::ResourceMapping, "Plans ahead.").lookahead(12).forwards_push();
    let known = stock();
    let known = known.iter().map(|entry| ((*entry.info).clone(), entry.plugin.as_str()));
    let all = Catalogue::new(known.chain([(mine.describe(), "somebody")]));
    let flags = SimpleFlags::parse("mine decide-workers fifo-above fifos-below").expect("the flags are sound");
    let policy = SimpleFlags::user_choice("simple", &flags, &all).expect("they go together");
    assert!(policy.to_kdl().contains("fifo ntasks-threshold=12 sorted=#false {"), "{}", policy.to_kdl());
}

#[test]
fn the_policy_reads_like_one_written_by_hand() {
    let words = "mct beta=2.0 decide-memnodes STARPU_SCHED_SIMPLE_PERFMODEL fifo-above fifos-below ws-below";
    assert_snapshot!(policy(words).to_kdl(), @r#"
    // The simple scheduler `mct beta=2.0 decide-memory-nodes perfmodel fifo-above fifos-below ws-below`.
    policy "simple" {
        fifo sorted=#false {
            perfmodel-select {
                perfmodel {
                    mct beta=2.0 {
                        each "memory-node" {
                            fifo ntasks-threshold=30 sorted=#false {
                                work-stealing {
                                    each "worker" {
                                        use "leaf"
                                    }
                                }
                            }
                        }
                    }
                }
                calibrator {
                    eager-calibration {
                        each "worker" {
                            fifo sorted=#false ntasks-threshold=1 {
                                use "leaf"
                            }
                        }
                    }
                }
                no-perfmodel {
                    eager {
                        each "worker" {
                            fifo sorted=#false ntasks-threshold=1 {
                                use "leaf"
                            }
                        }
                    }
                }
            }
        }
        shared "leaf" each="worker" {
            worker
        }
    }
    "#);
}

// Longer than 60 lines because of its golden text.
#[test]
fn the_application_chooses_among_several_decisions() {
    let several = "eager decide-workers fifo-above; heteroprio decide-archs perfmodel fifo-above-prio fifos-below impl";
    let policy = policy(several);
    assert!(check(&policy, &stock()).is_empty());
    assert_snapshot!(policy.to_kdl(), @r#"
    // Simple schedulers among which the application chooses: `eager decide-workers fifo-above`, `heteroprio decide-archs perfmodel fifo-above-prio fifos-below impl`.
    policy "simple" {
        user-choice {
            fifo sorted=#false {
                eager {
                    each "worker" {
                        use "leaf"
                    }
                }
            }
            prio {
                perfmodel-select {
                    perfmodel {
                        heteroprio {
                            each "arch" {
                                fifo ntasks-threshold=30 sorted=#false {
                                    eager {
                                        each "worker" {
                                            use "leaf"
                                        }
                                    }
                                }
                            }
                        }
                    }
                    calibrator {
                        eager-calibration {
                            each "worker" {
                                fifo sorted=#false ntasks-threshold=1 {
                                    use "leaf"
                                }
                            }
                        }
                    }
                    no-perfmodel {
                        eager {
                            each "worker" {
                                fifo sorted=#false ntasks-threshold=1 {
                                    use "leaf"
                                }
                            }
                        }
                    }
                }
            }
        }
        shared "leaf" each="worker" {
            stage {
                best-implementation {
                    worker
                }
            }
        }
    }
    "#);
}

#[test]
fn combined_workers_have_branches_beside_the_others() {
    let flags = SimpleFlags::parse("mct decide-workers perfmodel fifo-above fifos-below impl combined-workers");
    let flags = flags.expect("the words are sound");
    let policy = flags[0].policy("p", &stock()).expect("the flags are sound");
    let text = policy.to_kdl();
    assert_eq!(text.matches("each \"combined-worker\" {").count(), 3, "{text}");
    assert_eq!(policy.find_shared("team").and_then(|team| team.each), Some(Level::CombinedWorker));
}

#[test]
fn components_before_the_decision_and_limits_of_its_own() {
    let flags = SimpleFlags::new("eager")
        .before(Recipe::singleton(Component::new("stage")).add(Component::new("best-implementation")))
        .above(Queue::Prio)
        .below(QueuesBelow {
            limit: Limit::Bounded { ntasks: Some(7), exp_len: Some(50.0) },
            ready: Ready::First,
            ..QueuesBelow::new(Queue::Fifo)
        });
    let text = r#"policy "mine" { prio { stage { best-implementation { eager { each "worker" {
        fifo ntasks-threshold=7 exp-len-threshold=50.0 ready-first=#true sorted=#false { worker }
    } } } } } }"#;
    let policy = flags.policy("mine", &stock()).expect("the flags are sound");
    assert_eq!(policy, parse("mine.kdl", text).expect("the text is sound")[0].clone().doc(flags.summary()));
}

fn decision() -> impl Strategy<Value = Component> {
    let name = ["eager", "eager-prio", "eager-calibration", "random", "work-stealing", "mct", "heft", "heteroprio"];
    (prop::sample::select(name.to_vec()), any::<bool>()).prop_map(|(name, set)| match name {
        "mct" | "heft" | "heteroprio" if set => Component::new(name).set("beta", Value::Float(2.0)),
        _ => Component::new(name),
    })
}

fn queue() -> impl Strategy<Value = Queue> {
    prop::sample::select(vec![Queue::Fifo, Queue::Prio])
}

fn below() -> impl Strategy<Value = QueuesBelow> {
    let bounds = (prop::option::of(1..9_u32), prop::option::of(prop_oneof![Just(Limit::EXP_LEN), 1.0..99.0]));
    let limit = prop_oneof![Just(Limit::None), bounds.prop_map(|(ntasks, exp_len)| Limit::Bounded { ntasks, exp_len })];
    let ready = prop::sample::select(vec![Ready::Off, Ready::Equals, Ready::First]);
    (queue(), ready, limit).prop_map(|(queue, ready, limit)| {
        let ready = if queue == Queue::Prio && ready == Ready::First { Ready::Equals } else { ready };
        QueuesBelow { queue, ready, limit }
    })
}

/// Any flags, sound or not.
fn flags() -> impl Strategy<Value = SimpleFlags> {
    let decide = prop::sample::select(vec![Decide::Workers, Decide::MemoryNodes, Decide::Archs]);
    let queues = (prop::option::of(queue()), prop::option::of(below()));
    (decision(), decide, queues, any::<[bool; 3]>()).prop_map(
        |(decision, decide, (above, below), [model, steal, best])| {
            let mut flags = SimpleFlags::new(decision).decide(decide);
            flags = if model { flags.perfmodel() } else { flags };
            flags = if steal { flags.work_stealing_below() } else { flags };
            flags = if best { flags.best_implementation() } else { flags };
            flags = above.into_iter().fold(flags, SimpleFlags::above);
            below.into_iter().fold(flags, SimpleFlags::below)
        },
    )
}

proptest! {
    #[test]
    fn words_read_back_as_the_same_flags(flags in flags()) {
        prop_assert_eq!(SimpleFlags::parse(&flags.to_string()).expect("the words are sound"), [flags]);
    }

    #[test]
    fn sound_flags_yield_valid_policies(all in prop::collection::vec(flags(), 1..3), cores in 1..3_u32, gpus in 0..3_u32) {
        let stock = stock();
        match SimpleFlags::user_choice("simple", &all, &stock) {
            Ok(policy) => {
                let findings = check(&policy, &stock);
                prop_assert!(findings.is_empty(), "{}\n{:?}", policy.to_kdl(), findings);
                prop_assert_eq!(parse("simple.kdl", &policy.to_kdl()).expect("it parses"), [policy.clone()]);
                let plans = [
                    expand(&policy, &stock, &Node { cores, gpus }),
                    expand(&policy, &stock, &FlatMachine { workers: 1 }),
                ];
                prop_assert!(plans.iter().all(Result::is_ok), "{}", policy.to_kdl());
            }
            Err(errors) => prop_assert!(errors.findings().iter().all(|finding| finding.is_error())),
        }
    }
}

#[test]
fn without_a_catalogue_queues_look_two_tasks_ahead() {
    let flags = SimpleFlags::new("mine").above(Queue::Fifo).below(QueuesBelow::new(Queue::Prio));
    let policy = flags.policy("p", &Catalogue::default()).expect("nothing is known to be wrong");
    assert!(policy.to_kdl().contains("prio ntasks-threshold=2 {"));
}
