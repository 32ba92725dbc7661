//! A scheduling component of the program's own, compiled in, in a policy that the program makes.
//!
//! Run it with `cargo run --example own_component`.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use sched_core::*;
use sched_host::policy;
use sched_host::runtime::Runtime;

/// Holds tasks, and gives out the one with the smallest `sched_data` first: here, the nearest deadline.
struct EarliestDeadline {
    tasks: Mutex<Vec<Task>>,
}

impl Build for EarliestDeadline {
    const INFO: Info = Info::new("earliest-deadline", Family::FlowControl, "Lets tasks go by their deadlines.")
        .storage(Storage::Unbounded);

    fn build(_params: &Params) -> Result<Self, BuildError> {
        Ok(EarliestDeadline { tasks: Mutex::default() })
    }
}

impl Component for EarliestDeadline {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        self.tasks.lock().push(task);
        // The lock is free again: the children may call back.
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        let able = tasks.iter().enumerate().filter(|(_, task)| node.requester_can_execute(task));
        let (first, _) = able.min_by_key(|(_, task)| task.sched_data())?;
        Some(tasks.remove(first))
    }

    fn drain(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.tasks.lock().drain(..).collect();
        tasks.sort_by_key(Task::sched_data);
        tasks
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // It comes on top of the stock components, which are compiled in too, and of plugins beside the program.
    let own = vec![Offer::of::<EarliestDeadline>()];

    let text = r#"policy "deadlines" { earliest-deadline { eager { each "worker" { worker } } } }"#;
    let policy = policy::parse("deadlines.kdl", text)?.remove(0);
    let runtime = Runtime::builder().policy_value(policy).components("own", own).workers(1).build()?;

    let say = runtime.codelet::<(), u64>("say").cpu("say", |task, ()| println!("due at {}", task.params)).build();
    // The worker is busy with this one while the others come in.
    let wait =
        runtime.codelet::<(), ()>("wait").cpu("wait", |_, ()| std::thread::sleep(std::time::Duration::from_millis(50)));
    runtime.task(&wait.build(), ()).submit()?;
    for deadline in [70, 20, 90, 10, 40] {
        runtime.task_with(&say, deadline, ()).sched_data(deadline).submit()?;
    }
    Ok(runtime.wait_all()?)
}
