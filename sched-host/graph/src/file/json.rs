//! JSON values of expected shapes, with their places.

use super::MOST_FLOPS;
use super::problems::{Found, Problems, quote};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::collections::HashSet;
use std::time::Duration;

/// Maximum number of members that are named of an object in no known format.
const MOST_NAMES: usize = 5;

/// Reads the document in `text`, in strict JSON.
pub(super) fn document<'t>(text: &'t str, problems: &mut Problems<'t>) -> Option<Value<'t>> {
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match parse_to_ast(text, &CollectOptions::default(), &strict) {
        Ok(parsed) => {
            if let Some(document) = &parsed.value {
                refuse_twins(document, problems);
            }
            parsed.value
        }
        Err(error) => {
            problems.report_at(bytes(error.range()), format!("this is no JSON: {}", error.kind()), None);
            None
        }
    }
}

/// Reports each member whose name its object has had before: some readers take the first, and some the last.
fn refuse_twins(document: &Value<'_>, problems: &mut Problems<'_>) {
    let mut left = vec![document];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(array) => left.extend(&array.elements),
            Value::Object(object) => {
                let mut names = HashSet::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    if !names.insert(name) {
                        let message = format!("the member {} is there already", quote(name));
                        let help = "remove one of them".to_owned();
                        problems.report_at(bytes(property.name.range()), message, Some(help));
                    }
                    left.push(&property.value);
                }
            }
            _ => {}
        }
    }
}

pub(super) fn bytes(range: Range) -> std::ops::Range<usize> {
    range.start..range.end
}

/// An expected shape of a value.
pub(super) trait Shape<'v, 't>: Sized {
    const WHAT: &'static str;
    fn of(value: &'v Value<'t>) -> Option<Self>;
}

impl<'v, 't> Shape<'v, 't> for &'v Object<'t> {
    const WHAT: &'static str = "an object";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_object()
    }
}

impl<'v, 't> Shape<'v, 't> for &'v [Value<'t>] {
    const WHAT: &'static str = "an array";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_array().map(|array| array.elements.as_slice())
    }
}

/// A string with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'v> {
    pub(super) text: &'v str,
    pub(super) range: Range,
}

impl<'v, 't> Shape<'v, 't> for Word<'v> {
    const WHAT: &'static str = "a string";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_string_lit().map(|word| Word { text: &word.value, range: word.range })
    }
}

/// A length of time.
pub(super) struct Seconds(pub(super) Duration);

impl<'v, 't> Shape<'v, 't> for Seconds {
    const WHAT: &'static str = "a number of seconds, from 0 and below 1.8e10";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        let length = Duration::try_from_secs_f64(number(value)?).ok()?;
        u64::try_from(length.as_nanos()).is_ok().then_some(Seconds(length))
    }
}

/// A size in bytes.
pub(super) struct Bytes(pub(super) u64);

impl<'v, 't> Shape<'v, 't> for Bytes {
    const WHAT: &'static str = "a number of bytes, from 0 and below 9.2e18";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        let number = number(value).filter(|number| (0.0..i64::MAX as f64).contains(number))?;
        Some(Bytes(number as u64))
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    value.as_number_lit()?.value.parse().ok()
}

/// `value` in the expected shape; reports another shape.
pub(super) fn shaped<'v, 't, S: Shape<'v, 't>>(
    value: &'v Value<'t>,
    what: &str,
    problems: &mut Problems<'t>,
) -> Option<S> {
    let shaped = S::of(value);
    if shaped.is_none() {
        let found = described(value);
        let range = value.range();
        // A long value is marked at its first byte.
        let end = if matches!(value, Value::Object(_) | Value::Array(_)) { range.start + 1 } else { range.end };
        problems.report_at(range.start..end, format!("`{what}` is {found}: {} is expected", S::WHAT), None);
    }
    shaped
}

/// `value` in a few words, for messages.
fn described(value: &Value<'_>) -> String {
    match value {
        Value::StringLit(word) => format!("the string {}", quote(&word.value)),
        Value::NumberLit(number) => format!("the number {}", quote(number.value)),
        Value::BooleanLit(truth) => format!("`{}`", truth.value),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::NullKeyword(_) => "`null`".to_owned(),
    }
}

/// The member `name` of `object`, if there is one in the expected shape.
pub(super) fn member<'v, 't, S: Shape<'v, 't>>(
    object: &'v Object<'t>,
    name: &str,
    problems: &mut Problems<'t>,
) -> Option<S> {
    let property = object.get(name)?;
    shaped(&property.value, name, problems)
}

