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
    /// It says otherwise when it is asked again.
    Differs,
    /// The host panicked while it used the components.
    NotTried,
}

/// The first words of verdicts that are no errors.
const PASSED: &str = "passed";
const PANICKED: &str = "panicked";
const DIFFERS: &str = "differs";
const NOT_TRIED: &str = "not-tried";

impl Verdict {
    /// A word, and a text after it.
    pub(super) fn to_text(&self) -> String {
        match self {
            Verdict::Passed => format!("{PASSED} "),
            Verdict::Panicked => format!("{PANICKED} "),
            Verdict::Differs => format!("{DIFFERS} "),
            Verdict::NotTried => format!("{NOT_TRIED} "),
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
            DIFFERS => Some(Verdict::Differs),
            NOT_TRIED => Some(Verdict::NotTried),
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
        let others = [Verdict::Passed, Verdict::Panicked, Verdict::Differs, Verdict::NotTried];
        for verdict in errors.map(Verdict::Refused).into_iter().chain(others) {
            assert_eq!(Verdict::of(verdict.to_text().as_bytes()), Some(verdict));
        }
        assert_eq!([Verdict::of(b""), Verdict::of(b"pass"), Verdict::of(b"x y")], [None, None, None]);
    }
}
