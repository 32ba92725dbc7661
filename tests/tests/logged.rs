//! What components log reaches the subscriber of a program that uses the library, from runs and from simulations.

use sched_core::{
    Build, BuildError, Child, Component, Family, Info, LogLevel, Node, Offer, Params, Push, Task, WorkerId,
};
use sched_host::graph::generate::cholesky;
use sched_host::runtime::Read;
use sched_host::sim::Simulation;
use sched_host::sim::platform::find;
use sched_host::tree::LogLine;
use sched_tests::chains::submit_chains;
use sched_tests::stock;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, Once, mpsc};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

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

/// The distinct events of components: level, target, fields.
static EVENTS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The errors that the runtime itself logs.
static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the events of this process from now on.
fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| tracing::subscriber::set_global_default(Listener).expect("it is the first"));
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == LogLine::TARGET || is_of_runtime(metadata)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut fields);
        match is_of_runtime(event.metadata()) {
            true => ERRORS.lock().expect("nobody panics").push(fields.0),
            false => drop(EVENTS.lock().expect("nobody panics").insert(fields.0)),
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn is_of_runtime(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("sched_runtime") && *metadata.level() == Level::ERROR
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
    listen();
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

/// Its destructor panics.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("this destructor panics on purpose");
    }
}

#[test]
fn a_value_whose_destructor_panics_is_named() {
    listen();
    let runtime = stock::runtime(stock::EAGER, 1);
    let look = runtime.codelet::<(Read<Fragile>,), mpsc::Receiver<()>>("look");
    let look = look.cpu("look", |call, _| call.params.recv().map_err(|error| error.to_string())).build();
    let value = runtime.register(Fragile);
    let (release, released) = mpsc::channel();
    runtime.task_with(&look, released, (&value,)).submit().expect("the task is sound");
    // The task has the value: the runtime drops it after the task.
    drop(value);
    release.send(()).expect("the task waits");
    runtime.wait_all().expect("the task runs");
    let add = runtime.codelet::<(), ()>("add").cpu("add", |_, ()| {}).build();
    runtime.task(&add, ()).submit().expect("the runtime goes on");
    runtime.wait_all().expect("the task runs");
    drop(runtime);
    let errors = std::mem::take(&mut *ERRORS.lock().expect("nobody panics"));
    let [error] = &*errors else { panic!("one is expected: {errors:?}") };
    let said = "message=the destructor of a value panicked, after the last task that uses it data=";
    assert!(error.starts_with("ERROR sched_runtime::data::handle ") && error.contains(said), "{error}");
}
