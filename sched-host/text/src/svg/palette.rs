//! Colours that are distinguishable with any kind of colour vision.

use crate::hash::fnv_1a;
use std::collections::{BTreeMap, BTreeSet};

/// Colours for several kernels or curves in one picture: first those of Okabe and Ito, then of Tol's "muted" scheme.
pub const SERIES: [&str; 14] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#332288", "#999933", "#cc6677",
    "#44aa99", "#ddcc77", "#117733", "#aa4499",
];

/// The colours of Okabe and Ito, which are the easiest to distinguish.
const FEW: usize = 7;

/// The colours of kernels in a picture.
///
/// A kernel's colour is derived from the hash of its name, so it is equal in graphs, Gantt charts and traces, and
/// across runs. On a collision, the later name in alphabetical order takes the next free colour: pictures with the same
/// set of kernels agree in all colours, pictures with different sets in most. Up to seven kernels use the seven most
/// distinguishable colours; from fifteen on, colours repeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelColours {
    by_name: BTreeMap<String, &'static str>,
}

impl KernelColours {
    /// Colours for the kernels with these names, which may repeat.
    #[must_use]
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> KernelColours {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let slots = slots(names.len());
        let mut taken = [false; SERIES.len()];
        let mut by_name = BTreeMap::new();
        for name in names {
            let wanted = preferred(name, slots);
            let slot = (wanted..slots).chain(0..wanted).find(|slot| !taken[*slot]).unwrap_or(wanted);
            taken[slot] = true;
            by_name.insert(name.to_owned(), SERIES[slot]);
        }
        KernelColours { by_name }
    }

    /// The colour of a kernel, as `#rrggbb`.
    #[must_use]
    pub fn get(&self, name: &str) -> &'static str {
        self.by_name.get(name).copied().unwrap_or_else(|| SERIES[preferred(name, slots(self.by_name.len()))])
    }
}

fn slots(names: usize) -> usize {
    if names <= FEW { FEW } else { SERIES.len() }
}

fn preferred(name: &str, slots: usize) -> usize {
    (fnv_1a(name.as_bytes()) % slots as u64) as usize
}

/// The colour of text that can be read on `fill`, a colour as `#rrggbb`: white or nearly black.
#[must_use]
pub fn ink_on(fill: &str) -> &'static str {
    let part = |at: usize| {
        let part = fill.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        f64::from(part.unwrap_or(0)) / 255.0
    };
    // Relative luminance, with the gamma of sRGB rounded to 2: where it is more than 0.25, black has the better
    // contrast.
    let luminance = 0.2126 * part(1).powi(2) + 0.7152 * part(3).powi(2) + 0.0722 * part(5).powi(2);
    if luminance > 0.25 { super::INK } else { "white" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_one_picture_have_different_colours() {
        let names: Vec<String> = (0..SERIES.len()).map(|number| format!("kernel {number}")).collect();
        for count in 1..=names.len() {
            let colours = KernelColours::of(names[..count].iter().map(String::as_str));
            let distinct: BTreeSet<&str> = names[..count].iter().map(|name| colours.get(name)).collect();
            assert_eq!(distinct.len(), count);
            assert!(count > FEW || distinct.iter().all(|colour| SERIES[..FEW].contains(colour)));
        }
    }

    #[test]
    fn neither_order_nor_repetition_of_the_names_matters() {
        let colours = KernelColours::of(["gemm", "potrf", "syrk", "trsm"]);
        assert_eq!(colours, KernelColours::of(["trsm", "potrf", "gemm", "syrk", "potrf"]));
        // A kernel alone has the colour that its name asks for, and so has the first of the alphabet among others.
        assert_eq!(KernelColours::of(["gemm"]).get("gemm"), colours.get("gemm"));
        assert_eq!(KernelColours::default().get("gemm"), colours.get("gemm"));
    }

    #[test]
    fn there_are_colours_for_any_number_of_kernels() {
        let names: Vec<String> = (0..100).map(|number| format!("kernel {number}")).collect();
        let colours = KernelColours::of(names.iter().map(String::as_str));
        assert!(names.iter().all(|name| SERIES.contains(&colours.get(name))));
    }

    #[test]
    fn ink_stands_out() {
        assert_eq!((ink_on("#0072b2"), ink_on("#f0e442"), ink_on("#332288")), ("white", "#0f172a", "white"));
    }
}
