//! Reading the nodes of a KDL document, and telling what is wrong with them.

use kdl::{KdlEntry, KdlNode, KdlValue};
use miette::NamedSource;
use sched_text::kdl::trimmed;
use sched_text::{Finding, SourceText, Span, did_you_mean};
use std::sync::Arc;

/// Collects what is wrong with a text.
pub(super) struct Reader {
    pub(super) source: SourceText,
    pub(super) problems: Vec<Finding>,
}

impl Reader {
    pub(super) fn new(name: &str, text: &str) -> Reader {
        let source = Arc::new(NamedSource::new(name, text.to_owned()).with_language("kdl"));
        Reader { source, problems: Vec::new() }
    }

    /// Notes a problem, unless it was the last one too: what is repeated is wrong each time.
    pub(super) fn report(&mut self, problem: Finding) {
        let problem = problem.in_source(Some(&self.source));
        let told =
            |problem: &Finding| (problem.position().map(|(_, line, column)| (line, column)), problem.to_string());
        if self.problems.last().map(told) != Some(told(&problem)) {
            self.problems.push(problem);
        }
    }

    pub(super) fn span(&self, node: &KdlNode) -> Span {
        trimmed(self.source.inner(), node.name().span())
    }

    pub(super) fn entry_span(&self, entry: &KdlEntry) -> Span {
        trimmed(self.source.inner(), entry.span())
    }

