//! Examines a component: random sequences of every call, in random environments, against its contract and what it
//! declares.
//!
//! An author's own tests do it by [`conforms`], and `sched plugin test` does it to a plugin. What is found comes with
//! the shortest sequence of calls that shows it. Equal seeds give equal examinations, apart from calls by several
//! threads.
//!
//! Components are dropped, too. Where one comes from another library, its panic is caught there and not seen here; a
//! crash, and a drop that does not come back, are.

mod declared;
mod dice;
mod journal;
mod property;
mod quiet;
mod setting;
mod shrink;
mod step;
mod threads;
mod trial;

pub use property::Property;

use crate::abi::ComponentObject;
use crate::component::Build;
use crate::info::ComponentInfo;
use crate::params::{ParamInfo, ParamKind, Params, Value};
use dice::Dice;
use journal::Journal;
use parking_lot::Mutex;
use setting::Setting;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use trial::Trial;

/// Constructor of the component that is examined. An error is the message of the constructor, or of its panic.
pub type Maker<'a> = dyn Fn(&Params) -> Result<ComponentObject, String> + Sync + 'a;

/// Hears what an examination does. It may be called by an examination that then hangs, or ends the process: what it
/// heard last is what did it.
pub trait Listener {
    /// A sequence begins, in this environment.
    fn trial(&self, setting: &str);
    /// A call begins.
    fn call(&self, words: &str);
    /// It came back.
    fn came_back(&self, answer: &str);
    /// Something was found.
    fn found(&self, finding: &Finding);
}

/// A property that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The property.
    pub property: Property,
    /// What happened.
    pub message: String,
    /// Parameters and environment.
    pub setting: String,
    /// The shortest sequence of calls that was found to show it, each with its answer.
    pub calls: Vec<String>,
}

impl Finding {
    /// A finding, as an examination in another process reported it.
    #[must_use]
    pub fn new(property: Property, message: String, setting: String, calls: Vec<String>) -> Finding {
        Finding { property, message, setting, calls }
    }

    /// A finding about a call that did not come back, or ended the process: the last of `calls`.
    #[must_use]
    pub fn about_return(message: String, setting: String, calls: Vec<String>) -> Finding {
        Finding { property: Property::Returns, message, setting, calls }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  {}", self.property, self.message, self.setting)?;
        self.calls.iter().zip(1..).try_for_each(|(call, number)| write!(f, "\n  {number:3}. {call}"))
    }
}

/// An examination to be made.
///
/// ```
/// use sched_core::rig::{Examination, Property};
/// use sched_core::*;
///
/// /// Takes every task, and gives none.
/// struct Hole(Mutex<Vec<Task>>);
///
/// impl Component for Hole {
///     fn push_task(&self, node: Node<'_>, task: Task) -> Push {
///         self.0.lock().push(task);
///         node.children_can_pull();
///         Ok(())
///     }
///
///     fn drain(&self) -> Vec<Task> {
///         std::mem::take(&mut *self.0.lock())
///     }
/// }
///
/// let info = Info::new("hole", Family::FlowControl, "Takes every task.").storage(Storage::Unbounded).describe();
/// let findings = Examination::new(&info, &|_| Ok(adapt(Hole(Mutex::default())))).rounds(50).run();
/// assert_eq!(findings[0].property, Property::Flow);
/// assert_eq!(findings[0].calls[0], "push task 0: taken");
/// ```
pub struct Examination<'a> {
    info: ComponentInfo,
    make: &'a Maker<'a>,
    seed: u64,
    rounds: u64,
    /// Names of parameters that keep their values.
    fixed: BTreeSet<String>,
    listener: Option<&'a dyn Listener>,
}

impl fmt::Debug for Examination<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Examination").field("info", &self.info).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// The component that is examined.
struct Examined<'a> {
    info: &'a ComponentInfo,
    make: &'a Maker<'a>,
    seed: u64,
    fixed: &'a BTreeSet<String>,
}

impl Examined<'_> {
    /// A new one, with these parameters instead of their defaults.
    fn build(&self, params: &[(String, Value)]) -> Result<ComponentObject, String> {
        let defaults = self.info.params.iter().map(|param| (param.name.clone(), param.default.clone()));
        let mut values = Params::from_values(defaults);
        params.iter().for_each(|(name, value)| values.set(name, value.clone()));
        (self.make)(&values)
    }
}

/// Number of sequences of an examination, unless it is set.
pub const ROUNDS: u64 = 400;

