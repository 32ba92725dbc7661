//! Text in drawings and pages.

/// Text that is safe between tags and in quotes. Characters that XML cannot represent become blanks: control
/// characters, and two that are none.
#[must_use]
pub fn escaped(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_a_tag_or_a_quote() {
        assert_eq!(escaped("a<b> & \"c\"\n'µ'"), "a&lt;b&gt; &amp; &quot;c&quot; 'µ'");
        assert_eq!(escaped("\u{fffe}a\u{ffff}\u{fffd}"), " a \u{fffd}", "no document may have the first two");
    }
}
