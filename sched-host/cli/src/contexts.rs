//! `--context NAME:policy=POLICY,workers=0-1+3,priorities=0..9,share=0.5`: scheduling contexts, equal for every
//! command.

use crate::hypervisor::WantedGoal;
use sched_text::{did_you_mean, parse_ranges};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Contexts of the run.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct ContextOptions {
    /// Scheduling context; repeat it for several, which run the workload concurrently
    ///
    /// policy=POLICY is its policy (default: that of --policy), workers=0-3+8 its workers, which other contexts may
    /// share (default: all), priorities=0..9 the priorities that its tasks may have.
    ///
    /// With a goal the hypervisor moves workers between the contexts while they run: share=0.5 (of the speed of all
    /// their workers), deadline=2s, tasks-per-second=1000, or gflops=50 (which may need flops-per-task=1e9); min=1 and
    /// max=4 bound the number of workers. Contexts without a goal get what the others leave.
    #[arg(long = "context", short, value_name = "NAME:policy=POLICY,workers=…", value_parser = wanted)]
    pub(super) contexts: Vec<Wanted>,

    /// File with goals of contexts, for the hypervisor: hypervisor { context "a" share=0.5; }
    #[arg(long, value_name = "FILE")]
    pub(super) goals: Option<PathBuf>,
}

/// A context that `--context` describes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) policy: Option<String>,
    pub(crate) workers: Option<Vec<u32>>,
    pub(crate) priorities: Option<RangeInclusive<i32>>,
    /// What the hypervisor is to attain for it.
    pub(crate) goal: WantedGoal,
}

/// Reads `NAME:policy=POLICY,workers=0-1+3,priorities=0..9`.
pub(crate) fn wanted(text: &str) -> Result<Wanted, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    if name.is_empty() {
        return Err("a context has a name: NAME:policy=POLICY,workers=0-1".to_owned());
    }
    let goal = WantedGoal::default();
    let mut wanted = Wanted { name: name.to_owned(), policy: None, workers: None, priorities: None, goal };
    let mut keys = Vec::new();
    for setting in rest.split(',').filter(|setting| !setting.is_empty()) {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(format!("`{setting}` has no value: write policy=POLICY, workers=0-1 or priorities=0..9"));
        };
        if keys.contains(&key) {
            return Err(format!("`{key}` is given twice: leave one of them out"));
        }
        keys.push(key);
        match key {
            "policy" => wanted.policy = Some(value.to_owned()),
            "workers" => wanted.workers = Some(workers(value)?),
            "priorities" => wanted.priorities = Some(priorities(value)?),
            _ if WantedGoal::KEYS.contains(&key) => wanted.goal.set(key, value)?,
            _ => {
                let known = ["policy", "workers", "priorities"].into_iter().chain(WantedGoal::KEYS);
                let help = did_you_mean(key, known, "it has");
                return Err(format!("a context has no `{key}`: {help}"));
            }
        }
    }
    Ok(wanted)
}

/// Reads `0-1+3`.
fn workers(text: &str) -> Result<Vec<u32>, String> {
    parse_ranges(text).ok_or_else(|| format!("`{text}` is not a list of workers: write 0, 0-3, or 0-1+3"))
}

/// Reads `0..9`.
fn priorities(text: &str) -> Result<RangeInclusive<i32>, String> {
    let bounds = text.split_once("..").and_then(|(least, most)| Some(least.parse().ok()?..=most.parse().ok()?));
    bounds.ok_or_else(|| format!("`{text}` is not a range of priorities: write 0..9"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read() {
        let read = wanted("b:policy=tree-ws,workers=0-1+3,priorities=-5..9").expect("it is right");
        assert_eq!((&*read.name, read.policy.as_deref()), ("b", Some("tree-ws")));
        assert_eq!((read.workers, read.priorities), (Some(vec![0, 1, 3]), Some(-5..=9)));
        let bare = wanted("a").expect("everything has a default");
        assert_eq!((bare.policy, bare.workers, bare.priorities), (None, None, None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| wanted(text).expect_err("it is wrong");
        insta::assert_snapshot!(error(":policy=a"), @"a context has a name: NAME:policy=POLICY,workers=0-1");
        insta::assert_snapshot!(error("a:policy"), @"`policy` has no value: write policy=POLICY, workers=0-1 or priorities=0..9");
        insta::assert_snapshot!(error("a:polcy=b"), @"a context has no `polcy`: did you mean `policy`?");
        insta::assert_snapshot!(error("a:colour=red"), @"a context has no `colour`: it has: `policy`, `workers`, `priorities`, `share`, `deadline`, `tasks-per-second`, `gflops`, `flops-per-task`, `min`, `max`");
        insta::assert_snapshot!(error("a:workers=3-1"), @"`3-1` is not a list of workers: write 0, 0-3, or 0-1+3");
        insta::assert_snapshot!(error("a:workers=x"), @"`x` is not a list of workers: write 0, 0-3, or 0-1+3");
        insta::assert_snapshot!(error("a:share=0"), @"`0` is not a number more than 0");
        insta::assert_snapshot!(error("a:share=0.5,deadline=2s"), @"a context has one goal, and this has `share 0.5` and `deadline 2s`");
        insta::assert_snapshot!(error("a:workers=0,workers=1"), @"`workers` is given twice: leave one of them out");
        insta::assert_snapshot!(error("a:max=1,policy=b,max=1"), @"`max` is given twice: leave one of them out");
        insta::assert_snapshot!(error("a:deadline=noon"), @"`noon` is not a time: write 1.5s (units: ns, us, ms, s)");
        insta::assert_snapshot!(error("a:max=few"), @"`few` is not a number of workers");
        insta::assert_snapshot!(error("a:priorities=3"), @"`3` is not a range of priorities: write 0..9");
    }
}
