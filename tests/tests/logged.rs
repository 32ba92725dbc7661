//! What components log reaches the subscriber of a program that uses the library, from runs and from simulations.

use sched_core::{
    Build, BuildError, Child, Component, Family, Info, LogLevel, Node, Offer, Params, Push, Task, WorkerId,
};
use sched_host::graph::generate::cholesky;
use sched_host::sim::Simulation;
use sched_host::sim::platform::find;
use sched_host::tree::LogLine;
use sched_tests::chains::submit_chains;
use sched_tests::stock;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Says who it is at each push.
struct Speaker;

impl Build for Speaker {
    const INFO: Info = Info::new("speaker", Family::SpecialPurpose, "Writes to the log.").forwards_push();

    fn build(_: &Params) -> Result<Self, BuildError> {
        Ok(Speaker)
    }
}

impl Component for Speaker {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let level = if node.has_in_context(WorkerId(1)) { LogLevel::Error } else { LogLevel::Debug };
        node.log(level, "here");
        node.push_to(Child(0), task)
    }
}

/// The distinct events: level, target, fields.
static EVENTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == LogLine::TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut fields);
        EVENTS.lock().expect("nobody panics").insert(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

fn heard() -> Vec<String> {
    std::mem::take(&mut *EVENTS.lock().expect("nobody panics")).into_iter().collect()
}

#[test]
fn a_subscriber_gets_level_node_component_and_plugin() {
    tracing::subscriber::set_global_default(Listener).expect("it is the first");
    let tree = r#"speaker { eager { each "worker" { speaker { fifo { worker } } } } }"#;
    let runtime = stock::builder(tree, 1, vec![Offer::of::<Speaker>()]).build().expect("it starts");
    let runs = submit_chains(&runtime, 5);
    runtime.wait_all().expect("every task runs");
    runs.assert_once(tree);
    insta::assert_snapshot!(heard().join("\n"), @r#"
    DEBUG sched::component message=here node="speaker" component="speaker" plugin="test"
    DEBUG sched::component message=here node="speaker/eager/worker 0/speaker" component="speaker" plugin="test"
    "#);
    let simulation = Simulation::new(cholesky(3, 960), find("numa-2x12").expect("it is shipped"));
    let simulation =
        simulation.policy_value(stock::policy(r#"speaker { fifo { eager { each "worker" { worker } } } }"#));
    simulation.registry(stock::registry(vec![Offer::of::<Speaker>()])).run().expect("it ends");
    insta::assert_snapshot!(heard().join("\n"), @r#"ERROR sched::component message=here node="speaker" component="speaker" plugin="test""#);
}
