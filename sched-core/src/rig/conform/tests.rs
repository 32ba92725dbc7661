use super::*;
use crate::{
    Child, Component, Execution, ExecutionEnd, Family, Info, LogLevel, Mutex, Node, Param, Push, Refusal, Refused,
    Storage, Task, Time, WorkerId, adapt,
};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::ThreadId;

/// What a queue does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Sound,
    PanicInPush,
    LockAcrossHop,
    DropInPull,
    RefuseAnother,
    NoSuchChild,
    GiveToAnybody,
    KeepInDrain,
    Refuse,
    ClaimFull,
    Mute,
    Deaf,
    Hoard,
    NanLoad,
    WakeWhenAsked,
    Ambient,
    Talk,
    LaterEnd,
    OneThread,
    Hang,
    PanicInExport,
    PanicInImport,
    PanicInDrop,
    PanicAtEnd,
}

/// A queue, or a wrong one.
struct Odd {
    way: Way,
    tasks: Mutex<Vec<Task>>,
    thread: OnceLock<ThreadId>,
}

impl Odd {
    fn pop(&self, node: Node<'_>) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        let able = |task: &Task| self.way == Way::GiveToAnybody || node.requester_can_execute(task);
        let found = tasks.iter().position(able)?;
        Some(tasks.remove(found))
    }
}

impl Component for Odd {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        match self.way {
            Way::PanicInPush => panic!("as asked for"),
            Way::LockAcrossHop => {
                let mut tasks = self.tasks.lock();
                tasks.push(task);
                node.children_can_pull();
                return Ok(());
            }
            Way::RefuseAnother if !self.tasks.lock().is_empty() => {
                let other = std::mem::replace(&mut self.tasks.lock()[0], task);
                return Err(Refused::new(other, Refusal::Full));
            }
            Way::NoSuchChild => _ = node.child_can_pull(Child(7)),
            Way::Refuse => return Err(Refused::new(task, Refusal::Full)),
            Way::ClaimFull => node.note_room(false),
            Way::Talk => node.log(LogLevel::Warn, &format!("here is {}", task.id())),
            Way::OneThread => {
                let first = self.thread.get_or_init(|| std::thread::current().id());
                assert_eq!(*first, std::thread::current().id(), "made for one thread");
            }
            Way::Hang if self.tasks.lock().len() == 2 => loop {
                std::thread::park();
            },
            _ => {}
        }
        self.tasks.lock().push(task);
        if self.way != Way::Mute {
            node.children_can_pull();
        }
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        if self.way == Way::Hoard {
            return None;
        }
        let task = self.pop(node).or_else(|| if node.parents_can_push() { self.pop(node) } else { None })?;
        if self.way == Way::DropInPull && task.priority() < 0 { None } else { Some(task) }
    }

    fn can_push(&self, node: Node<'_>, to: Child) -> bool {
        if self.way == Way::Hoard {
            return false;
        }
        let pump = || node.pump(to, || self.pop(node), |task| self.tasks.lock().insert(0, task));
        pump()
            || node.parents_can_push() && {
                pump();
                true
            }
    }

    fn can_pull(&self, node: Node<'_>) -> bool {
        self.way != Way::Deaf && node.wake_one()
    }

    fn estimated_end(&self, node: Node<'_>) -> Time {
        let end = node.earliest_end_below();
        if self.way == Way::LaterEnd { end + Duration::from_nanos(5) } else { end }
    }

    fn estimated_load(&self, node: Node<'_>) -> f64 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        match self.way {
            Way::NanLoad => f64::NAN,
            Way::WakeWhenAsked => f64::from(u8::from(node.wake_one())),
            Way::Ambient => f64::from(CALLS.fetch_add(1, Relaxed)),
            _ => node.load_below(),
        }
    }

    fn task_ended(&self, _: Node<'_>, _: &Execution, _: &ExecutionEnd) {
        assert!(self.way != Way::PanicAtEnd, "as asked for");
    }

    fn export(&self, _: Node<'_>) -> Option<Vec<u8>> {
        assert!(self.way != Way::PanicInExport, "as asked for");
        Some(vec![1])
    }

    fn import(&self, _: Node<'_>, state: &[u8]) {
        assert!(state == [1] && self.way != Way::PanicInImport, "as asked for");
    }

    fn drain(&self) -> Vec<Task> {
        let keep = usize::from(self.way == Way::KeepInDrain);
        let mut tasks = self.tasks.lock();
        let from = keep.min(tasks.len());
        tasks.drain(from..).collect()
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        assert!(self.way != Way::PanicInDrop, "as asked for");
    }
}

