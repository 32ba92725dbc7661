//! An assembled tree: the value behind the gate of a [`Tree`](super::Tree), which is exchanged as a whole.

use super::Part;
use super::attendance::{Post, PostNumber};
use super::attended::attended;
use super::backlog::Queued;
use super::call::Call;
use super::claims::Claims;
use super::expected_ends::{self, StraightBelow};
use super::fallback::Fallback;
use super::fault::Fault;
use super::ledger::{Ledger, NodeId, NodeNumber, Phase, Slot};
use super::lookahead::{Foresight, Lookahead};
use super::neighbours::ContextFacts;
use super::node::{NodeParts, Origin, ParentLink, TreeNode};
use super::observer::Observed;
use super::place::Place;
use super::prospects::{self, RunPlaces};
use super::services::Services;
use super::shared_part::{Joining, SharedPart};
use super::straight_back::{Saves, StraightBack};
use super::survey::NodeState;
use super::swap::SwapError;
use super::teams::Teams;
use parking_lot::Mutex;
use sched_core::abi::ComponentObject;
use sched_core::abi::wire::{NO_ID, RawWorker, place};
use sched_core::{Refusal, SharedSet, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};

/// Environment of all trees of one context: workers, back end, ledger and seed.
pub(super) struct TreeEnv {
    /// Each worker, simple or combined.
    pub(super) workers: Arc<[RawWorker]>,
    pub(super) teams: Arc<Teams>,
    pub(super) services: Arc<dyn Services>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) fallback: Arc<Fallback>,
    pub(super) straight_back: Arc<StraightBack>,
    /// Source of tasks to come, for components that ask.
    pub(super) lookahead: Option<Arc<dyn Lookahead>>,
    /// Seeds the randomness of every node.
    pub(super) seed: u64,
    /// The context that trees serve.
    pub(super) context: Mutex<Arc<ContextFacts>>,
}

/// A tree, with everything that hops need. Without nodes it gives no task, and stores pushed tasks in the fallback
/// store.
pub(crate) struct LiveTree {
    pub(super) nodes: Box<[TreeNode]>,
    /// Number of its first node among the nodes of all trees.
    pub(super) first: NodeNumber,
    /// The leaf of each worker, simple or combined.
    pub(super) leaves: Box<[Option<NodeId>]>,
    /// For each simple worker: its leaf, and those of its combined workers.
    pub(super) leaves_for: Box<[Box<[NodeId]>]>,
    pub(super) teams: Arc<Teams>,
    /// Each worker, simple or combined.
    pub(super) workers: Arc<[RawWorker]>,
    pub(super) services: Arc<dyn Services>,
    /// The sleeping workers.
    pub(super) sleeping: Arc<SharedSet>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) fallback: Arc<Fallback>,
    /// Whether a worker gets from its next pull what it has pushed.
    pub(super) saves: Saves,
    pub(super) straight_back: Arc<StraightBack>,
    /// Whether a node was quarantined whose tasks were not taken back yet.
    pub(super) repairs: AtomicBool,
    /// Whether a node was ever quarantined.
    pub(super) has_failures: AtomicBool,
    /// Source of tasks to come, for components that ask.
    pub(super) foresight: Option<Arc<Foresight>>,
    /// Observer of the movements of tasks, if any.
    pub(super) observed: Option<Observed>,
    /// Nodes whose components hear of the execution of tasks.
    pub(super) listeners: Box<[NodeId]>,
    pub(super) context: Arc<ContextFacts>,
}

impl LiveTree {
    /// Whether some of these parts are shared with other trees.
    pub(super) fn shares(parts: &[Part]) -> bool {
        parts.iter().any(|part| part.sharing.is_some())
    }

