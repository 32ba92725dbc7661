//! Text in drawings and pages.

/// Text that is safe between tags and in quotes. Control characters, which XML cannot represent, are dropped.
#[must_use]
pub fn escaped(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() => safe.push(' '),
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
    }
}
