//! The end of a trial: everything moves that can, and the component is dropped.

use super::super::super::ledger::Holder;
use super::super::property::Property;
use super::super::step::Step;
use super::{Flaw, Running, Settles};
use crate::node::Parent;
use std::collections::BTreeSet;

impl Running<'_> {
    /// Lets everything go, by pulls and by room below.
    pub(super) fn settle(&mut self, settles: Settles) -> Option<Flaw> {
        if settles == Settles::Not {
            return None;
        }
        let pushes = matches!(settles, Settles::Both | Settles::Pumps) && self.setting.leaf.is_none();
        let pulls = matches!(settles, Settles::Both | Settles::Pulls) || self.setting.leaf.is_some();
        let children = self.setting.children.len().max(1);
        self.journal.note(match (pushes, pulls) {
            (true, true) => "from here on, children have room and all workers pull, until nothing moves",
            (true, false) => "from here on, children have room, and say so until nothing moves",
            (false, _) => "from here on, all workers pull until nothing moves",
        });
        for child in 0..self.setting.children.len() {
            let room = self.rig.host.changing.lock().rooms.get(&(child as u32)).copied();
            if pushes && room.unwrap_or(self.setting.children[child].room).is_some() {
                self.step(&Step::Room(child, None));
            }
        }
        let waiting = |running: &Self| {
            let above = (0..running.setting.parents as u32).map(|parent| Holder::Parent(Parent(parent)));
            let above = above.flat_map(|holder| running.rig.host.ledger.held_by(holder));
            (running.rig.held(), above.collect::<Vec<_>>())
        };
        self.asked = false;
        let (mut idle, mut left) = (0, 8 + 4 * trial_tasks(self));
        while idle < 2 && left > 0 {
            left -= 1;
            let before = waiting(self);
            if before.0.is_empty() && before.1.is_empty() {
                return None;
            }
            for child in 0..children {
                // A worker does not say that it has room: it pulls.
                let is_worker = self.setting.children.get(child).is_some_and(|child| child.is_worker);
                let (pushes, pulls) = (pushes && !is_worker, pulls || is_worker);
                for worker in 0..self.setting.workers_of(child).len() {
                    let flaw = (if pushes { self.step(&Step::CanPush { child, worker }) } else { None })
                        .or_else(|| if pulls { self.step(&Step::Pull { child, worker }) } else { None });
                    if flaw.is_some() || self.seen > 0 {
                        return flaw;
                    }
                }
            }
            self.step(&Step::Wait(std::time::Duration::from_secs(1)));
            idle = if waiting(self) == before { idle + 1 } else { 0 };
        }
        let (held, above) = waiting(self);
        let flaw = match (held.first(), above.first()) {
            (Some(task), _) => format!("the component holds {task}, and gives it neither to workers nor to children"),
            (None, Some(task)) if !self.info.pulled_only && !self.asked => {
                format!("a parent offers {task}, and the component does not ask for it")
            }
            _ => return None,
        };
        let property = if self.changed { Property::KeepsState } else { Property::Flow };
        self.unknown((property, flaw))
    }

    /// The lines that the component logged.
    pub(super) fn logged(&self) -> Option<Flaw> {
        const MOST: usize = 8;
        let lines = self.rig.logged();
        if let Some(line) = lines.iter().find(|line| line.contains(char::is_control)) {
            return self.unknown((Property::Log, format!("a line has a control character: {line:?}")));
        }
        let warnings: BTreeSet<&String> =
            lines.iter().filter(|line| line.starts_with("warn: ") || line.starts_with("error: ")).collect();
        let first = warnings.first().filter(|_| warnings.len() > MOST)?;
        let words =
            format!("{} different warnings; numbers that change do not belong into them: {first:?}", warnings.len());
        self.unknown((Property::Log, words))
    }

    /// Drops the component for good. What it still holds has been judged.
    pub(super) fn drop_component(mut self) -> Option<Flaw> {
        let component = self.rig.host.component.take()?;
        let first = self.rig.host.ledger.faults().len();
        self.rig.host.ledger.close();
        self.journal.step("drop");
        self.rig.dropped(component);
        self.journal.answer("");
        let mut faults = self.rig.host.ledger.faults_from(first).into_iter();
        faults.next().and_then(|(_, fault)| self.unknown((Property::Panics, fault)))
    }
}

/// Number of tasks that there are.
fn trial_tasks(running: &Running<'_>) -> usize {
    running.rig.host.ledger.len() as usize
}
