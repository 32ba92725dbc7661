//! "Did you mean": the known name that is closest to a mistyped one.

/// The candidate closest to `wrong`, if it is close enough to be a misspelling of it.
#[must_use]
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let wrong = plain(wrong);
    let far = |candidate: &str| (wrong.len().max(candidate.len()) / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wrong, &plain(candidate)), candidate))
        // A prefix of a name matches the name, whatever its length.
        .filter(|(distance, name)| *distance <= far(name) || wrong.len() >= 3 && plain(name).starts_with(&wrong))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Help text: the probable name or, if nothing is close, all known names.
#[must_use]
pub fn did_you_mean<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str> + Clone, known: &str) -> String {
    match closest(wrong, candidates.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let names: Vec<String> = candidates.into_iter().map(|name| format!("`{name}`")).collect();
            if names.is_empty() { format!("there are no {known}") } else { format!("{known}: {}", names.join(", ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn finds_what_was_meant() {
        let names = ["eager", "eager-prio", "perfmodel-select", "l2", "l3"];
        assert_eq!(closest("eagr", names), Some("eager"));
        assert_eq!(closest("Perfmodel_Select", names), Some("perfmodel-select"));
        assert_eq!(closest("prefmodel-selct", names), Some("perfmodel-select"));
        assert_eq!(closest("heteroprio", names), None);
        assert_eq!(closest("perfmodel", names), Some("perfmodel-select"));
        assert_eq!(closest("eag", ["eager-prio", "eager"]), Some("eager"));
        assert_eq!(closest("pe", names), None);
    }
}
