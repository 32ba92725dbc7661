//! What a simulation of a graph on a platform ignores or assumes, for the reader of its figures.

use super::kernels::Sized;
use super::{KernelTime, Platform, work_of};
use sched_core::Arch;
use sched_graph::{AccessMode, DataId, Task, TaskGraph};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Platform {
    /// What a simulation of `graph` ignores or assumes, one sentence each: lengths that override those of the platform,
    /// extrapolated lengths, kernels without a time on some architecture or some of its workers, workers on which no
    /// task can run, and partial sums that move for nothing.
    #[must_use]
    pub fn remarks(&self, graph: &TaskGraph) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(self.overridden(graph));
        remarks.extend(self.extrapolated(graph));
        remarks.extend(self.missing(graph));
        remarks.extend(self.uneven(graph));
        remarks.extend(self.idle(graph));
        remarks.extend(self.partial_sums(graph));
        remarks
    }

    /// Tasks that bring lengths of their own, where the platform has some too.
    fn overridden(&self, graph: &TaskGraph) -> Option<String> {
        let own = || graph.tasks.iter().filter(|task| !task.lengths.is_empty());
        // A time that the graph gives too, or that it leaves to the platform, is not overridden.
        let differs = |task: &Task, class: usize| {
            let time = self.kernels.get(&graph.kind_of(task).name, class)?.nanos(work_of(graph, task))?;
            Some(self.length(graph, task, class) != Some(Duration::from_nanos(time)))
        };
        let others = own().filter(|task| (0..self.classes.len()).any(|class| differs(task, class) == Some(true)));
        let kinds: BTreeSet<&str> = others.map(|task| graph.kind_of(task).name.as_str()).collect();
        // Workers of one architecture that differ only by `speed` are equally fast then.
        let speeds = |arch: Arch| {
            let of_arch = self.classes.iter().filter(move |class| class.arch == arch);
            of_arch.map(|class| class.speed.to_bits()).collect::<BTreeSet<u64>>()
        };
        let differ = self.archs().iter().any(|arch| speeds(arch).len() > 1);
        let count = own().count();
        if count == 0 || (kinds.is_empty() && !differ) {
            return None;
        }
        let mut ignored: Vec<String> = Vec::new();
        if !kinds.is_empty() {
            ignored.push(format!("times of the kernels {}", listed(kinds)));
        }
        if differ {
            ignored.push("`speed` of its workers".to_owned());
        }
        Some(format!(
            "the graph gives the lengths of {count} of {} tasks, which override the platform's {}",
            graph.tasks.len(),
            ignored.join(" and the ")
        ))
    }

    /// Lengths outside the measured sizes.
    fn extrapolated(&self, graph: &TaskGraph) -> Vec<String> {
        // By kernel, architecture and size: the measured range.
        let mut found: BTreeMap<(&str, String, u64), (u64, u64)> = BTreeMap::new();
        for task in graph.tasks.iter().filter(|task| graph.kind_of(task).runs) {
            let (kind, work) = (graph.kind_of(task).name.as_str(), work_of(graph, task));
            // The others are given, or impossible.
            let follows =
                |number: usize, arch| task.lengths.get(arch).is_none() && self.length(graph, task, number).is_some();
            for (number, class) in
                self.classes.iter().enumerate().filter(|(number, class)| follows(*number, class.arch))
            {
                let range = self.kernels.get(kind, number).and_then(|time| time.range(work.footprint));
                if let Some((least, most)) = range.filter(|(least, most)| !(least..=most).contains(&&work.bytes)) {
                    found.insert((kind, class.arch.to_string(), work.bytes), (least, most));
                }
            }
        }
        let sentence = |((kind, arch, bytes), (least, most)): ((&str, String, u64), (u64, u64))| {
            let range =
                if least == most { bytes_of(least) } else { format!("{} to {}", bytes_of(least), bytes_of(most)) };
            format!(
                "the length of `{kind}` on {arch} is extrapolated to {} from measurements of {range}",
                bytes_of(bytes)
            )
        };
        found.into_iter().map(sentence).collect()
    }

    /// Kernels without a sample on an architecture that runs other kernels of the graph.
    fn missing(&self, graph: &TaskGraph) -> Vec<String> {
        let mut found: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for task in graph.tasks.iter().filter(|task| task.lengths.is_empty() && graph.kind_of(task).runs) {
            let kind = graph.kind_of(task).name.as_str();
            let is_measured = |class| matches!(self.kernels.get(kind, class), Some(KernelTime::History { .. }));
            if !(0..self.classes.len()).any(is_measured) {
                continue;
            }
            for arch in self.archs().iter() {
                let mut classes = (0..self.classes.len()).filter(|class| self.classes[*class].arch == arch);
                if classes.all(|class| self.length(graph, task, class).is_none()) {
                    *found.entry((kind, arch.to_string())).or_default() += 1;
                }
            }
        }
        let sentence = |((kind, arch), tasks): ((&str, String), usize)| {
            format!("`{kind}` has no sample on {arch} for {tasks} of its tasks, which run elsewhere")
        };
        found.into_iter().map(sentence).collect()
    }

    /// Kernels with a time on some workers of an architecture only, which none of them executes.
    fn uneven(&self, graph: &TaskGraph) -> Vec<String> {
        let workers_by_class = self.workers_by_class();
        let classes_of = |arch: Arch| -> Vec<usize> {
            (0..self.classes.len())
                .filter(|class| workers_by_class[*class] > 0 && self.classes[*class].arch == arch)
                .collect()
        };
        let archs: Vec<(Arch, Vec<usize>)> = self.archs().iter().map(|arch| (arch, classes_of(arch))).collect();
        // By kernel and architecture: the classes without a time, and the number of tasks.
        let mut found: BTreeMap<(&str, String), (BTreeSet<&str>, usize)> = BTreeMap::new();
        for (arch, classes) in archs.iter().filter(|(_, classes)| classes.len() > 1) {
            for task in graph.tasks.iter().filter(|task| graph.kind_of(task).runs) {
                let (with, without): (Vec<usize>, Vec<usize>) =
                    classes.iter().partition(|class| self.length(graph, task, **class).is_some());
                if !with.is_empty() && !without.is_empty() {
                    let (classes, tasks) =
                        found.entry((graph.kind_of(task).name.as_str(), arch.to_string())).or_default();
                    classes.extend(without.iter().map(|class| self.classes[*class].name.as_str()));
                    *tasks += 1;
                }
            }
        }
        let sentence = |((kind, arch), (classes, tasks)): ((&str, String), (BTreeSet<&str>, usize))| {
            let classes = listed(classes);
            format!("`{kind}` has no time on {classes} for {tasks} of its tasks, which run on no {arch} worker then")
        };
        found.into_iter().map(sentence).collect()
    }

    /// Architectures on which no task of the graph can run.
    fn idle(&self, graph: &TaskGraph) -> Option<String> {
        let runs = |class| {
            let mut tasks = graph.tasks.iter().filter(|task| graph.kind_of(task).runs);
            tasks.any(|task| self.length(graph, task, class).is_some())
        };
        let idle: Vec<bool> = (0..self.classes.len()).map(|class| !runs(class)).collect();
        let archs: BTreeSet<String> = (0..self.classes.len())
            .filter(|class| idle[*class])
            .map(|class| self.classes[class].arch.to_string())
            .collect();
        let workers = self.workers.iter().filter(|worker| idle[worker.class]).count();
        (workers > 0 && workers < self.workers.len()).then(|| {
            let archs: Vec<&str> = archs.iter().map(String::as_str).collect();
            format!(
                "{workers} of {} workers stay idle: no task has a length on {}",
                self.workers.len(),
                archs.join(", ")
            )
        })
    }

    /// Values to which tasks in several memories may add at once. Their partial sums are combined at no cost.
    fn partial_sums(&self, graph: &TaskGraph) -> Option<String> {
        if self.memories.len() == 1 {
            return None;
        }
        let mut adding: BTreeMap<DataId, usize> = BTreeMap::new();
        for access in
            graph.tasks.iter().flat_map(|task| &task.accesses).filter(|access| access.mode == AccessMode::Redux)
        {
            *adding.entry(access.data).or_default() += 1;
        }
        let bytes = |data: DataId| graph.data[data.index()].bytes;
        adding.retain(|data, tasks| *tasks > 1 && bytes(*data) >= LARGE_SUM);
        let largest = adding.keys().map(|data| bytes(*data)).max()?;
        Some(format!(
            "transfers of partial sums are not counted: {} tasks add to values of up to {} (`redux`)",
            adding.values().sum::<usize>(),
            bytes_of(largest)
        ))
    }
}

