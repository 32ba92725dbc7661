//! Plans as an indented tree of text.

use super::bundles::{Bundle, Fold, Link, places};
use super::title;
use crate::plan::{NodeIndex, TreePlan};

impl TreePlan {
    /// The plan as an indented tree. Parameters are shown where they are not the default. A node with several parents
    /// is drawn once, at the first, and named at the others.
    #[must_use]
    pub fn to_text(&self, fold: Fold) -> String {
        let mut pen = Pen { plan: self, bundles: &self.bundles(fold), text: String::new() };
        pen.bundle(0, LineContext { slot: None, above: "machine", lead: "", stem: "" });
        pen.text
    }
}

struct Pen<'a> {
    plan: &'a TreePlan,
    bundles: &'a [Bundle],
    text: String,
}

/// The surroundings of a line.
#[derive(Clone, Copy)]
struct LineContext<'a> {
    slot: Option<&'a str>,
    /// The part of the machine that the line above named.
    above: &'a str,
    /// Prefix of the line.
    lead: &'a str,
    /// Prefix of the lines below it.
    stem: &'a str,
}

impl Pen<'_> {
    /// Draws a bundle in one line, with what is below.
    fn bundle(&mut self, bundle: usize, context: LineContext<'_>) {
        let Bundle { nodes, links } = &self.bundles[bundle];
        self.line(nodes, context, false);
        let places = places(self.plan, nodes);
        let mut links = links.iter().peekable();
        while let Some(Link { slot, nodes, to, is_first }) = links.next() {
            let (branch, stem) = if links.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
            let (lead, stem) = (format!("{}{branch}", context.stem), format!("{}{stem}", context.stem));
            let context = LineContext { slot: slot.as_deref(), above: &places, lead: &lead, stem: &stem };
            match is_first {
                true => self.bundle(to[0], context),
                false => self.line(nodes, context, true),
            }
        }
    }

    /// Draws the line of some nodes, which may have been drawn above.
    fn line(&mut self, nodes: &[NodeIndex], context: LineContext<'_>, is_known: bool) {
        let first = &self.plan[nodes[0]];
        let mut line = context.slot.map_or(String::new(), |slot| format!("{slot}: "));
        line += &title(first, " ");
        if nodes.len() > 1 {
            line += &format!(" × {}", nodes.len());
        }
        let places = places(self.plan, nodes);
        if places != context.above || is_known {
            line += &format!(" ({places})");
        }
        if first.leaf_worker.is_some() && self.plan.root().archs.iter().count() > 1 {
            let archs: Vec<String> = first.archs.iter().map(|arch| format!(", {arch}")).collect();
            line += &archs.concat();
        }
        if is_known {
            line += " ↑ drawn above";
        }
        self.text += &format!("{}{line}\n", context.lead);
    }
}
