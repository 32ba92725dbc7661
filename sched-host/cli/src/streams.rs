//! Destinations of output: files, and standard streams, named `-` instead of a file.

mod draft;
mod given;

pub(super) use given::check;

use draft::Draft;
use miette::{IntoDiagnostic, WrapErr, miette};
use std::convert::Infallible;
use std::fmt;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// File name that means a standard stream.
pub(super) const STREAM: &str = "-";

/// Destination of output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// `-`.
    StandardOutput,
    /// Any other name.
    File(PathBuf),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Target, Infallible> {
        Ok(if name == STREAM { Target::StandardOutput } else { Target::File(name.into()) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::StandardOutput => f.write_str("the standard output"),
            Target::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

impl Target {
    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Target::StandardOutput => None,
            Target::File(path) => Some(path),
        }
    }

    /// One of several targets: the file with `part` of [`FileNames`] before its extension, such as
    /// `out-tree-heft.svg`.
    ///
    /// # Errors
    /// If it is the standard output, which takes one result.
    pub(super) fn of_several(&self, part: &str) -> miette::Result<Target> {
        let Target::File(path) = self else {
            return Err(miette!(
                help = "name a file: each policy gets one, with the policy's name before the extension",
                "the standard output takes the result of one policy, and there are several"
            ));
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        Ok(Target::File(path.with_file_name(format!("{stem}-{part}{ending}"))))
    }

    /// Creates a draft of the file beside it, before anything runs; it becomes the file when it is complete. Pipes and
    /// devices are written directly.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn create(&self) -> miette::Result<Sink> {
        let file = self.path().map(Draft::new).transpose();
        let file = file.into_diagnostic().wrap_err_with(|| unwritten(self))?;
        Ok(Sink { target: self.clone(), file })
    }
}

/// Parts of file names for policies, a different one for each.
#[derive(Default)]
pub(super) struct FileNames {
    /// Policies with their parts.
    taken: Vec<(String, String)>,
}

impl FileNames {
    /// The part for a policy: its name without what is unfit for a file, and with a number where another policy has the
    /// same part.
    pub(super) fn of(&mut self, policy: &str) -> String {
        if let Some((_, part)) = self.taken.iter().find(|(known, _)| known == policy) {
            return part.clone();
        }
        let fits = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let plain: String = policy.trim_end_matches(".kdl").chars().map(fits).collect();
        let plain = plain.trim_matches('-');
        let numbered = (2_u64..).map(|number| format!("{plain}-{number}"));
        let is_free = |part: &String| self.taken.iter().all(|(_, taken)| taken != part);
        let part = std::iter::once(plain.to_owned()).chain(numbered).find(is_free).expect("numbers do not end");
        self.taken.push((policy.to_owned(), part.clone()));
        part
    }
}

/// Error text about a target.
pub(super) fn unwritten(target: &Target) -> String {
    format!("{target} cannot be written")
}

/// An open target.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    /// None for the standard output.
    file: Option<Draft>,
}

impl Sink {
    /// Target.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether it is the standard output.
    pub(super) fn is_standard(&self) -> bool {
        self.file.is_none()
    }

    /// Writer of the target; the standard output is `out`.
    pub(super) fn writer<'a, 'w: 'a>(
        self,
        out: &mut Option<&'a mut (dyn Write + Send + 'w)>,
    ) -> Box<dyn Write + Send + 'a> {
        match (self.file, out) {
            (Some(draft), _) => Box::new(Completing(BufWriter::new(draft))),
            (None, out) => {
                out.take().map_or_else(|| Box::new(std::io::sink()) as Box<dyn Write + Send>, |out| Box::new(out))
            }
        }
    }

    /// Runs `write` on the target, which is `out` for the standard output.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn write(
        self,
        out: &mut dyn Write,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> miette::Result<()> {
        let target = self.target.clone();
        let written = match self.file {
            Some(draft) => {
                let mut writer = BufWriter::new(draft);
                let whole = write(&mut writer).and_then(|()| writer.into_inner().map_err(|error| error.into_error()));
                whole.and_then(|mut draft| draft.complete())
            }
            None => write(out).and_then(|()| out.flush()),
        };
        written.into_diagnostic().wrap_err_with(|| unwritten(&target))
    }
}

/// A draft that is written while a command runs: it becomes the file when it is flushed, at the end.
struct Completing(BufWriter<Draft>);

impl Write for Completing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()?;
        self.0.get_mut().complete()
    }
}

/// Writes the report to `out`, or to the standard error where something else `takes` the standard output.
pub(super) fn report<R>(takes: bool, out: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> R) -> R {
    if takes { write(&mut std::io::stderr()) } else { write(out) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn target(name: &str) -> Target {
        name.parse().expect("every name is one")
    }

    #[test]
    fn several_policies_have_a_file_each() {
        let of = |file: &str, name: &str| {
            target(file).of_several(&FileNames::default().of(name)).map(|target| target.to_string())
        };
        assert_eq!(of("a/out.svg", "tree-heft").expect("a file"), "`a/out-tree-heft.svg`");
        assert_eq!(of("out.json", "../mine.kdl#x y").expect("a file"), "`out-..-mine.kdl-x-y.json`");
        assert_eq!(of("out.json", "HEFT (static)").expect("a file"), "`out-HEFT--static.json`");
        assert!(of("-", "tree-heft").is_err());
    }

    #[test]
    fn no_two_policies_have_one_file() {
        let mut names = FileNames::default();
        let parts = ["a.kdl#b c", "a.kdl#b-c", "a/kdl#b-c", "a.kdl-b-c-2", "a.kdl#b c"].map(|policy| names.of(policy));
        assert_eq!(parts, ["a.kdl-b-c", "a.kdl-b-c-2", "a-kdl-b-c", "a.kdl-b-c-2-2", "a.kdl-b-c"]);
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.svg");
        fs::write(&path, "old").expect("a file");
        let read = || fs::read_to_string(&path).expect("it is there");
        let file = target(path.to_str().expect("text"));
        drop(file.create().expect("it can be written"));
        let fails = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err(std::io::ErrorKind::StorageFull.into())
        };
        assert!(file.create().expect("a draft").write(&mut Vec::new(), fails).is_err());
        assert_eq!(read(), "old");
        file.create().expect("a draft").write(&mut Vec::new(), |out| out.write_all(b"new")).expect("it is written");
        assert_eq!(read(), "new");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no draft is left");
        let device = target("/dev/null").create().expect("it is always there");
        device.write(&mut Vec::new(), |out| out.write_all(b"x")).expect("it takes everything");
    }

    #[test]
    fn what_goes_to_the_standard_output_goes_there() {
        let mut out = Vec::new();
        let sink = target("-").create().expect("it is always there");
        sink.write(&mut out, |out| out.write_all(b"x")).expect("memory takes everything");
        assert_eq!(out, b"x");
        let folder = tempfile::tempdir().expect("a folder");
        let error = target(&folder.path().display().to_string()).create().expect_err("a folder is no file");
        assert!(error.to_string().ends_with("cannot be written"), "{error}");
    }
}
