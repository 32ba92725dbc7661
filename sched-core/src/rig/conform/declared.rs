//! Compares a call with what the component declares, and with what every component has to do.

use super::super::Hop;
use super::property::Property;
use super::setting::Models;
use super::step::Step;
use super::trial::{Answer, Call, Flaw, Running};
use crate::abi::wire::NO_ID;
use crate::component::Refusal;
use crate::estimate::{Time, nanos};
use crate::node::{Child, Node};
use crate::task::{Task, TaskId};
use crate::workers::WorkerId;
use std::collections::BTreeSet;
use std::time::Duration;

/// All that is wrong with a call.
pub(super) fn flaws(running: &Running<'_>, call: &Call<'_>) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    flaws.extend(storage(running, call));
    flaws.extend(refusal(running, call));
    flaws.extend(wakes(running, call));
    flaws.extend(pull(running, call));
    flaws.extend(movement(running, call));
    flaws.extend(estimates(running, call));
    flaws.extend(predictions(running, call));
    flaws.extend(noted_end(running));
    flaws.extend(stays(running, call));
    flaws.extend(comes_back(running, call));
    flaws.extend(waits_at_home(running, call));
    flaws
}

/// What waits in a component that keeps its state stays there when workers join or leave.
fn stays(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    if !matches!(call.step, Step::Leave(_) | Step::Join) {
        return None;
    }
    let held = running.rig.held();
    let gone = call.held_before.iter().find(|task| !held.contains(task))?;
    Some((Property::KeepsState, format!("{gone} waited here before, and does not after `notify_change_workers`")))
}

/// A worker that pulls right after it has pushed a task gets that task, while none has a priority.
fn comes_back(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let Answer::Pulled(pulled) = call.answer else { return None };
    let task = call.comes_back.filter(|task| running.info.newest_comes_back && pulled != Some(*task))?;
    let given = pulled.map_or_else(|| "nothing".to_owned(), |other| other.to_string());
    let why = format!("the worker that pulls has just pushed {task}, and gets {given}");
    Some((Property::NewestComesBack, why))
}

/// A worker gets no task that is at home elsewhere while one waits that is at home with it, and none has a priority.
fn waits_at_home(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let Answer::Pulled(pulled) = call.answer else { return None };
    if !running.info.waits_at_home || running.had_priority || running.changed || running.setting.is_old {
        return None;
    }
    let worker = running.puller(call.step)?;
    let is_mine = |task: &&TaskId| {
        running.home(**task) == Some(worker)
            && running.rig.read(**task, |task| running.rig.host.executable(worker, task))
    };
    let mine = call.held_before.iter().find(is_mine)?;
    let given = match pulled {
        None => "nothing".to_owned(),
        Some(other) => format!("{other}, at home with {}", running.home(other).filter(|home| *home != worker)?),
    };
    let why = format!("{mine} waits, which is at home with {worker}, and this one gets {given}");
    Some((Property::WaitsAtHome, why))
}

fn storage(running: &Running<'_>, _call: &Call<'_>) -> Option<Flaw> {
    let held = running.rig.held();
    let task = held.first().filter(|_| !running.info.stores)?;
    Some((Property::Storage, format!("it declares to store none, and holds {task} after the call")))
}

/// The children that could take a task now.
fn open(running: &Running<'_>, task: TaskId) -> Vec<Child> {
    let rooms = running.rig.host.changing.lock().rooms.clone();
    let has_room = |number: usize, room: Option<usize>| rooms.get(&(number as u32)).copied().unwrap_or(room) != Some(0);
    let children = running.setting.children.iter().enumerate();
    let open = children.filter(|(number, child)| has_room(*number, child.room) && able(running, *number, task));
    open.map(|(number, _)| Child(number as u32)).collect()
}

/// Whether a worker below a child can execute a task.
fn able(running: &Running<'_>, child: usize, task: TaskId) -> bool {
    let workers = running.setting.workers_of(child);
    workers.iter().any(|worker| running.rig.read(task, |task| running.rig.host.executable(WorkerId(*worker), task)))
}

fn refusal(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let Answer::Pushed(task, Err(why)) = &call.answer else { return None };
    let info = running.info;
    if running.is_unbounded {
        return Some((Property::Storage, format!("it declares to store any number, and refuses {task}: {why}")));
    }
    if info.stores {
        return None;
    }
    let by_child =
        call.hops.iter().any(|hop| matches!(hop, Hop::PushTo { task: pushed, refused: Some(_), .. } if pushed == task));
    if !info.may_refuse && !by_child {
        return Some((Property::Storage, format!("it declares to refuse nothing, and refuses {task}: {why}")));
    }
    let left = info.wakes_workers && (call.woke || *why == Refusal::PullInstead);
    let open = open(running, *task);
    let first = open.first().filter(|_| info.forwards_push && !by_child && !left && *why != Refusal::NoWorker)?;
    Some((Property::ForwardsPush, format!("it refuses {task} ({why}), and did not ask child {}", first.0)))
}

/// A task that stays here has to wake somebody, unless a child refused it, or some child has an earlier
/// one: that child says when it has room.
fn wakes(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    if call.woke {
        return None;
    }
    match (&call.answer, call.step) {
        (Answer::Pushed(task, Ok(())), _) => {
            let refused = call.hops.iter().any(|hop| matches!(hop, Hop::PushTo { refused: Some(_), .. }));
            let busy = |child: usize| !running.rig.child_tasks(Child(child as u32)).is_empty();
            let refused = refused || (0..running.setting.children.len()).any(busy);
            let stays = running.rig.held().contains(task) && !refused;
            let why = format!("{task} waits here, a worker that can execute it sleeps, and nobody was woken");
            stays.then_some((Property::Wakes, why))
        }
        (Answer::Told(_), Step::CanPull) => {
            let acted = call.hops.iter().any(|hop| {
                matches!(
                    hop,
                    Hop::PushTo { .. } | Hop::ParentsCanPush { sent: true } | Hop::PullFrom { task: Some(_), .. }
                )
            });
            let why = "it was told of work above, all workers below sleep, and nobody was woken".to_owned();
            (!acted && !running.setting.workers().is_empty()).then_some((Property::Wakes, why))
        }
        _ => None,
    }
}

