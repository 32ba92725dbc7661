//! Errors as plain text, for those who see no more of them than their `Debug`: what `main` returns, and what `unwrap` meets.

use miette::{Diagnostic, Severity};
use std::fmt;

/// A diagnostic with everything that it carries, as lines of plain text: the message, the place in its text, what to do about
/// it, and the diagnostics below it.
pub struct Plain<'a>(pub &'a dyn Diagnostic);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, "", "")
    }
}

/// Writes a diagnostic without a newline at its end: its first line behind `first`, all others indented by `rest`.
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

/// Makes `Debug` of errors their text for people, as [`Plain`] writes it: it is what a program prints whose `main` returns the
/// error, and what a panic of `unwrap` shows.
macro_rules! debug_as_text {
    ($($error:ty),+ $(,)?) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&$crate::text::Plain(self), f)
            }
        })+
    };
}
pub(crate) use debug_as_text;

#[cfg(test)]
mod tests {
    use crate::policy::parse;
    use crate::text::{Finding, Findings};

    #[test]
    fn debug_is_for_people() {
        let errors =
            parse("mine.kdl", "policy \"p\" {\n    fifo 3 { worker }\n    use \"leaf\"\n}").expect_err("it is wrong");
        insta::assert_snapshot!(format!("{errors:?}"), @r#"
        mine.kdl: 3 errors
          mine.kdl:2:10: `fifo` is given 3 without a name (V7 policy::parameter)
            help: write `fifo name=3`, or `{ … }` if it is a child
          mine.kdl:3:5: policy `p` has 2 roots (V2 policy::root)
            help: put one of them below the other, or all below one that takes several children
                  why: tasks enter a scheduler at one component, its root
          mine.kdl:3:5: nothing shared is called `leaf` (V7 policy::shared)
            help: there are no shared definitions in this policy
                  add `shared "leaf" each="worker" { … }` to the policy or to its file
                  why: `use "name"` links to `shared "name"` of the same policy or file, which is one component
        "#);
        let bare =
            Findings::new("it", vec![Finding::error("first\nsecond").help("third\nfourth"), Finding::warning("fifth")]);
        insta::assert_snapshot!(format!("{bare:?}"), @r#"
        it: 1 error and 1 warning
          first
          second
            help: third
                  fourth
          warning: fifth
        "#);
    }
}
