//! Scanner for StarPU's text format: values separated by blanks, and comment lines anywhere before a value.

use crate::Flaw;
use std::str::FromStr;

/// A position in a text, from which values are read one by one.
pub(crate) struct Scan<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Scan<'a> {
        Scan { rest: text, line: 1, column: 1 }
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(bytes);
        for c in passed.chars() {
            if c == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.rest = rest;
        passed
    }

    /// Skips blanks, line ends and comments.
    pub(crate) fn skip(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.advance(blanks);
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    /// An error at this position.
    pub(crate) fn flaw(&self, message: String) -> Flaw {
        Flaw { line: self.line, column: self.column, message }
    }

    /// The next value; `what` describes it in errors.
    pub(crate) fn value<T: FromStr>(&mut self, what: &str) -> Result<T, Flaw> {
        self.skip();
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let token = &self.rest[..end];
        if token.is_empty() {
            return Err(self.flaw(format!("the file ends, expected {what}")));
        }
        let Ok(value) = token.parse() else {
            return Err(self.flaw(format!("found `{}`, expected {what}", shortened(token))));
        };
        self.advance(end);
        Ok(value)
    }

    /// The next line that is not a comment, without its line end; `None` at the end. The caller reports errors in it.
    pub(crate) fn line(&mut self) -> Option<Line<'a>> {
        self.skip();
        if self.rest.is_empty() {
            return None;
        }
        let (number, first) = (self.line, self.column);
        let text = self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        Some(Line { text, number, first })
    }
}

/// One line of fields separated by blanks.
pub(crate) struct Line<'a> {
    text: &'a str,
    number: usize,
    /// Column of its first character.
    first: usize,
}

impl<'a> Line<'a> {
    /// Its fields.
    pub(crate) fn fields(&self) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        for text in self.text.split_whitespace() {
            let offset = text.as_ptr().addr() - self.text.as_ptr().addr();
            let column = self.first + self.text[..offset].chars().count();
            fields.push(Field { text, line: self.number, column });
        }
        fields
    }

    /// An error about the whole line.
    pub(crate) fn flaw(&self, message: String) -> Flaw {
        Flaw { line: self.number, column: self.first, message }
    }
}

/// One field of a line.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) text: &'a str,
    line: usize,
    column: usize,
}

impl Field<'_> {
    pub(crate) fn flaw(&self, expected: &str) -> Flaw {
        let message = format!("found `{}`, expected {expected}", shortened(self.text));
        Flaw { line: self.line, column: self.column, message }
    }

    pub(crate) fn parse<T: FromStr>(&self, what: &str) -> Result<T, Flaw> {
        self.text.parse().map_err(|_| self.flaw(what))
    }
}

/// A token, shortened to fit a message.
fn shortened(token: &str) -> String {
    if token.chars().count() <= 40 { token.to_owned() } else { token.chars().take(40).chain(['…']).collect() }
}
