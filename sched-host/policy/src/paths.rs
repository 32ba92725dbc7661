//! The rule on paths of a plan: no component is reached from the root on more of them than can be tried.

use super::plan::TreePlan;
use sched_text::Finding;

/// Maximum number of paths from the root to a component. A level of two shared components doubles them, so a short text
/// could have more than can be tried in a lifetime.
const MOST_PATHS: u64 = 1 << 16;

/// Reports the first component that too many paths lead to. They are counted, not followed.
pub(super) fn check_paths(plan: &TreePlan) -> Option<Finding> {
    let mut paths = vec![0u64; plan.nodes.len()];
    *paths.first_mut()? = 1;
    // Parents come before their children.
    for node in &plan.nodes {
        let above = paths[node.id.0];
        if above > MOST_PATHS {
            let finding = Finding::error(format!(
                "there are {above} paths from the root to `{}`, more than {MOST_PATHS}",
                node.info.name
            ));
            return Some(
                finding
                    .at(node.span, "too many paths lead here")
                    .help("leave out a `use` in several of the shared definitions above it: each level multiplies them")
                    .help("why: a task that is pushed or pulled may try every path, one after the other")
                    .breaks("V6")
                    .code("policy::paths"),
            );
        }
        node.children.iter().for_each(|child| paths[child.node.0] += above);
    }
    None
}
