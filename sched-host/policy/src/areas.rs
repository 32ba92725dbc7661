//! Scheduling areas: the parts of a plan between its reservoirs.

use super::plan::{NodeIndex, PlanNode, TreePlan};
use sched_core::{Family, Value};
use std::collections::HashSet;

/// A scheduling area: the part of a tree between a reservoir, or the application, and the reservoirs and workers below.
///
/// A *reservoir* is a component that stores tasks. Tasks cross an area without being stored, moved by its *pumps*:
/// components that push into it from above, or pull out of it from below. A component with several parents may be in
/// several areas.
///
/// ```
/// # use sched_policy::*;
/// # use sched_text::Findings;
/// # use sched_core::{Family, Info, Storage};
/// # let fifo = Info::new("fifo", Family::FlowControl, "").storage(Storage::Unbounded);
/// # let catalogue = Catalogue::new([(fifo.describe(), "p"), (Info::new("worker", Family::Worker, "").describe(), "p")]);
/// let policy = &parse("one.kdl", r#"policy "one" { fifo { worker } }"#)?[0];
/// let plan = expand(policy, &catalogue, &FlatMachine { workers: 1 })?;
/// let areas = plan.areas();
/// assert_eq!(areas.len(), 2);
/// assert_eq!((areas[0].above, &areas[0].below), (None, &vec![NodeIndex(0)]), "from the application to the fifo");
/// assert_eq!((areas[1].above, &areas[1].workers), (Some(NodeIndex(0)), &vec![NodeIndex(1)]));
/// # Ok::<(), Findings>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Area {
    /// Reservoir whose tasks enter the area; `None` where the application pushes them.
    pub above: Option<NodeIndex>,
    /// Components in the area, which store nothing.
    pub through: Vec<NodeIndex>,
    /// Reservoirs below.
    pub below: Vec<NodeIndex>,
    /// Leaves below. Each is a pump: it pulls.
    pub workers: Vec<NodeIndex>,
}

impl Area {
    /// Whether the reservoir above pushes into the area when there is room below; otherwise it waits to be pulled.
    #[must_use]
    pub fn is_pumped_down(&self, plan: &TreePlan) -> bool {
        self.above.is_none_or(|node| !plan[node].info.pulled_only)
    }
}

impl PlanNode {
    /// Whether it stores tasks, and is no leaf.
    #[must_use]
    pub fn is_reservoir(&self) -> bool {
        self.info.stores && self.info.family != Family::Worker
    }

    /// Parameters that bound its storage; none for an unbounded one.
    pub fn bounds(&self) -> impl Iterator<Item = (&str, &Value)> {
        let bounding = |name: &str, value: &Value| self.info.bounds.iter().any(|bound| bound == name) && bounds(value);
        self.params.iter().filter(move |(name, value)| bounding(name, value))
    }
}

/// Whether a parameter of this value bounds a storage: 0 means no limit.
pub(super) fn bounds(value: &Value) -> bool {
    match value {
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Bool(set) => *set,
        Value::Text(text) => !text.is_empty(),
    }
}

impl TreePlan {
    /// The scheduling areas, from the application down.
    #[must_use]
    pub fn areas(&self) -> Vec<Area> {
        let reservoirs = self.nodes.iter().filter(|node| node.is_reservoir());
        let below = reservoirs.map(|node| self.area(Some(node.id), node.children.iter().map(|child| child.node)));
        std::iter::once(self.area(None, [self.root().id])).chain(below).collect()
    }

    fn area(&self, above: Option<NodeIndex>, top: impl IntoIterator<Item = NodeIndex>) -> Area {
        let mut area = Area { above, through: Vec::new(), below: Vec::new(), workers: Vec::new() };
        let mut seen = HashSet::new();
        let mut next: Vec<NodeIndex> = top.into_iter().collect();
        while let Some(node) = next.pop() {
            if !seen.insert(node) {
                continue;
            }
            let node = &self[node];
            if node.leaf_worker.is_some() {
                area.workers.push(node.id);
            } else if node.is_reservoir() {
                area.below.push(node.id);
            } else {
                area.through.push(node.id);
                next.extend(node.children.iter().map(|child| child.node));
            }
        }
        [&mut area.through, &mut area.below, &mut area.workers].into_iter().for_each(|nodes| nodes.sort_unstable());
        area
    }
}