    /// Assembles parts; part 0 is the root. With shared parts, the caller keeps other trees from being
    /// [exchanged](super::shared_part::SharedParts::exchanging). Shared parts that only the tree `renewed` has are made
    /// anew.
    ///
    /// # Errors
    /// All trees together would have too many nodes, or another tree defines a shared part otherwise.
    ///
    /// # Panics
    /// If the number of a child is not that of a later part: plans are checked before.
    pub(super) fn assemble(
        mut parts: Vec<Part>,
        env: &TreeEnv,
        renewed: Option<NodeNumber>,
    ) -> Result<LiveTree, SwapError> {
        // One more for tasks that a call takes past a failed node.
        let count = parts.len() as u32 + 1;
        let first = env.ledger.take_numbers(count, Arc::clone(&env.fallback)).ok_or(SwapError::TooLarge)?;
        let joining = Joining { parts: &env.ledger.shared_parts, tree: first, fallback: &env.fallback, renewed };
        let shared = joining.join(&mut parts, |part, component| match part.attended {
            true => attend(post_of(part), &part.claims, component, env),
            false => (component, None),
        });
        let shared = shared.inspect_err(|_| env.ledger.give_numbers_back(first))?;
        let paths: Vec<&str> = parts.iter().map(|part| part.path.as_str()).collect();
        let observed = Observed::of(&*env.services, &paths);
        let links = Links::of(&parts);
        let places: Arc<[Place]> = (0..parts.len()).map(|id| place_of(id, &parts[id], &links, env)).collect();
        let leaves = Leaves::of(&parts, &env.teams);
        let foresight = env.lookahead.as_ref().map(|lookahead| Arc::new(Foresight::new(Arc::clone(lookahead))));
        let nodes = nodes(parts, shared, links, &places, env, first);
        let nodes = linked(nodes, &leaves, foresight.as_ref());
        let leaves_for: Box<[Box<[NodeId]>]> = leaves.for_member.into_iter().map(Vec::into_boxed_slice).collect();
        env.ledger.backlogs.add(first, &nodes, &leaves_for);
        let listeners = LiveTree::find_listeners(&nodes);
        if !listeners.is_empty() {
            env.services.report_executions();
        }
        Ok(LiveTree {
            saves: if observed.is_none() { Saves::by(&nodes, &leaves_for) } else { Saves::default() },
            straight_back: Arc::clone(&env.straight_back),
            listeners,
            context: Arc::clone(&env.context.lock()),
            nodes,
            first,
            leaves: leaves.of_worker.into(),
            leaves_for,
            teams: Arc::clone(&env.teams),
            workers: Arc::clone(&env.workers),
            services: Arc::clone(&env.services),
            sleeping: env.services.sleeping(),
            ledger: Arc::clone(&env.ledger),
            fallback: Arc::clone(&env.fallback),
            repairs: AtomicBool::new(false),
            has_failures: AtomicBool::new(false),
            foresight,
            observed,
        })
    }

    /// Numbers of its nodes among the nodes of all trees.
    pub(super) fn numbers(&self) -> Range<NodeNumber> {
        self.first..self.first.of(NodeId::at(self.nodes.len()))
    }

    #[inline]
    pub(super) fn can_execute(&self, worker: WorkerId, slot: &Slot) -> bool {
        self.fits(worker.0, slot.head())
    }

    /// Whether the simple worker, or each member of the combined one, is in a set of workers that tasks are restricted
    /// to.
    pub(super) fn may_execute(&self, restriction: u64, worker: WorkerId) -> bool {
        let in_set = |worker: &WorkerId| self.ledger.restrictions.contains(restriction, *worker);
        self.teams.of(worker).map_or_else(|| in_set(&worker), |members| members.iter().all(in_set))
    }

    /// Leaf of a worker, if the worker belongs to this context.
    #[inline]
    pub(super) fn leaf(&self, worker: WorkerId) -> Option<NodeId> {
        self.leaves.get(worker.index()).copied().flatten()
    }

    /// Moves a task that the caller owns to the fallback store; handles to it become stale.
    pub(super) fn fall_back(&self, slot: &'static Slot) {
        slot.renew(Phase::Fallback);
        self.fallback.put(slot);
    }

    /// Notifies components that workers were added or removed, or that the tree is new. The caller is alone.
    pub(super) fn notify_change_workers(&self) {
        let call = Call::new(self, None, u32::MAX);
        for node in &self.nodes {
            node.with(&call, |component, raw| component.notify_change_workers(raw));
        }
    }

