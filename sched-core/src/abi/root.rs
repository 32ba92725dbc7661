//! The single entry point of a plugin, and the check that host and plugin agree on its meaning.

use super::ComponentObject;
use super::extension::{KNOWN, KnownExtension};
use super::manifest::{Manifest, RawParam};
use crate::info::ComponentInfo;
use crate::params::Params;
use abi_stable::StableAbi;
use abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use abi_stable::std_types::{RResult, RSlice, RStr, RString};
use abi_stable::type_layout::TypeLayout;

/// Name of the function that returns the [`Entry`].
pub const SYMBOL: &str = "sched_plugin_entry_v1";

/// Type of the function that returns the [`Entry`].
pub type EntryFn = extern "C" fn() -> Entry;

/// What a plugin offers. Frozen for [`ABI_MAJOR`](super::ABI_MAJOR).
#[repr(C)]
#[derive(StableAbi)]
pub struct Root {
    /// The plugin's manifest, or the message of a panic.
    pub manifest: extern "C" fn() -> RResult<Manifest, RString>,
    /// Builds a component by name, or reports why not; the message may be that of a panic.
    pub build: extern "C" fn(RStr<'_>, RSlice<'_, RawParam>) -> RResult<ComponentObject, BuildFailure>,
    /// The extensions that the plugin knows.
    pub extensions: extern "C" fn() -> RSlice<'static, KnownExtension>,
}

/// Why a component was not built.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct BuildFailure {
    /// Whether the constructor panicked rather than returned an error.
    pub panicked: bool,
    /// The error's or the panic's message.
    pub message: RString,
}

/// A plugin's root with the description of its layout. It consists of plain pointers, so that it can be passed before
/// it is checked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    layout: &'static TypeLayout,
    root: *const Root,
}

impl Entry {
    /// What the entry function of a plugin returns.
    #[must_use]
    pub fn new(root: &'static Root) -> Entry {
        Entry { layout: <Root as StableAbi>::LAYOUT, root }
    }

    /// Compares the layouts of root, component, host, task and known extensions, and returns the root if they agree.
    ///
    /// # Safety
    /// The entry comes from a library whose stamp was [checked](super::Stamp::check) and that is never unloaded.
    ///
    /// # Errors
    /// The innermost difference, in one line.
    pub unsafe fn open(self) -> Result<&'static Root, String> {
        check_layout_compatibility(<Root as StableAbi>::LAYOUT, self.layout)
            .map_err(|errors| innermost(&errors.to_string()))?;
        // SAFETY: the layouts agree, and the caller guarantees that the library stays loaded.
        let root = unsafe { self.open_unchecked() };
        for theirs in (root.extensions)() {
            if let Some(ours) = KNOWN.iter().find(|ours| ours.name == theirs.name) {
                check_layout_compatibility(ours.layout, theirs.layout)
                    .map_err(|errors| format!("extension `{}`: {}", ours.name, innermost(&errors.to_string())))?;
            }
        }
        Ok(root)
    }

    /// Returns the root without a comparison, for hosts that have [compared](Self::open) this very library in another
    /// process: descriptions of layouts that are damaged can make a comparison end the process.
    ///
    /// # Safety
    /// That comparison found that they agree, and the library is never unloaded.
    #[must_use]
    pub unsafe fn open_unchecked(self) -> &'static Root {
        // SAFETY: as the caller guarantees.
        unsafe { &*self.root }
    }
}

/// Reduces `abi_stable`'s report, which runs to hundreds of lines, to its last error in one line.
pub(super) fn innermost(report: &str) -> String {
    let last = report.rsplit("\nError:").next().unwrap_or(report);
    let words: Vec<&str> = last.split_whitespace().take(40).collect();
    words.join(" ")
}

impl Root {
    /// The descriptions of the components in the plugin.
    ///
    /// # Errors
    /// A line that says what panicked or was not understood.
    pub fn components(&self) -> Result<Vec<ComponentInfo>, String> {
        let manifest =
            (self.manifest)().into_result().map_err(|message| format!("its manifest panicked: {message}"))?;
        manifest.components.iter().map(super::manifest::RawInfo::read).collect()
    }

    /// Builds the component of this name.
    ///
    /// # Errors
    /// The error of the constructor, or the message of its panic.
    pub fn build(&self, name: &str, params: &Params) -> Result<ComponentObject, BuildFailure> {
        let params: Vec<RawParam> =
            params.iter().map(|(name, value)| RawParam { name: name.into(), value: value.into() }).collect();
        (self.build)(name.into(), params.as_slice().into()).into_result()
    }
}
