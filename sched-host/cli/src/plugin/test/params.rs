//! Values for parameters: `--param room=4`.

use super::TestError;
use sched_core::{ComponentInfo, ParamInfo, ParamKind, Value};
use sched_text::did_you_mean;
use std::fmt;

/// A name and a value, as written.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    name: String,
    value: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl Setting {
    pub(super) fn parse(text: &str) -> Result<Setting, String> {
        let (name, value) = text.split_once('=').ok_or("must be a name and a value, such as room=4")?;
        Ok(Setting { name: name.to_owned(), value: value.to_owned() })
    }

    fn value(&self, param: &ParamInfo) -> Option<Value> {
        let text = self.value.trim_start_matches('#');
        let value = match param.kind {
            ParamKind::Bool => text.parse().ok().map(Value::Bool),
            ParamKind::Int { .. } => text.parse().ok().map(Value::Int),
            ParamKind::Float { .. } => text.parse().ok().map(Value::Float),
            _ => Some(Value::Text(self.value.clone())),
        };
        value?.coerce(&param.kind)
    }
}

/// The values of the parameters that a component has.
pub(super) fn of(info: &ComponentInfo, settings: &[Setting]) -> Result<Vec<(String, Value)>, TestError> {
    let declared = settings.iter().filter_map(|setting| Some((setting, info.param(&setting.name)?)));
    let value = |(setting, param): (&Setting, &ParamInfo)| match setting.value(param) {
        Some(value) => Ok((setting.name.clone(), value)),
        None => Err(TestError::Param {
            message: format!("`{}` of component `{}` is `{}`", setting.name, info.name, setting.value),
            help: format!("expected {}", param.kind),
        }),
    };
    declared.map(value).collect()
}

/// Whether each parameter is one of some component.
pub(super) fn known<'a>(
    settings: &[Setting],
    components: impl Iterator<Item = &'a ComponentInfo> + Clone,
) -> Result<(), TestError> {
    let names: Vec<&str> = components.flat_map(|info| &info.params).map(|param| &*param.name).collect();
    match settings.iter().find(|setting| !names.contains(&&*setting.name)) {
        Some(setting) => Err(TestError::Param {
            message: format!("no examined component has a parameter `{}`", setting.name),
            help: did_you_mean(&setting.name, names.iter().copied(), "their parameters"),
        }),
        None => Ok(()),
    }
}
