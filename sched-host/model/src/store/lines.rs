//! The format of stored files: a line of JSON for each item. The first line identifies the file, and the last one
//! verifies that it is complete.

use crate::crc32;
use crate::flaw::FoundFlaws;
use crate::{Flaw, ModelError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The identification of a file, in its first line.
pub(super) struct Format {
    pub(super) name: &'static str,
    /// The highest version known here.
    pub(super) version: u64,
    /// Description of its contents, for people.
    pub(super) holds: &'static str,
}

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    /// Number of preceding lines.
    lines: usize,
    /// StarPU's CRC of all bytes before this line, as eight hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    checksum: Option<String>,
}

/// A line after the first one.
pub(super) trait Line: Serialize + DeserializeOwned {
    /// The last line of a file.
    fn end(end: EndLine) -> Self;

    /// The content of a last line; any other line is returned as the error.
    fn into_end(self) -> Result<EndLine, Self>;
}

/// A text under construction.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    count: usize,
}

impl Lines {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &impl Serialize) {
        self.text.push_str(&serde_json::to_string(line).expect("such lines hold nothing that JSON has no words for"));
        self.text.push('\n');
        self.count += 1;
    }

    /// Ends the text with its last line.
    pub(super) fn end<L: Line>(mut self) -> String {
        let checksum = Some(format!("{:08x}", crc32(self.text.as_bytes(), 0)));
        self.push(&L::end(EndLine { lines: self.count, checksum }));
        self.text
    }
}

/// The errors found in a text so far.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) flaws: FoundFlaws,
}

impl Reader {
    /// Adds an error at a position.
    pub(super) fn flaw(&mut self, line: usize, column: usize, message: String) {
        self.flaws.push(Flaw { line, column, message });
    }

    /// The errors as those of the file `path`, which contains `bytes`.
    pub(super) fn damaged(self, bytes: &[u8], path: &Path) -> ModelError {
        ModelError::damaged_in_store(path, &String::from_utf8_lossy(bytes), self.flaws.into_flaws())
    }

    fn json<'a, T: Deserialize<'a>>(&mut self, number: usize, line: &'a str, what: &str) -> Option<T> {
        match serde_json::from_str(line) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = error.to_string();
                // The message repeats the position, relative to the line instead of the file.
                let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
                self.flaw(number, error.column().max(1), format!("expected {what}: {message}"));
                None
            }
        }
    }

    fn check_end(&mut self, number: usize, end: &EndLine, before: &[u8], ended: bool) {
        if end.lines != number - 1 {
            let (found, expected) = (number - 1, end.lines);
            self.flaw(number, 1, format!("found {found} lines, expected {expected}: some are missing or too many"));
        }
        let sum = format!("{:08x}", crc32(before, 0));
        if end.checksum.as_ref().is_some_and(|expected| *expected != sum) {
            let message =
                "the checksum is that of another text: the file is damaged, or was edited (then remove the checksum)";
            self.flaw(number, 1, message.to_owned());
        }
        if !ended {
            self.flaw(number, 1, "the end of the last line is missing: the file was cut off".to_owned());
        }
    }
}

/// Reads the text of a file: its first line, unless that is wrong, and the lines between the first and the last, which
/// `each` receives with their numbers.
///
/// # Errors
/// If it is not text, or of a newer version. The reader collects all other errors.
pub(super) fn read<'a, H: Deserialize<'a>, L: Line>(
    bytes: &'a [u8],
    path: &Path,
    format: &Format,
    mut each: impl FnMut(&mut Reader, usize, L),
) -> Result<(Option<H>, Reader), ModelError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let flaw = Flaw { line: 1, column: 1, message: "this is no text".to_owned() };
        return Err(ModelError::damaged_in_store(path, &String::from_utf8_lossy(bytes), vec![flaw]));
    };
    let first = text.lines().next().unwrap_or_default();
    // First of all: a newer version may have other lines.
    let header: Value = serde_json::from_str(first).unwrap_or_default();
    if header["format"] == format.name
        && let Some(found) = header["version"].as_u64()
        && found > format.version
    {
        return Err(ModelError::Newer { path: path.to_owned(), found, known: format.version });
    }
    let mut reader = Reader::default();
    let what = |part: &str| format!("{part} line of {}", format.holds);
    let known = reader.json(1, first, &what("the first"));
    let (mut number, mut offset, mut end) = (1, first.len() + 1, None);
    for line in text.lines().skip(1) {
        number += 1;
        if end.is_some() {
            reader.flaw(number, 1, "there is a line after the last one".to_owned());
            break;
        }
        match reader.json::<L>(number, line, &what("a")).map(L::into_end) {
            Some(Ok(line)) => end = Some((number, line, offset)),
            Some(Err(line)) => each(&mut reader, number, line),
            None => {}
        }
        offset += line.len() + 1;
    }
    match &end {
        None => reader.flaw(number, 1, "the last line is missing: the file was cut off".to_owned()),
        Some((at, line, offset)) => reader.check_end(*at, line, &text.as_bytes()[..*offset], text.ends_with('\n')),
    }
    if known.is_some() && (header["format"] != format.name || header["version"] != format.version) {
        let found = header["format"].as_str().unwrap_or_default();
        let (version, name, expected) = (&header["version"], format.name, format.version);
        reader.flaw(1, 1, format!("found format `{found}` {version}, expected `{name}` {expected}"));
    }
    Ok((known, reader))
}