const QUEUE: Info = Info::new("odd", Family::FlowControl, "May be wrong.").storage(Storage::Unbounded);

/// The same above several children, which may be workers.
const MANY: Info = Info::new("odd", Family::ResourceMapping, "May be wrong.").storage(Storage::Unbounded);

fn examine(info: &Info, way: Way) -> Vec<Finding> {
    let odd = move || Odd { way, tasks: Mutex::default(), thread: OnceLock::new() };
    Examination::new(&info.describe(), &|_| Ok(adapt(odd()))).run()
}

/// Asserts that nothing but this property is found, by at most this number of calls.
fn assert_found(findings: &[Finding], property: Property, calls: usize) {
    let named: Vec<Property> = findings.iter().map(|finding| finding.property).collect();
    assert_eq!(named, [property], "{findings:#?}");
    assert!(findings[0].calls.len() <= calls, "{}", findings[0]);
}

#[test]
fn a_sound_queue_has_no_findings() {
    assert_eq!(examine(&QUEUE, Way::Sound), []);
}

#[test]
fn each_mistake_is_found_and_shrunk() {
    let cases = [
        (Way::PanicInPush, Property::Panics, 1),
        (Way::DropInPull, Property::Tasks, 2),
        (Way::RefuseAnother, Property::Refusals, 2),
        (Way::NoSuchChild, Property::Neighbours, 1),
        (Way::GiveToAnybody, Property::Able, 3),
        (Way::Refuse, Property::Storage, 1),
        (Way::ClaimFull, Property::Room, 2),
        (Way::Mute, Property::Wakes, 1),
        (Way::Deaf, Property::Wakes, 1),
        (Way::Hoard, Property::Flow, 5),
        (Way::NanLoad, Property::Estimates, 1),
        (Way::WakeWhenAsked, Property::Estimates, 1),
        (Way::Ambient, Property::Repeats, 1),
        (Way::Talk, Property::Log, 10),
        (Way::OneThread, Property::Threads, 1),
        (Way::KeepInDrain, Property::Drain, 2),
        (Way::PanicInExport, Property::Panics, 2),
        (Way::PanicInImport, Property::Panics, 5),
        (Way::PanicInDrop, Property::Panics, 1),
        (Way::PanicAtEnd, Property::Panics, 4),
    ];
    let hears = QUEUE.hears_tasks();
    for (way, property, calls) in cases {
        let findings = examine(if way == Way::PanicAtEnd { &hears } else { &QUEUE }, way);
        let found = findings.iter().find(|finding| finding.property == property);
        let found = found.unwrap_or_else(|| panic!("{way:?}: {findings:#?}"));
        assert!(found.calls.len() <= calls, "{way:?}: {found}");
        assert_eq!(findings.len(), 1, "{way:?}: {findings:#?}");
    }
}

#[test]
fn a_refusal_with_another_task_is_found_where_refusals_are_declared() {
    let bounded = QUEUE.storage(Storage::BoundedBy(&["room"])).params(const { &[Param::int("room", 1, "")] });
    assert_found(&examine(&bounded, Way::RefuseAnother), Property::Refusals, 2);
}

#[test]
#[cfg(debug_assertions)]
fn a_lock_across_a_hop_is_found() {
    assert_found(&examine(&QUEUE, Way::LockAcrossHop), Property::Locks, 1);
}

#[test]
fn false_declarations_are_found() {
    let findings = |info: Info, way| examine(&info, way);
    assert_found(&findings(QUEUE.forwards_pull(), Way::Sound), Property::ForwardsPull, 1);
    assert_found(&findings(QUEUE.empty_until_pushed(), Way::Sound), Property::EmptyUntilPushed, 1);
    assert_found(&findings(QUEUE.end_is_noted(), Way::LaterEnd), Property::EndIsNoted, 1);
    assert_found(&findings(MANY.newest_comes_back(), Way::Sound), Property::NewestComesBack, 3);
    assert_found(&findings(MANY.waits_at_home(), Way::Sound), Property::WaitsAtHome, 3);
    let pulled_only = findings(QUEUE.pulled_only(), Way::Sound);
    assert_found(&pulled_only, Property::PulledOnly, 2);
    let stores_none = findings(QUEUE.storage(Storage::None), Way::Sound);
    assert_eq!(stores_none[0].property, Property::Storage, "{stores_none:#?}");
}

