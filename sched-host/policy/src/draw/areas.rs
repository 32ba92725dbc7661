//! The scheduling areas of a plan in words.

use super::title;
use crate::areas::Area;
use crate::plan::{NodeIndex, PlanNode, TreePlan};
use crate::print;

impl TreePlan {
    /// The scheduling areas with their reservoirs and pumps; equal ones are listed once.
    #[must_use]
    pub fn areas_to_text(&self) -> String {
        let mut shown: Vec<(String, usize, usize)> = Vec::new();
        for (index, area) in self.areas().iter().enumerate() {
            let text = self.words(area);
            match shown.iter_mut().find(|(known, ..)| *known == text) {
                Some((_, _, count)) => *count += 1,
                None => shown.push((text, index + 1, 1)),
            }
        }
        let mut text = String::new();
        for (words, first, count) in shown {
            let times = if count > 1 { format!(" × {count}") } else { String::new() };
            text += &format!("area {first}{times}: {words}");
        }
        text
    }

    fn words(&self, area: &Area) -> String {
        let names = |nodes: &[NodeIndex]| self.counted(nodes, |node| node.info.name.clone());
        let from = area.above.map_or("the application", |node| &self[node].info.name).to_owned();
        let to: Vec<String> = names(&area.below).into_iter().chain(names(&area.workers)).collect();
        let mut text = format!("{} ─▶ {}\n", from, to.join(", "));
        let mut line = |what: &str, words: Vec<String>| {
            if !words.is_empty() {
                text += &format!("    {what:<16} {}\n", words.join(", "));
            }
        };
        line("reservoir above", area.above.map(|node| reservoir(&self[node])).into_iter().collect());
        line("through", self.counted(&area.through, |node| title(node, " ")));
        line("reservoirs below", self.counted(&area.below, reservoir));
        line("pump down", Some(from).filter(|_| area.is_pumped_down(self)).into_iter().collect());
        line("pump up", names(&area.workers));
        text
    }

    /// Names of these nodes, each once with its count.
    fn counted(&self, nodes: &[NodeIndex], name: impl Fn(&PlanNode) -> String) -> Vec<String> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for name in nodes.iter().map(|node| name(&self[*node])) {
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name, 1)),
            }
        }
        let words = counts.into_iter();
        words.map(|(name, count)| if count > 1 { format!("{name} × {count}") } else { name }).collect()
    }
}

/// `fifo (holds any number)`, `fifo (bounded by ntasks-threshold=2)`.
fn reservoir(node: &PlanNode) -> String {
    let bounds: Vec<String> = node.bounds().map(|(name, value)| format!("{name}={}", print::value(value))).collect();
    let holds = if bounds.is_empty() { "unbounded".to_owned() } else { format!("bounded by {}", bounds.join(" and ")) };
    format!("{} ({holds})", node.info.name)
}
