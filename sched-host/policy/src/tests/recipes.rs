//! Composed components: they behave as their parts, linked.

use super::{Node, shape};
use crate::{Component, Connect, Each, Level, Part, Policy, Recipe};
use proptest::prelude::*;
use sched_core::Value;

#[test]
fn a_recipe_of_one_is_the_component_and_an_empty_one_is_nothing() {
    let worker = || Component::new("worker");
    assert_eq!(Recipe::singleton("fifo".into()).over([worker()]), [Part::from(Component::new("fifo").child(worker()))]);
    assert_eq!(Recipe::new().over([worker(), worker()]), [Part::from(worker()), worker().into()]);
    assert!(Recipe::new().is_empty() && Recipe::new().compose(Recipe::new()).is_empty());
    assert_eq!(Recipe::from(Component::new("fifo")).add("prio".into()).components().len(), 2);
}

/// A recipe made of recipes made of recipes.
#[derive(Clone, Debug)]
enum Composed {
    One(Component),
    Row(Vec<Composed>),
}

impl Composed {
    fn recipe(&self) -> Recipe {
        match self {
            Composed::One(component) => Recipe::singleton(component.clone()),
            Composed::Row(row) => row.iter().fold(Recipe::new(), |recipe, inner| match inner {
                Composed::One(component) => recipe.add(component.clone()),
                Composed::Row(_) => recipe.compose(inner.recipe()),
            }),
        }
    }

    fn flat(&self) -> Vec<Component> {
        match self {
            Composed::One(component) => vec![component.clone()],
            Composed::Row(row) => row.iter().flat_map(Composed::flat).collect(),
        }
    }
}

/// Components that may stand anywhere below an unbounded queue, composed to any depth.
fn composed() -> impl Strategy<Value = Composed> {
    let one = prop_oneof![
        Just(Component::new("best-implementation")),
        Just(Component::new("stage")),
        (prop::sample::select(vec!["fifo", "prio"]), 0..4_i64)
            .prop_map(|(name, tasks)| Component::new(name).set("ntasks-threshold", Value::Int(tasks))),
    ];
    one.prop_map(Composed::One)
        .prop_recursive(4, 24, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Composed::Row))
}

proptest! {
    #[test]
    fn a_composed_component_behaves_as_its_parts_linked(
        above in composed(),
        below in composed(),
        cores in 1..3_u32,
        gpus in 0..2_u32,
    ) {
        // Recipes above a decision among workers, and above each worker.
        let workers = Each { children: below.recipe().over([Component::new("worker")]), ..Each::new(Level::Worker) };
        let tree = Recipe::singleton("fifo".into()).compose(above.recipe()).add("eager".into()).over([workers]);
        let policy = Policy::of_parts("composed", tree);

        let mut links = Connect::new();
        let mut last = links.add("fifo".into());
        let mut put = |links: &mut Connect, child| {
            links.connect(last, child);
            last = child;
        };
        for component in above.flat().into_iter().chain(["eager".into()]) {
            let child = links.add(component);
            put(&mut links, child);
        }
        for (depth, component) in below.flat().into_iter().chain(["worker".into()]).enumerate() {
            let child = if depth == 0 { links.add_each(Level::Worker, component) } else { links.add(component) };
            put(&mut links, child);
        }
        prop_assert_eq!(&links.policy("composed"), &policy);
        prop_assert_eq!(crate::parse("composed.kdl", &policy.to_kdl()).expect("it parses"), [policy.clone()]);
        let machine = Node { cores, gpus };
        prop_assert_eq!(shape(&policy, &machine), shape(&links.policy("linked"), &machine));
    }
}
