//! `--policy`: selection of policies, equal for every command.

use super::hints::POLICY;
use super::variables::variable;
use miette::{Diagnostic, miette};
use sched_policy::{Adjustment, DEFAULT_POLICY, POLICY_VARIABLE, Source, library};
use sched_text::{Finding, Findings};
use std::path::Path;

/// Selection of policies.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct PolicyOptions {
    /// Policy: a name that `sched policies` lists, or the path of a KDL file; repeat it, or separate by commas, for
    /// several
    ///
    /// FILE#NAME is one policy of a file with several, `-` a policy on the standard input, and `all` every shipped one.
    /// The default is $SCHED_POLICY, or else tree-ws (for `compare` all, for `bench simulation` tree-eager, tree-ws
    /// and tree-heft).
    #[arg(long = "policy", short, visible_alias = "policies", value_name = "POLICY")]
    #[arg(value_parser = POLICY, hide_possible_values = true)]
    policies: Vec<String>,

    /// Set a parameter of the policies: --set mct.beta=2.0 (several times for several)
    ///
    /// Before the point stands a component, or a path such as mct/prio where a policy has several of that name. To set
    /// it for one policy of several, write it behind its name, wherever a policy is named: tree-heft+mct.beta=2.0
    #[arg(long, value_name = "NODE.PARAM=VALUE", value_parser = adjustment)]
    set: Vec<String>,
}

/// Checks the form; the policy is checked when it is read.
fn adjustment(text: &str) -> Result<String, String> {
    match Adjustment::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(errors) => {
            let said = |finding: &Finding| match finding.help() {
                Some(help) => format!("{}: {help}", finding.message()),
                None => finding.message().to_owned(),
            };
            Err(errors.findings().iter().map(said).collect::<Vec<_>>().join("; "))
        }
    }
}

impl PolicyOptions {
    /// The named policies; by default that of the environment, or else [`DEFAULT_POLICY`]. At least one.
    ///
    /// # Errors
    /// If only commas were given, or the environment names no policy.
    pub(super) fn several(&self) -> miette::Result<Vec<String>> {
        let variable = variable(POLICY_VARIABLE).filter(|_| self.policies.is_empty());
        let policies = self.several_or(variable.as_deref().unwrap_or(DEFAULT_POLICY))?;
        if variable.is_some() {
            let named = |errors: Findings| errors.help(format!("the environment variable {POLICY_VARIABLE} names it"));
            policies.iter().try_for_each(|policy| Source::find(policy).map(drop).map_err(named))?;
        }
        Ok(policies)
    }

    /// The named policies; by default those in the list `default`.
    ///
    /// # Errors
    /// If only commas were given.
    pub(super) fn several_or(&self, default: &str) -> miette::Result<Vec<String>> {
        let given: Vec<&str> = match self.policies.is_empty() {
            true => vec![default],
            false => self.policies.iter().map(String::as_str).collect(),
        };
        let named: Vec<String> = given.into_iter().flat_map(listed).map(|name| self.adjusted(name)).collect();
        if named.is_empty() {
            return Err(miette!(help = "name some: --policy tree-eager,tree-heft", "--policy names no policy"));
        }
        Ok(named)
    }

    /// The policy of this name with the parameters that are set for all.
    fn adjusted(&self, name: String) -> String {
        self.set.iter().fold(name, |name, set| format!("{name}+{set}"))
    }

    /// `others` followed by these.
    pub(super) fn with(&self, others: &[String]) -> PolicyOptions {
        PolicyOptions { policies: others.iter().chain(&self.policies).cloned().collect(), set: self.set.clone() }
    }
}

/// Splits a list at commas, except where all of it is the name of a file.
fn listed(list: &str) -> Vec<String> {
    if Path::new(list).exists() {
        return vec![list.to_owned()];
    }
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let every = || library().iter().map(|shipped| shipped.name.to_owned()).collect();
    names.flat_map(|name| if name == "all" { every() } else { vec![name.to_owned()] }).collect()
}

/// The policies without repetitions.
pub(super) fn without_repetition(policies: Vec<String>) -> Vec<String> {
    let mut once = Vec::new();
    for policy in policies {
        if !once.contains(&policy) {
            once.push(policy);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> PolicyOptions {
        PolicyOptions { policies: words.iter().map(ToString::to_string).collect(), set: Vec::new() }
    }

    #[test]
    fn policies_are_repeated_or_listed() {
        let named = of(&["tree-ws,mine.kdl#a", " tree-eager "]).several_or("x").expect("there are some");
        assert_eq!(named, ["tree-ws", "mine.kdl#a", "tree-eager"]);
        assert_eq!(of(&[]).several_or("a,b").expect("the default"), ["a", "b"]);
        assert_eq!(of(&["all"]).several_or("x").expect("all of them").len(), library().len());
        assert_eq!(without_repetition(of(&["a,b,a"]).several_or("x").expect("three")), ["a", "b"]);
        assert!(of(&[","]).several_or("x").is_err());
    }

    #[test]
    fn a_file_whose_name_has_a_comma_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a,b.kdl").display().to_string();
        std::fs::write(&path, "").expect("a file");
        assert_eq!(of(&[&path]).several_or("x").expect("one"), [path]);
    }
}
