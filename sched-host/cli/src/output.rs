//! Standard output whose reader may close it.

use std::io::{Error, ErrorKind, Result, Write};

/// Writes to `inner` until its reader closes it, and discards the rest: the command continues to its end and returns
/// its own exit code.
pub(super) struct Output<W> {
    inner: W,
    closed: bool,
}

impl<W: Write> Output<W> {
    pub(super) fn new(inner: W) -> Output<W> {
        Output { inner, closed: false }
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
        self.unless_closed(bytes.len(), |inner| inner.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
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
    fn any_other_failure_is() {
        let mut out = Output::new(Refuses(ErrorKind::StorageFull));
        let error = out.write_all(b"too much").expect_err("nothing was written");
        assert!(error.to_string().starts_with("the output could not be written: "), "{error}");
        assert!(out.flush().is_err());
    }
}
