//! Checks of a component's description.

use sched_core::{Arity, ComponentInfo, Family, ParamInfo, ParamKind};
use sched_policy::WORDS;
use std::collections::HashSet;

/// All problems that keep a component from being used, one line each.
pub(super) fn faults(info: &ComponentInfo) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_kebab(&info.name) {
        faults.push("its name is not lower-case words joined by `-`".to_owned());
    } else if WORDS.contains(&&*info.name) {
        faults.push("its name is a word of the policy language, so that no policy could name it".to_owned());
    }
    let mut names = HashSet::new();
    for param in &info.params {
        if !names.insert(&param.name) {
            faults.push(format!("it has two parameters `{}`", param.name));
        }
        faults.extend(param_faults(param));
    }
    for bound in &info.bounds {
        if info.param(bound).is_none() {
            faults.push(format!("its storage is bounded by `{bound}`, which is no parameter of it"));
        }
    }
    let mut slots = HashSet::new();
    for slot in &info.slots {
        if !slots.insert(&slot.name) {
            faults.push(format!("it has two slots `{}`", slot.name));
        }
        if !is_kebab(&slot.name) {
            faults.push(format!("the name of slot `{}` is not lower-case words joined by `-`", slot.name));
        } else if WORDS.contains(&&*slot.name) {
            let fault = "is a word of the policy language, so that no policy could fill it";
            faults.push(format!("the name of slot `{}` {fault}", slot.name));
        }
    }
    match (info.family == Family::Worker, info.arity == Arity::Leaf) {
        (false, true) => faults.push(format!(
            "it is of the {} family and takes no children, as components of the worker family alone do",
            info.family
        )),
        (true, false) => faults.push("it is of the worker family and takes children: a worker has none".to_owned()),
        (true, true) | (false, false) => {}
    }
    match (matches!(info.arity, Arity::Slots | Arity::ManyAndSlots), info.slots.is_empty()) {
        (true, true) => faults.push("it has a child for each slot, and no slots".to_owned()),
        (false, false) => faults.push("it has slots, and its children do not go into slots".to_owned()),
        (true, false) | (false, true) => {}
    }
    faults
}

fn param_faults(param: &ParamInfo) -> Vec<String> {
    let mut faults = Vec::new();
    if !is_kebab(&param.name) {
        faults.push(format!("the name of parameter `{}` is not lower-case words joined by `-`", param.name));
    }
    if let ParamKind::Choice(of) = &param.kind {
        for choice in of.iter().filter(|choice| !is_kebab(choice)) {
            faults.push(format!("the choice `{choice}` of `{}` is not lower-case words joined by `-`", param.name));
        }
    }
    if param.default.clone().coerce(&param.kind).is_none() {
        faults.push(format!("the default of `{}` is {}, expected {}", param.name, param.default, param.kind));
    }
    faults
}

/// Omissions and contradictions that operators should know, one line each. The component can be used nevertheless.
pub(super) fn warnings(info: &ComponentInfo) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut undocumented = |what: String, doc: &str| {
        if doc.trim().is_empty() {
            warnings.push(format!("{what} has no description"));
        }
    };
    undocumented(format!("component `{}`", info.name), &info.doc);
    for param in &info.params {
        undocumented(format!("parameter `{}` of component `{}`", param.name, info.name), &param.doc);
    }
    for slot in &info.slots {
        undocumented(format!("slot `{}` of component `{}`", slot.name, info.name), &slot.doc);
    }
    if !info.stores && !info.bounds.is_empty() {
        warnings.push(format!("component `{}` bounds its storage, and is not declared to store tasks", info.name));
    }
    if info.combined && info.arity != Arity::Leaf {
        warnings.push(format!("component `{}` is declared a leaf for combined workers, and takes children", info.name));
    }
    for param in &info.params {
        let ParamKind::Choice(of) = &param.kind else { continue };
        let mut seen = HashSet::new();
        for choice in of.iter().filter(|choice| !seen.insert(*choice)) {
            warnings.push(format!(
                "parameter `{}` of component `{}` has the choice `{choice}` twice",
                param.name, info.name
            ));
        }
    }
    warnings
}

