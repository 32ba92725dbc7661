//! The name of a new component.

use miette::Diagnostic;
use sched_tree::plugin::Registry;

/// Words that cargo does not take for a crate, or that the crate itself needs.
const TAKEN: [&str; 12] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "sched-core",
    "std",
    "test",
    "src",
    "target",
];

/// Keywords of the language: they name no crate.
const KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// Types that the template imports: the component's type gets a longer name then.
const TYPES: [&str; 34] = [
    "Arch",
    "ArchSet",
    "Arity",
    "Build",
    "BuildError",
    "Child",
    "Choice",
    "Component",
    "Duration",
    "Estimate",
    "Family",
    "Info",
    "Mutex",
    "MutexGuard",
    "Node",
    "Offer",
    "Option",
    "Param",
    "Params",
    "Parent",
    "Prospect",
    "Push",
    "Refusal",
    "Refused",
    "Report",
    "Result",
    "Slot",
    "Storage",
    "String",
    "Task",
    "Time",
    "Value",
    "Vec",
    "VecDeque",
];

/// A name that is free for a component and for its crate.
#[derive(Debug)]
pub(super) struct Name {
    component: String,
}

/// Why a name cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(super) enum NameError {
    #[error("`{name}` is not a name of a crate and a component: {why}")]
    #[diagnostic(code(plugin::name))]
    Malformed {
        name: String,
        why: &'static str,
        #[help]
        help: String,
    },
    #[error("`{0}` is a stock component")]
    #[diagnostic(
        code(plugin::name),
        help(
            "choose another name: a component that takes the name of a stock one is used only where the user asks for it \
             (--override)"
        )
    )]
    Stock(String),
}

impl Name {
    /// # Errors
    /// If it is no name of a crate, or of a stock component.
    pub(super) fn new(name: &str) -> Result<Name, NameError> {
        let malformed = |why| {
            let usable = usable(name);
            let help = match usable.is_empty() {
                true => "for example `my-queue`".to_owned(),
                false => format!("for example `{usable}`"),
            };
            Err(NameError::Malformed { name: name.to_owned(), why, help })
        };
        let word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.split('-').all(word) {
            return malformed("it takes lower-case letters, digits, and `-` between words, and begins with a letter");
        }
        if name.len() > 64 {
            return malformed("it is longer than 64 characters");
        }
        if KEYWORDS.contains(&name) {
            return malformed("it is a word of the language");
        }
        if sched_policy::WORDS.contains(&name) {
            return malformed("it is a word of the policy language, which no component can have as its name");
        }
        if TAKEN.contains(&name) {
            return malformed("cargo, or the crate itself, uses it for something else");
        }
        if Registry::compiled_in().component(name).is_some() {
            return Err(NameError::Stock(name.to_owned()));
        }
        Ok(Name { component: name.to_owned() })
    }

    /// As policies have it.
    pub(super) fn component(&self) -> &str {
        &self.component
    }

    /// The crate's.
    pub(super) fn krate(&self) -> &str {
        &self.component
    }

    /// As part of the library's file name.
    pub(super) fn library(&self) -> String {
        self.component.replace('-', "_")
    }

    /// The component's type.
    pub(super) fn of_type(&self) -> String {
        let upper = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
        let name: String = self.component.split('-').map(upper).collect();
        if TYPES.contains(&&*name) { name + "Component" } else { name }
    }
}

/// A name that is nearly this one, and well formed; empty if nothing is left of it.
fn usable(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let mut joined = words.join("-");
    joined.truncate(50);
    let joined = joined.trim_matches('-');
    let has_letter = joined.starts_with(|first: char| first.is_ascii_lowercase());
    match joined {
        "" => String::new(),
        word if !has_letter
            || KEYWORDS.contains(&word)
            || sched_policy::WORDS.contains(&word)
            || TAKEN.contains(&word) =>
        {
            format!("my-{word}")
        }
        word => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_types_and_files() {
        let name = Name::new("my-2nd-queue").expect("it is fine");
        assert_eq!(
            (name.component(), &*name.library(), &*name.of_type()),
            ("my-2nd-queue", "my_2nd_queue", "My2ndQueue")
        );
        assert_eq!(Name::new("time").expect("it is fine").of_type(), "TimeComponent", "the template has a Time");
    }

    #[test]
    fn names_that_cannot_be_used_come_with_one_that_can() {
        let refused = |name: &str| match Name::new(name).expect_err("it is refused") {
            NameError::Malformed { help, .. } => help,
            NameError::Stock(name) => format!("stock {name}"),
        };
        let names =
            ["My_Queue", "9lives", "match", "each", "policy", "shared", "core", "fifo", "", "../up", "a--b", "é"];
        let expected = [
            "for example `my-queue`",
            "for example `my-9lives`",
            "for example `my-match`",
            "for example `my-each`",
            "for example `my-policy`",
            "for example `my-shared`",
            "for example `my-core`",
            "stock fifo",
            "for example `my-queue`",
            "for example `up`",
            "for example `a-b`",
            "for example `my-queue`",
        ];
        assert_eq!(names.map(refused), expected);
    }
}
