//! Parameters of a component: the settings of a policy, with types, defaults and documentation.

use std::fmt;
use std::time::Duration;

/// The type and range of a parameter.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ParamKind {
    /// True or false (`#true` and `#false` in a policy).
    Bool,
    /// An integer from `min` to `max`.
    Int {
        /// Smallest value allowed.
        min: i64,
        /// Largest value allowed.
        max: i64,
    },
    /// A number from `min` to `max`; integers are accepted too.
    Float {
        /// Smallest value allowed.
        min: f64,
        /// Largest value allowed.
        max: f64,
    },
    /// A string.
    Text,
    /// One of these strings.
    Choice(Vec<String>),
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamKind::Bool => f.write_str("#true or #false"),
            ParamKind::Int { min: i64::MIN, max: i64::MAX } => f.write_str("a whole number"),
            ParamKind::Int { min, max: i64::MAX } => write!(f, "a whole number of at least {min}"),
            ParamKind::Int { min, max } => write!(f, "a whole number from {min} to {max}"),
            ParamKind::Float { min, max } if *min == f64::NEG_INFINITY && *max == f64::INFINITY => {
                f.write_str("a number")
            }
            ParamKind::Float { min, max } if *max == f64::INFINITY => write!(f, "a number of at least {min}"),
            ParamKind::Float { min, max } => write!(f, "a number from {min} to {max}"),
            ParamKind::Text => f.write_str("a text"),
            ParamKind::Choice(of) => {
                let quoted: Vec<String> = of.iter().map(|word| format!("{word:?}")).collect();
                write!(f, "one of {}", quoted.join(", "))
            }
        }
    }
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    Text(String),
}

impl Value {
    /// Converts the value to `kind`; `None` when its type does not fit, or it is out of range or infinite.
    #[must_use]
    pub fn coerce(self, kind: &ParamKind) -> Option<Value> {
        match (self, kind) {
            (Value::Bool(flag), ParamKind::Bool) => Some(Value::Bool(flag)),
            (Value::Int(number), ParamKind::Int { min, max }) if (*min..=*max).contains(&number) => {
                Some(Value::Int(number))
            }
            (Value::Int(number), ParamKind::Float { .. }) => Value::Float(number as f64).coerce(kind),
            (Value::Float(number), ParamKind::Float { min, max }) => {
                let fits = number.is_finite() && (*min..=*max).contains(&number);
                fits.then_some(Value::Float(number))
            }
            (Value::Text(text), ParamKind::Text) => Some(Value::Text(text)),
            (Value::Text(text), ParamKind::Choice(of)) if of.contains(&text) => Some(Value::Text(text)),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(flag) => write!(f, "#{flag}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A default value that a `const` can hold; see [`Param`].
#[derive(Clone, Copy, PartialEq, Debug)]
enum Default {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'static str),
}

/// The type and range of a parameter that a `const` can hold.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Bool,
    Int { min: i64, max: i64 },
    Float { min: f64, max: f64 },
    Text,
    Choice(&'static [&'static str]),
}

/// A parameter of a component, as declared in its [`Info`](crate::Info).
///
/// ```
/// use sched_core::Param;
/// const PARAMS: &[Param] = &[
///     Param::int("ntasks-threshold", 0, "maximum number of tasks held; 0 means no limit").at_least(0),
///     Param::float("alpha", 1.0, "weight of the completion time").within(0.0, 1.5),
///     Param::choice("order", "age", &["age", "length"], "what the queue is sorted by"),
/// ];
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    name: &'static str,
    kind: Kind,
    default: Default,
    unit: &'static str,
    doc: &'static str,
}

impl Param {
    /// A boolean parameter.
    #[must_use]
    pub const fn bool(name: &'static str, default: bool, doc: &'static str) -> Param {
        Param { name, kind: Kind::Bool, default: Default::Bool(default), unit: "", doc }
    }

    /// An integer parameter.
    #[must_use]
    pub const fn int(name: &'static str, default: i64, doc: &'static str) -> Param {
        let kind = Kind::Int { min: i64::MIN, max: i64::MAX };
        Param { name, kind, default: Default::Int(default), unit: "", doc }
    }