/// Passes tasks to a child, in some way.
struct Passes(Pass);

#[derive(Clone, Copy)]
enum Pass {
    Sound,
    RefuseUnasked,
    PullOnce,
    ByEnds,
}

impl Component for Passes {
    fn push_task(&self, node: Node<'_>, mut task: Task) -> Push {
        match self.0 {
            Pass::RefuseUnasked => return Err(Refused::new(task, Refusal::Full)),
            Pass::ByEnds => node.ends_below(|_, _| ()),
            Pass::Sound | Pass::PullOnce => {}
        }
        let mut why = Refusal::NoWorker;
        for child in node.children().filter(|child| node.child_can_execute(*child, &task)).collect::<Vec<_>>() {
            match node.push_to(child, task) {
                Ok(()) => return Ok(()),
                Err(refused) => (task, why) = (refused.task, refused.why),
            }
        }
        Err(Refused::new(task, why))
    }
}

#[test]
fn what_a_component_that_chooses_declares_is_verified() {
    const MAPPER: Info = Info::new("passes", Family::ResourceMapping, "Passes tasks on.").forwards_push();
    let findings = |info: Info, pass| Examination::new(&info.describe(), &move |_| Ok(adapt(Passes(pass)))).run();
    assert_eq!(findings(MAPPER.forwards_pull().end_is_noted(), Pass::Sound), []);
    assert_found(&findings(MAPPER, Pass::RefuseUnasked), Property::ForwardsPush, 1);
    assert_found(&findings(MAPPER.wakes_workers(), Pass::Sound), Property::WakesWorkers, 1);
    assert_found(&findings(MAPPER.pushes_on_pull(), Pass::PullOnce), Property::PushesOnPull, 1);
    let blind = findings(MAPPER, Pass::ByEnds);
    assert_found(&blind, Property::Predictions, 1);
    assert!(blind[0].message.contains("all tasks go to one child"), "{}", blind[0]);
    let refuses = findings(MAPPER.may_refuse(false), Pass::RefuseUnasked);
    assert!(refuses.iter().any(|finding| finding.property == Property::Storage), "{refuses:#?}");
}

/// Passes a task on, and then none until there is room below.
#[derive(Default)]
struct OneAtATime(Mutex<bool>);

impl Component for OneAtATime {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let mut is_out = self.0.lock();
        if std::mem::replace(&mut *is_out, true) {
            return Err(Refused::new(task, Refusal::Full));
        }
        node.note_room(false);
        drop(is_out);
        node.push_to(Child(0), task).inspect_err(|_| self.is_back(node))
    }

    fn can_push(&self, node: Node<'_>, _to: Child) -> bool {
        self.is_back(node);
        node.parents_can_push()
    }
}

impl OneAtATime {
    fn is_back(&self, node: Node<'_>) {
        let mut is_out = self.0.lock();
        if std::mem::take(&mut *is_out) {
            node.note_room(true);
        }
    }
}

#[test]
fn who_stores_nothing_may_have_no_room_without_a_task() {
    let info = Info::new("one-at-a-time", Family::SpecialPurpose, "Passes a task on when there is room.");
    assert_eq!(Examination::new(&info.describe(), &|_| Ok(adapt(OneAtATime::default()))).run(), []);
}

#[test]
fn a_constructor_that_fails_is_found() {
    let findings = Examination::new(&QUEUE.describe(), &|_| Err("not today".to_owned())).run();
    assert_found(&findings, Property::Builds, 0);
    assert_eq!(findings[0].message, "not today");
}

#[test]
fn a_call_that_does_not_come_back_is_named() {
    let make = |_: &Params| Ok(adapt(Odd { way: Way::Hang, tasks: Mutex::default(), thread: OnceLock::new() }));
    let findings = watched(QUEUE.describe(), make, Duration::from_millis(200)).expect("the rig does not panic");
    assert_found(&findings, Property::Returns, 30);
    let last = findings[0].calls.last().expect("there are calls");
    assert!(last.starts_with("push task ") && !last.contains("taken"), "{}", findings[0]);
}

