//! Distribution of a file's top-level definitions to the policies that use them.

use super::element::{Element, Policy, Shared};

/// Gives each policy the definitions of the file that it uses, directly or through others. An unused definition goes to
/// the first policy, so that the check reports it.
pub(super) fn distribute_shared(policies: &mut [Policy], definitions: &[Shared]) {
    let mut given = vec![false; definitions.len()];
    for policy in policies.iter_mut() {
        let mut wanted: Vec<String> = Vec::new();
        uses(&policy.root, &mut wanted);
        policy.shared.iter().for_each(|shared| uses(&shared.children, &mut wanted));
        let mut taken = vec![false; definitions.len()];
        let mut next = 0;
        while let Some(name) = wanted.get(next).cloned() {
            // A definition of the same name in the policy stays; the check reports the duplicate.
            for (index, definition) in definitions.iter().enumerate() {
                if definition.name == name && !taken[index] {
                    taken[index] = true;
                    given[index] = true;
                    uses(&definition.children, &mut wanted);
                }
            }
            next += 1;
        }
        let taken = definitions.iter().zip(taken).filter(|(_, taken)| *taken).map(|(definition, _)| definition.clone());
        policy.shared.extend(taken);
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