/// One of this many rounds is repeated, to see that it gives the same.
const REPEATED: u64 = 4;

/// For this many rounds there is one with several threads.
const THREADED: u64 = 20;

impl<'a> Examination<'a> {
    /// An examination of the component of this description that `make` builds.
    #[must_use]
    pub fn new(info: &ComponentInfo, make: &'a Maker<'a>) -> Examination<'a> {
        Examination { info: info.clone(), make, seed: 42, rounds: ROUNDS, fixed: BTreeSet::new(), listener: None }
    }

    /// Sets the value of a parameter, which is the default then, and the only one. A name that the component does not
    /// declare has no effect.
    #[must_use]
    pub fn param(mut self, name: &str, value: Value) -> Self {
        if let Some(param) = self.info.params.iter_mut().find(|param| param.name == name) {
            param.default = value;
            self.fixed.insert(name.to_owned());
        }
        self
    }

    /// Sets the seed; 42 by default.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of sequences; [`ROUNDS`] by default.
    #[must_use]
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.rounds = rounds;
        self
    }

    /// Sets who hears what is done.
    #[must_use]
    pub fn listener(mut self, listener: &'a dyn Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Makes it, and gives what was found: at most one finding for each property.
    ///
    /// A call that does not come back is not noticed here: [`conforms`] and `sched plugin test` watch it.
    #[must_use]
    pub fn run(self) -> Vec<Finding> {
        let _quiet = quiet::Quiet::new();
        let examined = Examined { info: &self.info, make: self.make, seed: self.seed, fixed: &self.fixed };
        let journal = Journal::new(self.listener);
        let mut findings: Vec<Finding> = Vec::new();
        let note = |finding: Finding, findings: &mut Vec<Finding>| {
            if let Some(listener) = self.listener {
                listener.found(&finding);
            }
            findings.push(finding);
        };
        for round in 0..self.rounds {
            let known: BTreeSet<Property> = findings.iter().map(|finding| finding.property).collect();
            if known.contains(&Property::Builds) {
                break;
            }
            let trial = trial_of(&examined, round, self.rounds);
            if let Some(flaw) = trial.run(&examined, &journal, &known) {
                note(shrink::shrunk(&examined, &journal, trial, flaw), &mut findings);
                continue;
            }
            let repeats = round % REPEATED == 0 && !known.contains(&Property::Repeats);
            if let Some(finding) = repeats.then(|| repeated(&examined, &journal, trial, &known)).flatten() {
                note(finding, &mut findings);
            }
        }
        if findings.is_empty() {
            let found =
                (0..self.rounds.div_ceil(THREADED)).find_map(|round| threads::round(&examined, &journal, round));
            found.into_iter().for_each(|finding| note(finding, &mut findings));
        }
        findings.sort_by_key(|finding| finding.property);
        findings
    }
}

/// The trial of a round: later ones are longer.
fn trial_of(examined: &Examined<'_>, round: u64, rounds: u64) -> Trial {
    /// Calls of the longest sequence.
    const LONGEST: u64 = 30;
    let mut dice = Dice::new(examined.seed, round);
    let setting = Setting::random(examined.info, &mut dice);
    let longest = 1 + LONGEST * round / rounds.max(1);
    let count = 1 + dice.below(longest as usize);
    // The first rounds have the defaults only.
    let varied = round >= 8;
    let free = |param: &&ParamInfo| !examined.fixed.contains(&param.name);
    let params = examined.info.params.iter().filter(free).filter_map(|param| other_value(param, &mut dice));
    let params = params.filter(|_| varied).collect();
    let steps = step::steps(examined.info, &setting, count, &mut dice);
    let settles = Trial::settles(examined.info, dice.below(5));
    Trial { setting, params, steps, settles }
}

/// A value other than the default, now and then.
fn other_value(param: &ParamInfo, dice: &mut Dice) -> Option<(String, Value)> {
    if !dice.chance(30) {
        return None;
    }
    let values = match param.kind {
        ParamKind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        ParamKind::Int { min, .. } => [0, 1, 2, 3, 10, min].map(Value::Int).to_vec(),
        ParamKind::Float { min, .. } => [0.0, 0.5, 1.0, 10.0, 1e4, min].map(Value::Float).to_vec(),
        ParamKind::Choice(ref of) => of.iter().cloned().map(Value::Text).collect(),
        ParamKind::Text => return None,
    };
    let fitting: Vec<Value> = values.into_iter().filter_map(|value| value.coerce(&param.kind)).collect();
    let value = dice.one_of(&fitting).filter(|value| *value != param.default)?;
    Some((param.name.clone(), value))
}

