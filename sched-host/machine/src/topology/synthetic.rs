//! Diagnoses a synthetic description: hwloc only says that something is wrong.

use serde::Serialize;

/// Maximum number of PUs in a description.
const LARGEST: u64 = 1 << 14;

/// Maximum number that the system has for a PU or another object of a description.
const LARGEST_INDEX: u64 = 4 * LARGEST;

/// The names that hwloc accepts for levels, besides any abbreviation of them.
const NAMES: [&str; 25] = [
    "numanode", "numa", "node", "package", "socket", "die", "group", "core", "pu", "l1cache", "l2cache", "l3cache",
    "l4cache", "l5cache", "l1", "l2", "l3", "l4", "l5", "l1d", "l2d", "l3d", "l1i", "l2i", "l3i",
];

/// A problem of a synthetic description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SyntheticProblem {
    /// Its offset, in bytes from the start of the description.
    pub offset: usize,
    /// Its length in bytes.
    pub length: usize,
    /// What was found there and what was expected.
    pub what: String,
}

/// One `type:count` of a description.
struct Word<'a> {
    offset: usize,
    text: &'a str,
}

impl Word<'_> {
    fn problem(&self, what: String) -> SyntheticProblem {
        SyntheticProblem { offset: self.offset, length: self.text.len(), what }
    }

    /// `type` and `count`, without the attributes in parentheses; a bare number has no type.
    fn parts(&self) -> (Option<&str>, &str) {
        let bare = self.text.split('(').next().unwrap_or_default();
        match bare.split_once(':') {
            Some((name, count)) => (Some(name), count),
            None if bare.starts_with(|c: char| c.is_ascii_digit()) => (None, bare),
            None => (Some(bare), ""),
        }
    }
}

