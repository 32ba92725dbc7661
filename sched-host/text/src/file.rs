//! Text files named by users.

use super::span::line_and_column;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

/// Path that means the standard input.
pub const STANDARD_INPUT: &str = "-";

/// Name of a file in messages.
pub fn file_name(path: &Path) -> String {
    if path.as_os_str() == STANDARD_INPUT { "standard input".to_owned() } else { path.display().to_string() }
}

/// The text of a file, or of the [standard input](STANDARD_INPUT), without a byte-order mark.
///
/// # Errors
/// If it cannot be read, or is not text; the message says where.
pub fn read(path: &Path) -> Result<String, Unread> {
    decode(read_bytes(path)?)
}

/// The bytes of a file, or of the [standard input](STANDARD_INPUT).
///
/// The standard input can be read once only, so it is cached: a policy is read when it is checked, and again for each
/// run.
///
/// # Errors
/// If they cannot be read, or are too many.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Unread> {
    static KEPT: Mutex<Option<Vec<u8>>> = Mutex::new(None);
    if path.as_os_str() != STANDARD_INPUT {
        return limited(File::open(path)?);
    }
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match &*kept {
        Some(bytes) => Ok(bytes.clone()),
        None => Ok(kept.insert(limited(std::io::stdin())?).clone()),
    }
}

fn limited(input: impl Read) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    input.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { Err(Unread::TooLarge) } else { Ok(bytes) }
}

/// Maximum size of a file in bytes: some, such as /dev/zero, have no end.
const MOST: u64 = 4 << 30;

/// These bytes as text, without a byte-order mark.
///
/// # Errors
/// If they are not UTF-8.
pub fn decode(bytes: Vec<u8>) -> Result<String, Unread> {
    const MARK: char = '\u{feff}';
    let text = String::from_utf8(bytes).map_err(|error| {
        let sound = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..sound]);
        let byte = error.as_bytes()[sound];
        let (line, column) = line_and_column(&before, sound);
        Unread::NoText { byte, line, column }
    })?;
    Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text))
}

/// Reason why a text could not be read.
#[derive(Debug)]
pub enum Unread {
    /// Error of the system.
    Io(std::io::Error),
    /// Not UTF-8: another encoding, compressed, or binary.
    NoText {
        /// The first invalid byte.
        byte: u8,
        /// Its line, from 1.
        line: usize,
        /// Its column, from 1.
        column: usize,
    },
    /// Larger than 4 GiB, or endless.
    TooLarge,
}

impl Unread {
    /// The fix, where it is known.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Unread::Io(_) | Unread::TooLarge => None,
            Unread::NoText { byte: 0xfe | 0xff, line: 1, column: 1 } => {
                Some("this looks like UTF-16: save it as UTF-8")
            }
            Unread::NoText { .. } => Some("text in UTF-8 is expected; a compressed file must be unpacked first"),
        }
    }
}

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Unread {
        Unread::Io(error)
    }
}

impl From<Unread> for std::io::Error {
    fn from(error: Unread) -> std::io::Error {
        match error {
            Unread::Io(error) => error,
            other => std::io::Error::new(std::io::ErrorKind::InvalidData, other.to_string()),
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Io(error) => error.fmt(f),
            Unread::TooLarge => write!(f, "it is larger than {} GiB", MOST >> 30),
            Unread::NoText { byte, line, column } => {
                write!(f, "line {line}, column {column}: the byte {byte:#04x} is not text in UTF-8")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        match decode(bytes.to_vec()) {
            Ok(text) => format!("{text:?}"),
            Err(error) => format!("{error} ({})", error.help().unwrap_or_default()),
        }
    }

    #[test]
    fn the_mark_of_an_editor_is_no_part_of_the_text() {
        assert_eq!(shown("\u{feff}4\n\u{feff}".as_bytes()), r#""4\n\u{feff}""#);
        assert_eq!(shown(b""), r#""""#);
    }

    #[test]
    fn what_is_no_text_has_a_place_and_a_fix() {
        insta::assert_snapshot!(shown(b"a\n\xc3\xa9b\x80c"), @"line 2, column 3: the byte 0x80 is not text in UTF-8 (text in UTF-8 is expected; a compressed file must be unpacked first)");
        insta::assert_snapshot!(shown(b"\xff\xfea\0"), @"line 1, column 1: the byte 0xff is not text in UTF-8 (this looks like UTF-16: save it as UTF-8)");
        insta::assert_snapshot!(shown(b"\x1f\x8b\x08"), @"line 1, column 2: the byte 0x8b is not text in UTF-8 (text in UTF-8 is expected; a compressed file must be unpacked first)");
    }
}
