//! "Did you mean": the known name that is closest to a mistyped one.

/// Number of edits by which two words differ; [`usize::MAX`] for words so different in length, or so long, that neither
/// is a misspelling of the other. (Counting takes time and memory in the product of their lengths.)
#[must_use]
pub fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 200;
    if one == other {
        0
    } else if one.len().max(other.len()) > LONGEST || one.len().abs_diff(other.len()) > 16 {
        usize::MAX
    } else {
        strsim::damerau_levenshtein(one, other)
    }
}

/// Maximum number of names in a help text.
const MOST_NAMES: usize = 50;

/// The candidate closest to `wrong`, if it is close enough to be a misspelling of it.
#[must_use]
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let wrong = plain(wrong);
    let far = |candidate: &str| (wrong.len().max(candidate.len()) / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&wrong, &plain(candidate)), candidate))
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
            let all = candidates.clone().into_iter().count();
            let names: Vec<String> = candidates.into_iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
            let more = if all > MOST_NAMES { format!(" and {} more", all - MOST_NAMES) } else { String::new() };
            if all == 0 { format!("there are no {known}") } else { format!("{known}: {}{more}", names.join(", ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{closest, did_you_mean, distance};

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

    #[test]
    fn very_long_words_are_compared_with_nothing() {
        // Comparing two such words letter by letter would take hours.
        let long = ["x".repeat(1 << 20), "x".repeat((1 << 20) - 1)];
        assert_eq!(distance(&long[0], &long[1]), usize::MAX);
        assert_eq!(distance(&long[0], &long[0].clone()), 0);
        assert_eq!(closest(&long[0], ["eager", &long[1]]), None);
        assert_eq!(closest("eager", [long[0].as_str(), "eagre"]), Some("eagre"));
        assert_eq!(did_you_mean(&long[0], ["eager"], "components"), "components: `eager`");
    }
}