    /// Takes back the tasks of quarantined nodes, and wakes every sleeping worker. The caller is alone.
    ///
    /// The call that failed may have been about to wake somebody (`can_pull`), or to fetch tasks from above
    /// (`can_push`). Which tasks those were is not known, so every worker looks once more, now that calls pass through
    /// the node.
    pub(super) fn repair(&self) {
        self.repairs.store(false, Release);
        self.see_failures();
        let numbers = self.numbers();
        let failed = |number: NodeNumber| {
            let node = numbers.contains(&number).then(|| &self.nodes[number.in_tree(self.first).index()])?;
            (node.is_quarantined() && node.shared.is_none()).then_some(node)
        };
        // All slots are looked at once, however many nodes have failed.
        for slot in self.ledger.held_where(|number| failed(number).is_some()) {
            if let Phase::InTree(number) = slot.phase()
                && let Some(node) = failed(number)
                && slot.take_from(&number.alone(), Phase::Fallback)
            {
                node.health.rehomed.fetch_add(1, Relaxed);
                self.fallback.put(slot);
            }
        }
        self.wake_members();
    }

    /// [`fall_back`](Self::fall_back) of a task that was at `node`.
    #[cold]
    pub(super) fn fall_back_from(&self, node: &TreeNode, slot: &'static Slot) {
        slot.renew(Phase::Fallback);
        self.store_for(node, slot).put(slot);
    }

    /// Faults of components so far, in order of nodes.
    pub(super) fn faults(&self) -> Vec<Fault> {
        let lost = self.ledger.lost_by(self.first);
        self.nodes.iter().flat_map(|node| node.faults(lost.get(&node.number).copied().unwrap_or(0))).collect()
    }

    /// State of each node. Components describe themselves only if the caller is alone: one that hangs may hold its own
    /// lock.
    pub(super) fn survey(&self, alone: bool) -> Vec<NodeState> {
        let mut held: BTreeMap<NodeNumber, u64> = BTreeMap::new();
        for slot in self.ledger.slots() {
            if let Phase::InTree(node) = slot.phase() {
                *held.entry(node).or_insert(0) += 1;
            }
        }
        let call = Call::new(self, None, u32::MAX);
        let states = self.nodes.iter().map(|node| {
            let facts = if alone && !node.is_quarantined() {
                let facts = node.with(&call, |component, raw| component.describe(raw));
                facts.into_iter().map(|fact| (fact.0.to_string(), fact.1.to_string())).collect()
            } else {
                Vec::new()
            };
            let code = node.health.last_refusal.load(Relaxed);
            NodeState {
                context: String::new(),
                node: node.place().path().to_owned(),
                component: node.origin.component.clone(),
                plugin: node.origin.plugin.clone(),
                tasks: held.get(&node.number).copied().unwrap_or(0),
                refusals: node.health.refusals.load(Relaxed),
                last_refusal: (code != 0).then(|| Refusal::from_code(code).to_string()),
                quarantined: node.is_quarantined(),
                silences: node.silences(),
                facts,
            }
        });
        states.collect()
    }
}

impl Drop for LiveTree {
    /// Tasks that components still hold have no owner; their drop is no fault.
    fn drop(&mut self) {
        self.leave_shared();
        let numbers = self.numbers();
        for slot in self.ledger.slots() {
            slot.take_from(&numbers, Phase::Waiting);
        }
        self.ledger.backlogs.remove(self.first);
        self.ledger.give_numbers_back(self.first);
    }
}

/// Links between the nodes of a tree, by node id.
struct Links {
    /// For each node: its parents, with its number among the children of each.
    parents: Vec<Vec<ParentLink>>,
    /// For each node: its slot at its parent; empty for an unnamed slot.
    slots: Vec<String>,
    /// For each node: the nodes that a pull asks, past parents that only forward pulls.
    sources: Vec<Vec<ParentLink>>,
    /// For each node: whether tasks that it has are fetched for a component below.
    fetches_below: Vec<bool>,
}

