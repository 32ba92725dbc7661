//! The rule that components that decide by performance models get only tasks with a model.

use super::site::Subject;
use sched_text::Finding;

/// The slot whose tasks have a calibrated model.
const SLOT: &str = "perfmodel";

/// V5: every path from the root to a component that needs models passes a slot for tasks that have one.
pub(super) fn models(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    subject.descend(subject.roots(), |known| {
        if known.info.needs_models {
            let name = known.name();
            let selects = subject.catalogue.iter().find(|entry| entry.info.slots.iter().any(|slot| slot.name == SLOT));
            let help = match selects {
                Some(entry) => {
                    let slots = entry.info.slots.iter().map(|slot| match slot.name.as_str() {
                        SLOT => format!("{SLOT} {{ {name} {{ … }} }}"),
                        other => format!("{other} {{ … }}"),
                    });
                    format!("write `{} {{ {} }}`", entry.info.name, slots.collect::<Vec<_>>().join("; "))
                }
                None => format!("load a plugin with a component that has a slot `{SLOT}`, such as `perfmodel-select`"),
            };
            findings.push(
                Finding::error(format!("`{name}` decides by performance models, and may get tasks without one"))
                    .at(known.span(), format!("expected below a slot `{SLOT}`"))
                    .help(help),
            );
        }
        let slots = subject.slots_of(known);
        if slots.iter().any(|slot| slot.name == SLOT) {
            let others = slots.into_iter().filter(|slot| slot.name != SLOT);
            return others.flat_map(|slot| subject.components_of(&slot.children)).collect();
        }
        subject.children_of(known)
    });
    findings
}