/// Bytes from which on the transfer of a partial sum takes longer than it takes to begin.
const LARGE_SUM: u64 = 16 << 10;

impl KernelTime {
    /// Smallest and largest measured size in bytes, for a task whose length follows from its size.
    fn range(&self, footprint: Option<u32>) -> Option<(u64, u64)> {
        let measured: &[Sized] = match self {
            KernelTime::Measured(measured) => measured,
            KernelTime::History { measured, .. } if footprint.is_none() => measured,
            _ => return None,
        };
        Some((measured.first()?.bytes, measured.last()?.bytes))
    }
}

/// At most three names, and the number of others.
fn listed(names: BTreeSet<&str>) -> String {
    let shown: Vec<String> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
    let more = names.len() - shown.len();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

fn bytes_of(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_graph::Datum;
    use sched_graph::generate::{cholesky, independent};

    #[test]
    fn partial_sums_in_several_memories_are_said_to_move_for_nothing() {
        let remarks = |platform: &str, bytes: u64| {
            let mut graph = TaskGraph::new("sum");
            let (kind, data) = (graph.add_kind("gemm"), graph.add_data(Datum::new(bytes)));
            for mode in [AccessMode::Redux, AccessMode::Redux, AccessMode::Read] {
                let task = Task::new(kind).access(data, mode);
                graph.add_task(Task {
                    lengths: sched_graph::Lengths::default().with(Arch::CPU, Duration::ZERO),
                    ..task
                });
            }
            let all = crate::platform::find(platform).expect("it is shipped").remarks(&graph);
            all.into_iter().filter(|remark| remark.contains("partial sums")).collect::<Vec<String>>()
        };
        let said = "transfers of partial sums are not counted: 2 tasks add to values of up to 8.00 MB (`redux`)";
        assert_eq!(remarks("cpu9-gpu3", 8_000_000), [said]);
        assert!(remarks("cpu9-gpu3", 8).is_empty(), "a number takes no time");
        assert!(Platform::flat(2, Duration::from_millis(1)).remarks(&cholesky(4, 960)).is_empty());
    }

    #[test]
    fn what_is_overridden_extrapolated_or_idle_is_said() {
        let text = r#"platform "p" {
            memory "ram"
            workers "big" arch="cpu" memory="ram" speed=2.0
            workers "little" arch="cpu" memory="ram"
            workers "gpu" arch="cuda" memory="ram"
            kernel "*" { on "big" time="1 ms"; on "little" time="2 ms"; on "gpu" time="1 ms"; }
            kernel "gemm" { on "gpu" { at "1 MB" "1 ms"; at "2 MB" "2 ms"; }; on "big" time="3 ms"; on "little" time="3 ms"; }
        }"#;
        let platform = Platform::parse("p.kdl", text).expect("it is sound");
        assert_eq!(
            platform.remarks(&independent(3, Duration::from_millis(1))),
            [
                "the graph gives the lengths of 3 of 3 tasks, which override the platform's times of the kernels `work` and the \
             `speed` of its workers",
                "1 of 3 workers stay idle: no task has a length on cuda",
            ]
        );
        assert_eq!(
            platform.remarks(&cholesky(4, 960)),
            ["the length of `gemm` on cuda is extrapolated to 22.12 MB from measurements of 1.00 MB to 2.00 MB"]
        );
        let text = text.replace("; on \"little\" time=\"3 ms\"", "");
        let uneven = Platform::parse("p.kdl", &text).expect("it is sound");
        assert_eq!(
            uneven.remarks(&cholesky(4, 960))[1..],
            ["`gemm` has no time on `little` for 4 of its tasks, which run on no cpu worker then"]
        );
        let flat = Platform::flat(2, Duration::from_millis(1));
        assert!(flat.remarks(&cholesky(4, 960)).is_empty());
    }
}