impl Links {
    fn of(parts: &[Part]) -> Links {
        let mut parents = vec![Vec::new(); parts.len()];
        let mut slots = vec![String::new(); parts.len()];
        for (id, part) in parts.iter().enumerate() {
            for (number, (child, slot)) in part.children.iter().enumerate() {
                assert!(child.index() > id, "a child comes after its parent");
                parents[child.index()].push(ParentLink { parent: NodeId::at(id), child: number as u32 });
                slots[child.index()].clone_from(slot);
            }
        }
        // Parents come first, so their sources are known.
        let mut sources: Vec<Vec<ParentLink>> = Vec::with_capacity(parts.len());
        for above in &parents {
            let forwards = |part: &Part| part.claims.forwards_pull && !part.attended;
            let asked = |link: &ParentLink| match forwards(&parts[link.parent.index()]) {
                true => sources[link.parent.index()].clone(),
                false => vec![*link],
            };
            let asked = above.iter().flat_map(asked).collect();
            sources.push(asked);
        }
        let mut fetches_below = vec![false; parts.len()];
        for (id, part) in parts.iter().enumerate().rev() {
            let fetches = |child: usize| parts[child].claims.pushes_on_pull || fetches_below[child];
            let some_fetches = part.children.iter().any(|(child, _)| fetches(child.index()));
            fetches_below[id] = some_fetches && !part.claims.pushes_on_pull;
        }
        Links { parents, slots, sources, fetches_below }
    }
}

/// The leaves of a tree.
struct Leaves {
    /// The leaf of each worker, simple or combined.
    of_worker: Vec<Option<NodeId>>,
    /// For each simple worker: its leaf, and those of its combined workers.
    for_member: Vec<Vec<NodeId>>,
}

impl Leaves {
    fn of(parts: &[Part], teams: &Teams) -> Leaves {
        let mut leaves =
            Leaves { of_worker: vec![None; teams.count()], for_member: vec![Vec::new(); teams.count_simple()] };
        for (id, part) in parts.iter().enumerate() {
            // A part that contexts share has leaves for workers of others too.
            let worker = part.worker.filter(|worker| part.workers_in_context.contains(*worker));
            if let Some(leaf) = worker.and_then(|worker| leaves.of_worker.get_mut(worker.index())) {
                *leaf = Some(NodeId::at(id));
                for member in teams.simple(&part.workers).iter() {
                    leaves.for_member[member.index()].push(NodeId::at(id));
                }
            }
        }
        leaves
    }
}

/// The place of a node in the tree, as its component sees it.
fn place_of(id: usize, part: &Part, links: &Links, env: &TreeEnv) -> Place {
    let workers = (part.workers.words(), part.workers_in_context.words());
    Place::new(&part.path, &part.object, &links.slots[id], workers, |raw| {
        raw.id = id as u32;
        raw.children = part.children.len() as u32;
        raw.parents = links.parents[id].len() as u32;
        raw.worker = part.worker.map_or(NO_ID, |worker| worker.0);
        let simple = env.teams.simple(&part.workers_in_context);
        let below = || simple.iter().filter_map(|worker| env.workers.get(worker.index()));
        raw.relative_speedup = below().map(|worker| worker.relative_speedup).sum();
        if let Some(first) = below().next() {
            if below().all(|worker| worker.arch == first.arch) {
                raw.flags |= place::HOMOGENEOUS;
            }
            if below().all(|worker| worker.memory_node == first.memory_node) {
                raw.flags |= place::SINGLE_MEMORY_NODE;
                raw.memory_node = first.memory_node;
            }
        }
        if part.worker.is_some() {
            raw.flags |= place::LEAF;
        }
        if !env.services.transfers() {
            raw.flags |= place::NO_TRANSFERS;
        }
    })
}

