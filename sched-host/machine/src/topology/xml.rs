//! Checks hwloc's XML before hwloc reads it, which trusts what it reads: files without sets of PUs, or with sets that
//! contradict each other, end the process.
//!
//! What is known here is written anew for hwloc: the tree of processors and memories. So hwloc sees nothing that was
//! not checked, and both read the same document.

mod set;
#[cfg(test)]
mod tests;

use roxmltree::{Document, Node, ParsingOptions};
use sched_text::excerpt::quoted_word;
use sched_text::{Earliest, Finding, line_and_column, offset_of, word_at};
use set::Set;
use std::collections::HashSet;
use std::fmt::Write;

/// Maximum nesting of objects. hwloc recurses.
const DEEPEST: usize = 64;

/// Maximum number of nodes of the document; a machine of 16384 PUs has fewer.
const MOST_NODES: u32 = 2_000_000;

/// Objects that contain processors, in the versions 1 and 2 of the format.
const NORMAL: [&str; 18] = [
    "Machine", "System", "Group", "Package", "Socket", "Die", "Cluster", "Cache", "L5Cache", "L4Cache", "L3Cache",
    "L2Cache", "L1Cache", "L3iCache", "L2iCache", "L1iCache", "Core", "PU",
];

/// Objects that contain memory. Those of version 1 contain processors, too.
const MEMORY: [&str; 3] = ["NUMANode", "NUMA", "MemCache"];

/// Objects that no topology has here: devices, and what users added.
const OTHER: [&str; 6] = ["Bridge", "PCI", "PCIDev", "OS", "OSDev", "Misc"];

/// Attributes that are sets, whether or not they are needed.
const SETS: [&str; 7] =
    ["cpuset", "complete_cpuset", "online_cpuset", "allowed_cpuset", "nodeset", "complete_nodeset", "allowed_nodeset"];

/// Attributes that are numbers. Any other attribute is left out.
const NUMBERS: [&str; 10] = [
    "os_index",
    "local_memory",
    "cache_size",
    "depth",
    "cache_linesize",
    "cache_associativity",
    "cache_type",
    "kind",
    "subkind",
    "dont_merge",
];

/// The text of a topology with what is known here, or its problems with their places.
pub(super) fn checked(text: &str) -> Result<String, Box<Finding>> {
    if let Some(offset) = text.find("<!ENTITY") {
        return Err(found(text, &[(offset, "entities are declared, which no topology needs".to_owned())], 0));
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        let message = error.to_string();
        let message = message.split(" at ").next().unwrap_or(&message).to_owned();
        found(text, &[(offset_of(text, place.row as usize, place.col as usize), message)], 0)
    })?;
    let mut check = Check { problems: Earliest::new(), out: String::new(), seen: Seen::default() };
    check.topology(document.root_element());
    let (problems, more) = check.problems.take();
    if problems.is_empty() { Ok(check.out) } else { Err(found(text, &problems, more)) }
}

/// The problems at these bytes as one, of which the first are named; there are `more`.
fn found(text: &str, problems: &[(usize, String)], more: usize) -> Box<Finding> {
    let (shown, rest) = problems.split_at(problems.len().min(SHOWN));
    let mut lines: Vec<String> = Vec::new();
    for (offset, what) in shown {
        let (line, column) = line_and_column(text, *offset);
        lines.push(format!("line {line}, column {column}: {what}"));
    }
    let rest = rest.len() + more;
    lines.extend((rest > 0).then(|| format!("and {}", sched_text::count(rest, "further problem"))));
    let finding = Finding::error(lines.join("; "));
    Box::new(shown.iter().fold(finding, |finding, (offset, what)| finding.at(word_at(text, *offset), what)))
}

/// Maximum number of problems in a message.
const SHOWN: usize = 10;

/// What was found so far.
#[derive(Default)]
struct Seen {
    pus: HashSet<u64>,
    memories: HashSet<u64>,
    objects: u64,
}

struct Check {
    problems: Earliest<(usize, String)>,
    out: String,
    seen: Seen,
}

