use super::platform::find;
use super::*;
use sched_graph::generate::cholesky;
use sched_policy::library;
use sched_trace::Digest;
use sched_tree::Part;

/// Digest of the events of a run, with the parts of the tree changed by `change` before.
fn digest(policy: &Policy, platform: &Arc<Platform>, registry: &Arc<Registry>, change: impl Fn(&mut Part)) -> u64 {
    let graph = Arc::new(cholesky(7, 960));
    let policy_env = PolicyEnv { registry: Arc::clone(registry), seed: 7 };
    let mut contexts = openings(policy.clone(), Vec::new(), platform, &policy_env).expect("the policy fits");
    contexts[0].parts.iter_mut().for_each(change);
    let combined = platform.combined_members();
    let lengths = Lengths::new(&graph, platform, &combined).expect("every task can run");
    let dependencies = graph.dependencies();
    let mut digest = Digest::default();
    let backend = SimBackend::new(graph, Arc::new(dependencies), Arc::clone(platform), lengths, combined);
    let outcome = Engine::new(backend, policy_env, contexts, Vec::new(), &mut digest).and_then(Engine::run);
    assert_eq!(outcome.expect("it runs to the end").faults, [], "{}: every component is as it declares", policy.name);
    digest.value()
}

#[test]
fn components_that_are_called_after_all_change_nothing() {
    let registry = Arc::new(Registry::compiled_in());
    for platform in ["cpu9-gpu3", "numa-2x12"] {
        let platform = Arc::new(find(platform).expect("it is shipped"));
        for shipped in library() {
            let policy = shipped.policy();
            let expected = digest(&policy, &platform, &registry, |_| {});
            let check = |what: &str, change: fn(&mut Part)| {
                assert_eq!(digest(&policy, &platform, &registry, change), expected, "{} without {what}", shipped.name);
            };
            check("forwards-pull", |part| part.claims.forwards_pull = false);
            check("empty-until-pushed", |part| part.claims.empty_until_pushed = false);
            check("end-is-noted", |part| part.claims.end_is_noted = false);
            check("any shortcut, and as it declares,", |part| part.attended = true);
        }
    }
}
