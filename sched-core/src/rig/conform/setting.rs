//! The environment of a trial: workers, neighbours, models, and the age of the host.

use super::super::Rig;
use super::super::scene::{FakeChild, FakeParent};
use super::dice::Dice;
use crate::abi::ComponentObject;
use crate::component::Refusal;
use crate::estimate::Estimate;
use crate::info::{Arity, ComponentInfo};
use crate::workers::{Arch, MemoryNode, WorkerId};
use std::fmt;
use std::time::Duration;

/// What performance models know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Models {
    None,
    Uncalibrated,
    Known,
}

/// A child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChildSetting {
    /// Its workers; all if the component has one child, or slots.
    pub(super) over: Vec<u32>,
    pub(super) is_worker: bool,
    /// Number of tasks that it accepts at first.
    pub(super) room: Option<usize>,
    pub(super) refusal: Refusal,
    pub(super) slot: String,
}

/// Everything around the component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    pub(super) archs: Vec<Arch>,
    /// The component is a leaf; of a combined worker if it is made for one.
    pub(super) leaf: Option<WorkerId>,
    pub(super) children: Vec<ChildSetting>,
    pub(super) parents: usize,
    pub(super) outside: Option<u32>,
    pub(super) models: Models,
    pub(super) is_old: bool,
    pub(super) nosy: bool,
    pub(super) seed: u64,
}

/// Number of codelets that models know.
pub(super) const CODELETS: u32 = 3;

impl Setting {
    /// One that suits the component.
    pub(super) fn random(info: &ComponentInfo, dice: &mut Dice) -> Setting {
        let is_leaf = info.arity == Arity::Leaf;
        let workers = match (is_leaf, info.combined) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 1 + dice.below(4),
        };
        let mixed = !is_leaf && dice.chance(40);
        let arch = |dice: &mut Dice| if mixed && dice.chance(40) { Arch::CUDA } else { Arch::CPU };
        let archs: Vec<Arch> = (0..workers).map(|_| arch(dice)).collect();
        let children = children(info, workers as u32, dice);
        let models = match dice.below(3) {
            _ if info.needs_models => Models::Known,
            0 => Models::None,
            1 => Models::Uncalibrated,
            _ => Models::Known,
        };
        Setting {
            leaf: is_leaf.then_some(WorkerId(if info.combined { workers as u32 } else { 0 })),
            outside: (workers > 1 && !is_leaf && dice.chance(15)).then(|| dice.below(workers) as u32),
            archs,
            children,
            parents: dice.below(3),
            models,
            is_old: dice.chance(20),
            nosy: dice.chance(15),
            seed: dice.next(),
        }
    }

    /// The component in this environment, with all workers asleep.
    pub(super) fn rig(&self, component: ComponentObject) -> Rig {
        let mut rig = Rig::from_object(component).lenient().seed(self.seed);
        for (arch, number) in self.archs.iter().zip(0..) {
            rig = rig.worker(*arch, MemoryNode(if *arch == Arch::CPU { 0 } else { number }));
        }
        if let Some(leaf) = self.leaf {
            if leaf.0 as usize >= self.archs.len() {
                rig = rig.combined(0..self.archs.len() as u32);
            }
            rig = rig.leaf(leaf);
        }
        for child in &self.children {
            let fake = match child.is_worker {
                true => FakeChild::worker(child.over.first().copied().unwrap_or(0)),
                false => FakeChild::over(child.over.iter().copied()),
            };
            let fake = match child.room {
                Some(room) => fake.room(room),
                None => fake,
            };
            rig = rig.child(fake.refusal(child.refusal).in_slot(&child.slot));
        }
        for _ in 0..self.parents {
            rig = rig.parent(FakeParent::new());
        }
        if let Some(outside) = self.outside {
            rig = rig.context((0..self.archs.len() as u32).filter(|worker| *worker != outside));
        }
        if self.is_old {
            rig = rig.without_extensions();
        }
        rig.host.scene.nosy = self.nosy;
        for codelet in 0..CODELETS {
            for worker in 0..self.archs.len() as u32 {
                let micros = u64::from(10 * (codelet + 1) + 5 * worker);
                let length = match self.models {
                    Models::None => Estimate::NoModel,
                    Models::Uncalibrated => Estimate::Uncalibrated,
                    Models::Known => Estimate::Known(Duration::from_micros(micros)),
                };
                rig.set_length(codelet, WorkerId(worker), 0, length);
            }
        }
        rig
    }

    /// The workers that may pull from a child: those below it that are in the context. For a leaf, its own.
    pub(super) fn workers_of(&self, child: usize) -> Vec<u32> {
        if let Some(leaf) = self.leaf {
            return vec![leaf.0];
        }
        let below = self.children.get(child).map(|child| child.over.clone()).unwrap_or_default();
        below.into_iter().filter(|worker| Some(*worker) != self.outside).collect()
    }

    /// The workers below that are in the context.
    pub(super) fn workers(&self) -> Vec<u32> {
        match self.leaf {
            Some(leaf) => vec![leaf.0],
            None => {
                let below: std::collections::BTreeSet<u32> =
                    (0..self.children.len()).flat_map(|child| self.workers_of(child)).collect();
                below.into_iter().collect()
            }
        }
    }

    /// A worker that may leave the context: below its child, another one of its architecture stays, so that every task
    /// that waits can still be executed.
    pub(super) fn leaves(&self, number: usize) -> Option<u32> {
        let replaced = |worker: &u32| {
            let beside = self.children.iter().find(|child| child.over.contains(worker)).map(|child| &child.over);
            let is_other = |other: &&u32| *other != worker && self.arch(**other) == self.arch(*worker);
            beside.is_some_and(|beside| beside.iter().any(|other| is_other(&other)))
        };
        let able: Vec<u32> = match (self.leaf, self.outside) {
            (None, None) => (0..self.archs.len() as u32).filter(replaced).collect(),
            _ => Vec::new(),
        };
        able.get(number % able.len().max(1)).copied()
    }

    /// The architecture of a worker; that of its first member for a combined one.
    pub(super) fn arch(&self, worker: u32) -> Arch {
        self.archs.get(worker as usize).or_else(|| self.archs.first()).copied().unwrap_or(Arch::CPU)
    }

    /// Simpler ones, each in one way.
    pub(super) fn simpler(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        let mut change = |change: &dyn Fn(&mut Setting)| {
            let mut other = self.clone();
            change(&mut other);
            if other != *self {
                all.push(other);
            }
        };
        change(&|setting| setting.parents = 0);
        change(&|setting| setting.parents = setting.parents.min(1));
        change(&|setting| (setting.is_old, setting.nosy, setting.outside) = (false, false, None));
        change(&|setting| setting.is_old = false);
        change(&|setting| setting.nosy = false);
        change(&|setting| setting.outside = None);
        change(&|setting| setting.models = Models::None);
        change(&|setting| setting.archs.iter_mut().for_each(|arch| *arch = Arch::CPU));
        change(&|setting| {
            for child in &mut setting.children {
                (child.room, child.is_worker, child.refusal) = (None, false, Refusal::Full);
            }
        });
        change(&|setting| setting.children.iter_mut().for_each(|child| child.room = None));
        change(&|setting| setting.children.iter_mut().for_each(|child| child.refusal = Refusal::Full));
        let slots = self.children.iter().any(|child| !child.slot.is_empty());
        for index in (0..self.children.len()).filter(|_| self.children.len() > 1 && !slots) {
            change(&|setting| _ = setting.children.remove(index));
        }
        // Only the last worker, so that the others keep their numbers.
        let last = self.archs.len().saturating_sub(1) as u32;
        if last > 0 && self.leaf.is_none() {
            change(&|setting| {
                setting.children.iter_mut().for_each(|child| child.over.retain(|worker| *worker != last));
                if setting.children.iter().all(|child| !child.over.is_empty()) {
                    setting.archs.pop();
                    setting.outside = setting.outside.filter(|outside| *outside != last);
                } else {
                    *setting = self.clone();
                }
            });
        }
        all.retain(|setting| !setting.workers().is_empty());
        all
    }
}

