//! Distribution of a file's top-level definitions to the policies that use them.

use super::element::{Element, Policy, Shared};
use std::collections::{BTreeSet, HashMap};

/// Gives each policy the definitions of the file that it uses, directly or through others. An unused definition goes to
/// the first policy, so that the check reports it.
pub(super) fn distribute_shared(policies: &mut [Policy], definitions: &[Shared]) {
    let mut given = vec![false; definitions.len()];
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, definition) in definitions.iter().enumerate() {
        by_name.entry(&definition.name).or_default().push(index);
    }
    for policy in policies.iter_mut() {
        let mut wanted: Vec<String> = Vec::new();
        uses(&policy.root, &mut wanted);
        policy.shared.iter().for_each(|shared| uses(&shared.children, &mut wanted));
        let mut taken = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            // A definition of the same name in the policy stays; the check reports the duplicate.
            for index in by_name.get(name.as_str()).into_iter().flatten().copied() {
                if taken.insert(index) {
                    given[index] = true;
                    uses(&definitions[index].children, &mut wanted);
                }
            }
        }
        policy.shared.extend(taken.into_iter().map(|index| definitions[index].clone()));
    }
    if let Some(first) = policies.first_mut() {
        let unused =
            definitions.iter().zip(given).filter(|(_, given)| !given).map(|(definition, _)| definition.clone());
        first.shared.extend(unused);
    }
}

fn uses(elements: &[Element], found: &mut Vec<String>) {
    for element in elements {
        match element {
            Element::Use(link) => found.push(link.name.clone()),
            other => uses(other.children(), found),
        }
    }
}
