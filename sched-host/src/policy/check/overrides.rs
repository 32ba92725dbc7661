//! Rules about `override`.

use super::site::Subject;
use crate::policy::problem::Problem;
use crate::policy::suggest::closest;

/// Each component is chosen once, and stands in the policy.
pub(super) fn sound(subject: &Subject<'_>) -> Vec<Problem> {
    let policy = subject.policy;
    let mut problems = Vec::new();
    for (index, chosen) in policy.overrides.iter().enumerate() {
        let name = &chosen.component;
        if let Some(first) = policy.overrides[..index].iter().find(|first| first.component == *name) {
            problems.push(
                Problem::error(format!("`override \"{name}\"` is given twice"))
                    .at(chosen.span, "again here")
                    .at(first.span, "first here")
                    .help("leave one of them out"),
            );
        } else if !policy.names(name) {
            problems.push(
                Problem::warning(format!("policy `{}` has no component `{name}`", policy.name))
                    .at(chosen.span, "overrides nothing")
                    .help("leave it out, or name a component of the policy"),
            );
        }
    }
    problems
}

/// There is what is chosen.
pub(super) fn offered(subject: &Subject<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for chosen in &subject.policy.overrides {
        let name = &chosen.component;
        let Err(offers) = subject.catalogue.chosen(chosen) else { continue };
        let known: Vec<String> = offers.iter().map(ToString::to_string).collect();
        problems.push(match &chosen.from {
            Some(from) if !offers.is_empty() => {
                let problem = Problem::error(format!("`{from}` offers no component `{name}`"))
                    .at(chosen.from_span, "neither a plugin nor a package that offers it");
                let problem = match closest(from, offers.iter().map(|entry| entry.short_name())) {
                    Some(name) => problem.help(format!("did you mean `{name}`?")),
                    None => problem,
                };
                problem.help(format!("`{name}` is offered by {}", known.join(" and by ")))
            }
            Some(_) => {
                Problem::error(format!("no plugin offers a component `{name}`")).at(chosen.span, "overridden here")
            }
            None => {
                let problem = Problem::error(format!("no plugin offers another component `{name}`"));
                let problem = problem.at(chosen.span, "overridden here");
                if known.is_empty() {
                    problem
                } else {
                    problem.help(format!("it is offered by {}", known.join(" and by ")))
                }
            }
        });
    }
    problems
}
