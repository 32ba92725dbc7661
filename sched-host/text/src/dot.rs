//! Graphviz's language.

/// `text` as a quoted string of the DOT language. Line breaks become `\n`; other control characters become blanks.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn no_text_ends_its_quotes() {
        assert_eq!(quoted("a \"b\" c:\\d\n\te"), r#""a \"b\" c:\\d\n e""#);
    }
}