    /// Reports a node whose name is none of `known`.
    pub(super) fn unknown_node(&mut self, node: &KdlNode, within: &str, known: &'static [&'static str]) {
        let name = node.name().value();
        let problem = Finding::error(format!("`{name}` cannot stand in {within}"))
            .at(self.span(node), "unknown")
            .help(did_you_mean(name, known.iter().copied(), &format!("what {within} holds")));
        self.report(problem);
    }

    /// Reports properties that are none of `known`, or given twice, and more arguments than `arguments`.
    pub(super) fn shape(&mut self, node: &KdlNode, arguments: usize, known: &'static [&'static str]) {
        let word = node.name().value();
        let mut seen: Vec<&str> = Vec::new();
        let mut given = 0;
        for entry in node.entries() {
            let span = self.entry_span(entry);
            let Some(name) = entry.name().map(|name| name.value()) else {
                given += 1;
                if given > arguments {
                    let problem = Finding::error(format!("`{word}` takes {arguments} arguments"));
                    self.report(problem.at(span, "this is one too many"));
                }
                continue;
            };
            if !known.contains(&name) {
                let help = did_you_mean(name, known.iter().copied(), &format!("properties of `{word}`"));
                let problem = Finding::error(format!("`{word}` has no property `{name}`"));
                self.report(problem.at(span, "unknown property").help(help));
            } else if seen.contains(&name) {
                self.report(Finding::error(format!("`{name}` is given twice")).at(span, "again here"));
            }
            seen.push(name);
        }
    }

    fn entry<'a>(&self, node: &'a KdlNode, name: &str) -> Option<&'a KdlEntry> {
        node.entries().iter().find(|entry| entry.name().is_some_and(|found| found.value() == name))
    }

    fn wrong<T>(&mut self, entry: &KdlEntry, expected: &str) -> Option<T> {
        let what = entry.name().map_or_else(|| "this".to_owned(), |name| format!("`{}`", name.value()));
        let problem = Finding::error(format!("{what} is {}", entry.value()));
        let span = self.entry_span(entry);
        self.report(problem.at(span, format!("expected {expected}")));
        None
    }

    /// Argument `number`, a text; reported when it is missing.
    pub(super) fn argument(&mut self, node: &KdlNode, number: usize, expected: &str) -> Option<(String, Span)> {
        let found = node.entries().iter().filter(|entry| entry.name().is_none()).nth(number);
        match found.map(|entry| (entry, entry.value())) {
            Some((entry, KdlValue::String(text))) if !text.is_empty() => Some((text.clone(), self.entry_span(entry))),
            Some((entry, _)) => self.wrong(entry, expected),
            None => {
                let problem = Finding::error(format!("`{}` lacks {expected}", node.name().value()));
                let span = self.span(node);
                self.report(problem.at(span, format!("expected {expected} after this")));
                None
            }
        }
    }

    /// A property that is a text.
    pub(super) fn text(&mut self, node: &KdlNode, name: &str) -> Option<(String, Span)> {
        let entry = self.entry(node, name)?;
        match entry.value() {
            KdlValue::String(text) => Some((text.clone(), self.entry_span(entry))),
            _ => self.wrong(entry, "a text in quotes"),
        }
    }

    /// A property that is `#true` or `#false`, and `#false` if it is not there.
    pub(super) fn flag(&mut self, node: &KdlNode, name: &str) -> bool {
        let Some(entry) = self.entry(node, name) else { return false };
        match entry.value() {
            KdlValue::Bool(flag) => *flag,
            _ => self.wrong(entry, "`#true` or `#false`").unwrap_or(false),
        }
    }

    /// A property, or argument 0 for an empty name, that is a whole number in a range.
    pub(super) fn whole(&mut self, node: &KdlNode, name: &str, from: usize, to: usize) -> Option<usize> {
        let entry = if name.is_empty() { node.entries().first() } else { self.entry(node, name) }?;
        let number = entry.value().as_integer().and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| (from..=to).contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(entry, &format!("a whole number from {from} to {to}")),
        }
    }

    /// A property that is a number more than 0.
    pub(super) fn positive(&mut self, node: &KdlNode, name: &str) -> Option<f64> {
        let entry = self.entry(node, name)?;
        let number = entry.value().as_float().or_else(|| entry.value().as_integer().map(|number| number as f64));
        match number.filter(|number| *number > 0.0 && number.is_finite()) {
            Some(number) => Some(number),
            None => self.wrong(entry, "a number more than 0"),
        }
    }

    /// A property that is a number.
    pub(super) fn number(&mut self, node: &KdlNode, name: &str) -> Option<f64> {
        let entry = self.entry(node, name)?;
        let number = entry.value().as_float().or_else(|| entry.value().as_integer().map(|number| number as f64));
        number.filter(|number| number.is_finite()).or_else(|| self.wrong(entry, "a number"))
    }

    /// A property that is a quantity.
    pub(super) fn quantity<T>(
        &mut self,
        node: &KdlNode,
        name: &str,
        parse: fn(&str) -> Option<T>,
        expected: &str,
    ) -> Option<T> {
        let entry = self.entry(node, name)?;
        let found = entry.value().as_string().and_then(parse);
        found.or_else(|| self.wrong(entry, expected))
    }

    /// Argument `number`, a quantity; reported when it is missing.
    pub(super) fn quantity_argument<T>(
        &mut self,
        node: &KdlNode,
        number: usize,
        parse: fn(&str) -> Option<T>,
        expected: &str,
    ) -> Option<T> {
        let (text, span) = self.argument(node, number, expected)?;
        let found = parse(&text);
        if found.is_none() {
            self.report(Finding::error(format!("this is {text:?}")).at(span, format!("expected {expected}")));
        }
        found
    }

    /// Reports that a property is missing.
    pub(super) fn missing(&mut self, node: &KdlNode, name: &str, example: &str) {
        let problem = Finding::error(format!("`{}` has no `{name}`", node.name().value()));
        let span = self.span(node);
        self.report(problem.at(span, "of this one").help(format!("write `{name}={example}`")));
    }

    /// Reports a name that is not there.
    pub(super) fn unknown_name<'a>(
        &mut self,
        what: &str,
        name: &str,
        span: Span,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) {
        let problem = Finding::error(format!("there is no {what} `{name}`"));
        self.report(problem.at(span, format!("unknown {what}")).help(did_you_mean(name, known, what)));
    }
}
