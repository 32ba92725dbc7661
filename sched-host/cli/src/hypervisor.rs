//! Goals of contexts on the command line, and reports of the hypervisor, equal for every command.

use crate::contexts::{ContextOptions, Wanted};
use crate::table::table;
use miette::miette;
use sched_text::file_name;
use sched_text::quantity::parse_time;
use sched_tree::hypervisor::{Attained, Goal, Goals, Governance, GovernedContext, Move, Refusal};
use serde::Serialize;

/// Settings of a context that are for the hypervisor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct WantedGoal {
    goal: Option<Goal>,
    min: Option<usize>,
    max: Option<usize>,
    task_flops: Option<f64>,
}

impl WantedGoal {
    /// Keys of these settings.
    pub(crate) const KEYS: [&str; 7] =
        ["share", "deadline", "tasks-per-second", "gflops", "flops-per-task", "min", "max"];

    /// Sets one of [`KEYS`](Self::KEYS).
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let goal = match key {
            "min" => return whole(value).map(|min| self.min = Some(min)),
            "max" => return whole(value).map(|max| self.max = Some(max)),
            "flops-per-task" => return number(value).map(|flops| self.task_flops = Some(flops)),
            "share" => Goal::Share(number(value)?),
            "deadline" => {
                let time = parse_time(value);
                Goal::Deadline(
                    time.ok_or_else(|| format!("`{value}` is not a time: write 1.5s (units: ns, us, ms, s)"))?,
                )
            }
            "tasks-per-second" => Goal::TasksPerSecond(number(value)?),
            _ => Goal::Gflops(number(value)?),
        };
        match self.goal.replace(goal) {
            Some(other) => Err(format!("a context has one goal, and this has `{other}` and `{goal}`")),
            None => Ok(()),
        }
    }

    fn is_given(&self) -> bool {
        *self != WantedGoal::default()
    }

    fn of(&self, name: &str) -> GovernedContext {
        let WantedGoal { goal, min, max, task_flops } = *self;
        GovernedContext {
            goal,
            task_flops,
            ..GovernedContext::new(name).bounds(min.unwrap_or(1), max.unwrap_or(usize::MAX))
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("`{text}` is not a number more than 0"))
}

fn whole(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number of workers"))
}

impl ContextOptions {
    /// The goals of the command line and of the file, if there are any. Contexts without a goal are governed, too: they
    /// get what the others leave.
    ///
    /// # Errors
    /// If the file cannot be read, or goals are wrong or contradict each other.
    pub(crate) fn goals(&self) -> miette::Result<Option<Goals>> {
        let given = |wanted: &Wanted| wanted.goal.is_given();
        if self.goals.is_none() && !self.contexts.iter().any(given) {
            return Ok(None);
        }
        let mut goals = match &self.goals {
            Some(path) => {
                let name = file_name(path);
                let text = sched_text::read(path).map_err(|why| {
                    let help = why.help().unwrap_or("name a file with the goals of contexts");
                    miette!(help = help, "the goals `{name}` cannot be read: {why}")
                })?;
                Goals::parse(&name, &text)?
            }
            None => Goals::new(),
        };
        for wanted in &self.contexts {
            if given(wanted) || !goals.contexts.iter().any(|context| context.name == wanted.name) {
                goals.contexts.push(wanted.goal.of(&wanted.name));
            }
        }
        goals.check()?;
        Ok(Some(goals))
    }
}

/// Report of the hypervisor. Fields are JSON keys.
#[derive(Serialize)]
pub(crate) struct HypervisorReport {
    goals: Vec<GoalReport>,
    moves: Vec<MoveReport>,
    refusals: Vec<RefusalReport>,
}

/// What a context attained.
#[derive(Serialize)]
struct GoalReport {
    context: String,
    /// As text; `null` for a context without a goal.
    goal: Option<String>,
    /// `null` without a goal or tasks.
    met: Option<bool>,
    share: f64,
    tasks_per_second: f64,
    /// `null` where the operations of tasks are not known.
    gflops: Option<f64>,
    end_s: Option<f64>,
}

