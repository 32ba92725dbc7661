//! Rules about `override`.

use super::site::Subject;
use sched_text::Finding;
use sched_text::closest;

/// Each component is chosen once, and stands in the policy.
pub(super) fn sound(subject: &Subject<'_>) -> Vec<Finding> {
    let policy = subject.policy;
    let mut findings = Vec::new();
    for (index, chosen) in policy.overrides.iter().enumerate() {
        let name = &chosen.component;
        if let Some(first) = policy.overrides[..index].iter().find(|first| first.component == *name) {
            findings.push(
                Finding::error(format!("`override \"{name}\"` is given twice"))
                    .at(chosen.span, "again here")
                    .at(first.span, "first here")
                    .help("leave one of them out"),
            );
        } else if !policy.names(name) {
            findings.push(
                Finding::warning(format!("policy `{}` has no component `{name}`", policy.name))
                    .at(chosen.span, "overrides nothing")
                    .help("leave it out, or name a component of the policy"),
            );
        }
    }
    findings
}

/// There is what is chosen.
pub(super) fn offered(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for chosen in &subject.policy.overrides {
        let name = &chosen.component;
        let Err(offers) = subject.catalogue.chosen(chosen) else { continue };
        let known: Vec<String> = offers.iter().map(ToString::to_string).collect();
        findings.push(match &chosen.from {
            Some(from) if !offers.is_empty() => {
                let finding = Finding::error(format!("`{from}` offers no component `{name}`"))
                    .at(chosen.from_span, "neither a plugin nor a package that offers it");
                let finding = match closest(from, offers.iter().map(|entry| entry.short_name())) {
                    Some(name) => finding.help(format!("did you mean `{name}`?")),
                    None => finding,
                };
                finding.help(format!("`{name}` is offered by {}", known.join(" and by ")))
            }
            Some(_) => {
                Finding::error(format!("no plugin offers a component `{name}`")).at(chosen.span, "overridden here")
            }
            None => {
                let finding = Finding::error(format!("no plugin offers another component `{name}`"));
                let finding = finding.at(chosen.span, "overridden here");
                if known.is_empty() {
                    finding
                } else {
                    finding.help(format!("it is offered by {}", known.join(" and by ")))
                }
            }
        });
    }
    findings
}
