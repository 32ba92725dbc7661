//! Goals as a text.

use super::{Goal, Goals, GovernedContext};
use sched_text::kdl::{Language, NodeReader, Reader, Signature};
use sched_text::quantity::{TIME, parse_time};
use sched_text::{Finding, Findings};
use std::time::Duration;

const LANGUAGE: Language = Language { name: "goals", node: "line", rule: "" };

const HYPERVISOR: Signature =
    Signature { arguments: 0, properties: &["period", "patience"], example: "hypervisor period=\"10 ms\" { … }" };
const CONTEXT: Signature = Signature {
    arguments: 1,
    properties: &["share", "deadline", "tasks-per-second", "gflops", "flops-per-task", "min", "max"],
    example: "context \"a\" share=0.5",
};

/// Expected form of a period, for messages.
const PERIOD: &str = "a time more than 0, such as \"10 ms\" (units: ns, us, ms, s)";

/// Goals of which a context has one at most.
const ONE_OF: [&str; 4] = ["share", "deadline", "tasks-per-second", "gflops"];

impl Goals {
    /// Reads goals from KDL. `source_name` is the name of the text in errors, usually its path.
    ///
    /// ```
    /// use sched_tree::hypervisor::Goals;
    ///
    /// let goals = Goals::parse("goals.kdl", r#"
    ///     hypervisor period="5 ms" patience=4 {
    ///         context "solver" share=0.6 min=2
    ///         context "report" deadline="1.5 s"
    ///         context "stream" tasks-per-second=2000 max=4
    ///         context "rest"
    ///     }
    /// "#)?;
    /// assert_eq!(goals.contexts.len(), 4);
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the text, and goals that contradict each other.
    pub fn parse(source_name: &str, text: &str) -> Result<Goals, Findings> {
        let mut reader = Reader::new(LANGUAGE, source_name, text);
        let mut goals = Goals::new();
        let (mut seen, mut places) = (0, Vec::new());
        if let Some(document) = reader.document() {
            for node in document.nodes() {
                if node.name().value() != "hypervisor" {
                    let finding = reader.misplaced(node, "in a file of goals", "a file of goals", &["hypervisor"]);
                    reader.report(finding);
                    continue;
                }
                seen += 1;
                let mut open = reader.open(node, &HYPERVISOR);
                if let Some(period) = open.quantity("period", parse_period, PERIOD) {
                    goals.period = period;
                }
                if let Some(patience) = open.whole("patience", 0..=1_000_000) {
                    goals.patience = patience as u32;
                }
                for line in node.iter_children() {
                    if line.name().value() == "context" {
                        if let Some(context) = context(&mut reader.open(line, &CONTEXT)) {
                            goals.contexts.push(context);
                            places.push(reader.name_span(line));
                        }
                    } else {
                        let finding = reader.misplaced(line, "in `hypervisor`", "`hypervisor`", &["context"]);
                        reader.report(finding);
                    }
                }
            }
            if seen != 1 {
                let finding = Finding::error(format!("the file holds {seen} hypervisors, and is to hold one"));
                let help = "write `hypervisor { context \"a\" share=0.5; }`";
                reader.report(finding.help(help).code("goals::hypervisor"));
            }
        }
        if reader.reported() == 0 {
            for problem in goals.problems() {
                let place = problem.context.map(|number| places[number]);
                let finding = problem.finding();
                reader.report(match place {
                    Some(place) => finding.at(place, "this one"),
                    None => finding,
                });
            }
        }
        if reader.reported() == 0 { Ok(goals) } else { Err(Findings::new(source_name, reader.into_findings())) }
    }
}

fn parse_period(text: &str) -> Option<Duration> {
    parse_time(text).filter(|period| !period.is_zero())
}

/// One line. Each value is checked here, where its place is known.
fn context(open: &mut NodeReader<'_>) -> Option<GovernedContext> {
    let goals: Vec<&str> = ONE_OF.into_iter().filter(|goal| open.has(goal)).collect();
    if let [first, second, ..] = &*goals {
        let finding = Finding::error(format!("a context has one goal, and this has `{first}` and `{second}`"));
        open.report(finding.at(open.span(), "of this one").help("leave one of them out"));
    }
    let share = open.positive("share").map(Goal::Share);
    let deadline = open.quantity("deadline", parse_time, TIME).map(Goal::Deadline);
    let tasks = open.positive("tasks-per-second").map(Goal::TasksPerSecond);
    let gflops = open.positive("gflops").map(Goal::Gflops);
    let task_flops = open.positive("flops-per-task");
    let min = open.whole("min", 0..=1 << 20).unwrap_or(1);
    let max = open.whole("max", 1..=1 << 20).unwrap_or(usize::MAX);
    let (name, _) = open.argument(0, "the name of a context")?;
    Some(GovernedContext { name, goal: share.or(deadline).or(tasks).or(gflops), min, max, task_flops })
}
