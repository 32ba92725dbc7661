//! What a child makes of a library, as it says it to its parent.

use super::error::LoadErrorKind;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It was loaded, its layouts agree, and its components were used.
    Passed,
    /// It was refused in good order.
    Refused(LoadErrorKind),
    /// There was a panic that is not the plugin's own, which are caught: the host, or the comparison of layouts, made
    /// nothing of what the plugin says of itself.
    Panicked,
}

/// The first words of verdicts that are no errors.
const PASSED: &str = "passed";
const PANICKED: &str = "panicked";

impl Verdict {
    /// A word, and a text after it.
    pub(super) fn to_text(&self) -> String {
        match self {
            Verdict::Passed => format!("{PASSED} "),
            Verdict::Panicked => format!("{PANICKED} "),
            Verdict::Refused(error) => {
                let text = match error {
                    LoadErrorKind::Open(text) | LoadErrorKind::Layout(text) | LoadErrorKind::Manifest(text) => text,
                    _ => "",
                };
                format!("{} {text}", error.code())
            }
        }
    }

    /// `None` if a child did not come to write a verdict.
    pub(super) fn of(text: &[u8]) -> Option<Verdict> {
        let text = String::from_utf8_lossy(text);
        let (word, text) = text.split_once(' ')?;
        let kinds = [
            LoadErrorKind::Open(text.to_owned()),
            LoadErrorKind::Layout(text.to_owned()),
            LoadErrorKind::Manifest(text.to_owned()),
            LoadErrorKind::NoEntry,
            LoadErrorKind::NoTables,
        ];
        match word {
            PASSED => Some(Verdict::Passed),
            PANICKED => Some(Verdict::Panicked),
            _ => kinds.into_iter().find(|kind| kind.code() == word).map(Verdict::Refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_says_is_what_its_parent_hears() {
        let text = "component `a b`\nhas none".to_owned();
        let errors = [
            LoadErrorKind::Open(text.clone()),
            LoadErrorKind::Layout(text.clone()),
            LoadErrorKind::Manifest(text),
            LoadErrorKind::NoEntry,
            LoadErrorKind::NoTables,
        ];
        for verdict in errors.map(Verdict::Refused).into_iter().chain([Verdict::Passed, Verdict::Panicked]) {
            assert_eq!(Verdict::of(verdict.to_text().as_bytes()), Some(verdict));
        }
        assert_eq!([Verdict::of(b""), Verdict::of(b"pass"), Verdict::of(b"x y")], [None, None, None]);
    }
}
