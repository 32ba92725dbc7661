//! Exports components from a library, which makes it a plugin.

use crate::abi::ComponentObject;
use crate::abi::extension::{KNOWN, KnownExtension};
use crate::abi::manifest::{Manifest, RawInfo, RawParam};
use crate::abi::root::BuildFailure;
use crate::adapter::{adapt, caught};
use crate::component::Build;
use crate::info::Info;
use crate::params::{BuildError, Param, ParamKind, Params};
use abi_stable::std_types::{RResult, RSlice, RStr, RString, RVec};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes a library a plugin that offers the named types, each of which implements [`Build`].
///
/// Write it once, in the root of a crate of type `cdylib`. It exports two symbols: the stamp, which a host reads before
/// it loads the library, and the entry point.
///
/// ```
/// # use sched_core::*;
/// # struct Lifo;
/// # impl Component for Lifo { fn push_task(&self, _: Node<'_>, task: Task) -> Push { Err(Refused::new(task, Refusal::Full)) } }
/// # impl Build for Lifo {
/// #     const INFO: Info = Info::new("lifo", Family::FlowControl, "");
/// #     fn build(_: &Params) -> Result<Self, BuildError> { Ok(Lifo) }
/// # }
/// sched_core::export_components!(Lifo);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_components {
    ($($component:ty),+ $(,)?) => {
        #[doc(hidden)]
        pub mod __sched_plugin {
            // The glob makes the named types visible here even if they are private to the crate's root.
            #[allow(unused_imports)]
            use super::*;

            #[unsafe(no_mangle)]
            #[used]
            pub static SCHED_PLUGIN_STAMP: $crate::abi::Stamp = $crate::abi::Stamp::new(
                env!("CARGO_PKG_NAME"),
                env!("CARGO_PKG_VERSION"),
                cfg!(panic = "unwind"),
            );

            const OFFERS: &[$crate::export::Offer] = &[$($crate::export::Offer::of::<$component>()),+];

            extern "C" fn manifest() -> $crate::export::ManifestResult {
                $crate::export::manifest(OFFERS)
            }

            extern "C" fn build(
                name: $crate::export::Name<'_>,
                params: $crate::export::RawParams<'_>,
            ) -> $crate::export::BuildResult {
                $crate::export::build(OFFERS, name, params)
            }

            static ROOT: $crate::abi::Root =
                $crate::abi::Root { manifest, build, extensions: $crate::export::extensions };

            #[unsafe(no_mangle)]
            pub extern "C" fn sched_plugin_entry_v1() -> $crate::abi::root::Entry {
                $crate::export::quiet_panics();
                $crate::abi::root::Entry::new(&ROOT)
            }
        }
    };
}

#[doc(hidden)]
pub type ManifestResult = RResult<Manifest, RString>;
#[doc(hidden)]
pub type BuildResult = RResult<ComponentObject, BuildFailure>;
#[doc(hidden)]
pub type Name<'a> = RStr<'a>;
#[doc(hidden)]
pub type RawParams<'a> = RSlice<'a, RawParam>;

/// A component that a plugin offers: its description and its constructor.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    info: &'static Info,
    build: fn(&Params) -> Result<ComponentObject, BuildError>,
}

impl Offer {
    /// The offer for a component type.
    ///
    /// It does not compile if the description is one that no host accepts: a name that is not lower-case words joined
    /// by `-` or is a [word of the policy language](crate::POLICY_WORDS), two parameters or slots of one name, a
    /// default out of range, a bound that is no parameter, children of a [worker](crate::Family::Worker).
    ///
    /// ```compile_fail
    /// # use sched_core::*;
    /// # struct Lifo;
    /// # impl Component for Lifo { fn push_task(&self, _: Node<'_>, task: Task) -> Push { Err(Refused::new(task, Refusal::Full)) } }
    /// impl Build for Lifo {
    ///     const INFO: Info = Info::new("My_Lifo", Family::FlowControl, "");
    ///     // …
    /// #   fn build(_: &Params) -> Result<Self, BuildError> { Ok(Lifo) }
    /// }
    /// const OFFER: Offer = Offer::of::<Lifo>();
    /// ```
    #[must_use]
    pub const fn of<C: Build>() -> Offer {
        let info = const {
            C::INFO.assert_sound();
            &C::INFO
        };
        Offer { info, build: |params| C::build(params).map(adapt) }
    }

    /// The component's description.
    #[must_use]
    pub fn info(&self) -> &'static Info {
        self.info
    }

    /// Builds a component.
    ///
    /// # Errors
    /// The error of the component's constructor.
    pub fn build(&self, params: &Params) -> Result<ComponentObject, BuildError> {
        (self.build)(params)
    }
}

#[doc(hidden)]
pub fn manifest(offers: &[Offer]) -> ManifestResult {
    let body = || Manifest {
        components: offers.iter().map(|offer| RawInfo::from(&offer.info.describe())).collect(),
        extras: RVec::new(),
    };
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(manifest) => RResult::ROk(manifest),
        Err(payload) => RResult::RErr(caught(payload).into()),
    }
}

#[doc(hidden)]
pub fn build(offers: &[Offer], name: RStr<'_>, params: RSlice<'_, RawParam>) -> BuildResult {
    let refused = |message: String| BuildFailure { panicked: false, message: message.into() };
    let body = || {
        let offer = offers
            .iter()
            .find(|offer| offer.info.name() == name.as_str())
            .ok_or_else(|| refused(format!("this plugin has no component `{name}`")))?;
        let values = params.iter().filter_map(|param| Some((param.name.to_string(), param.value.read()?)));
        let values = Params::from_values(values);
        // A host that does not know choices sends any text.
        for param in offer.info.declared_params().iter().map(Param::describe) {
            if let (ParamKind::Choice(_), Some(value)) = (&param.kind, values.get(&param.name))
                && value.clone().coerce(&param.kind).is_none()
            {
                return Err(refused(format!("`{}` is {value}, expected {}", param.name, param.kind)));
            }
        }
        offer.build(&values).map_err(|error| refused(error.to_string()))
    };
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(built) => built.into(),
        Err(payload) => RResult::RErr(BuildFailure { panicked: true, message: caught(payload).into() }),
    }
}

#[doc(hidden)]
pub extern "C" fn extensions() -> RSlice<'static, KnownExtension> {
    KNOWN.into()
}

thread_local! {
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Replaces the panic hook of this library, which has its own copy of the standard library: the host reports a
/// component's panic, once, with the name of the node; the hook only records the location.
#[doc(hidden)]
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(note_location));
}

/// Records the location of a panic, for [`last_panic_location`].
pub(crate) fn note_location(panic: &std::panic::PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    let _ = LOCATION.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = location;
        }
    });
}

/// Takes the location of this thread's last panic, if the hook recorded one.
pub(crate) fn last_panic_location() -> Option<String> {
    LOCATION.try_with(|last| last.try_borrow_mut().ok()?.take()).ok().flatten()
}

#[cfg(test)]
mod tests;