    /// A floating-point parameter.
    #[must_use]
    pub const fn float(name: &'static str, default: f64, doc: &'static str) -> Param {
        let kind = Kind::Float { min: f64::NEG_INFINITY, max: f64::INFINITY };
        Param { name, kind, default: Default::Float(default), unit: "", doc }
    }

    /// A string parameter.
    #[must_use]
    pub const fn text(name: &'static str, default: &'static str, doc: &'static str) -> Param {
        Param { name, kind: Kind::Text, default: Default::Text(default), unit: "", doc }
    }

    /// A string parameter that is one of the given words: lower case, joined by `-`. (Since 1.1: an older host accepts
    /// any text, and the component is not built with another one.)
    #[must_use]
    pub const fn choice(
        name: &'static str,
        default: &'static str,
        of: &'static [&'static str],
        doc: &'static str,
    ) -> Param {
        Param { name, kind: Kind::Choice(of), default: Default::Text(default), unit: "", doc }
    }

    /// Sets the smallest value allowed. No effect on parameters that are not numbers.
    #[must_use]
    pub const fn at_least(mut self, min: i64) -> Param {
        match self.kind {
            Kind::Int { max, .. } => self.kind = Kind::Int { min, max },
            Kind::Float { max, .. } => self.kind = Kind::Float { min: min as f64, max },
            Kind::Bool | Kind::Text | Kind::Choice(_) => {}
        }
        self
    }

    /// Sets the largest value allowed. No effect on parameters that are not numbers.
    #[must_use]
    pub const fn at_most(mut self, max: i64) -> Param {
        match self.kind {
            Kind::Int { min, .. } => self.kind = Kind::Int { min, max },
            Kind::Float { min, .. } => self.kind = Kind::Float { min, max: max as f64 },
            Kind::Bool | Kind::Text | Kind::Choice(_) => {}
        }
        self
    }

    /// Sets the smallest and the largest value allowed of a floating-point parameter. No effect on others.
    #[must_use]
    pub const fn within(mut self, min: f64, max: f64) -> Param {
        if let Kind::Float { .. } = self.kind {
            self.kind = Kind::Float { min, max };
        }
        self
    }

    /// Sets the unit of the value, for help and comments: `"µs"`.
    #[must_use]
    pub const fn unit(mut self, unit: &'static str) -> Param {
        self.unit = unit;
        self
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// See [`Info`](crate::Info): a declaration that no host accepts does not compile.
    pub(crate) const fn assert_sound(&self) {
        assert!(crate::info::is_name(self.name), "the name of a parameter is not lower-case words joined by `-`");
        let is_inside = match (&self.default, &self.kind) {
            (Default::Int(number), Kind::Int { min, max }) => *min <= *number && *number <= *max,
            (Default::Float(number), Kind::Float { min, max }) => *min <= *number && *number <= *max,
            (Default::Text(text), Kind::Choice(of)) => is_one_of(text, of),
            _ => true,
        };
        assert!(is_inside, "the default of a parameter is out of its range");
    }

    /// An owned copy of this declaration, as the host keeps it from a plugin's manifest.
    #[must_use]
    pub fn describe(&self) -> ParamInfo {
        let default = match self.default {
            Default::Bool(flag) => Value::Bool(flag),
            Default::Int(number) => Value::Int(number),
            Default::Float(number) => Value::Float(number),
            Default::Text(text) => Value::Text(text.to_owned()),
        };
        ParamInfo {
            name: self.name.to_owned(),
            kind: match self.kind {
                Kind::Bool => ParamKind::Bool,
                Kind::Int { min, max } => ParamKind::Int { min, max },
                Kind::Float { min, max } => ParamKind::Float { min, max },
                Kind::Text => ParamKind::Text,
                Kind::Choice(of) => ParamKind::Choice(of.iter().map(ToString::to_string).collect()),
            },
            default,
            unit: self.unit.to_owned(),
            doc: self.doc.to_owned(),
        }
    }
}

/// Whether a word is among these, which are lower-case words joined by `-`.
const fn is_one_of(word: &str, of: &[&str]) -> bool {
    let (mut found, mut place) = (false, 0);
    while place < of.len() {
        assert!(crate::info::is_name(of[place]), "a choice of a parameter is not lower-case words joined by `-`");
        found = found || crate::info::equal(word, of[place]);
        place += 1;
    }
    found
}

/// A parameter of a component, as read from a plugin's manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamInfo {
    /// Its name in a policy.
    pub name: String,
    /// Type and range.
    pub kind: ParamKind,
    /// The value when the policy sets none.
    pub default: Value,
    /// Unit of the value; empty if it has none.
    pub unit: String,
    /// What it does.
    pub doc: String,
}

