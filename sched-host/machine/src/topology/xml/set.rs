//! Sets of PUs or memory nodes, as hwloc writes them.

/// Maximum number of groups of 32 bits.
const LONGEST: usize = 2048;

/// A set of numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Set {
    /// Groups of 32, the lowest first; the last is not 0.
    groups: Vec<u32>,
    /// Whether it contains all numbers beyond its groups.
    endless: bool,
}

impl Set {
    /// Parses `0x000000ff,0xffffffff`: groups of 32 bits, the highest first, and `0xf...f` for all bits above. A group
    /// may be empty.
    pub(super) fn parse(text: &str) -> Option<Set> {
        let (endless, rest) = match text.strip_prefix("0xf...f") {
            Some("") => return Some(Set { groups: Vec::new(), endless: true }),
            Some(rest) => (true, rest.strip_prefix(',')?),
            None => (false, text),
        };
        if rest.is_empty() || rest.len() > LONGEST * 11 {
            return None;
        }
        let group = |text: &str| match text.strip_prefix("0x") {
            Some(digits) if (1..=8).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit()) => {
                u32::from_str_radix(digits, 16).ok()
            }
            None if text.is_empty() => Some(0),
            _ => None,
        };
        let mut groups: Vec<u32> = rest.split(',').rev().map(group).collect::<Option<_>>()?;
        if groups.len() > LONGEST {
            return None;
        }
        while groups.last() == Some(&0) {
            groups.pop();
        }
        Some(Set { groups, endless })
    }

    /// All numbers in sets are below.
    pub(super) const END: u64 = 32 * LONGEST as u64;

    /// The set of one number.
    pub(super) fn of(number: u64) -> Set {
        let place = usize::try_from(number / 32).unwrap_or(usize::MAX);
        if place >= LONGEST {
            return Set { groups: Vec::new(), endless: true };
        }
        let mut groups = vec![0; place + 1];
        groups[place] = 1 << (number % 32);
        Set { groups, endless: false }
    }

    /// The lowest number among its groups.
    pub(super) fn first(&self) -> Option<u64> {
        let place = self.groups.iter().position(|group| *group != 0)?;
        Some(32 * place as u64 + u64::from(self.groups[place].trailing_zeros()))
    }

    /// Whether it has no highest number.
    pub(super) fn is_endless(&self) -> bool {
        self.endless
    }

    /// Whether `other` contains it; neither is endless.
    pub(super) fn is_within(&self, other: &Set) -> bool {
        let of_other = |at: usize| other.groups.get(at).copied().unwrap_or(0);
        self.groups.iter().enumerate().all(|(at, group)| group & !of_other(at) == 0)
    }

    /// Whether both have a number in common; neither is endless.
    pub(super) fn meets(&self, other: &Set) -> bool {
        self.groups.iter().zip(&other.groups).any(|(one, other)| one & other != 0)
    }

    /// Adds the numbers of `other`; neither is endless.
    pub(super) fn add(&mut self, other: &Set) {
        if self.groups.len() < other.groups.len() {
            self.groups.resize(other.groups.len(), 0);
        }
        self.groups.iter_mut().zip(&other.groups).for_each(|(one, other)| *one |= other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_hwloc_writes_them() {
        assert_eq!(Set::parse("0x00000005").map(|set| set.groups), Some(vec![5]));
        assert_eq!(Set::parse("0x1,,0x80000000").map(|set| set.groups), Some(vec![0x8000_0000, 0, 1]));
        assert_eq!(Set::parse("0x0"), Some(Set::default()));
        assert!(Set::parse("0xf...f,0x0").is_some_and(|set| set.is_endless()));
        for wrong in ["", "5", "0x", "0x123456789", "0xg", "-0x1", "0x1;0x2", " 0x1", "0xf...f0x1"] {
            assert_eq!(Set::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Set::parse(&"0x1,".repeat(5_000)), None);
        assert_eq!(Set::parse("0x2,0x0"), Some(Set::of(33)));
    }
}
