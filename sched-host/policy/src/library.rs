//! Shipped policies, and lookup of a policy by name or file.

use super::adjustment::Adjustment;
use super::element::Policy;
use super::parse;
use sched_text::closest;
use sched_text::{self as text, Unread};
use sched_text::{Finding, Findings};
use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;

/// A shipped policy as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its text, with comments that explain it.
    pub text: &'static str,
}

impl Shipped {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let policies = parse::read(&format!("{}.kdl", self.name), self.text).policies;
        policies.into_iter().next().expect("every shipped file holds a policy, which a test checks")
    }

    /// The policy of this text if it is a shipped one, which is read once: whoever compares policies wants each of them
    /// many times.
    fn of_text(text: &str) -> Option<Policy> {
        static READ: [OnceLock<Policy>; LIBRARY.len()] = [const { OnceLock::new() }; LIBRARY.len()];
        let at = LIBRARY.iter().position(|shipped| shipped.text == text)?;
        Some(READ[at].get_or_init(|| LIBRARY[at].policy()).clone())
    }
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../policies/", $name, ".kdl")) }),+]
    };
}

/// The shipped policies.
#[must_use]
pub fn library() -> &'static [Shipped] {
    LIBRARY
}

const LIBRARY: &[Shipped] = shipped![
    "tree-eager",
    "tree-eager-prefetching",
    "tree-eager-prio",
    "tree-prio",
    "tree-prio-prefetching",
    "tree-random",
    "tree-random-prefetching",
    "tree-random-prio",
    "tree-random-prio-prefetching",
    "tree-ws",
    "tree-heft",
    "tree-heft-prio",
    "tree-heft2",
    "tree-pheft",
    "tree-heft-ws",
    "tree-heteroprio",
    "tree-replan",
    "tree-replan-spare",
    "tree-plan",
    "tree-block-cyclic",
    "tree-dmda",
    "tree-dmdap",
    "tree-dmdar",
    "tree-dmdas",
];

/// Text of a policy, found by name or file.
///
/// ```
/// use sched_policy::Source;
/// let policy = Source::find("modular-eager")?.policy()?;
/// assert_eq!(policy.name, "tree-eager");
/// # Ok::<(), sched_text::Findings>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// Name of the text in errors: the path, or the file name of a shipped policy.
    pub name: String,
    /// The text.
    pub text: Cow<'static, str>,
    /// Name of the requested policy, if one was given.
    pub wanted: Option<String>,
    /// Parameters that are set from outside the text.
    pub adjustments: Vec<Adjustment>,
}

/// The environment variable that names the policy where a program names none: a shipped policy, or the path of a file.
pub const POLICY_VARIABLE: &str = "SCHED_POLICY";

/// The policy used where neither the program nor the environment names one.
pub const DEFAULT_POLICY: &str = "tree-ws";

