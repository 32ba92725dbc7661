//! Traces of real runs.

use sched_core::TaskId;
use sched_host::runtime::{Builder, ReadWrite, Runtime};
use sched_host::trace::{Activity, Event, Format, Timeline, Trace};
use sched_tests::stock;
use std::path::Path;

const MANY: usize = 100_000;

/// Two chains of `length` tasks, of which the first has a name.
fn run(runtime: &Runtime, length: usize) {
    let data = [runtime.register(0u64), runtime.register(0u64)];
    let count = runtime.codelet::<(ReadWrite<u64>,), ()>("count").cpu("count", |_, (number,)| *number += 1).build();
    for step in 0..length {
        for number in &data {
            let task = runtime.task(&count, (number,));
            let task = if step == 0 { task.name("the first") } else { task };
            task.submit().expect("it can run");
        }
    }
    runtime.wait_all().expect("all end");
}

fn tasks(trace: &Trace) -> Vec<u64> {
    let spans = Timeline::of(trace).workers.into_iter().flatten();
    let mut tasks: Vec<u64> = spans
        .filter_map(|span| match span.activity {
            Activity::Task { task, .. } => Some(task.sequence()),
            _ => None,
        })
        .collect();
    tasks.sort_unstable();
    tasks
}

fn builder() -> Builder {
    Runtime::builder().registry(stock::registry(Vec::new())).policy("tree-eager-prefetching").workers(2).bind(false)
}

#[test]
fn every_task_is_there_once_with_its_name_and_the_queues_are_empty_in_the_end() {
    let runtime = builder().trace(MANY).build().expect("it starts");
    run(&runtime, 50);
    let trace = runtime.take_trace().expect("it was asked for");
    assert_eq!(tasks(&trace), (1..=100).collect::<Vec<_>>());
    assert_eq!((trace.title.as_str(), &*trace.names[&TaskId::new(1)]), ("tree-eager-prefetching", "the first"));
    assert_eq!((trace.dropped, trace.codelets.as_slice()), (0, &["count".to_owned()][..]));
    let mut left = vec![0; trace.nodes.len()];
    let mut ready = 0;
    for stamped in &trace.events {
        match stamped.event {
            Event::QueueLength { node, length } => left[node.index()] = length,
            Event::Ready { .. } => ready += 1,
            _ => {}
        }
    }
    assert_eq!((ready, left.iter().sum::<u32>()), (100, 0));
    // What comes later is in the next trace.
    run(&runtime, 5);
    assert_eq!(tasks(&runtime.take_trace().expect("it was asked for")), (101..=110).collect::<Vec<_>>());
}

#[test]
fn a_run_without_a_trace_has_none_and_one_without_room_says_so() {
    let runtime = builder().build().expect("it starts");
    run(&runtime, 2);
    assert!(runtime.take_trace().is_none());
    let runtime = builder().trace(10).build().expect("it starts");
    run(&runtime, 50);
    let trace = runtime.take_trace().expect("it was asked for");
    assert!(trace.dropped > 0 && trace.events.len() <= 30 * 3, "{} of {}", trace.dropped, trace.events.len());
    let mut out = Vec::new();
    Format::Chrome.write(&trace, &mut out).expect("half a trace can be written, too");
}

#[test]
fn extensions_say_the_format() {
    let format = |file: &str| Format::of(Path::new(file));
    assert_eq!(format("a/b.json"), Ok(Format::Chrome));
    assert_eq!((format("b.trace"), format("B.PAJE")), (Ok(Format::Paje), Ok(Format::Paje)));
    for file in ["b.svg", "json", "", "b."] {
        let error = format(file).expect_err("no format is called so").to_string();
        assert!(error.contains("does not say") && error.contains(".json") && error.contains(".paje"), "{error}");
    }
    for file in [".json", "a/.PAJE"] {
        let error = format(file).expect_err("it has no name").to_string();
        assert!(error.starts_with(&format!("`{file}` is an extension without a name before it")), "{error}");
    }
}
