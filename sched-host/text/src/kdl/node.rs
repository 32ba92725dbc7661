//! Typed access to the arguments and properties of a node.

use super::reader::Reader;
use crate::{Finding, Span, count, did_you_mean};
use kdl::{KdlEntry, KdlNode, KdlValue};
use sched_core::Arch;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Arguments and properties that a node accepts.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The number of arguments.
    pub arguments: usize,
    /// The names of properties.
    pub properties: &'static [&'static str],
    /// Example of the node, for help.
    pub example: &'static str,
}

/// A node that is being read. Missing values and wrong types are reported to its reader.
#[derive(Debug)]
pub struct NodeReader<'a> {
    reader: &'a mut Reader,
    node: &'a KdlNode,
    signature: &'static Signature,
}

impl<'a> NodeReader<'a> {
    /// Reports what the signature does not allow: annotations, arguments and properties that are unknown or given
    /// twice.
    pub(super) fn open(reader: &'a mut Reader, node: &'a KdlNode, signature: &'static Signature) -> NodeReader<'a> {
        reader.refuse_annotation(node.ty().map(|ty| ty.value()), reader.name_span(node));
        let mut node = NodeReader { reader, node, signature };
        let mut seen: HashSet<&str> = HashSet::new();
        let mut arguments = 0;
        for entry in node.node.entries() {
            let span = node.reader.span(entry.span());
            node.reader.refuse_annotation(entry.ty().map(|ty| ty.value()), span);
            match entry.name().map(|name| name.value()) {
                None => {
                    arguments += 1;
                    if arguments > signature.arguments {
                        node.surplus(span);
                    }
                }
                Some(name) => {
                    let again = !seen.insert(name);
                    node.property(name, span, again);
                }
            }
        }
        node
    }

    fn surplus(&mut self, span: Span) {
        let finding =
            Finding::error(format!("`{}` takes {}", self.name(), count(self.signature.arguments, "argument")));
        self.report(finding.at(span, "this is one too many").help(format!("write `{}`", self.signature.example)));
    }

    fn property(&mut self, name: &str, span: Span, again: bool) {
        let known = self.signature.properties.iter().copied();
        if !self.signature.properties.contains(&name) {
            let help = did_you_mean(name, known, &format!("properties of `{}`", self.name()));
            let finding = Finding::error(format!("`{}` has no property `{name}`", self.name()));
            self.report(finding.at(span, "unknown property").help(help));
        } else if again {
            self.report(Finding::error(format!("`{name}` is given twice")).at(span, "again here"));
        }
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.node.name().value()
    }

    /// Place of its name.
    #[must_use]
    pub fn span(&self) -> Span {
        self.reader.name_span(self.node)
    }

    /// The reader of the text.
    pub fn reader(&mut self) -> &mut Reader {
        self.reader
    }

    /// Whether it has this property, of any type.
    #[must_use]
    pub fn has(&self, property: &str) -> bool {
        self.node.entry(property).is_some()
    }

    /// Reports a finding about the node, with a code such as `policy::each`.
    pub fn report(&mut self, finding: Finding) {
        let code = self.reader.code(self.name());
        self.reader.report(finding.code(code));
    }

    /// Reports a missing property; `example` is a possible value.
    pub fn missing(&mut self, property: &str, example: &str) {
        let finding = Finding::error(format!("`{}` has no `{property}`", self.name()));
        self.report(finding.at(self.span(), "of this one").help(format!("write `{property}={example}`")));
    }

    /// Argument `index`, a text on one line that is not empty and can be printed; reported if missing. `expected`
    /// describes it: `a name`.
    pub fn argument(&mut self, index: usize, expected: &str) -> Option<(String, Span)> {
        let found = self.node.entries().iter().filter(|entry| entry.name().is_none()).nth(index);
        match found.map(|entry| (entry, entry.value())) {
            Some((entry, KdlValue::String(text))) if text.contains(char::is_control) => {
                self.wrong(entry, &format!("{expected} without line breaks and other control characters"))
            }
            Some((entry, KdlValue::String(text))) if !text.is_empty() => {
                Some((text.clone(), self.reader.span(entry.span())))
            }
            Some((entry, _)) => self.wrong(entry, expected),
            None => {
                let finding = Finding::error(format!("`{}` lacks {expected}", self.name()));
                let label = format!("expected {expected} after this");
                self.report(finding.at(self.span(), label).help(format!("write `{}`", self.signature.example)));
                None
            }
        }
    }

    /// Argument `index`, a quantity; reported if missing.
    pub fn quantity_argument<T>(&mut self, index: usize, parse: fn(&str) -> Option<T>, expected: &str) -> Option<T> {
        let (text, span) = self.argument(index, expected)?;
        let found = parse(&text);
        if found.is_none() {
            let finding = Finding::error(format!("`{}` is given {text:?}", self.name()));
            self.report(finding.at(span, format!("expected {expected}")));
        }
        found
    }

    /// The first argument, a whole number in a range.
    pub fn whole_argument(&mut self, range: RangeInclusive<usize>) -> Option<usize> {
        let entry = self.node.entries().iter().find(|entry| entry.name().is_none())?;
        self.whole_value(entry, range)
    }

    /// A property that is a text.
    pub fn text(&mut self, property: &str) -> Option<(String, Span)> {
        let entry = self.node.entry(property)?;
        let span = self.reader.value_span(entry);
        match entry.value() {
            KdlValue::String(text) => Some((text.clone(), span)),
            value => {
                let finding = Finding::error(format!("`{property}` is {value}")).at(span, "expected a text in quotes");
                self.report(finding.help(format!("write `{property}=\"{value}\"`, if that is its name")));
                None
            }
        }
    }

    /// A property that is the name of an architecture.
    pub fn arch(&mut self, property: &str) -> Option<Arch> {
        /// Those with a name, for suggestions.
        const NAMES: [&str; 7] = ["cpu", "cuda", "opencl", "hip", "sycl", "mpi", "fpga"];
        let (name, span) = self.text(property)?;
        let arch = Arch::from_name(&name);
        if arch.is_none() {
            let finding = Finding::error(format!("there is no architecture `{name}`"))
                .at(span, "unknown architecture")
                // All of them: short names are close to unrelated ones.
                .help(format!("architectures: {}", NAMES.map(|known| format!("`{known}`")).join(", ")))
                .code(self.reader.code("arch"));
            self.reader.report(finding);
        }
        arch
    }

    /// A property that is `#true` or `#false`; `#false` if it is missing.
    pub fn flag(&mut self, property: &str) -> bool {
        let Some(entry) = self.node.entry(property) else { return false };
        let flag = entry.value().as_bool();
        flag.or_else(|| self.wrong(entry, "`#true` or `#false`")).unwrap_or(false)
    }

    /// A property that is a whole number in a range.
    pub fn whole(&mut self, property: &str, range: RangeInclusive<usize>) -> Option<usize> {
        self.whole_value(self.node.entry(property)?, range)
    }

    /// A property that is a number more than 0.
    pub fn positive(&mut self, property: &str) -> Option<f64> {
        let entry = self.node.entry(property)?;
        number(entry).filter(|number| *number > 0.0).or_else(|| self.wrong(entry, "a number more than 0"))
    }

    /// A property that is a number.
    pub fn number(&mut self, property: &str) -> Option<f64> {
        let entry = self.node.entry(property)?;
        number(entry).or_else(|| self.wrong(entry, "a number"))
    }

    /// A property that is a quantity: a text with a number and a unit.
    pub fn quantity<T>(&mut self, property: &str, parse: fn(&str) -> Option<T>, expected: &str) -> Option<T> {
        let entry = self.node.entry(property)?;
        entry.value().as_string().and_then(parse).or_else(|| self.wrong(entry, expected))
    }

    fn whole_value(&mut self, entry: &KdlEntry, range: RangeInclusive<usize>) -> Option<usize> {
        let number = entry.value().as_integer().and_then(|number| usize::try_from(number).ok());
        number.filter(|number| range.contains(number)).or_else(|| {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.wrong(entry, &expected)
        })
    }

    fn wrong<T>(&mut self, entry: &KdlEntry, expected: &str) -> Option<T> {
        let (value, span) = (entry.value(), self.reader.value_span(entry));
        let finding = match entry.name() {
            Some(name) => Finding::error(format!("`{}` is {value}", name.value())),
            None => Finding::error(format!("`{}` is given {value}", self.name()))
                .help(format!("write `{}`", self.signature.example)),
        };
        self.report(finding.at(span, format!("expected {expected}")));
        None
    }
}

fn number(entry: &KdlEntry) -> Option<f64> {
    let number = entry.value().as_float().or_else(|| entry.value().as_integer().map(|number| number as f64));
    number.filter(|number| number.is_finite())
}
