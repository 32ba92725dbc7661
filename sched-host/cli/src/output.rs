//! Standard output whose reader may close it.

use sched_text::terminal::escaped;
use std::io::{Error, ErrorKind, Result, Write};

/// Writes to `inner` until its reader closes it, and discards the rest: the command continues to its end and returns
/// its own exit code. Control characters, which only foreign text has, are escaped.
pub(super) struct Output<W> {
    inner: W,
    closed: bool,
    /// Beginning of a character whose other bytes are still to come.
    begun: Vec<u8>,
}

impl<W: Write> Output<W> {
    pub(super) fn new(inner: W) -> Output<W> {
        Output { inner, closed: false, begun: Vec::new() }
    }

    fn unless_closed<T>(&mut self, lost: T, write: impl FnOnce(&mut W) -> Result<T>) -> Result<T> {
        if self.closed {
            return Ok(lost);
        }
        match write(&mut self.inner) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(lost)
            }
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                Err(Error::new(error.kind(), format!("the output could not be written: {error}")))
            }
            written => written,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let begun = std::mem::take(&mut self.begun);
        let joined = [&begun, bytes].concat();
        let end = match std::str::from_utf8(&joined) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => joined.len(),
        };
        let (whole, rest) = joined.split_at(end);
        self.begun = rest.to_vec();
        let text = String::from_utf8_lossy(whole);
        self.unless_closed((), |inner| inner.write_all(escaped(&text, false).as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.unless_closed((), |inner| inner.write_all(&begun))?;
        self.unless_closed((), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses everything.
    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let mut out = Output::new(Refuses(ErrorKind::BrokenPipe));
        assert!(out.write_all(b"more than it wanted").is_ok() && out.flush().is_ok());
    }

    #[test]
    fn control_characters_are_escaped_wherever_a_write_ends() {
        let mut written = Vec::new();
        let mut out = Output::new(&mut written);
        for piece in ["µ\u{1b}[2J\n".as_bytes(), b"\xc2", b"\x9b\xc2", b"\xb5"] {
            out.write_all(piece).expect("memory takes everything");
        }
        out.flush().expect("memory takes everything");
        assert_eq!(String::from_utf8(written).expect("text"), "µ\\u001b[2J\n\\u009bµ");
    }

    #[test]
    fn any_other_failure_is() {
        let mut out = Output::new(Refuses(ErrorKind::StorageFull));
        let error = out.write_all(b"too much").expect_err("nothing was written");
        assert!(error.to_string().starts_with("the output could not be written: "), "{error}");
        assert!(out.flush().is_err());
    }
}