/// Children of the declared arity.
fn children(info: &ComponentInfo, workers: u32, dice: &mut Dice) -> Vec<ChildSetting> {
    let all: Vec<u32> = (0..workers).collect();
    let child = |over: Vec<u32>, slot: &str, dice: &mut Dice| {
        let room = if dice.chance(50) { None } else { Some(dice.below(3)) };
        let reasons = [Refusal::Full, Refusal::Full, Refusal::PullInstead, Refusal::NoWorker, Refusal::Uncalibrated];
        let refusal = dice.one_of(&reasons).unwrap_or(Refusal::Full);
        let is_worker = over.len() == 1 && slot.is_empty() && dice.chance(40);
        // A worker takes every task.
        let room = room.filter(|_| !is_worker);
        ChildSetting { over, is_worker, room, refusal, slot: slot.to_owned() }
    };
    match info.arity {
        Arity::Leaf => Vec::new(),
        Arity::One => vec![child(all, "", dice)],
        Arity::Slots => info.slots.iter().map(|slot| child(all.clone(), &slot.name, dice)).collect(),
        Arity::Many => {
            let count = 1 + dice.below(workers as usize);
            let mut groups = vec![Vec::new(); count];
            for worker in 0..workers {
                let group = if (worker as usize) < count { worker as usize } else { dice.below(count) };
                groups[group].push(worker);
            }
            groups.into_iter().map(|over| child(over, "", dice)).collect()
        }
        // Each child of its own may do what any does.
        Arity::ManyAndSlots => {
            let mut children: Vec<ChildSetting> = (0..workers).map(|worker| child(vec![worker], "", dice)).collect();
            children.extend(info.slots.iter().map(|slot| child(all.clone(), &slot.name, dice)));
            children
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let archs: Vec<String> = self.archs.iter().map(ToString::to_string).collect();
        match self.leaf {
            Some(leaf) if leaf.0 as usize >= self.archs.len() => write!(f, "combined worker of {}", archs.join(", "))?,
            _ => write!(f, "workers: {}", archs.join(", "))?,
        }
        for (child, number) in self.children.iter().zip(0..) {
            write!(f, "; child {number}")?;
            if !child.slot.is_empty() {
                write!(f, " (slot {})", child.slot)?;
            }
            match child.is_worker {
                true => write!(f, " is worker {}", child.over.first().copied().unwrap_or(0))?,
                false if self.children.len() > 1 && child.slot.is_empty() => write!(f, " above {:?}", child.over)?,
                false => {}
            }
            if let Some(room) = child.room {
                write!(f, " has room for {room}, then refuses: {}", child.refusal)?;
            }
        }
        match self.parents {
            0 => {}
            1 => write!(f, "; a parent")?,
            count => write!(f, "; {count} parents")?,
        }
        if let Some(outside) = self.outside {
            write!(f, "; worker {outside} is not in the context")?;
        }
        match self.models {
            Models::None => {}
            Models::Uncalibrated => write!(f, "; models are not calibrated")?,
            Models::Known => write!(f, "; lengths are known")?,
        }
        if self.is_old {
            write!(f, "; a host of interface 1.0")?;
        }
        if self.nosy {
            write!(f, "; children call `can_push` back during a hop")?;
        }
        Ok(())
    }
}
