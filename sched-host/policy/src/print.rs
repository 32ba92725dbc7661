//! Policies as text.

use super::element::{Component, Element, Policy, Shared};
use sched_core::{Arch, Value, WorkerSet};
use sched_text::ranges;
use std::fmt::Write as _;

impl Policy {
    /// The policy as text that [`parse`](super::parse()) reads back to an equal policy. Comments other than
    /// [`doc`](Self::doc) are not kept.
    #[must_use]
    pub fn to_kdl(&self) -> String {
        let mut text = String::new();
        for line in self.doc.lines() {
            let line = comment(line);
            text += format!("// {line}").trim_end();
            text.push('\n');
        }
        text += &format!("policy {} {{\n", quote(&self.name));
        for chosen in &self.overrides {
            let from = chosen.from.as_ref().map_or(String::new(), |from| format!(" from={}", quote(from)));
            write_node(&mut text, &format!("override {}{from}", quote(&chosen.component)), &[], 1);
        }
        self.root.iter().for_each(|element| write_element(&mut text, element, 1));
        self.shared.iter().for_each(|shared| write_shared(&mut text, shared));
        text += "}\n";
        text
    }
}

impl Shared {
    /// The definition as text, in one line.
    pub(super) fn to_line(&self) -> String {
        let mut text = String::new();
        write_shared(&mut text, self);
        text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

fn write_shared(text: &mut String, shared: &Shared) {
    let each = shared.each.map_or(String::new(), |level| format!(" each={}", quote(level.name())));
    let between = if shared.between_contexts { " between-contexts=#true" } else { "" };
    let head = format!("shared {}{each}{}{between}", quote(&shared.name), arch_filter(shared.arch));
    write_node(text, &head, &shared.children, 1);
}

fn write_element(text: &mut String, element: &Element, depth: usize) {
    let head = match element {
        Element::Component(component) => component_head(component),
        Element::Each(each) => {
            let (only, except) = (numbers("only", each.only.as_ref()), numbers("except", each.except.as_ref()));
            format!("each {}{}{only}{except}", quote(each.level.name()), arch_filter(each.arch))
        }
        Element::Use(link) => format!("use {}", quote(&link.name)),
    };
    write_node(text, &head, element.children(), depth);
}

fn write_node(text: &mut String, head: &str, children: &[Element], depth: usize) {
    let indent = "    ".repeat(depth);
    *text += &format!("{indent}{head}");
    if !children.is_empty() {
        *text += " {\n";
        children.iter().for_each(|child| write_element(text, child, depth + 1));
        *text += &format!("{indent}}}");
    }
    text.push('\n');
}

pub(super) fn component_head(component: &Component) -> String {
    let mut head = name(&component.name);
    for setting in &component.params {
        head += &format!(" {}={}", name(&setting.name), value(&setting.value));
    }
    head
}

fn numbers(name: &str, workers: Option<&WorkerSet>) -> String {
    let listed = |workers: &WorkerSet| ranges(workers.iter().map(|worker| worker.0));
    workers.map_or(String::new(), |workers| format!(" {name}={}", quote(&listed(workers))))
}

fn arch_filter(arch: Option<Arch>) -> String {
    arch.map_or(String::new(), |arch| format!(" arch={}", quote(&arch.to_string())))
}

/// A value as KDL writes it.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Bool(flag) => format!("#{flag}"),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => kdl::KdlValue::Float(*number).to_string(),
        Value::Text(text) => quote(text),
    }
}

/// The name of a node or property: bare when that is safe.
fn name(name: &str) -> String {
    let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic());
    // Words that KDL reserves for the values `#true`, `#false`, `#null`, `#inf` and `#nan`.
    let reserved = matches!(name, "true" | "false" | "null" | "inf" | "nan");
    if letters && starts && !reserved { name.to_owned() } else { quote(name) }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            letter if needs_escape(letter) => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn comment(line: &str) -> String {
    line.chars().map(|letter| if needs_escape(letter) { ' ' } else { letter }).collect()
}

/// Characters that KDL treats as line ends or does not allow in a string: controls, line and paragraph separators,
/// direction marks, the byte-order mark.
fn needs_escape(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}