/// Lower-case words of letters and digits, joined by `-`; the first one starts with a letter.
fn is_kebab(name: &str) -> bool {
    let plain =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('-').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_core::{Info, Param, Slot, Storage, Value};

    #[test]
    fn a_good_description_has_no_faults() {
        const INFO: Info = Info::new("work-stealing2", Family::ResourceMapping, "Steals.")
            .storage(Storage::BoundedBy(&["ntasks-threshold"]))
            .params(const { &[Param::int("ntasks-threshold", 0, "tasks held at most").at_least(0)] });
        assert_eq!(faults(&INFO.describe()), Vec::<String>::new());
        assert_eq!(warnings(&INFO.describe()), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_told() {
        const INFO: Info = Info::new("Work_Stealing", Family::FlowControl, " ")
            .storage(Storage::BoundedBy(&["depth"]))
            .slots(&[Slot { name: "a", doc: "" }, Slot { name: "a", doc: "again" }])
            .arity(Arity::Many)
            .params(const { &[Param::int("Size", 0, "").at_least(1), Param::bool("on", true, "on")] });
        insta::assert_snapshot!(faults(&INFO.describe()).join("\n"), @"
        its name is not lower-case words joined by `-`
        the name of parameter `Size` is not lower-case words joined by `-`
        the default of `Size` is 0, expected a whole number of at least 1
        its storage is bounded by `depth`, which is no parameter of it
        it has two slots `a`
        it has slots, and its children do not go into slots
        ");
        insta::assert_snapshot!(warnings(&INFO.describe()).join("\n"), @"
        component `Work_Stealing` has no description
        parameter `Size` of component `Work_Stealing` has no description
        slot `a` of component `Work_Stealing` has no description
        ");
    }

    #[test]
    fn workers_have_no_children_and_others_have_some() {
        let of = |family, arity| faults(&Info::new("a", family, "").arity(arity).describe()).join("\n");
        insta::assert_snapshot!(of(Family::FlowControl, Arity::Leaf), @"it is of the flow-control family and takes no children, as components of the worker family alone do");
        insta::assert_snapshot!(of(Family::Worker, Arity::Many), @"it is of the worker family and takes children: a worker has none");
        assert_eq!(of(Family::Worker, Arity::Leaf) + &of(Family::SpecialPurpose, Arity::One), "");
    }

    #[test]
    fn what_only_c_can_say_is_checked() {
        let mut info = Info::new("a", Family::FlowControl, "Does it.").combined().describe();
        let kind = ParamKind::Choice(["x", "", "Y z", "x"].map(str::to_owned).to_vec());
        let (name, unit, doc) = ("order".to_owned(), String::new(), "The order.".to_owned());
        info.params.push(ParamInfo { name, kind, default: Value::Text("x".to_owned()), unit, doc });
        info.bounds.push("order".to_owned());
        insta::assert_snapshot!(faults(&info).join("\n"), @"
        the choice `` of `order` is not lower-case words joined by `-`
        the choice `Y z` of `order` is not lower-case words joined by `-`
        ");
        insta::assert_snapshot!(warnings(&info).join("\n"), @"
        component `a` bounds its storage, and is not declared to store tasks
        component `a` is declared a leaf for combined workers, and takes children
        parameter `order` of component `a` has the choice `x` twice
        ");
    }

    #[test]
    fn words_of_the_policy_language_name_nothing() {
        const INFO: Info = Info::new("each", Family::FlowControl, "Sorts tasks.")
            .slots(&[Slot { name: "use", doc: "Some." }, Slot { name: "others", doc: "All others." }])
            .arity(Arity::Slots);
        insta::assert_snapshot!(faults(&INFO.describe()).join("\n"), @"
        its name is a word of the policy language, so that no policy could name it
        the name of slot `use` is a word of the policy language, so that no policy could fill it
        ");
    }

    #[test]
    fn names_are_lower_case_words_joined_by_hyphens() {
        for name in ["fifo", "eager-prio", "l2", "a-1"] {
            assert!(is_kebab(name), "{name}");
        }
        for name in ["", "-", "fifo-", "-fifo", "a--b", "Fifo", "fifo_", "1fifo", "fïfo", "a b"] {
            assert!(!is_kebab(name), "{name}");
        }
    }
}