#[derive(Serialize)]
struct MoveReport {
    at_s: f64,
    worker: u32,
    /// `null` if the worker serves its earlier contexts as well.
    from: Option<String>,
    to: String,
}

#[derive(Serialize)]
struct RefusalReport {
    at_s: f64,
    context: String,
    workers: Vec<u32>,
    why: String,
}

impl HypervisorReport {
    pub(crate) fn of(governance: Governance) -> HypervisorReport {
        let goal = |attained: Attained| GoalReport {
            context: attained.context,
            goal: attained.goal.map(|goal| goal.to_string()),
            met: attained.met,
            share: attained.share,
            tasks_per_second: attained.tasks_per_second,
            gflops: Some(attained.gflops).filter(|gflops| *gflops > 0.0),
            end_s: attained.end.map(|end| end.as_secs_f64()),
        };
        let moved = |Move { at, worker, from, to }| MoveReport { at_s: at.as_secs_f64(), worker: worker.0, from, to };
        let refused = |Refusal { at, context, workers, why }| {
            let workers = workers.into_iter().map(|worker| worker.0).collect();
            RefusalReport { at_s: at.as_secs_f64(), context, workers, why }
        };
        HypervisorReport {
            goals: governance.attained.into_iter().map(goal).collect(),
            moves: governance.moves.into_iter().map(moved).collect(),
            refusals: governance.refusals.into_iter().map(refused).collect(),
        }
    }

    /// What each context attained, and the number of moves.
    pub(crate) fn text(&self) -> String {
        let rows = self.goals.iter().map(|goal| {
            let met = goal.met.map_or("-", |met| if met { "yes" } else { "NO" });
            [
                goal.context.clone(),
                goal.goal.clone().unwrap_or_else(|| "what is left".to_owned()),
                met.to_owned(),
                format!("{:.1}", 100.0 * goal.share),
                format!("{:.1}", goal.tasks_per_second),
                goal.end_s.map_or("-".to_owned(), |end| format!("{end:.6}")),
            ]
        });
        let table = table(["CONTEXT", "GOAL", "MET", "SHARE (%)", "TASKS/S", "END (S)"], rows, 3..6);
        let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let mut text = format!("{table}\nworkers were moved {}", count(self.moves.len(), "time"));
        if let Some(last) = self.refusals.last() {
            let refused = count(self.refusals.len(), "move");
            text += &format!("; {refused} failed, the last one because {}", last.why);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::WorkerId;
    use std::time::Duration;

    #[test]
    fn what_was_attained_stands_in_a_table() {
        let attained = |context: &str, goal, met, end| Attained {
            context: context.to_owned(),
            goal,
            share: 0.5,
            tasks_per_second: 1234.56,
            gflops: 0.0,
            end,
            met,
        };
        let (at, to) = (Duration::from_millis(20), "a".to_owned());
        let report = HypervisorReport::of(Governance {
            moves: vec![Move { at, worker: WorkerId(3), from: Some("b".to_owned()), to }],
            refusals: Vec::new(),
            attained: vec![
                attained("a", Some(Goal::Deadline(Duration::from_millis(1500))), Some(false), None),
                attained("b", None, None, Some(Duration::from_secs(1))),
            ],
        });
        insta::assert_snapshot!(report.text(), @r"
        CONTEXT  GOAL           MET  SHARE (%)  TASKS/S   END (S)
        a        deadline 1.5s  NO        50.0   1234.6         -
        b        what is left   -         50.0   1234.6  1.000000
        workers were moved 1 time
    ");
        let json = serde_json::to_value(&report).expect("it has text for keys");
        assert_eq!(json["moves"][0], serde_json::json!({"at_s": 0.02, "worker": 3, "from": "b", "to": "a"}));
        assert_eq!((&json["goals"][0]["met"], &json["goals"][0]["gflops"]), (&false.into(), &serde_json::Value::Null));
    }
}