/// Executes a trial twice; a finding if the two differ.
fn repeated(
    examined: &Examined<'_>,
    journal: &Journal<'_>,
    trial: Trial,
    known: &BTreeSet<Property>,
) -> Option<Finding> {
    let lines = |trial: &Trial| {
        let _ = trial.run(examined, journal, known);
        journal.lines.borrow().clone()
    };
    let differs = |trial: &Trial| lines(trial) != lines(trial);
    if !differs(&trial) {
        return None;
    }
    let trial = shrink::smallest(trial, differs);
    let (first, second) = (lines(&trial), lines(&trial));
    let place = (0..first.len().max(second.len())).find(|place| first.get(*place) != second.get(*place));
    let at = |lines: &[String]| place.and_then(|place| lines.get(place)).cloned().unwrap_or_default();
    let (one, other) = (at(&first), at(&second));
    let message = format!("the same calls with the same clock and random numbers give `{one}`, then `{other}`");
    let shown = first.iter().take(place.map_or(first.len(), |place| place + 1)).filter(|line| *line != "build");
    Some(Finding::new(Property::Repeats, message, trial.setting_words(), shown.cloned().collect()))
}

/// Seconds that a call may take in a test.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the thread of a test is doing.
#[derive(Default)]
struct Doing {
    calls: u64,
    setting: String,
    lines: Vec<String>,
}

#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Doing>>);

impl Listener for Watched {
    fn trial(&self, setting: &str) {
        let mut doing = self.0.lock();
        doing.setting = setting.to_owned();
        doing.lines.clear();
    }

    fn call(&self, words: &str) {
        let mut doing = self.0.lock();
        doing.calls += 1;
        doing.lines.push(words.to_owned());
    }

    fn came_back(&self, answer: &str) {
        let mut doing = self.0.lock();
        doing.calls += 1;
        if let Some(line) = doing.lines.last_mut().filter(|_| !answer.is_empty()) {
            *line = format!("{line}: {answer}");
        }
    }

    fn found(&self, _finding: &Finding) {}
}

/// Examines a component, for a test of its author; see the [module](self).
///
/// ```no_run
/// # use sched_core::*;
/// # struct Mine;
/// # impl Component for Mine { fn push_task(&self, node: Node<'_>, task: Task) -> Push { node.push_to(Child(0), task) } }
/// # impl Build for Mine {
/// #     const INFO: Info = Info::new("mine", Family::FlowControl, "");
/// #     fn build(_: &Params) -> Result<Self, BuildError> { Ok(Mine) }
/// # }
/// #[test]
/// fn it_keeps_the_contract_of_a_component() {
///     sched_core::rig::conforms::<Mine>();
/// }
/// ```
///
/// # Panics
/// With all findings, if there are any; and if a call does not come back within 10 s.
#[track_caller]
pub fn conforms<C: Build>() {
    let make = |params: &Params| match catch_unwind(AssertUnwindSafe(|| C::build(params))) {
        Ok(built) => built.map(crate::adapter::adapt).map_err(|error| error.to_string()),
        Err(payload) => Err(format!("the constructor panicked: {}", crate::adapter::caught(payload))),
    };
    let Some(findings) = watched(C::INFO.describe(), make, PATIENCE) else {
        panic!("the examination of `{}` panicked", C::INFO.name());
    };
    let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "`{}` does not conform\n{}", C::INFO.name(), told.join("\n"));
}

/// Examines on a thread of its own: a call that does not come back is left behind with it. `None` if that thread
/// panicked.
fn watched(
    info: ComponentInfo,
    make: impl Fn(&Params) -> Result<ComponentObject, String> + Send + Sync + 'static,
    patience: Duration,
) -> Option<Vec<Finding>> {
    let (watched, (send, receive)) = (Watched::default(), channel());
    let listener = watched.clone();
    std::thread::spawn(move || _ = send.send(Examination::new(&info, &make).listener(&listener).run()));
    let mut calls = 0;
    loop {
        match receive.recv_timeout(patience) {
            Ok(findings) => return Some(findings),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let doing = watched.0.lock();
                if doing.calls == calls {
                    let message = format!("a call did not come back within {patience:?}");
                    return Some(vec![Finding::about_return(message, doing.setting.clone(), doing.lines.clone())]);
                }
                calls = doing.calls;
            }
        }
    }
}

#[cfg(test)]
mod tests;
