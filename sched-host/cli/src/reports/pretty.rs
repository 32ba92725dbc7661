//! Errors as text.

use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteHandler, ReportHandler, Severity, SourceCode, SourceSpan, SpanContents,
};
use sched_text::excerpt::{self, Excerpts};
use std::error::Error;
use std::fmt::{self, Display};
use std::io::{IsTerminal, stderr};
use terminal_size::{Width, terminal_size_of};
use textwrap::{WordSeparator, WordSplitter};

/// Maximum width of a line.
const WIDEST: usize = 110;

/// Colours are used on a terminal only, and lines are no wider than it. Lines break at spaces only, so that paths and
/// names can be copied.
pub(crate) fn set_up() {
    let plain = is_plain();
    let width = terminal_size_of(stderr()).map_or(WIDEST, |(Width(columns), _)| WIDEST.min(columns.into()));
    let _ = miette::set_hook(Box::new(move |_| Box::new(Pretty { one: handler(plain, width) })));
}

/// Whether the standard error takes no colours.
pub(super) fn is_plain() -> bool {
    // https://no-color.org: unless it is empty.
    !stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn handler(plain: bool, width: usize) -> MietteHandler {
    let options = miette::MietteHandlerOpts::new()
        .color(!plain)
        .unicode(true)
        .terminal_links(false)
        .width(width)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    options.build()
}

/// Shows an error with its causes, and then their parts in the same way. (miette puts the heading `Error:` above each
/// part, which adds nothing: the mark before a message distinguishes errors from warnings.)
struct Pretty {
    one: MietteHandler,
}

impl ReportHandler for Pretty {
    fn debug(&self, error: &dyn Diagnostic, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt::Debug::fmt(error, f);
        }
        self.with_parts(Alone::new(error, error.source_code()), f)
    }
}

impl Pretty {
    fn with_parts(&self, alone: Alone<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.one.debug(&alone, f)?;
        let mut one = Some(&alone);
        while let Some(Alone { error, source, cause }) = one {
            for part in error.related().into_iter().flatten() {
                writeln!(f)?;
                // A part without a source text uses that of the whole.
                let source = part.source_code().or(source.as_ref().map(|excerpts| excerpts.0.0));
                self.with_parts(Alone::new(part, source), f)?;
            }
            one = cause.as_deref();
        }
        Ok(())
    }
}

/// A text, whatever holds it.
struct Text<'a>(&'a dyn SourceCode);

impl SourceCode for Text<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        self.0.read_span(span, before, after)
    }
}

/// An error and its causes without their parts. Of very long lines, the surroundings of the place are shown.
struct Alone<'a> {
    error: &'a dyn Diagnostic,
    source: Option<Excerpts<Text<'a>>>,
    cause: Option<Box<Alone<'a>>>,
}

impl<'a> Alone<'a> {
    fn new(error: &'a dyn Diagnostic, source: Option<&'a dyn SourceCode>) -> Alone<'a> {
        let cause = error.diagnostic_source().map(|cause| Box::new(Alone::new(cause, cause.source_code())));
        Alone { error, source: source.map(Text).map(Excerpts), cause }
    }
}

impl fmt::Debug for Alone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.error, f)
    }
}

impl Display for Alone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self.error, f)
    }
}

impl Error for Alone<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Diagnostic for Alone<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.error.code()
    }

    fn severity(&self) -> Option<Severity> {
        self.error.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.error.help()
    }

    fn url<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.error.url()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.error.labels()?.collect();
        Some(Box::new(match &self.source {
            Some(Excerpts(text)) => excerpt::labels(text, labels).into_iter(),
            None => labels.into_iter(),
        }))
    }

    fn diagnostic_source(&self) -> Option<&dyn Diagnostic> {
        // What is only a message is shown as one, without a mark of its own.
        let is_message = |error: &dyn Diagnostic| {
            error.code().is_none() && error.help().is_none() && error.labels().is_none() && error.url().is_none()
        };
        self.cause.as_deref().filter(|cause| !is_message(cause.error)).map(|cause| cause as &dyn Diagnostic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_graph::parse;

    struct Shown<'a>(&'a dyn Diagnostic);

    impl fmt::Debug for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Pretty { one: handler(true, 100) }.debug(self.0, f)
        }
    }

    #[test]
    fn each_part_of_an_error_has_its_place_and_no_empty_heading() {
        let error = parse("t.stg", "3\n0 0 0\n1 x 1 0\n7 5 1 9\n4 -1\n".to_owned(), None).expect_err("it is malformed");
        let shown = format!("{:?}", Shown(&error));
        assert!(!shown.contains("Error:"), "{shown}");
        insta::assert_snapshot!(shown, @r"
         × cannot read a standard task graph from `t.stg`: 4 problems

         × line 3, column 3: `x` is not the processing time: a whole number below 2³² is expected
          ╭─[t.stg:3:3]
        2 │ 0 0 0
        3 │ 1 x 1 0
          ·   ┬
          ·   ╰── here
        4 │ 7 5 1 9
          ╰────

         × line 4, column 1: this is task 7, where task 2 is expected: tasks are numbered from 0
          ╭─[t.stg:4:1]
        3 │ 1 x 1 0
        4 │ 7 5 1 9
          · ───┬───
          ·    ╰── here
        5 │ 4 -1
          ╰────

         × line 4, column 7: there is no task 9: tasks have the numbers 0 to 2
          ╭─[t.stg:4:7]
        3 │ 1 x 1 0
        4 │ 7 5 1 9
          ·       ┬
          ·       ╰── here
        5 │ 4 -1
          ╰────

         × line 5, column 1: a task is its number, its processing time, how many tasks it waits for, and
         │ their numbers
          ╭─[t.stg:5:1]
        4 │ 7 5 1 9
        5 │ 4 -1
          · ──┬─
          ·   ╰── here
          ╰────
        ");
    }
}