/// The levels, without attributes of the whole description and without attached memory (`[numa]`).
fn words(description: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    let mut depth = 0_u32;
    for (at, c) in description.char_indices().chain([(description.len(), ' ')]) {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let last = at == description.len();
        if last || (c.is_whitespace() && depth == 0) {
            if let Some(offset) = start.take() {
                let text = &description[offset..at];
                if !text.starts_with(['(', '[']) {
                    words.push(Word { offset, text });
                }
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    words
}

/// The problem of a description so large that building it would look like a hang.
///
/// It is divided into levels as by hwloc, which finds some where people see none: a level's name reaches to the next
/// colon, and its count may be followed by the next level without a space.
pub(super) fn too_large(description: &str) -> Option<SyntheticProblem> {
    let problem = |rest: &str, length: usize, what: String| {
        let offset = description.len() - rest.len();
        Some(SyntheticProblem { offset, length, what })
    };
    if let Some(problem) = negative(description).or_else(|| large_index(description)) {
        return Some(problem);
    }
    let mut pus = 1_u64;
    let mut memories = 0_u64;
    let mut rest = description;
    loop {
        rest = rest.trim_start();
        let level = rest;
        if let Some(attributes) = rest.strip_prefix('(') {
            rest = attributes.split_once(')')?.1;
            continue;
        }
        if let Some(attached) = rest.strip_prefix('[') {
            // Each object of the level before has such a memory.
            memories = memories.saturating_add(pus);
            if memories > LARGEST {
                let what = format!("more than {LARGEST} memory nodes up to here, the maximum; use smaller counts");
                return problem(level, level.find(']').map_or(level.len(), |end| end + 1), what);
            }
            rest = attached.split_once(']')?.1;
            continue;
        }
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            rest = rest.split_once(':')?.1;
        }
        let (count, after) = leading_number(rest)?;
        pus = pus.saturating_mul(count);
        if pus > LARGEST {
            let what = format!("more than {LARGEST} PUs up to here, the maximum; use smaller counts");
            return problem(level, level.len() - after.len(), what);
        }
        rest = after;
    }
}

/// A description for hwloc of the same machine, in which the objects of wide levels stand in groups of their own.
///
/// hwloc compares each object with all its siblings. With groups of few objects, in groups in turn, 16384 siblings take
/// less than a second instead of a minute.
pub(super) struct Grouped {
    pub(super) description: String,
    /// Number of groups at each level that was added. Levels of the description itself have no groups.
    pub(super) added: Vec<usize>,
}

/// Counts from which on a level gets groups.
const WIDE: u64 = 256;

/// Number of objects that one group has, where the count can be divided so.
const MOST_IN_GROUP: u64 = 32;

/// Groups the objects of wide levels. Descriptions with attributes, memory or groups stay as they are.
pub(super) fn grouped(description: &str) -> Grouped {
    let mut grouped = Grouped { description: String::new(), added: Vec::new() };
    let mut above = 1;
    for word in description.split_ascii_whitespace() {
        let plain = word.split_once(':').filter(|(name, count)| {
            let simple = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
            simple(name) && count.bytes().all(|byte| byte.is_ascii_digit()) && !count.starts_with('0')
        });
        let Some((name, Ok(count))) = plain.map(|(name, count)| (name, count.parse::<u64>())) else {
            return Grouped { description: description.to_owned(), added: Vec::new() };
        };
        let first = name.as_bytes()[0].to_ascii_lowercase();
        if first == b'g' {
            return Grouped { description: description.to_owned(), added: Vec::new() };
        }
        let mut left = count;
        // Memory nodes are no level of hwloc's tree.
        while count >= WIDE && left > MOST_IN_GROUP && first != b'n' {
            let Some(groups) = (2..=MOST_IN_GROUP).rev().find(|groups| left % groups == 0) else { break };
            grouped.description += &format!("group:{groups} ");
            (above, left) = (above * groups, left / groups);
            grouped.added.push(usize::try_from(above).unwrap_or(usize::MAX));
        }
        grouped.description += &format!("{name}:{left} ");
        above *= left;
    }
    grouped
}

/// A number below 0, which hwloc takes for one near 2^64.
fn negative(description: &str) -> Option<SyntheticProblem> {
    let numbers = description.match_indices([':', '=']).map(|(at, _)| at + 1);
    let mut negative = numbers.filter_map(|at| {
        let digits = description[at..].strip_prefix('-')?;
        let length = 1 + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        (length > 1).then(|| {
            let what = format!("{} is below 0; write a number from 1", &description[at..at + length]);
            SyntheticProblem { offset: at, length, what }
        })
    });
    negative.next()
}

/// A number of the system that is too large: the sets of PUs have a bit for each number up to it.
fn large_index(description: &str) -> Option<SyntheticProblem> {
    for (start, attribute) in description.match_indices("indexes=") {
        let list = &description[start + attribute.len()..];
        let list = &list[..list.find([')', ' ']).unwrap_or(list.len())];
        for piece in list.split([',', '*', ':']) {
            if leading_number(piece).is_some_and(|(index, _)| index > LARGEST_INDEX) {
                let offset = piece.as_ptr().addr() - description.as_ptr().addr();
                let what = format!("an index is larger than {LARGEST_INDEX}, the maximum");
                return Some(SyntheticProblem { offset, length: piece.len(), what });
            }
        }
    }
    None
}

/// The number that `text` begins with, as C's `strtoul` reads it for hwloc: decimal, hexadecimal after `0x`, octal
/// after `0`, perhaps after spaces and a sign. Also the text after it.
fn leading_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let hexadecimal = hexadecimal.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let number = u64::from_str_radix(&digits[..end], radix).ok();
    let number = if negative { number.map(u64::wrapping_neg) } else { number };
    Some((number.unwrap_or(u64::MAX), &digits[end..]))
}

/// All problems of a description that hwloc rejected with the message `why`.
pub(super) fn diagnose(description: &str, why: &str) -> Vec<SyntheticProblem> {
    let words = words(description);
    let mut problems: Vec<SyntheticProblem> = words.iter().filter_map(diagnose_word).collect();
    for (at, word) in words.iter().enumerate() {
        if let Some(name) = word.parts().0
            && !name.to_ascii_lowercase().starts_with("group")
            && words[..at].iter().any(|before| before.parts().0.is_some_and(|other| other.eq_ignore_ascii_case(name)))
        {
            problems.push(word.problem(format!("`{name}` was already given; only groups may be repeated")));
        }
    }
    if let Some(offset) = description.find('\0') {
        problems.push(SyntheticProblem { offset, length: 1, what: "a NUL character cannot be part of it".to_owned() });
    }
    let brackets = description.matches(['(', '[']).count() != description.matches([')', ']']).count();
    if brackets {
        problems.push(whole(description, "a parenthesis or bracket is not closed".to_owned()));
    }
    if words.is_empty() && !brackets {
        problems.push(whole(description, "it names no level".to_owned()));
    }
    if problems.is_empty() {
        let ends_with_pu =
            words.last().is_some_and(|word| word.parts().0.is_none_or(|name| name.eq_ignore_ascii_case("pu")));
        problems.push(match words.last() {
            Some(word) if !ends_with_pu => word.problem("the last level must be the PUs, such as `pu:2`".to_owned()),
            _ => whole(
                description,
                format!("{why}; are the levels ordered from the outermost to the innermost, each once?"),
            ),
        });
    }
    problems.sort_by_key(|problem| problem.offset);
    problems
}

fn whole(description: &str, what: String) -> SyntheticProblem {
    SyntheticProblem { offset: 0, length: description.len(), what }
}

fn diagnose_word(word: &Word<'_>) -> Option<SyntheticProblem> {
    let (name, count) = word.parts();
    if let Some(name) = name {
        let lower = name.to_ascii_lowercase();
        // Names such as `group0`, `l2u` and abbreviations such as `pack` are left to hwloc.
        let known = !lower.is_empty()
            && NAMES
                .iter()
                .any(|known| known.starts_with(&lower) || lower.trim_end_matches(char::is_numeric) == *known);
        if !known {
            let nearest = NAMES
                .into_iter()
                .max_by(|a, b| strsim::jaro_winkler(a, &lower).total_cmp(&strsim::jaro_winkler(b, &lower)));
            let guess = nearest.filter(|_| !lower.is_empty()).map(|nearest| format!("; did you mean `{nearest}`?"));
            if lower == "machine" {
                return Some(word.problem("the machine encloses all levels and is not written".to_owned()));
            }
            return Some(word.problem(format!("`{name}` is not a level{}", guess.unwrap_or_default())));
        }
    }
    let count = count.trim_end_matches('\0');
    let number = leading_number(count).filter(|(_, rest)| rest.is_empty()).ok_or(());
    match number.and_then(|(number, _)| u32::try_from(number).map_err(|_| ())) {
        Ok(0) => Some(word.problem("the count is 0; it must be at least 1".to_owned())),
        Ok(_) => None,
        Err(_) if count.is_empty() => {
            Some(word.problem(format!("the count is missing: write `{}:2`", name.unwrap_or("core"))))
        }
        Err(_) => Some(word.problem(format!("`{count}` is not a count; write a whole number, at least 1"))),
    }
}
