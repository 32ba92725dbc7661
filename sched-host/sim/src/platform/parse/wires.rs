//! Links between places.

use super::super::routes::Edge;
use super::super::{Link, Route};
use super::Builder;
use kdl::KdlNode;
use sched_text::kdl::Signature;
use sched_text::quantity::{self, BANDWIDTH, TIME};
use sched_text::{Finding, Span};

const LINK: Signature = Signature {
    arguments: 2,
    properties: &["bandwidth", "back", "latency", "shared"],
    example: "link \"ram\" \"pci\" bandwidth=\"6 GB/s\" latency=\"10 us\"",
};

/// A name and its place in the text.
type Named = (String, Span);

/// A link in both directions.
pub(super) struct Wire {
    from: Named,
    to: Named,
    there: f64,
    back: f64,
    shared: bool,
    latency: u64,
}

impl Builder<'_> {
    pub(super) fn link(&mut self, node: &KdlNode) {
        let mut open = self.reader.open(node, &LINK);
        let from = open.argument(0, "a memory or switch");
        let to = open.argument(1, "a second memory or switch");
        let there = open.quantity("bandwidth", quantity::parse_bandwidth, BANDWIDTH);
        let back = open.quantity("back", quantity::parse_bandwidth, BANDWIDTH);
        let latency = open.quantity("latency", quantity::parse_time, TIME).unwrap_or_default();
        let shared = open.flag("shared");
        if !open.has("bandwidth") {
            open.missing("bandwidth", "\"6.5 GB/s\"");
        }
        let (Some(from), Some(to)) = (from, to) else { return };
        if from.0 == to.0 {
            let finding = Finding::error(format!("a link leads from `{}` to itself", from.0))
                .at(to.1, "expected another memory or switch")
                .help("leave it out: data moves within a place at once");
            return open.report(finding);
        }
        let ends = if from.0 < to.0 { (from.0.clone(), to.0.clone()) } else { (to.0.clone(), from.0.clone()) };
        if !self.linked.insert(ends) {
            let finding = Finding::error(format!("`{}` and `{}` are linked twice", from.0, to.0))
                .at(open.span(), "again here")
                .help("write one link: `back` is the bandwidth in the other direction");
            return open.report(finding);
        }
        if shared && back.is_some_and(|back| Some(back) != there) {
            let finding = Finding::error("`shared` is for one bandwidth, and `back` is another");
            let finding = finding.at(open.span(), "of this link");
            return open.report(finding.help("leave out `shared`, or `back`"));
        }
        let Some(there) = there else { return };
        let (back, latency) = (back.unwrap_or(there), latency.as_nanos() as u64);
        self.links.push(Wire { from, to, there, back, shared, latency });
    }

    /// The links in each direction that they have, and what they connect, by places of this order.
    pub(super) fn links_and_edges(&mut self, places: &[String]) -> (Vec<Link>, Vec<Edge>) {
        let (mut links, mut edges) = (Vec::new(), Vec::new());
        for wire in &self.links {
            let ((from, from_span), (to, to_span)) = (&wire.from, &wire.to);
            let mut place = |name: &str, span| {
                let found = places.iter().position(|place| place == name);
                if found.is_none() {
                    self.reader.unknown_name("memory or switch", name, span, places.iter().map(String::as_str));
                }
                found
            };
            let (Some(a), Some(b)) = (place(from, *from_span), place(to, *to_span)) else { continue };
            let there = links.len();
            links.push(Link { name: format!("{from}-{to}"), bandwidth: wire.there });
            let back = if wire.shared { there } else { links.len() };
            if !wire.shared {
                links.push(Link { name: format!("{to}-{from}"), bandwidth: wire.back });
            }
            edges.push(Edge { from: a, to: b, link: there, latency: wire.latency });
            edges.push(Edge { from: b, to: a, link: back, latency: wire.latency });
        }
        (links, edges)
    }

    /// Reports memories with workers that data cannot reach.
    pub(super) fn check_routes(&mut self, routes: &[Route]) {
        let count = self.memories.len();
        let used = |memory: &usize| self.workers.iter().any(|worker| worker.memory.index() == *memory);
        for memory in (0..count).filter(used) {
            let cut_off = |to: usize| to != memory && routes[memory * count + to].links.is_empty();
            if self.reader.reported() == 0 && (cut_off(0) || (memory != 0 && routes[memory].links.is_empty())) {
                let (here, home) = (&self.memories[memory].name, &self.memories[0].name);
                let finding = Finding::error(format!("there is no way between the memories `{home}` and `{here}`"));
                self.reader.report(
                    finding
                        .help(format!("write `link {home:?} {here:?} bandwidth=\"10 GB/s\"`"))
                        .code("platform::link"),
                );
            }
        }
    }
}
