//! Definitions at the top of a file, given to the policies that use them.

use super::part::{Part, Policy, Shared};

/// Gives each policy the definitions of the file that it uses, directly or through others. One that no policy uses goes
/// to the first, so that the check reports it.
pub(super) fn share_out(policies: &mut [Policy], definitions: &[Shared]) {
    let mut given = vec![false; definitions.len()];
    for policy in policies.iter_mut() {
        let mut wanted: Vec<String> = Vec::new();
        uses(&policy.root, &mut wanted);
        policy.shared.iter().for_each(|shared| uses(&shared.children, &mut wanted));
        let mut taken = vec![false; definitions.len()];
        let mut next = 0;
        while let Some(name) = wanted.get(next).cloned() {
            // A policy's own definition of the same name is added to, and reported by the check as given twice.
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

fn uses(parts: &[Part], found: &mut Vec<String>) {
    for part in parts {
        match part {
            Part::Use(link) => found.push(link.name.clone()),
            other => uses(other.children(), found),
        }
    }
}
