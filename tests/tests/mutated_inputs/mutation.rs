//! Mutations of a small valid input.

use std::ops::Range;

/// Numbers at the edges of what programs count with, and beyond.
const NUMBERS: [&str; 18] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "0x7fffffff",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999",
    "1e308",
    "1e999",
    "-1e-999",
    "nan",
    "inf",
];

/// Pieces with a meaning in some format.
const PIECES: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "\\",
    "//",
    "/*",
    "/-",
    "#",
    "%",
    "<",
    "/>",
    "&",
    ":",
    ",",
    "=",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\u{1b}[2J",
    "\u{feff}",
    "µ",
];

/// Length of a line that is longer than any terminal, and than sixteen bits count.
const LONG: usize = 70_000;

/// splitmix64: the same mutations everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 if that is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % (end.max(1) as u64)) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A range of up to `longest` bytes.
    fn range(&mut self, text: &[u8], longest: usize) -> Range<usize> {
        let start = self.below(text.len() + 1);
        start..start + self.below(longest.min(text.len() - start) + 1)
    }
}

/// The input of this number: one of the `seeds` with one to four mutations.
pub(super) fn mutated(seeds: &[&str], number: u64) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x1_0001));
    let mut text = random.of(seeds).as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        mutate(&mut text, &mut random);
    }
    text
}

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    match random.below(12) {
        0 => {
            let at = random.below(text.len());
            let bit = random.below(8);
            text.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
        }
        1 => text.truncate(random.below(text.len() + 1)),
        2 => drop(text.drain(random.range(text, 40))),
        3 => {
            // A few times, or often.
            let piece = text[random.range(text, 60)].to_vec();
            let times = random.of(&[1, 2, 300]);
            insert(text, random, &piece.repeat(times));
        }
        4 | 5 => {
            let number = random.of(&NUMBERS);
            replace_word(text, random, |byte| byte.is_ascii_digit(), number.as_bytes());
        }
        6 => {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
            let mut words = text.split(|byte| !is_word(*byte)).filter(|word| !word.is_empty());
            let count = words.clone().count();
            let word = words.nth(random.below(count)).unwrap_or_default().to_vec();
            replace_word(text, random, is_word, &word);
        }
        7 => {
            let piece = random.of(&PIECES);
            insert(text, random, piece.as_bytes());
        }
        8 => {
            // A line again, at another place.
            let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let line = random.of(&lines).to_vec();
            let at = random.below(lines.len() + 1);
            let place: usize = lines[..at].iter().map(|line| line.len()).sum();
            text.splice(place..place, line);
        }
        9 => {
            let filler = random.of(&["x", " ", "7", "µ", "a ", "(", "\t"]);
            // Mostly a moderate one, so that the rest of the mutations matter.
            let length = random.of(&[300, 300, 2_000, LONG]);
            insert(text, random, filler.repeat(length / filler.len()).as_bytes());
        }
        10 => text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' '),
        _ => {
            let deep = random.of(&["{", "[", "(", "a {", "/*", "<object>"]);
            let times = random.of(&[3, 100, 5_000]);
            insert(text, random, deep.repeat(times).as_bytes());
        }
    }
}

fn insert(text: &mut Vec<u8>, random: &mut Random, piece: &[u8]) {
    let at = random.below(text.len() + 1);
    text.splice(at..at, piece.iter().copied());
}

/// Replaces one of the longest runs of bytes that belong to words.
fn replace_word(text: &mut Vec<u8>, random: &mut Random, belongs: impl Fn(u8) -> bool, word: &[u8]) {
    let starts = |at: &usize| belongs(text[*at]) && (*at == 0 || !belongs(text[*at - 1]));
    let all: Vec<usize> = (0..text.len()).filter(starts).collect();
    if all.is_empty() {
        return insert(text, random, word);
    }
    let start = random.of(&all);
    let length = text[start..].iter().take_while(|byte| belongs(**byte)).count();
    text.splice(start..start + length, word.iter().copied());
}
