//! A component that can be built, from any source.

use super::error::ConstructError;
use super::listing::PluginId;
use crate::attendance::{Inside, Method, Post, PostNumber};
use crate::attended::{Late, in_time};
use sched_core::abi::ComponentObject;
use sched_core::abi::Opened;
use sched_core::{ComponentInfo, Offer, Params};
use sched_policy::Entry;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A component that a policy can name.
#[derive(Debug)]
pub struct Registered {
    info: Arc<ComponentInfo>,
    plugin: Arc<PluginId>,
    maker: Maker,
}

/// Package of the stock components.
const STOCK_PACKAGE: &str = "sched-components";

/// Builds a component.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    Plugin(Opened),
    BuiltIn(Offer),
}

/// Why a component was not made.
enum Failure {
    Refused(String),
    Panicked(String),
}

impl Maker {
    fn make(self, name: &str, params: &Params) -> Result<ComponentObject, Failure> {
        match self {
            Maker::Plugin(plugin) => plugin.build(name, params).map_err(|failure| {
                let message = failure.message.to_string();
                if failure.panicked { Failure::Panicked(message) } else { Failure::Refused(message) }
            }),
            Maker::BuiltIn(offer) => match catch_unwind(AssertUnwindSafe(|| offer.build(params))) {
                Ok(built) => built.map_err(|error| Failure::Refused(error.to_string())),
                Err(payload) => Err(Failure::Panicked(caught(payload))),
            },
        }
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Maker::Plugin(_) => "Plugin",
            Maker::BuiltIn(_) => "BuiltIn",
        })
    }
}

impl Registered {
    pub(super) fn new(info: ComponentInfo, plugin: Arc<PluginId>, maker: Maker) -> Registered {
        Registered { info: Arc::new(info), plugin, maker }
    }

    /// Properties that a policy needs.
    pub(super) fn entry(&self) -> Entry {
        Entry { info: Arc::clone(&self.info), plugin: self.plugin.package.clone(), file: self.plugin.path.clone() }
    }

    /// Its description.
    #[must_use]
    pub fn info(&self) -> &ComponentInfo {
        &self.info
    }

    /// Its plugin.
    #[must_use]
    pub fn plugin(&self) -> &PluginId {
        &self.plugin
    }

    /// Whether calls of such components are [noted](crate::attendance): all but the stock components', which are part
    /// of this project.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.info.package != STOCK_PACKAGE
    }

    /// Builds the component. Parameters absent from `params` have their defaults.
    ///
    /// # Errors
    /// A value that does not fit its parameter, a parameter that the component does not have, or an error or panic of
    /// the constructor.
    pub fn build(&self, params: &Params) -> Result<ComponentObject, ConstructError> {
        let params = self.complete(params)?;
        let component = || self.info.name.clone();
        let plugin = || self.plugin.to_string();
        let refused = |message| ConstructError::Refused { component: component(), plugin: plugin(), message };
        let panicked = |message| ConstructError::Panicked { component: component(), plugin: plugin(), message };
        let (maker, name) = (self.maker, self.info.name.clone());
        let made = match self.is_attended() {
            true => {
                let post = Arc::new(PostNumber::new(Post::component("", component(), plugin())));
                let at = Arc::clone(&post);
                let made = in_time("build", move || {
                    let _inside = Inside::new(&at, Method::Build);
                    maker.make(&name, &params)
                });
                made.inspect_err(|Late| drop(post.give_up(Method::Build)))
            }
            false => Ok(maker.make(&name, &params)),
        };
        match made {
            Ok(made) => made.map_err(|failure| match failure {
                Failure::Refused(message) => refused(message),
                Failure::Panicked(message) => panicked(message),
            }),
            Err(Late) => Err(ConstructError::Late { component: component(), plugin: plugin() }),
        }
    }

    /// Every parameter, set or default, as declared.
    fn complete(&self, given: &Params) -> Result<Params, ConstructError> {
        let mut complete =
            Params::from_values(self.info.params.iter().map(|param| (param.name.clone(), param.default.clone())));
        for (name, value) in given.iter() {
            let component = || self.info.name.clone();
            let param = self
                .info
                .param(name)
                .ok_or_else(|| ConstructError::UnknownParam { component: component(), param: name.to_owned() })?;
            let fitting = value.clone().coerce(&param.kind).ok_or_else(|| ConstructError::Value {
                component: component(),
                param: name.to_owned(),
                found: value.to_string(),
                expected: param.kind.to_string(),
            })?;
            complete.set(name, fitting);
        }
        Ok(complete)
    }
}

/// The message of a panic that was caught, whose payload is not dropped: that may panic again.
fn caught(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string).or_else(|| payload.downcast_ref().cloned());
    std::mem::forget(payload);
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::plugin::{ConstructError, Registry};
    use sched_core::{Build, BuildError, Component, Family, Info, Node, Offer, Params, Push, Refusal, Refused, Task};

    /// A payload of a panic whose drop panics again.
    struct Stubborn;

    impl Drop for Stubborn {
        fn drop(&mut self) {
            panic!("on purpose, once more");
        }
    }

    struct Unbuildable;

    impl Component for Unbuildable {
        fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
            Err(Refused::new(task, Refusal::Full))
        }
    }

    impl Build for Unbuildable {
        const INFO: Info = Info::new("unbuildable", Family::FlowControl, "Panics.");

        fn build(_params: &Params) -> Result<Self, BuildError> {
            std::panic::panic_any(Stubborn)
        }
    }

    #[test]
    fn a_constructor_that_panics_is_not_late() {
        let mut registry = Registry::empty();
        registry.add_builtin("mine", vec![Offer::of::<Unbuildable>()]).expect("the name is free");
        let component = registry.component("unbuildable").expect("it was added");
        let error = component.build(&Params::default()).err().expect("it is not built");
        assert!(matches!(error, ConstructError::Panicked { .. }), "{error}");
    }
}
