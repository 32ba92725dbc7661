//! How errors look.

use std::env;
use std::io::{IsTerminal, stderr};
use terminal_size::{Width, terminal_size_of};
use textwrap::{WordSeparator, WordSplitter};

/// Longer lines are hard to read.
const WIDEST: usize = 110;

/// Errors are shown with colours on a terminal only, and no wider than that. Lines break at spaces alone: a path or a name
/// can be copied as it is.
pub(super) fn set_up() {
    // https://no-color.org: unless it is empty.
    let plain = !stderr().is_terminal() || env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_size_of(stderr()).map_or(WIDEST, |(Width(columns), _)| WIDEST.min(columns.into()));
    let _ = miette::set_hook(Box::new(move |_| {
        let options = miette::MietteHandlerOpts::new()
            .color(!plain)
            .unicode(true)
            .terminal_links(false)
            .width(width)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        Box::new(options.build())
    }));
}