#[test]
fn equal_seeds_find_the_same() {
    let of = |seed| {
        let odd = || Odd { way: Way::DropInPull, tasks: Mutex::default(), thread: OnceLock::new() };
        Examination::new(&QUEUE.describe(), &|_| Ok(adapt(odd()))).seed(seed).rounds(100).run()
    };
    assert_eq!(of(7), of(7));
}

#[test]
fn findings_read_well() {
    let findings = examine(&QUEUE, Way::DropInPull);
    let told = findings[0].to_string();
    let expected = "tasks: the component dropped task 0: it must keep a task, hand it on or hand it back\n  \
                    workers: cpu; child 0\n    \
                    1. push task 0, priority -1: taken\n    \
                    2. pull for child 0, worker 0: none";
    assert_eq!(told, expected);
}

/// Keeps each task for one of the workers in the context, and gives it to no other.
#[derive(Default)]
struct Assigns {
    tasks: Mutex<Vec<(WorkerId, Task)>>,
    /// Assigns the tasks of those who leave to others.
    is_sound: bool,
}

impl Component for Assigns {
    fn push_task(&self, node: Node<'_>, task: Task) -> Push {
        let Some(worker) = node.each_worker_in_context().find(|worker| node.worker_can_execute(*worker, &task)) else {
            return Err(Refused::new(task, Refusal::NoWorker));
        };
        self.tasks.lock().push((worker, task));
        node.children_can_pull();
        Ok(())
    }

    fn pull_task(&self, node: Node<'_>, _to: Child) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        let found =
            tasks.iter().position(|(worker, _)| node.requester().is_none_or(|requester| requester == *worker))?;
        Some(tasks.remove(found).1)
    }

    fn notify_change_workers(&self, node: Node<'_>) {
        for (worker, task) in self.tasks.lock().iter_mut().filter(|_| self.is_sound) {
            let able = node.each_worker_in_context().find(|worker| node.worker_can_execute(*worker, task));
            *worker = able.unwrap_or(*worker);
        }
    }

    fn drain(&self) -> Vec<Task> {
        self.tasks.lock().drain(..).map(|(_, task)| task).collect()
    }
}

#[test]
fn a_component_that_keeps_its_state_serves_those_who_stay() {
    const INFO: Info = Info::new("assigns", Family::ResourceMapping, "Assigns tasks to workers.")
        .storage(Storage::Unbounded)
        .pulled_only();
    let examined = |info: Info, is_sound: bool| {
        let make = |_: &Params| Ok(adapt(Assigns { is_sound, ..Assigns::default() }));
        Examination::new(&info.describe(), &make).rounds(400).run()
    };
    // Otherwise it is built anew for other workers.
    assert_eq!(examined(INFO, false), []);
    assert_eq!(examined(INFO.keeps_state(), true), []);
    let findings = examined(INFO.keeps_state(), false);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.property, Property::KeepsState);
    assert_shortest(&finding.calls);
}

/// The shortest sequence: a task is pushed, its worker leaves, and the others do not get it.
fn assert_shortest(calls: &[String]) {
    let place = |words: &str| calls.iter().position(|call| call.contains(words)).unwrap_or_else(|| panic!("{calls:?}"));
    assert!(place("push task 0") < place("leaves the context"), "{calls:?}");
    assert!(calls.len() <= 12, "{calls:?}");
}

#[test]
fn a_parameter_can_be_set() {
    const INFO: Info = Info::new("odd", Family::FlowControl, "A queue.")
        .storage(Storage::Unbounded)
        .params(const { &[Param::text("way", "", "what it does wrong"), Param::int("many", 1, "of what")] });
    let info = INFO.describe();
    let make = |params: &Params| {
        assert_eq!(params.int("many"), Ok(7), "no other value is tried");
        let way = if params.text("way") == Ok("panic") { Way::PanicInPush } else { Way::Sound };
        Ok(adapt(Odd { way, tasks: Mutex::default(), thread: OnceLock::new() }))
    };
    let examination = || Examination::new(&info, &make).param("many", Value::Int(7)).rounds(60);
    assert_eq!(examination().run(), []);
    let findings = examination().param("way", Value::Text("panic".to_owned())).run();
    assert_eq!(findings[0].property, Property::Panics);
}
