//! Traces of several ranks.

use super::t;
use crate::{CodeletId, Event, Format, Note, NoteId, RankMessage, RankTrace, Stamped, Trace, Transfer, WorkerTrack};
use sched_core::{LogLevel, MemoryNode, Refusal, WorkerId};
use sched_graph::{ContextId, DataId};
use sched_memory::Reason;
use sched_tree::{NoteKind, ObservedNode};

/// One event of each kind.
fn events() -> Vec<Event> {
    let (task, worker, node) = (t(7), WorkerId(1), ObservedNode(2));
    let (data, from, to) = (DataId(3), MemoryNode(0), MemoryNode(1));
    let transfer = |why| Transfer { data, from, to, bytes: u64::MAX, why };
    let message = |data| RankMessage { data, from: 1, to: 0, bytes: 9 };
    vec![
        Event::Submitted { task },
        Event::Ready { task, by: None },
        Event::Ready { task, by: Some(WorkerId(0)) },
        Event::Pulled { task, worker },
        Event::Started { task, worker, codelet: CodeletId(1) },
        Event::Ended { task, worker },
        Event::Passed { task },
        Event::Idle { worker },
        Event::Woken { worker },
        Event::Moved { worker, from: None, to: ContextId(1) },
        Event::Moved { worker, from: Some(ContextId(0)), to: ContextId(1) },
        Event::TransferStarted(transfer(Reason::Prefetch)),
        Event::TransferEnded(transfer(Reason::WontUse)),
        Event::Sent(message(None)),
        Event::Received(message(Some(data))),
        Event::Refused { task, node, why: Refusal::Uncalibrated },
        Event::Noted { note: NoteId(4) },
        Event::QueueLength { node, length: 12 },
    ]
}

fn stamped(events: impl IntoIterator<Item = (u64, Event)>) -> Vec<Stamped> {
    events.into_iter().map(|(nanos, event)| Stamped { nanos, event }).collect()
}

/// A trace in which everything has a name.
fn full() -> Trace {
    let note = |kind| Note { node: ObservedNode(1), kind, text: "it went wrong".to_owned() };
    Trace {
        title: "tree-eager".to_owned(),
        workers: (0..2).map(|id| WorkerTrack::new(id, "cpu".to_owned())).collect(),
        memories: ["ram", "gpu"].map(str::to_owned).into(),
        contexts: ["default", "b"].map(str::to_owned).into(),
        nodes: ["root", "root/fifo", "root/worker"].map(str::to_owned).into(),
        codelets: ["one", "two"].map(str::to_owned).into(),
        names: [(t(7), "seven".into())].into(),
        notes: [(NoteId(4), note(NoteKind::Fault)), (NoteId(5), note(NoteKind::Log(LogLevel::Warn)))].into(),
        dropped: 3,
        ..Trace::default()
    }
    .with_events(stamped((100..).zip(events())))
}

#[test]
fn a_trace_comes_through_as_bytes() {
    let rank = RankTrace { trace: full(), behind: -5, tasks: [(t(7), t(70))].into() };
    let bytes = rank.to_bytes();
    assert_eq!(RankTrace::from_bytes(&bytes), Some(rank));
    // What is cut off, or has something behind it, is none.
    for len in (0..bytes.len()).step_by(61) {
        assert_eq!(RankTrace::from_bytes(&bytes[..len]), None, "{len} bytes");
    }
    assert_eq!(RankTrace::from_bytes(&[&bytes[..], &[0]].concat()), None);
    assert_eq!(RankTrace::from_bytes(&[u8::MAX; 64]), None);
}

#[test]
fn ranks_keep_their_own_numbers_apart() {
    let rank = |behind, tasks: &[(u64, u64)]| RankTrace {
        trace: full(),
        behind,
        tasks: tasks.iter().map(|(here, of_all)| (t(*here), t(*of_all))).collect(),
    };
    // The second rank names another codelet first.
    let mut second = rank(10, &[]);
    second.trace.codelets = ["two", "three"].map(str::to_owned).into();
    let all = Trace::of_ranks(vec![rank(0, &[(7, 20)]), second]);
    assert_eq!(all.ranks, ["rank 0", "rank 1"]);
    let workers: Vec<_> =
        all.workers.iter().map(|worker| (worker.name.as_str(), &*worker.group, worker.rank)).collect();
    assert_eq!(workers[1..3], [("0:cpu 1", "rank 0", 0), ("1:cpu 0", "rank 1", 1)]);
    assert_eq!(all.codelets, ["one", "two", "three"]);
    assert_eq!((&*all.nodes[2], &*all.nodes[3]), ("rank 0: root/worker", "rank 1: root"));
    assert_eq!(all.notes.keys().copied().collect::<Vec<_>>(), [4, 5, 10, 11].map(NoteId));
    assert_eq!(all.notes[&NoteId(10)].node, ObservedNode(4));
    assert_eq!(all.dropped, 6);
    let started: Vec<_> = all.events.iter().filter(|of| matches!(of.event, Event::Started { .. })).collect();
    // Tasks without a number of their own come after those with one.
    let start =
        |task, worker, codelet| Event::Started { task: t(task), worker: WorkerId(worker), codelet: CodeletId(codelet) };
    let expected = [(4, start(20, 1, 1)), (14, start(21, 3, 2))];
    assert_eq!(started.iter().map(|of| (of.nanos, of.event)).collect::<Vec<_>>(), expected);
    assert_eq!((all.names.get(&t(20)), all.names.get(&t(21))), (Some(&"seven".into()), Some(&"seven".into())));
    assert_eq!(all.end, 15);
}

#[test]
fn a_message_arrives_after_it_was_sent_whatever_the_clocks_say() {
    let message = RankMessage { data: Some(DataId(0)), from: 0, to: 1, bytes: 8 };
    let trace = |event, times: [u64; 2]| {
        let trace = Trace::default().with_events(stamped(times.map(|nanos| (nanos, event))));
        RankTrace { trace, ..RankTrace::default() }
    };
    let all =
        Trace::of_ranks(vec![trace(Event::Sent(message), [100, 300]), trace(Event::Received(message), [90, 500])]);
    let found: Vec<_> = all.events.iter().map(|of| (of.nanos, matches!(of.event, Event::Sent(_)))).collect();
    assert_eq!(found, [(0, true), (1, false), (200, true), (400, false)]);
    let mut json = Vec::new();
    Format::Chrome.write(&all, &mut json).expect("memory takes it");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    let events = json["traceEvents"].as_array().expect("there are events");
    let arrows = |ph: &str| events.iter().filter(|event| event["ph"] == ph && event["name"] == "message").count();
    assert_eq!((arrows("s"), arrows("f")), (2, 2));
}