/// The member `name` of `object`; reports that there is none.
pub(super) fn needed<'v, 't, S: Shape<'v, 't>>(
    object: &'v Object<'t>,
    name: &str,
    problems: &mut Problems<'t>,
) -> Option<S> {
    if object.get(name).is_none() {
        let near = object.properties.iter().map(|property| property.name.as_str());
        let near = near.filter(|known| sched_text::distance(known, name) <= 2).min();
        let help = near.map(|near| format!("is `{near}` meant to be `{name}`?"));
        let start = object.range.start;
        problems.report_at(start..start + 1, format!("the object that begins here has no `{name}`"), help);
        return None;
    }
    member(object, name, problems)
}

/// The strings of the array `name` of `object`; none if there is no such member.
pub(super) fn words<'v>(object: &'v Object<'_>, name: &str, problems: &mut Problems<'_>) -> Vec<Word<'v>> {
    let mut all = Vec::new();
    if let Some(property) = object.get(name) {
        match property.value.as_array() {
            Some(array) => {
                for value in &array.elements {
                    match Word::of(value) {
                        Some(word) => all.push(word),
                        None => {
                            let range = value.range();
                            let message = format!("`{name}` has an element that is no string");
                            problems.report_at(range.start..range.start + 1, message, None);
                        }
                    }
                }
            }
            None => {
                let range = property.value.range();
                problems.report_at(
                    range.start..range.start + 1,
                    format!("`{name}` is not an array of strings, as is expected"),
                    None,
                );
            }
        }
    }
    all
}

/// A number of floating-point operations.
pub(super) struct Operations(pub(super) f64);

impl<'v, 't> Shape<'v, 't> for Operations {
    const WHAT: &'static str = "a number from 0 to 1e30";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        number(value).filter(|number| (0.0..=MOST_FLOPS).contains(number)).map(Operations)
    }
}

/// A count, or the place of something in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole(pub(super) u64);

impl<'v, 't> Shape<'v, 't> for Whole {
    const WHAT: &'static str = "a whole number from 0 on";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_number_lit()?.value.parse().ok().map(Whole)
    }
}

/// A whole number of 32 bits, which may be negative.
pub(super) struct Signed(pub(super) i32);

impl<'v, 't> Shape<'v, 't> for Signed {
    const WHAT: &'static str = "a whole number from -2147483648 to 2147483647";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_number_lit()?.value.parse().ok().map(Signed)
    }
}

/// True or false.
pub(super) struct Truth(pub(super) bool);

impl<'v, 't> Shape<'v, 't> for Truth {
    const WHAT: &'static str = "`true` or `false`";
    fn of(value: &'v Value<'t>) -> Option<Self> {
        value.as_boolean_lit().map(|truth| Truth(truth.value))
    }
}

/// Reports each member of `object` that is not among the `known` ones.
pub(super) fn refuse_others(object: &Object<'_>, known: &[&str], problems: &mut Problems<'_>) {
    for property in &object.properties {
        let name = property.name.as_str();
        if known.contains(&name) {
            continue;
        }
        let distance = |known: &&&str| sched_text::distance(known, name);
        let near = known.iter().min_by_key(distance).filter(|near| distance(near) <= 2);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it may have: {}", known.join(", ")),
        };
        let message = format!("there is no member {} here", quote(name));
        problems.report_at(bytes(property.name.range()), message, Some(help));
    }
}

/// The problem of a text in JSON, or nearly so, that has no mark of a format; `known` says which have one.
pub(super) fn unknown(text: &str, known: &str) -> Found {
    let mut problems = Problems::new(text);
    let document = document(text, &mut problems);
    let found = match &document {
        None => return problems.done(),
        Some(Value::Object(object)) if object.properties.is_empty() => "a JSON object without members".to_owned(),
        Some(Value::Object(object)) => {
            let names: Vec<String> = object.properties.iter().map(|property| quote(property.name.as_str())).collect();
            let more = if names.len() > MOST_NAMES { " and others" } else { "" };
            format!("a JSON object with {}{more}", names[..names.len().min(MOST_NAMES)].join(", "))
        }
        Some(value) => format!("{} in JSON", described(value)),
    };
    Found::only(format!("it is in no known format: it is {found}"), Some(known))
}

/// The problem of a file without a document.
pub(super) fn nothing(expected: &'static str) -> Found {
    Found::only("there is nothing in it", Some(expected))
}
