//! Errors as plain text for `Debug`, which `main` and `unwrap` print.

use miette::{Diagnostic, Severity};
use std::fmt;

/// A complete diagnostic as lines of plain text: the message, its place, the fix, and related diagnostics.
pub struct Plain<'a>(pub &'a dyn Diagnostic);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, "", "")
    }
}

/// Writes a diagnostic without a final newline: `first` precedes its first line, `rest` all others.
fn write(f: &mut fmt::Formatter<'_>, diagnostic: &dyn Diagnostic, first: &str, rest: &str) -> fmt::Result {
    f.write_str(first)?;
    if let Some(place) = place(diagnostic) {
        write!(f, "{place}: ")?;
    }
    if diagnostic.severity() == Some(Severity::Warning) {
        f.write_str("warning: ")?;
    }
    lines(f, &diagnostic.to_string(), rest)?;
    if let Some(code) = diagnostic.code() {
        write!(f, " ({code})")?;
    }
    if let Some(help) = diagnostic.help() {
        write!(f, "\n{rest}  help: ")?;
        lines(f, &help.to_string(), &format!("{rest}        "))?;
    }
    let below = format!("{rest}  ");
    for related in diagnostic.related().into_iter().flatten() {
        f.write_str("\n")?;
        write(f, related, &below, &below)?;
    }
    Ok(())
}

fn lines(f: &mut fmt::Formatter<'_>, text: &str, indent: &str) -> fmt::Result {
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            write!(f, "\n{indent}")?;
        }
        f.write_str(line)?;
    }
    Ok(())
}

/// `file:line:column` of the first label.
fn place(diagnostic: &dyn Diagnostic) -> Option<String> {
    let label = diagnostic.labels()?.next()?;
    let source = diagnostic.source_code()?.read_span(label.inner(), 0, 0).ok()?;
    let name = source.name().map_or_else(String::new, |name| format!("{name}:"));
    Some(format!("{name}{}:{}", source.line() + 1, source.column() + 1))
}

/// Implements `Debug` of errors as [`Plain`] text, which a program prints if `main` returns the error or `unwrap`
/// panics.
#[macro_export]
macro_rules! debug_as_text {
    ($($error:ty),+ $(,)?) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&$crate::Plain(self), f)
            }
        })+
    };
}

#[cfg(test)]
mod tests {
    use crate::{Finding, Findings, SourceText, Span};
    use miette::NamedSource;

    #[test]
    fn debug_is_for_people() {
        let source = SourceText::new(NamedSource::new("mine.kdl", "one {\n    two three\n}".to_owned()));
        let placed = Finding::error("there is no `two`").at(Span::new(10, 3), "here").at(Span::new(14, 5), "there");
        let placed = placed.help("write `to`\nor leave it out").code("policy::two").breaks("V7");
        let findings =
            vec![placed.in_source(Some(&source)), Finding::error("first\nsecond"), Finding::warning("third")];
        insta::assert_snapshot!(format!("{:?}", Findings::new("mine.kdl", findings)), @r#"
        mine.kdl: 2 errors and 1 warning
          mine.kdl:2:5: there is no `two` (V7 policy::two)
            help: write `to`
                  or leave it out
          first
          second
          warning: third
        "#);
    }
}