/// The values of a component's parameters: every one that its [`Info`](crate::Info) declares, set or default.
#[derive(Clone, PartialEq, Debug, std::default::Default)]
pub struct Params {
    values: Vec<(String, Value)>,
}

impl Params {
    /// Builds a set of values by name; a later value replaces an earlier one of the same name.
    #[must_use]
    pub fn from_values(values: impl IntoIterator<Item = (String, Value)>) -> Params {
        let mut params = Params::default();
        for (name, value) in values {
            params.set(&name, value);
        }
        params
    }

    /// The default values of these declarations.
    #[must_use]
    pub fn defaults(params: &[Param]) -> Params {
        Params::from_values(params.iter().map(Param::describe).map(|param| (param.name, param.default)))
    }

    /// Sets one value.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.values.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.values.push((name.to_owned(), value)),
        }
    }

    /// The value of this name, of any type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Names and values, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a parameter declared with [`Param::bool`].
    ///
    /// # Errors
    /// When the component's [`Info`](crate::Info) declares no such parameter.
    pub fn bool(&self, name: &str) -> Result<bool, BuildError> {
        match self.get(name) {
            Some(Value::Bool(flag)) => Ok(*flag),
            other => Err(undeclared(name, "bool", other)),
        }
    }

    /// The value of a parameter declared with [`Param::int`].
    ///
    /// # Errors
    /// When the component's [`Info`](crate::Info) declares no such parameter.
    pub fn int(&self, name: &str) -> Result<i64, BuildError> {
        match self.get(name) {
            Some(Value::Int(number)) => Ok(*number),
            other => Err(undeclared(name, "int", other)),
        }
    }

    /// The value of a parameter declared with [`Param::float`].
    ///
    /// # Errors
    /// When the component's [`Info`](crate::Info) declares no such parameter.
    pub fn float(&self, name: &str) -> Result<f64, BuildError> {
        match self.get(name) {
            Some(Value::Float(number)) => Ok(*number),
            Some(Value::Int(number)) => Ok(*number as f64),
            other => Err(undeclared(name, "float", other)),
        }
    }

    /// The value of a parameter declared with [`Param::text`].
    ///
    /// # Errors
    /// When the component's [`Info`](crate::Info) declares no such parameter.
    pub fn text(&self, name: &str) -> Result<&str, BuildError> {
        match self.get(name) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(undeclared(name, "text", other)),
        }
    }

    /// The duration given by a parameter declared with [`Param::float`] in microseconds; `None` for 0, which means no
    /// limit.
    ///
    /// # Errors
    /// When the component's [`Info`](crate::Info) declares no such parameter, or its value is negative or not a number.
    pub fn micros(&self, name: &str) -> Result<Option<Duration>, BuildError> {
        let micros = self.float(name)?;
        if micros == 0.0 {
            return Ok(None);
        }
        Duration::try_from_secs_f64(micros / 1e6)
            .map(Some)
            .map_err(|error| BuildError::new(format!("`{name}` is {micros} µs: {error}")))
    }
}

fn undeclared(name: &str, wanted: &str, found: Option<&Value>) -> BuildError {
    match found {
        Some(value) => BuildError::new(format!("`{name}` was read as {wanted}, and its value is {value}")),
        None => BuildError::new(format!("`{name}` was read as {wanted}, and INFO declares no such parameter")),
    }
}

/// Why a component could not be built from its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildError {
    message: String,
}

impl BuildError {
    /// Creates an error with this one-line message for the author of a policy.
    pub fn new(message: impl Into<String>) -> BuildError {
        BuildError { message: message.into() }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BuildError {}

#[cfg(test)]
mod tests;