/// Whether a pull was passed to the parents, and nothing else: the first task that one of them has is given.
fn is_passed_on(call: &Call<'_>) -> bool {
    let Answer::Pulled(pulled) = call.answer else { return true };
    let mut found = None;
    for hop in &call.hops {
        match hop {
            Hop::PullFrom { task, .. } if found.is_none() => found = *task,
            _ => return false,
        }
    }
    found == pulled
}

fn pull(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let Answer::Pulled(pulled) = call.answer else { return None };
    let info = running.info;
    let other = || {
        let hop = call.hops.iter().find(|hop| !matches!(hop, Hop::PullFrom { .. }));
        match (hop, pulled) {
            (Some(hop), _) => format!("a pull does something else: {hop:?}"),
            (None, Some(task)) => format!("a pull gives {task}, which no parent gave"),
            (None, None) => "a pull does not give what a parent gave".to_owned(),
        }
    };
    if info.forwards_pull && !is_passed_on(call) {
        return Some((Property::ForwardsPull, other()));
    }
    if info.empty_until_pushed && !running.was_pushed && !running.setting.is_old && !is_passed_on(call) {
        return Some((Property::EmptyUntilPushed, other()));
    }
    let from = call.hops.iter().find(|hop| matches!(hop, Hop::PullFrom { .. }));
    let from = from.filter(|_| info.pushes_on_pull)?;
    Some((Property::PushesOnPull, format!("a pull takes a task from a parent: {from:?}")))
}

fn movement(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let info = running.info;
    for hop in &call.hops {
        match hop {
            Hop::PushTo { child, task, .. } if info.wakes_workers => {
                let is_worker = running.setting.children.get(child.0 as usize).is_some_and(|child| child.is_worker);
                if is_worker {
                    let why = format!("it pushes {task} to child {}, which is a worker", child.0);
                    return Some((Property::WakesWorkers, why));
                }
            }
            Hop::PushTo { child, task, .. } if info.pulled_only => {
                return Some((Property::PulledOnly, format!("it pushes {task} to child {}", child.0)));
            }
            // The default `can_push` passes the request of a child on.
            Hop::ParentsCanPush { .. }
                if info.pulled_only && !running.setting.nosy && !matches!(call.step, Step::CanPush { .. }) =>
            {
                return Some((Property::PulledOnly, "it asks its parents for more".to_owned()));
            }
            _ => {}
        }
    }
    None
}

fn estimates(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let flaw = |why: String| Some((Property::Estimates, why));
    match call.answer {
        Answer::Load(load) if !load.is_finite() || load < 0.0 => {
            return flaw(format!("the load is {load}, which is no finite number from 0"));
        }
        Answer::End(end) if end == Time::FAR => return flaw("the end is later than every time".to_owned()),
        _ => {}
    }
    if !matches!(call.step, Step::End | Step::Load | Step::Describe) {
        return None;
    }
    let moved = call.hops.iter().find(|hop| !matches!(hop, Hop::EstimatedEnd(_) | Hop::EstimatedLoad(_)));
    match moved {
        Some(hop) => flaw(format!("asking has an effect: {hop:?}")),
        None if running.rig.held() != call.held_before => flaw("asking moves a task".to_owned()),
        None => None,
    }
}

/// A component that compares the ends of children has to predict what it pushes: the next task finds the same ends
/// otherwise.
fn predictions(running: &Running<'_>, call: &Call<'_>) -> Option<Flaw> {
    let Answer::Pushed(task, Ok(())) = call.answer else { return None };
    if running.setting.models != Models::Known || running.setting.children.iter().any(|child| !child.slot.is_empty()) {
        return None;
    }
    let asked = |hop: &Hop| if let Hop::EstimatedEnd(child) = hop { Some(child.0) } else { None };
    let asked: BTreeSet<u32> = call.hops.iter().filter_map(asked).collect();
    let pushed = |hop: &Hop| match hop {
        Hop::PushTo { child, task: pushed, refused: None } if *pushed == task => Some(child.0),
        _ => None,
    };
    let child = call.hops.iter().find_map(pushed).filter(|_| asked.len() > 1)?;
    let predicted = running.rig.read(task, Task::predicted);
    predicted.is_none().then(|| {
        let why = "it asks when its children end, and pushes a task of known length without a prediction: ends count only tasks \
                   that have one, so that all tasks go to one child";
        (Property::Predictions, format!("{why} ({task}, child {child})"))
    })
}

/// The end that the host computes itself from what was noted.
fn noted_end(running: &Running<'_>) -> Option<Flaw> {
    if !running.info.end_is_noted || running.setting.is_old || !running.rig.host.panics.lock().is_empty() {
        return None;
    }
    let queued = Duration::from_nanos(running.rig.host.changing.lock().queued);
    let expected = running.rig.call(NO_ID, |_, node| {
        let node = Node::new(node);
        match node.worker() {
            Some(worker) => node.worker_free_at(worker).unwrap_or_else(|| node.now()),
            None => node.end_below_with_queued(queued),
        }
    });
    let end = running.rig.estimated_end();
    let _ = running.rig.hops();
    (end != expected).then(|| {
        let noted = nanos(queued);
        (Property::EndIsNoted, format!("its end is {end}, and {expected} follows from the {noted} ns that it noted"))
    })
}