/// Creates the nodes, without the fields that depend on other nodes.
fn nodes(
    parts: Vec<Part>,
    shared: Vec<Option<Arc<SharedPart>>>,
    links: Links,
    places: &Arc<[Place]>,
    env: &TreeEnv,
    first: NodeNumber,
) -> Box<[TreeNode]> {
    // Without expected ends, leaves note at each pull how long their worker should be busy.
    let has_expected_ends = env.services.busy_until(WorkerId(0)).is_some();
    let Links { fetches_below, .. } = links;
    let linked = parts.into_iter().zip(links.parents).zip(links.sources).enumerate();
    let mut shared = shared.into_iter();
    let node = |(id, ((part, parents), sources)): (usize, ((Part, Vec<_>), Vec<_>))| {
        let shared = shared.next().flatten();
        let (component, post) = match &shared {
            Some(shared) => (part.component.place(), shared.post.clone()),
            None if part.attended => attend(post_of(&part), &part.claims, part.component.place(), env),
            None => (part.component.place(), None),
        };
        // Declarations of an attended component are compared with what it does, so it is called.
        let relies = has_expected_ends && !part.attended;
        TreeNode::new(NodeParts {
            id: NodeId::at(id),
            number: first.of(NodeId::at(id)),
            // Other trees push to a shared component too.
            empty_until_pushed: part.claims.empty_until_pushed && relies && shared.is_none(),
            end_is_noted: part.claims.end_is_noted && relies,
            stores_any_number: part.claims.stores_any_number,
            refuses_with_children: part.claims.forwards_push && !part.claims.stores && shared.is_none(),
            pushes_on_pull: part.claims.pushes_on_pull && !parents.is_empty(),
            fetches_below: fetches_below[id],
            keeps_state: part.claims.keeps_state,
            hears_tasks: part.claims.hears_tasks,
            newest_comes_back: part.claims.newest_comes_back,
            waits_at_home: part.claims.waits_at_home,
            family: part.claims.family,
            children: part.children.iter().map(|(child, _)| *child).collect(),
            parents: parents.into(),
            sources: sources.into(),
            places: Arc::clone(places),
            workers: Arc::clone(&env.workers),
            worker_groups: prospects::worker_groups(&part.workers_in_context, env),
            teams: env.teams.below(&part.workers_in_context, &env.workers),
            seed: env.seed,
            post,
            shared,
            component,
            origin: Box::new(Origin { component: part.name, plugin: part.plugin, params: part.params }),
        })
    };
    linked.map(node).collect()
}

/// A component whose calls are noted at this post.
fn attend(
    post: Post,
    claims: &Claims,
    component: ComponentObject,
    env: &TreeEnv,
) -> (ComponentObject, Option<Arc<PostNumber>>) {
    let has_expected_ends = env.services.busy_until(WorkerId(0)).is_some();
    let number = Arc::new(PostNumber::new(post));
    let claims = Claims { end_is_noted: claims.end_is_noted && has_expected_ends, ..*claims };
    (attended(component, Arc::clone(&number), claims), Some(number))
}

/// What the reports of calls that do not come back say of a part.
fn post_of(part: &Part) -> Post {
    Post::component(&*part.path, &*part.name, &*part.plugin)
}

/// Completes nodes with what depends on those below them.
fn linked(mut nodes: Box<[TreeNode]>, leaves: &Leaves, foresight: Option<&Arc<Foresight>>) -> Box<[TreeNode]> {
    let mut last_queued: Vec<Option<Queued>> = leaves.for_member.iter().map(|_| None).collect();
    // Children come later, so theirs are known.
    for id in (0..nodes.len()).rev() {
        nodes[id].straight = expected_ends::straight(&nodes[id], &nodes, &leaves.for_member);
        if let Some((worker, _)) = nodes[id].straight.as_ref().filter(|_| nodes[id].shared.is_none()) {
            let last = &mut last_queued[worker.index()];
            nodes[id].queued = last.as_ref().map_or_else(Queued::default, Queued::beside);
            *last = Some(nodes[id].queued.clone());
        }
        nodes[id].straight_below = StraightBelow::of(&nodes[id], &nodes);
        nodes[id].foresight = foresight.cloned();
        nodes[id].first_equals = prospects::first_equals(&nodes[id], &nodes);
        nodes[id].equal_runs = prospects::equal_runs(&nodes[id].first_equals);
        nodes[id].run_places = RunPlaces::of(&nodes[id], &nodes);
    }
    nodes
}
