//! A component that does not come back from a call is named, and holds up nobody who can do without it.

use sched_core::*;
use sched_host::context::ContextError;
use sched_host::runtime::{RunError, Runtime, StartError};
use sched_host::tree::attendance::{Method, Post};
use sched_host::tree::{Fault, FaultKind};
use sched_tests::bad::Bad;
use sched_tests::chains::submit_chains;
use sched_tests::stock::builder;
use std::collections::VecDeque;
use std::time::Duration;

const TASKS: usize = 40;

/// A queue that hears of tasks and hands on its state, and does not come back from the method that `what` names.
struct Hooked {
    what: String,
    tasks: Mutex<VecDeque<Task>>,
}

impl Build for Hooked {
    const INFO: Info = Info::new("hooked", Family::FlowControl, "Does not come back.")
        .storage(Storage::Unbounded)
        .pulled_only()
        .hears_tasks()
        .params(const { &[Param::text("what", "", "the method")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        Ok(Hooked { what: params.text("what")?.to_owned(), tasks: Mutex::default() })
    }
}

impl Hooked {
    fn enter(&self, method: &str) {
        if self.what == method {
            loop {
                std::thread::park();
            }
        }
    }
}

impl Component for Hooked {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.tasks.lock().push_back(task);
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let own = self.tasks.lock().pop_front();
        own.or_else(|| node.pull_from_parents())
    }

    fn task_started(&self, _node: Node<'_>, _task: &Execution) {
        self.enter("task_started");
    }

    fn task_ended(&self, _node: Node<'_>, _task: &Execution, _end: &ExecutionEnd) {
        self.enter("task_ended");
    }

    fn export(&self, _node: Node<'_>) -> Option<Vec<u8>> {
        self.enter("export");
        Some(Vec::new())
    }

    fn import(&self, _node: Node<'_>, _state: &[u8]) {
        self.enter("import");
    }

    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).collect()
    }
}

fn begin(tree: &str, workers: usize) -> Result<Runtime, StartError> {
    let builder = builder(tree, workers, vec![Offer::of::<Bad>(), Offer::of::<Hooked>()]);
    builder.quiet_period(Duration::from_millis(60)).build()
}

fn start(tree: &str, workers: usize) -> Runtime {
    begin(tree, workers).unwrap_or_else(|error| panic!("{tree}: {error}"))
}

#[test]
fn a_run_that_is_stuck_in_a_component_stalls_and_names_it() {
    let cases = [
        (r#"fifo { bad what="block in pull" after=9 stores=#true { worker } }"#, Method::PullTask),
        (r#"hooked what="task_started" { worker }"#, Method::TaskStarted),
        (r#"hooked what="task_ended" { worker }"#, Method::TaskEnded),
        (r#"bad what="block in can_push" { fifo ntasks-threshold=1 { worker } }"#, Method::CanPush),
    ];
    for (tree, method) in cases {
        let runtime = start(tree, 1);
        let _runs = submit_chains(&runtime, TASKS);
        let end = runtime.wait_all();
        let Err(RunError::Stalled(report)) = end else { panic!("{tree}: {end:?}") };
        let call = report.overdue.first().unwrap_or_else(|| panic!("{tree}: {report}"));
        let component = if tree.contains("hooked") { "hooked" } else { "bad" };
        let Post::Component { node, component: named, .. } = &call.post else { panic!("{call}") };
        assert_eq!((&**named, call.method), (component, method), "{tree}");
        assert!(node.ends_with(component) && call.thread == "worker-0", "{tree}: {call}");
        let said = report.to_string();
        assert!(said.contains(&format!("stuck: component `{component}` of test, node `{node}`")), "{said}");
        assert!(!said.contains("look at"), "a queue above it is not to blame: {said}");
        // It returns, and leaves the thread behind.
        drop(runtime);
    }
}

#[test]
fn a_runtime_without_tasks_ends_though_a_worker_is_stuck() {
    for workers in [1, 3] {
        drop(start(r#"fifo { bad what="block in pull" { eager { each "worker" { worker } } } }"#, workers));
    }
}

#[test]
fn a_constructor_that_does_not_come_back_is_an_error() {
    let Err(error) = begin(r#"bad what="block in build" { worker }"#, 1) else { panic!("it is never built") };
    let said = format!("{error:?}");
    assert!(said.contains("component `bad` of test was not built within 5s"), "{said}");
}

#[test]
fn a_swap_does_without_what_a_drain_does_not_give() {
    for what in ["block in drain", "block in drop"] {
        let tree = format!(r#"bad what="{what}" stores=#true {{ eager {{ each "worker" {{ worker }} }} }}"#);
        let runtime = start(&tree, 2);
        let runs = submit_chains(&runtime, TASKS);
        let next = sched_tests::stock::policy("fifo { eager { each \"worker\" { worker } } }");
        runtime.default_context().swap_policy_value(next).unwrap_or_else(|error| panic!("{what}: {error}"));
        runtime.wait_all().unwrap_or_else(|end| panic!("{what}: {end}"));
        runs.assert_once(what);
        if what == "block in drain" {
            let faults = runtime.faults();
            assert!(
                matches!(faults[..], [ref fault] if matches!(fault.kind, FaultKind::Overdue { method: Method::Drain, .. })),
                "{faults:?}"
            );
            assert!(faults[0].to_string().contains("`drain` did not come back within 5s and was left behind"));
        }
    }
}

#[test]
fn a_swap_does_without_a_state_that_is_not_handed_on() {
    let tree = |what: &str| format!(r#"hooked what="{what}" {{ eager {{ each "worker" {{ worker }} }} }}"#);
    for (what, next, method) in [("export", "", Method::Export), ("", "import", Method::Import)] {
        let runtime = start(&tree(what), 2);
        let runs = submit_chains(&runtime, TASKS);
        let swapped = runtime.default_context().swap_policy_value(sched_tests::stock::policy(&tree(next)));
        let faults = match swapped {
            Ok(()) => runtime.faults(),
            // The new component would be of no use.
            Err(ContextError::Failed { faults, .. }) => faults,
            Err(error) => panic!("{what}: {error}"),
        };
        let is_it = |fault: &Fault| matches!(fault.kind, FaultKind::Overdue { method: late, .. } if late == method);
        assert!(matches!(&faults[..], [fault] if is_it(fault)), "{faults:?}");
        runtime.wait_all().unwrap_or_else(|end| panic!("{what}: {end}"));
        runs.assert_once(what);
    }
}
