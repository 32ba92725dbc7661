//! Random trees, with and without each shortcut.

use super::WORKERS;
use proptest::prelude::*;
use sched_core::*;
use sched_host::plugin::Registry;
use sched_host::tree::{Claims, NodeId, Part, Unplaced};
use std::sync::Arc;

/// A tree to be; its leaves are for worker after worker, or for two of them together.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Worker,
    Combined,
    /// A component with such a `ntasks-threshold`, if it takes one.
    Of(&'static str, i64, Vec<Shape>),
    /// Two components over the same children, below one that chooses.
    Two([&'static str; 2], Vec<Shape>),
}

impl Shape {
    fn leaves(&self) -> u32 {
        match self {
            Shape::Worker | Shape::Combined => 1,
            Shape::Of(.., below) | Shape::Two(_, below) => below.iter().map(Shape::leaves).sum(),
        }
    }
}

pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![6 => Just(Shape::Worker), 1 => Just(Shape::Combined)];
    let inner = leaf.prop_recursive(4, 16, 4, |inner| {
        let above_one = prop::sample::select(vec!["fifo", "fifo", "prio", "best-implementation"]);
        let above_many = prop::sample::select(vec![
            "eager", "eager", "eager-prio", "mct", "block-cyclic", "work-stealing", "random", "heft", "heteroprio", "replan", "keep", "keep", "probe",
        ]);
        prop_oneof![
            3 => (above_one, 0..4_i64, inner.clone()).prop_map(|(name, room, below)| Shape::Of(name, room, vec![below])),
            2 => (above_many.clone(), prop::collection::vec(inner.clone(), 1..5))
                .prop_map(|(name, below)| Shape::Of(name, 0, below)),
            1 => ([above_many.clone(), above_many], prop::collection::vec(inner, 1..4))
                .prop_map(|(names, below)| Shape::Two(names, below)),
        ]
    });
    let root = prop::collection::vec(inner, 2..5).prop_map(|below| Shape::Of("probe", 0, below));
    root.prop_filter("there are as many workers", |root| root.leaves() <= WORKERS)
}

/// A shortcut that is taken or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shortcut {
    ForwardsPull,
    EmptyUntilPushed,
    EndIsNoted,
    /// Calls are attended: each is made, and compared with what the component declares.
    All,
}

/// A tree in the making.
pub(super) struct Maker {
    pub(super) registry: Arc<Registry>,
    pub(super) without: Option<Shortcut>,
    pub(super) parts: Vec<Part>,
    pub(super) workers: u32,
    pub(super) teams: Vec<Box<[WorkerId]>>,
}

impl Maker {
    /// Adds a node without children, for now.
    fn node(&mut self, name: &str, room: i64, worker: Option<u32>) -> NodeId {
        let component = self.registry.component(name).expect("it is a stock component");
        let info = component.info();
        let mut params =
            Params::from_values(info.params.iter().map(|param| (param.name.clone(), param.default.clone())));
        if info.param("ntasks-threshold").is_some() {
            params.set("ntasks-threshold", Value::Int(room));
        }
        let id = NodeId::at(self.parts.len());
        self.parts.push(Part {
            component: Unplaced::new(component.build(&params).expect("the parameters are sound"), None),
            name: name.to_owned(),
            plugin: "test".to_owned(),
            params: Params::default(),
            path: format!("{} {name}", id.0),
            object: String::new(),
            children: Vec::new(),
            workers: worker.map(WorkerId).into_iter().collect(),
            workers_in_context: worker.map(WorkerId).into_iter().collect(),
            sharing: None,
            worker: worker.map(WorkerId),
            claims: Claims {
                stores_any_number: info.stores && (info.bounds.is_empty() || room == 0),
                forwards_pull: info.forwards_pull && self.without != Some(Shortcut::ForwardsPull),
                empty_until_pushed: info.empty_until_pushed && self.without != Some(Shortcut::EmptyUntilPushed),
                end_is_noted: info.end_is_noted && self.without != Some(Shortcut::EndIsNoted),
                ..Claims::from(info)
            },
            attended: self.without == Some(Shortcut::All),
        });
        id
    }

    pub(super) fn add(&mut self, shape: &Shape) -> NodeId {
        let (nodes, below) = match shape {
            Shape::Worker => {
                self.workers += 1;
                return self.node("worker", 0, Some(self.workers - 1));
            }
            Shape::Combined => {
                let first = 2 * self.teams.len() as u32;
                self.teams.push([first, first + 1].map(|member| WorkerId(member % WORKERS)).into());
                return self.node("combined-worker", 0, Some(WORKERS + first / 2));
            }
            Shape::Of(name, room, below) => (vec![self.node(name, *room, None)], below),
            Shape::Two(names, below) => {
                let above = self.node("probe", 0, None);
                (std::iter::once(above).chain(names.map(|name| self.node(name, 0, None))).collect(), below)
            }
        };
        let lowest = if nodes.len() == 1 { &nodes[..] } else { &nodes[1..] };
        let children: Vec<NodeId> = below.iter().map(|shape| self.add(shape)).collect();
        let workers: WorkerSet =
            children.iter().flat_map(|child| self.parts[child.index()].workers.iter().collect::<Vec<_>>()).collect();
        let links = |children: &[NodeId]| children.iter().map(|child| (*child, String::new())).collect();
        for node in &nodes {
            let below = if lowest.contains(node) { &children[..] } else { lowest };
            let part = &mut self.parts[node.index()];
            (part.children, part.workers) = (links(below), workers.clone());
            part.workers_in_context.clone_from(&workers);
        }
        nodes[0]
    }
}
