//! Errors of stored models.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use sched_text::excerpt::printable;
use sched_text::{Earliest, Finding, SourceText, count, file_name, offset_of, word_at};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error in a file, with its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// The errors of a file while it is read, of which the first are kept and the others counted.
#[derive(Default)]
pub(crate) struct FoundFlaws {
    kept: Vec<Flaw>,
    further: usize,
}

impl FoundFlaws {
    pub(crate) fn push(&mut self, flaw: Flaw) {
        match self.kept.len() {
            // The last one is to be replaced by the number of those that are not kept.
            most if most > Earliest::<Flaw>::MOST => self.further += 1,
            _ => self.kept.push(flaw),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// At most a hundred errors, and one that counts the rest.
    pub(crate) fn into_flaws(mut self) -> Vec<Flaw> {
        if self.further > 0
            && let Some(last) = self.kept.last_mut()
        {
            last.message = format!("{} from here on, which are not shown", count(self.further + 1, "further error"));
        }
        self.kept
    }
}

impl Extend<Flaw> for FoundFlaws {
    fn extend<I: IntoIterator<Item = Flaw>>(&mut self, flaws: I) {
        flaws.into_iter().for_each(|flaw| self.push(flaw));
    }
}

/// All errors in one file, with their positions.
#[derive(Clone)]
pub struct Flaws {
    /// The file.
    pub path: PathBuf,
    /// At least one.
    pub flaws: Vec<Flaw>,
    /// The same in the text of the file.
    shown: Vec<Finding>,
    /// The fix.
    help: &'static str,
}

impl Flaws {
    fn new(path: &Path, text: &str, flaws: Vec<Flaw>, help: &'static str) -> Flaws {
        let source: SourceText = Arc::new(NamedSource::new(file_name(path), printable(text.to_owned())));
        let shown = flaws.iter().map(|flaw| {
            let message = format!("{}:{}:{}: {}", path.display(), flaw.line, flaw.column, flaw.message);
            Finding::error(message)
                .at(word_at(text, offset_of(text, flaw.line, flaw.column)), "here")
                .in_source(Some(&source))
        });
        Flaws { path: path.to_owned(), shown: shown.collect(), flaws, help }
    }
}

impl PartialEq for Flaws {
    fn eq(&self, other: &Flaws) -> bool {
        (&self.path, &self.flaws) == (&other.path, &other.flaws)
    }
}

impl Eq for Flaws {}

/// All errors, a line for each.
impl fmt::Display for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.shown.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Flaws {}

/// The first error, with the others as its parts.
impl Diagnostic for Flaws {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.shown.first()?.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.shown.first()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.shown.iter().skip(1).map(|finding| finding as &dyn Diagnostic)))
    }
}

/// The first of several errors, and how many there are.
struct First<'a>(&'a Flaws);

impl fmt::Display for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.shown[..] {
            [] => f.write_str("it is damaged"),
            [only] => only.fmt(f),
            [first, _] => write!(f, "{first}; there is 1 further error in the file"),
            [first, others @ ..] => write!(f, "{first}; there are {} further errors in the file", others.len()),
        }
    }
}

/// Why models could not be read, written or found.
#[derive(thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ModelError {
    /// A file is damaged, or has another format.
    #[error("{}", First(_0))]
    #[diagnostic(transparent)]
    Damaged(Flaws),
    /// A file was written by a newer program.
    #[error("{}: it has version {found} of the format, and this program knows versions up to {known}", path.display())]
    #[diagnostic(help("use the newer program, or set SCHED_MODEL_DIR to a directory of this program's own"))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The highest version known here.
        known: u64,
    },
    /// The system does not allow reading or writing a file.
    #[error("{}: it cannot be {doing}: {source}", path.display())]
    #[diagnostic(help(
        "check that the directory exists, that this user may write to it, and that the disk is not full"
    ))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// `read`, `written`, `locked` and so on.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A name cannot be that of a file.
    #[error("a model cannot be named `{0}`: expected letters, digits, `_`, `-`, `+` and `.`, not beginning with `.`")]
    #[diagnostic(help("give the codelet's model another name"))]
    Name(String),
    /// There is no such model.
    #[error("there is no model `{name}` in {}{}", directory.display(), Hint(near.as_deref()))]
    #[diagnostic(help("`sched model list` lists the models of this machine"))]
    Unknown {
        /// The requested name.
        name: String,
        /// The directory that was searched.
        directory: PathBuf,
        /// A similar name.
        near: Option<String>,
    },
    /// There is no directory for models.
    #[error("there is no directory for models: neither SCHED_MODEL_DIR nor XDG_DATA_HOME nor HOME is set")]
    #[diagnostic(help("set SCHED_MODEL_DIR, or use `--models DIR`"))]
    NoDirectory,
    /// The directory contains no StarPU files of that machine.
    #[error("{}: there are neither models nor bus files of machine `{host}`{}", directory.display(), known_hosts(hosts))]
    #[diagnostic(help(
        "name a directory with `codelets/45` and `bus` in it, usually ~/.starpu/sampling, and a machine"
    ))]
    NoSampling {
        /// The directory.
        directory: PathBuf,
        /// The requested machine.
        host: String,
        /// Machines that it contains files of.
        hosts: Vec<String>,
    },
}

impl ModelError {
    /// The file that is the problem, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            ModelError::Damaged(Flaws { path, .. }) | ModelError::Newer { path, .. } | ModelError::Io { path, .. } => {
                Some(path)
            }
            _ => None,
        }
    }

    pub(crate) fn io(path: &Path, doing: &'static str, source: io::Error) -> ModelError {
        ModelError::Io { path: path.to_owned(), doing, source }
    }

    /// The message with all errors of a damaged file, a line for each.
    #[must_use]
    pub fn in_full(&self) -> String {
        match self {
            ModelError::Damaged(flaws) => flaws.to_string(),
            other => other.to_string(),
        }
    }

    /// A file of StarPU's is damaged.
    pub(crate) fn damaged(path: &Path, text: &str, flaws: Vec<Flaw>) -> ModelError {
        let help = "fix the file, or remove it: StarPU measures again what it misses";
        ModelError::Damaged(Flaws::new(path, text, flaws, help))
    }

    /// A file of a store is damaged.
    pub(crate) fn damaged_in_store(path: &Path, text: &str, flaws: Vec<Flaw>) -> ModelError {
        let help = "nothing was changed; fix the file, or move it away: runs that need it measure again";
        ModelError::Damaged(Flaws::new(path, text, flaws, help))
    }
}

struct Hint<'a>(Option<&'a str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |near| write!(f, "; did you mean `{near}`?"))
    }
}

fn known_hosts(hosts: &[String]) -> String {
    if hosts.is_empty() { String::new() } else { format!("; it has files of {}", hosts.join(", ")) }
}

sched_text::debug_as_text!(Flaws, ModelError);
