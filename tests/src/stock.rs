//! Runtimes with the stock components compiled in, so that no plugin has to be built.

use sched_core::Offer;
use sched_host::plugin::Registry;
use sched_host::policy::{Policy, parse};
use sched_host::runtime::{Builder, Runtime};
use sched_host::topology::Topology;
use std::sync::Arc;
use std::time::Duration;

/// A registry of the stock components and those of a package `test`.
///
/// # Panics
/// If one of them cannot be used.
#[must_use]
pub fn registry(test: Vec<Offer>) -> Arc<Registry> {
    let mut registry = Registry::compiled_in();
    registry.add_builtin("test", test).expect("the test's components are sound");
    Arc::new(registry)
}

/// A policy with this tree.
///
/// # Panics
/// If the text is invalid.
#[must_use]
pub fn policy(tree: &str) -> Policy {
    let mut policies = parse("test.kdl", &format!("policy \"test\" {{ {tree} }}")).expect("the text is sound");
    policies.remove(0)
}

/// A builder of a runtime that takes this machine for one of eight cores, whatever it has and may be used of it. Its
/// workers are not bound: there may be more of them than cores.
///
/// # Panics
/// If the text or a component is invalid.
pub fn builder(tree: &str, workers: usize, test: Vec<Offer>) -> Builder {
    let builder = Runtime::builder()
        .policy_value(policy(tree))
        .registry(registry(test))
        .topology(Topology::flat(8))
        .workers(workers)
        .bind(false);
    // Nor does Miri get far in the seconds after which a run is taken for stalled.
    if cfg!(miri) { builder.quiet_period(Duration::from_secs(600)) } else { builder }
}

/// A running runtime. The root may refuse tasks, although such a policy is invalid; the host handles that.
///
/// # Panics
/// If it does not start.
#[must_use]
pub fn runtime(tree: &str, workers: usize) -> Runtime {
    builder(tree, workers, Vec::new()).unchecked().build().expect("the runtime starts")
}

/// Returns after `count` quiet periods: waits for a context without workers, which stalls after each of them.
///
/// # Panics
/// If that context does not stall.
pub fn let_quiet_periods_pass(runtime: &Runtime, count: usize) {
    let unserved = runtime.context("unserved").policy_value(policy(EAGER)).workers([]).build().expect("it fits");
    let nothing = runtime.codelet::<(), ()>("nothing").cpu("nothing", |_, ()| {}).build();
    runtime.task(&nothing, ()).context(&unserved).submit().expect("the task is sound");
    for _ in 0..count {
        unserved.wait_all().expect_err("nobody serves it");
    }
    unserved.add_workers([0]).expect("there is this worker");
}

/// One queue for all workers.
pub const EAGER: &str = r#"fifo { eager { each "worker" { worker } } }"#;

/// Shapes that move tasks in different ways: pulled, pushed, refused and put back. In one the root refuses.
pub const SHAPES: [&str; 8] = [
    EAGER,
    r#"fifo { eager { each "worker" { fifo ntasks-threshold=2 { worker } } } }"#,
    r#"eager { each "worker" { fifo { worker } } }"#,
    r#"eager { each "worker" { fifo ntasks-threshold=1 { worker } } }"#,
    r#"fifo { best-implementation { eager { each "worker" { best-implementation { worker } } } } }"#,
    r#"eager-prio { each "worker" { prio ntasks-threshold=2 { worker } } }"#,
    r#"fifo { random { each "worker" { best-implementation { worker } } } }"#,
    r#"work-stealing { each "worker" { worker } }"#,
];
