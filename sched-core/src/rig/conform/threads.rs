//! Several threads call one component at once.

use super::dice::Dice;
use super::journal::Journal;
use super::property::Property;
use super::quiet::Quiet;
use super::setting::Setting;
use super::{Examined, Finding};
use crate::abi::wire::NO_ID;
use crate::node::Child;
use crate::rig::Rig;
use crate::rig::ledger::Breach;

/// Number of threads.
const THREADS: u64 = 4;
/// Number of calls of each.
const CALLS: usize = 100;

/// One round: every thread makes random calls; at the end the component gives up all that it holds.
pub(super) fn round(examined: &Examined<'_>, journal: &Journal<'_>, round: u64) -> Option<Finding> {
    let mut dice = Dice::new(examined.seed ^ 0x7468_7265_6164_7321, round);
    let mut setting = Setting::random(examined.info, &mut dice);
    setting.nosy = false;
    let words = format!("{setting}; {THREADS} threads");
    journal.trial(&words);
    journal.step(&format!("{CALLS} calls by each of {THREADS} threads"));
    let rig = setting.rig(examined.build(&[]).ok()?);
    let panics = std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|thread| {
            let (dice, rig, setting) = (Dice::new(dice.clone().next(), thread), &rig, &setting);
            scope.spawn(move || calls(rig, setting, dice))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().filter_map(|thread| thread.join().err()).count()
    });
    journal.answer("done");
    journal.step("drain");
    let _ = rig.drain();
    journal.answer("");
    let faults = rig.host.ledger.faults_from(0);
    // Which task a thread may pull is not known when it asks.
    let fault = faults.into_iter().find(|(breach, _)| *breach != Breach::Unable).map(|(_, fault)| fault);
    let message = fault.or_else(|| (panics > 0).then(|| "a thread of the rig panicked".to_owned()))?;
    let calls = vec![format!("{CALLS} random calls by each of {THREADS} threads, then a drain")];
    Some(Finding { property: Property::Threads, message, setting: setting.to_string(), calls })
}

fn calls(rig: &Rig, setting: &Setting, mut dice: Dice) {
    let _quiet = Quiet::new();
    let children = setting.children.len().max(1);
    let is_leaf = setting.leaf.is_some();
    for _ in 0..CALLS {
        let child = dice.below(children);
        let workers = setting.workers_of(child);
        let worker = dice.one_of(&workers).unwrap_or(NO_ID);
        let child = Child(child as u32);
        match dice.below(20) {
            0..8 => {
                let task = rig.task().priority(dice.below(3) as i32).width(setting.archs.len() as u16);
                let _ = rig.push_for(NO_ID, task.sched_data(u64::from(child.0)).make());
            }
            8..13 if worker != NO_ID => _ = rig.pull_for(worker, child),
            13..16 if worker != NO_ID && !is_leaf => _ = rig.can_push_for(worker, child),
            16 => _ = rig.can_pull(),
            17 => _ = rig.estimated_end(),
            18 => _ = rig.estimated_load(),
            _ => _ = rig.describe(),
        }
    }
}