impl Source {
    /// The text of the policy that [`POLICY_VARIABLE`] names; of [`DEFAULT_POLICY`] where it is not set, or empty.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn from_environment() -> Result<Source, Findings> {
        match std::env::var_os(POLICY_VARIABLE).filter(|name| !name.is_empty()) {
            Some(name) => {
                let found = Source::find(&name.to_string_lossy());
                found.map_err(|errors| {
                    errors.help(format!("the environment variable {POLICY_VARIABLE} names this policy"))
                })
            }
            None => Source::find(DEFAULT_POLICY),
        }
    }

    /// The text of:
    /// - a shipped policy, by its name (`tree-eager`) or by the name that StarPU has for it (`modular-eager`);
    /// - a policy file, by its path (`mine.kdl`), with `#name` if it holds several policies (`mine.kdl#second`); `-` is
    ///   the standard input.
    ///
    /// After either may stand parameters that are to be set, each behind a `+`: `tree-heft+mct.beta=2.0`; see
    /// [`Adjustment`].
    ///
    /// # Errors
    /// If no shipped policy has this name, the file cannot be read, or a parameter is not written like one, or twice.
    pub fn find(name_or_path: &str) -> Result<Source, Findings> {
        let (name, adjustments) = match Path::new(name_or_path).exists() {
            true => (name_or_path, Vec::new()),
            false => Adjustment::split(name_or_path),
        };
        let adjustments: Vec<Adjustment> =
            adjustments.iter().map(|text| Adjustment::parse(text)).collect::<Result<_, _>>()?;
        Adjustment::check_repetition(&adjustments)?;
        Ok(Source { adjustments, ..Source::of_text(name)? })
    }

    /// The text of a shipped policy or of a file.
    fn of_text(name_or_path: &str) -> Result<Source, Findings> {
        if name_or_path.trim().is_empty() {
            return Err(nameless());
        }
        let tree_name = name_or_path.strip_prefix("modular-").map(|rest| format!("tree-{rest}"));
        let name = tree_name.as_deref().unwrap_or(name_or_path);
        if let Some(shipped) = library().iter().find(|shipped| shipped.name == name) {
            let text = Cow::Borrowed(shipped.text);
            return Ok(Source {
                name: format!("{name}.kdl"),
                text,
                wanted: Some(name.to_owned()),
                adjustments: Vec::new(),
            });
        }
        let (path, wanted) = match name_or_path.rsplit_once('#') {
            Some((path, wanted)) if !Path::new(name_or_path).exists() => (path, Some(wanted.to_owned())),
            _ => (name_or_path, None),
        };
        let is_file = || path.contains('/') || path.ends_with(".kdl") || Path::new(path).is_file();
        if path == text::STANDARD_INPUT || is_file() {
            let name = text::file_name(Path::new(path));
            return match text::read(Path::new(path)) {
                Ok(text) => Ok(Source { name, text: text.into(), wanted, adjustments: Vec::new() }),
                Err(error) => Err(unreadable(&name, &error)),
            };
        }
        Err(unknown(name_or_path, name))
    }

    /// The requested policy, or the only one of the text.
    ///
    /// # Errors
    /// All findings of [`parse`](parse::parse); or if the text has no policy of the name, or several and none was
    /// requested, or the policy has no component of which a parameter is to be set.
    pub fn policy(&self) -> Result<Policy, Findings> {
        if let Cow::Borrowed(text) = &self.text
            && let Some(policy) = Shipped::of_text(text)
            && self.wanted.as_ref().is_none_or(|wanted| *wanted == policy.name)
        {
            return policy.adjusted(&self.adjustments);
        }
        let mut policies = parse::parse(&self.name, &self.text)?;
        let names: Vec<String> = policies.iter().map(|policy| policy.name.clone()).collect();
        let position = match &self.wanted {
            Some(wanted) => names.iter().position(|name| name == wanted),
            None => (names.len() == 1).then_some(0),
        };
        if let Some(position) = position {
            return policies.swap_remove(position).adjusted(&self.adjustments);
        }
        let finding = match &self.wanted {
            Some(wanted) => {
                let finding = Finding::error(format!("`{}` holds no policy `{wanted}`", self.name));
                match closest(wanted, names.iter().map(String::as_str)) {
                    Some(name) => finding.help(format!("did you mean `{}#{name}`?", self.name)),
                    None => finding.help(format!("it holds: {}", names.join(", "))),
                }
            }
            None => Finding::error(format!("`{}` holds {} policies", self.name, names.len())).help(format!(
                "name one: {}",
                names.iter().map(|name| format!("`{}#{name}`", self.name)).collect::<Vec<_>>().join(", ")
            )),
        };
        Err(Findings::new(self.name.clone(), vec![finding.code("policy::choice")]))
    }
}

fn unknown(found: &str, name: &str) -> Findings {
    let names = || library().iter().map(|shipped| shipped.name);
    // `eager` is short for `tree-eager`, and compared without `tree-`, which would hide how much of it differs.
    let close = closest(name, names()).map(str::to_owned).or_else(|| {
        let short = names().filter_map(|name| name.strip_prefix("tree-"));
        closest(name, short).map(|name| format!("tree-{name}"))
    });
    let finding = Finding::error(format!("there is no policy `{found}`"));
    let finding = match close {
        Some(close) => finding.help(format!("did you mean `{close}`?")),
        None => finding.help(shipped_names()),
    };
    Findings::new(format!("policy `{found}`"), vec![finding.help(OWN).code("policy::unknown")])
}

fn nameless() -> Findings {
    let finding = Finding::error("the name of the policy is empty").help(shipped_names()).help(OWN);
    Findings::new("policy", vec![finding.code("policy::unknown")])
}

/// How a policy is named that is not shipped.
const OWN: &str = "a policy of your own is given by the path of its file, which ends in `.kdl`";

fn shipped_names() -> String {
    format!("shipped policies: {}", library().iter().map(|shipped| shipped.name).collect::<Vec<_>>().join(", "))
}

fn unreadable(path: &str, error: &Unread) -> Findings {
    let finding = Finding::error(format!("`{path}` cannot be read: {error}"));
    let help = match error {
        Unread::Io(error) if error.kind() == ErrorKind::NotFound => {
            Some("give the path of a policy file, or the name of a shipped policy")
        }
        other => other.help(),
    };
    let finding = match help {
        Some(help) => finding.help(help),
        None => finding,
    };
    Findings::new(path, vec![finding.code("policy::unreadable")])
}
