//! Input of a simulation: graph, machine and costs.

use super::settings::Settings;
use crate::graph_source::GraphOptions;
use crate::machine::MachineOptions;
use crate::reports;
use crate::values::{SeedOption, share};
use miette::miette;
use sched_graph::TaskGraph;
use sched_graph::priorities::Priorities;
use sched_sim::cluster::Cluster;
use sched_sim::platform::{Costs, Platform};
use sched_sim::{Known, Noise, prioritise};
use sched_text::did_you_mean;
use std::sync::Arc;

/// The graph and the machine.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Setup {
    #[command(flatten)]
    graph: GraphOptions,

    #[command(flatten)]
    machine: MachineOptions,

    /// Costs that are simulated besides kernels
    #[arg(long, value_enum, default_value_t = CostsOption::Default)]
    costs: CostsOption,

    /// Parallel fraction of every task, from 0 to 1, that teams of CPU workers divide among them (Amdahl's law), where
    /// the platform defines none. For policies with combined workers, such as tree-pheft
    #[arg(long, value_name = "SHARE", value_parser = share)]
    parallel: Option<f64>,

    /// Source of task priorities
    #[arg(long, value_enum, default_value_t = PrioritiesOption::AsGiven)]
    priorities: PrioritiesOption,

    /// Let kernels take other times than schedulers expect, such as spread=0.1,bias=cuda:1.3
    ///
    /// `spread` is the standard deviation of the logarithm of the factor by which a kernel takes longer: 0.1 is about
    /// 10 %. Half of its variance is drawn once for each kind of task and class of workers, as the error of that model,
    /// and half for each execution. Each `bias` is a factor for an architecture, a class of workers or a kind of task.
    /// With known=models schedulers know these errors and factors, and with known=executions what each execution takes:
    /// what a policy loses even then is not for want of knowledge.
    #[arg(long, value_name = "NOISE", value_parser = noise)]
    noise: Option<Noise>,

    #[command(flatten)]
    pub(crate) seed: SeedOption,
}

/// `--noise`.
fn noise(text: &str) -> Result<Noise, String> {
    let form = "write spread=0.1, bias=cuda:1.3, known=models, or several with commas";
    let (mut noise, mut given) = (Noise::default(), Vec::new());
    for part in text.split(',') {
        let number = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite());
        match part.split_once('=') {
            Some((key @ ("spread" | "known"), _)) if given.contains(&key) => {
                return Err(format!("`{key}` is given twice: leave one of them out"));
            }
            Some((key @ "spread", word)) => {
                given.push(key);
                let spread = number(word).filter(|spread| (0.0..=2.0).contains(spread));
                noise.spread =
                    spread.ok_or_else(|| format!("`{word}` is no spread: a number from 0 to 2 is expected"))?;
            }
            Some(("bias", word)) => {
                let (name, factor) = word.rsplit_once(':').ok_or_else(|| format!("`{word}` has no factor; {form}"))?;
                let factor = number(factor).filter(|factor| (0.01..=100.0).contains(factor));
                let factor = factor.ok_or_else(|| format!("`{word}` has no factor from 0.01 to 100; {form}"))?;
                if noise.bias.iter().any(|(known, _)| known == name) {
                    return Err(format!("the bias of `{name}` is given twice: leave one of them out"));
                }
                noise.bias.push((name.to_owned(), factor));
            }
            Some((key @ "known", word)) => {
                given.push(key);
                noise.known = Known::ALL.into_iter().find(|known| known.name() == word).ok_or_else(|| {
                    let near = did_you_mean(word, Known::ALL.map(Known::name), "choices");
                    format!("`{word}` is not what schedulers may know: {near}")
                })?;
            }
            Some((key, _)) => {
                let near = did_you_mean(key, ["spread", "bias", "known"], "its parts");
                return Err(format!("`{part}` is no noise: {near}; {form}"));
            }
            None => return Err(format!("`{part}` is no noise; {form}")),
        }
    }
    Ok(noise)
}

/// `--costs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CostsOption {
    /// All costs of the platform
    Default,
    /// Transfers only
    NoOverhead,
    /// None: data moves in no time; schedulers still expect transfer times
    NoTransfer,
}

/// `--priorities`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PrioritiesOption {
    /// As the graph gives them
    AsGiven,
    /// None: all tasks are equally urgent
    None,
    /// The longest chain that begins with the task, with mean lengths and transfers (HEFT's rank)
    UpwardRank,
    /// The longest chain that begins with the task, each task where it is fastest
    CriticalPath,
}