/// What a child must agree with.
struct Above {
    cpuset: Set,
    complete_cpuset: Set,
    /// Memory nodes beside it or around it, which are local to all inside.
    local: Set,
}

impl Check {
    fn report(&mut self, offset: usize, what: impl std::fmt::Display) {
        self.problems.report(offset, (offset, what.to_string()));
    }

    fn topology(&mut self, root: Node<'_, '_>) {
        let start = root.range().start;
        if root.tag_name().name() != "topology" {
            let found = quoted_word(root.tag_name().name(), 40);
            return self.report(start, format!("the element {found} is no `topology`"));
        }
        let version = root.attribute("version");
        let major = version.map_or(Some("1"), |version| version.split('.').next());
        if !matches!(major, Some("1" | "2")) {
            let found = quoted_word(version.unwrap_or_default(), 40);
            return self.report(start, format!("it has the version {found} of the format, expected 1 or 2"));
        }
        let second = major == Some("2");
        let version = if second { " version=\"2.0\"" } else { "" };
        let _ = writeln!(self.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology{version}>");
        let mut objects = root.children().filter(|child| child.has_tag_name("object"));
        match (objects.next(), objects.next()) {
            (None, _) => self.report(start, "it has no `object`"),
            (Some(machine), None) => match machine.attribute("type") {
                Some("Machine" | "System") => {
                    self.object(machine, None, second, 0);
                    if self.problems.is_empty() && self.seen.pus.is_empty() {
                        self.report(machine.range().start, "the machine has no PU");
                    }
                }
                _ => self.report(machine.range().start, "the outermost object is no `Machine`"),
            },
            (_, Some(other)) => self.report(other.range().start, "there is a second machine"),
        }
        self.out.push_str("</topology>\n");
    }

    /// Checks and writes an object with all inside. The PUs inside it, and whether it contains processors.
    fn object(
        &mut self,
        object: Node<'_, '_>,
        above: Option<&Above>,
        second: bool,
        depth: usize,
    ) -> Option<(Above, bool)> {
        let start = object.range().start;
        let kind = object.attribute("type").unwrap_or_default();
        let memory = MEMORY.contains(&kind);
        if OTHER.contains(&kind) {
            return None;
        }
        if !memory && !NORMAL.contains(&kind) {
            self.report(start, format!("an object has the type {}, which is unknown", quoted_word(kind, 40)));
            return None;
        }
        if depth > DEEPEST {
            self.report(start, format!("objects nest more than {DEEPEST} deep"));
            return None;
        }
        if above.is_some() && matches!(kind, "Machine" | "System") && second {
            self.report(start, "a machine is inside another object");
        }
        let before = self.problems.reported();
        let sets = self.sets(object, kind, second)?;
        let mut local = above.map_or_else(Set::default, |above| above.local.clone());
        memory_beside(object, &mut local);
        let within = Above { cpuset: sets.0, complete_cpuset: sets.1, local };
        if second {
            self.nodesets(object, kind, &within.local);
        }
        self.compare(start, kind, &within, above);
        self.numbers(object, kind, &within)?;
        let (processors, together) = self.children(object, kind, &within, second, depth);
        // Otherwise what is wrong with the sets explains it.
        if kind != "PU" && (!memory || processors) && together != within.cpuset && self.problems.reported() == before {
            self.report(start, format!("the `cpuset` of the {kind} is not that of the PUs inside"));
        }
        self.out.push_str("</object>\n");
        // In version 1, memories contain processors.
        Some((within, !memory || processors))
    }

    /// Checks and writes the objects inside one: whether any of them contains processors, and the PUs of those.
    fn children(
        &mut self,
        object: Node<'_, '_>,
        kind: &str,
        within: &Above,
        second: bool,
        depth: usize,
    ) -> (bool, Set) {
        let start = object.range().start;
        let (mut together, mut all, mut last) = (Set::default(), Set::default(), None);
        let mut processors = false;
        for child in object.children().filter(|child| child.has_tag_name("object")) {
            let Some((inside, contains)) = self.object(child, Some(within), second, depth + 1) else { continue };
            if contains {
                let first = inside.complete_cpuset.first();
                if all.meets(&inside.complete_cpuset) {
                    self.report(child.range().start, "its PUs are also in an object beside it");
                } else if first <= last {
                    self.report(child.range().start, "it has no PU, or lower ones than the object before it");
                }
                all.add(&inside.complete_cpuset);
                last = first.max(last);
                together.add(&inside.cpuset);
                processors = true;
            }
        }
        if processors && (kind == "PU" || second && MEMORY.contains(&kind)) {
            self.report(start, format!("a {kind} contains processors"));
        }
        (processors, together)
    }

    /// The PUs of an object, working and all. Begins writing it.
    fn sets(&mut self, object: Node<'_, '_>, kind: &str, second: bool) -> Option<(Set, Set)> {
        self.seen.objects += 1;
        let _ = write!(self.out, "<object type=\"{kind}\" gp_index=\"{}\"", self.seen.objects);
        let (mut cpuset, mut complete) = (None, None);
        let mut sound = true;
        for name in SETS {
            let needed = matches!(name, "cpuset" | "complete_cpuset")
                || second && matches!(name, "nodeset" | "complete_nodeset");
            let Some(attribute) = object.attribute_node(name) else {
                if needed {
                    let index = object.attribute("os_index").map(|index| format!(" {}", quoted_word(index, 20)));
                    let index = index.unwrap_or_default();
                    self.report(object.range().start, format!("the {kind}{index} has no `{name}`"));
                    sound = false;
                }
                continue;
            };
            let cpus = name.ends_with("cpuset");
            match Set::parse(attribute.value()) {
                Some(set) if !(cpus && set.is_endless()) => {
                    let _ = write!(self.out, " {name}=\"{}\"", attribute.value());
                    match name {
                        "cpuset" => cpuset = Some(set),
                        "complete_cpuset" => complete = Some(set),
                        _ => {}
                    }
                }
                _ => {
                    let found = quoted_word(attribute.value(), 40);
                    let what = if cpus { "PUs" } else { "memory nodes" };
                    self.report(
                        attribute.range().start,
                        format!("`{name}` is {found}, expected a set of {what} such as `0x0000000f`"),
                    );
                    sound = false;
                }
            }
        }
        sound.then_some(())?;
        Some((cpuset?, complete?))
    }

    /// Compares the sets of an object with each other and with those of the object around it.
    fn compare(&mut self, start: usize, kind: &str, object: &Above, above: Option<&Above>) {
        if !object.cpuset.is_within(&object.complete_cpuset) {
            self.report(start, format!("the `cpuset` of the {kind} has PUs that its `complete_cpuset` lacks"));
        }
        let Some(above) = above else { return };
        if !object.cpuset.is_within(&above.cpuset) || !object.complete_cpuset.is_within(&above.complete_cpuset) {
            self.report(start, format!("the {kind} has PUs that the object around it lacks"));
        }
    }

    /// Checks that the memory nodes of an object are those inside, beside and around it.
    fn nodesets(&mut self, object: Node<'_, '_>, kind: &str, local: &Set) {
        let mut expected = Set::default();
        if kind == "NUMANode" {
            expected = os_index(object).map(Set::of).unwrap_or_default();
        } else {
            if !MEMORY.contains(&kind) {
                expected.add(local);
            }
            object
                .descendants()
                .filter(is_memory_node)
                .filter_map(os_index)
                .for_each(|index| expected.add(&Set::of(index)));
        }
        for name in ["nodeset", "complete_nodeset"] {
            let found = object.attribute_node(name);
            let Some((found, set)) = found.and_then(|found| Some((found, Set::parse(found.value())?))) else {
                continue;
            };
            // Nodes that nobody may use are in the complete set only, and not in the file.
            let fits = if name == "nodeset" || kind == "NUMANode" { set == expected } else { expected.is_within(&set) };
            if !fits {
                self.report(
                    found.range().start,
                    format!("the `{name}` of the {kind} is not that of the memory nodes inside, beside and around it"),
                );
            }
        }
    }

    /// Checks the numbers of an object, and ends writing its attributes.
    fn numbers(&mut self, object: Node<'_, '_>, kind: &str, within: &Above) -> Option<()> {
        let mut os_index = None;
        let mut sound = true;
        for attribute in object.attributes() {
            let name = attribute.name();
            if !NUMBERS.contains(&name) {
                continue;
            }
            // hwloc writes -1 for a cache without known associativity that is fully associative.
            let number = attribute.value().parse::<i64>().ok();
            let most = match name {
                "os_index" if matches!(kind, "PU" | "NUMANode" | "NUMA") => Set::END as i64 - 1,
                "os_index" => i64::from(u32::MAX >> 1),
                "local_memory" | "cache_size" => i64::MAX >> 8,
                "depth" => 5,
                "cache_type" => 2,
                _ => i64::from(i32::MAX),
            };
            let least = if name == "cache_associativity" { -1 } else { 0 };
            match number.filter(|number| (least..=most).contains(number)) {
                Some(number) => {
                    if name == "depth" && !fits_depth(kind, number) {
                        // Groups and other objects have a depth of no interest.
                        continue;
                    }
                    if name == "os_index" {
                        os_index = u64::try_from(number).ok();
                    }
                    let _ = write!(self.out, " {name}=\"{number}\"");
                }
                None if name == "depth" && !kind.ends_with("Cache") => {}
                None => {
                    let found = quoted_word(attribute.value(), 40);
                    self.report(
                        attribute.range().start,
                        format!("`{name}` is {found}, expected a number up to {most}"),
                    );
                    sound = false;
                }
            }
        }
        self.out.push_str(">\n");
        self.os_index(object, kind, os_index, within).filter(|()| sound)
    }

    /// Checks that PUs and memory nodes have a number of their own, which agrees with their sets.
    fn os_index(&mut self, object: Node<'_, '_>, kind: &str, os_index: Option<u64>, within: &Above) -> Option<()> {
        let start = object.range().start;
        match (kind, os_index) {
            ("PU" | "NUMANode" | "NUMA", None) => {
                if object.attribute("os_index").is_none() {
                    self.report(start, format!("the {kind} has no `os_index`"));
                }
                return None;
            }
            ("PU", Some(index)) => {
                if !self.seen.pus.insert(index) {
                    self.report(start, format!("PU {index} is there already"));
                }
                if within.cpuset != Set::of(index) {
                    self.report(start, format!("the `cpuset` of PU {index} is not that PU"));
                }
            }
            ("NUMANode" | "NUMA", Some(index)) => {
                let is_new = self.seen.memories.insert(index);
                if !is_new {
                    self.report(start, format!("memory node {index} is there already"));
                }
            }
            _ => {}
        }
        Some(())
    }
}

fn is_memory_node(object: &Node<'_, '_>) -> bool {
    object.has_tag_name("object") && object.attribute("type") == Some("NUMANode")
}

/// The number that the system has for an object, if any set can contain it.
fn os_index(object: Node<'_, '_>) -> Option<u64> {
    object.attribute("os_index")?.parse().ok().filter(|index| *index < Set::END)
}

/// Adds the memory nodes directly inside an object, perhaps in a cache.
fn memory_beside(object: Node<'_, '_>, nodes: &mut Set) {
    for child in object.children().filter(|child| child.has_tag_name("object")) {
        match child.attribute("type") {
            Some("NUMANode") => os_index(child).into_iter().for_each(|index| nodes.add(&Set::of(index))),
            Some("MemCache") => {
                child
                    .descendants()
                    .filter(is_memory_node)
                    .filter_map(os_index)
                    .for_each(|index| nodes.add(&Set::of(index)));
            }
            _ => {}
        }
    }
}

/// Whether `depth` is that of such a cache.
fn fits_depth(kind: &str, depth: i64) -> bool {
    match kind {
        "Cache" => depth > 0,
        "MemCache" => true,
        _ => kind.strip_prefix('L').and_then(|rest| rest.chars().next()) == char::from_digit(depth as u32, 10),
    }
}