/// What is simulated.
pub(super) struct Loaded {
    pub(super) graph: TaskGraph,
    /// The machine; of a cluster, all nodes as one machine.
    pub(super) platform: Arc<Platform>,
    pub(super) cluster: Option<Arc<Cluster>>,
}

impl Setup {
    /// Reads the graph with its priorities, and the machine with its costs.
    ///
    /// # Errors
    /// If one of them is missing or invalid.
    pub(super) fn load(&self) -> miette::Result<Loaded> {
        let mut graph = self.graph.load(self.seed.seed)?;
        let costs = match self.costs {
            CostsOption::Default => Costs::Default,
            CostsOption::NoOverhead => Costs::NoOverhead,
            CostsOption::NoTransfer => Costs::NoTransfer,
        };
        let with_teams = |platform: Platform| match self.parallel {
            Some(share) => platform.with_parallel(share),
            None => platform,
        };
        let cluster = self.machine.cluster()?.map(|cluster| Arc::new(cluster.with_costs(costs).map(with_teams)));
        let platform = match &cluster {
            Some(cluster) => cluster.merged(),
            None => with_teams(self.machine.platform()?.with_costs(costs)),
        };
        match self.priorities {
            PrioritiesOption::AsGiven => {}
            PrioritiesOption::None => graph.tasks.iter_mut().for_each(|task| task.priority = 0),
            PrioritiesOption::UpwardRank => prioritise(&mut graph, &platform, Priorities::UpwardRank)?,
            PrioritiesOption::CriticalPath => prioritise(&mut graph, &platform, Priorities::CriticalPath)?,
        }
        platform.remarks(&graph).iter().for_each(|remark| reports::warn(&format!("note: {remark}")));
        Ok(Loaded { graph, platform: Arc::new(platform), cluster })
    }

    /// What reports say of the options.
    pub(crate) fn settings(&self) -> Settings {
        let Setup { costs, parallel, priorities, .. } = *self;
        Settings::new((costs, priorities, parallel), self.noise.as_ref(), &self.graph.tasks)
    }

    /// The noise for a graph on a platform.
    ///
    /// # Errors
    /// If a bias names nothing.
    pub(super) fn noise(&self, graph: &TaskGraph, platform: &Platform) -> miette::Result<Noise> {
        let noise = self.noise.clone().unwrap_or_default();
        if let Some(name) = noise.unknown(graph, platform).first() {
            let mut known: Vec<String> = platform.archs().iter().map(|arch| arch.to_string()).collect();
            known.extend(platform.classes.iter().map(|class| class.name.clone()));
            known.extend(graph.kinds.iter().map(|kind| kind.name.clone()));
            known.sort();
            known.dedup();
            return Err(miette!(
                help = format!("a bias is for one of {}", known.join(", ")),
                "there is no architecture, class of workers or kind of task `{name}`"
            ));
        }
        Ok(noise)
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, noise};

    #[test]
    fn what_schedulers_know_is_one_of_three() {
        let known = |text: &str| noise(&format!("spread=0.1,known={text}")).map(|noise| noise.known);
        assert_eq!(known("models"), Ok(Known::Models));
        assert_eq!(known("executions"), Ok(Known::Executions));
        assert_eq!(noise("spread=0.1").map(|noise| noise.known), Ok(Known::Nothing));
        insta::assert_snapshot!(known("all").expect_err("there is no such word"), @"`all` is not what schedulers may know: choices: `nothing`, `models`, `executions`");
        insta::assert_snapshot!(known("model").expect_err("there is no such word"), @"`model` is not what schedulers may know: did you mean `models`?");
    }

    #[test]
    fn a_word_that_is_nearly_right_is_named() {
        insta::assert_snapshot!(
            noise("spraed=0.1").expect_err("there is no such word"),
            @"`spraed=0.1` is no noise: did you mean `spread`?; write spread=0.1, bias=cuda:1.3, known=models, or several with commas"
        );
        assert!(!noise("loud").expect_err("there is no such word").contains("did you mean"));
    }

    #[test]
    fn nothing_is_set_twice() {
        let both = noise("spread=0.1,bias=cuda:2,bias=gemm:0.5").expect("it is right");
        assert_eq!((both.spread, both.bias.len()), (0.1, 2));
        for (text, what) in [
            ("spread=0.1,spread=0.2", "`spread`"),
            ("bias=cuda:2,bias=cuda:3", "bias of `cuda`"),
            ("known=models,known=models", "`known`"),
        ] {
            let why = noise(text).expect_err("one of them is too many");
            assert!(why.contains(what) && why.contains("twice"), "{why}");
        }
    }
}
