use super::*;
use crate::abi::manifest::{RawInfo, RawValue};
use crate::info::{Arity, ComponentInfo, Family, SlotInfo};
use proptest::collection::vec;
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        // NaN is not equal to itself.
        prop::num::f64::ANY.prop_filter("NaN", |number| !number.is_nan()).prop_map(Value::Float),
        any::<String>().prop_map(Value::Text),
    ]
}

fn param() -> impl Strategy<Value = ParamInfo> {
    let texts = (any::<String>(), any::<String>(), any::<String>());
    (texts, value(), any::<(i64, i64)>()).prop_map(|((name, unit, doc), default, (min, max))| ParamInfo {
        name,
        unit,
        doc,
        kind: match &default {
            Value::Bool(_) => ParamKind::Bool,
            Value::Text(text) if min % 2 == 0 => ParamKind::Choice(vec!["a".to_owned(), text.replace(',', "")]),
            Value::Text(_) => ParamKind::Text,
            Value::Int(_) => ParamKind::Int { min, max },
            Value::Float(_) => ParamKind::Float { min: min as f64, max: max as f64 },
        },
        default,
    })
}

fn info() -> impl Strategy<Value = ComponentInfo> {
    let families = [Family::FlowControl, Family::ResourceMapping, Family::SpecialPurpose, Family::Worker];
    let arities = [Arity::Leaf, Arity::One, Arity::Many, Arity::Slots, Arity::ManyAndSlots];
    let shape = (prop::sample::select(families.to_vec()), prop::sample::select(arities.to_vec()), any::<u32>());
    let slot = ("[a-z]{1,8}", "[^\n\r]{0,9}", any::<bool>());
    let slot = slot.prop_map(|(name, doc, optional)| SlotInfo { name, doc, optional });
    let lists = (vec(any::<String>(), 0..3), prop::collection::btree_map("[a-z]{1,8}", slot, 1..3), vec(param(), 0..4));
    (any::<(String, String, String)>(), shape, any::<[bool; 15]>(), lists).prop_map(
        |(
            (name, doc, package),
            (family, arity, lookahead),
            [
                stores,
                may_refuse,
                needs_models,
                forwards_pull,
                forwards_push,
                wakes_workers,
                pulled_only,
                empty_until_pushed,
                combined,
                pushes_on_pull,
                end_is_noted,
                keeps_state,
                hears_tasks,
                newest_comes_back,
                waits_at_home,
            ],
            (bounds, slots, params),
        )| {
            let named = slots.into_iter().map(|(name, slot): (String, SlotInfo)| SlotInfo { name, ..slot });
            let slots: Vec<SlotInfo> = named.collect();
            ComponentInfo {
                name,
                family,
                doc,
                package,
                arity,
                stores,
                bounds,
                slots,
                params,
                lookahead,
                may_refuse,
                needs_models,
                forwards_pull,
                forwards_push,
                wakes_workers,
                pulled_only,
                empty_until_pushed,
                combined,
                pushes_on_pull,
                end_is_noted,
                keeps_state,
                hears_tasks,
                newest_comes_back,
                waits_at_home,
            }
        },
    )
}

proptest! {
    #[test]
    fn values_cross_the_wire(value in value()) {
        prop_assert_eq!(RawValue::from(&value).read(), Some(value));
    }

    #[test]
    fn infos_cross_the_wire(info in info()) {
        prop_assert_eq!(RawInfo::from(&info).read(), Ok(info));
    }
}

#[test]
fn a_manifest_of_a_later_version_is_refused_by_name() {
    let known = crate::Info::new("stack", Family::FlowControl, "").params(const { &[Param::int("room", 0, "")] });
    let raw = RawInfo::from(&known.describe());
    let error = |raw: RawInfo| raw.read().expect_err("it is of a later version");
    let family = RawInfo { family: 9, ..raw.clone() };
    assert_eq!(error(family), "component `stack` has family 9, which this host does not know");
    let arity = RawInfo { arity: 7, ..raw.clone() };
    assert_eq!(error(arity), "component `stack` has arity 7, which this host does not know");
    let mut kind = raw;
    kind.params[0].default.kind = 8;
    assert_eq!(error(kind), "parameter `room` of component `stack` has an unknown type");
}

#[test]
fn values_are_coerced_to_their_kind() {
    let int = ParamKind::Int { min: 0, max: 9 };
    let float = ParamKind::Float { min: 0.0, max: f64::INFINITY };
    assert_eq!(Value::Int(9).coerce(&int), Some(Value::Int(9)));
    assert_eq!(Value::Int(10).coerce(&int), None);
    assert_eq!(Value::Float(1.0).coerce(&int), None);
    assert_eq!(Value::Int(3).coerce(&float), Some(Value::Float(3.0)));
    assert_eq!(Value::Float(f64::NAN).coerce(&float), None);
    assert_eq!(Value::Text("3".into()).coerce(&float), None);
    assert_eq!([int.to_string(), float.to_string()], ["a whole number from 0 to 9", "a number of at least 0"]);
}

#[test]
fn parameters_are_read_as_they_are_declared() {
    let declared = [Param::int("room", 3, ""), Param::float("alpha", 1.0, ""), Param::float("limit", 0.0, "")];
    let mut params = Params::defaults(&declared);
    assert_eq!(params.int("room"), Ok(3));
    assert_eq!(params.micros("limit"), Ok(None));
    params.set("limit", Value::Float(1.5));
    assert_eq!(params.micros("limit"), Ok(Some(Duration::from_nanos(1500))));
    let errors = [
        params.float("beta").expect_err("undeclared"),
        params.text("room").expect_err("an int"),
        Params::from_values([("limit".to_owned(), Value::Float(-1.0))]).micros("limit").expect_err("negative"),
    ]
    .map(|error| error.to_string());
    assert_eq!(errors[0], "`beta` was read as float, and INFO declares no such parameter");
    assert_eq!(errors[1], "`room` was read as text, and its value is 3");
    assert!(errors[2].starts_with("`limit` is -1 µs: "), "{}", errors[2]);
}

/// A queue that is sorted by one of two orders.
struct Sorted;

impl crate::Component for Sorted {
    fn push_task(&self, _node: crate::Node<'_>, task: crate::Task) -> crate::Push {
        Err(crate::Refused::new(task, crate::Refusal::Full))
    }
}

impl crate::Build for Sorted {
    const INFO: crate::Info = crate::Info::new("sorted", Family::FlowControl, "A queue.")
        .params(const { &[Param::choice("order", "age", &["age", "length"], "what it is sorted by")] });

    fn build(params: &Params) -> Result<Self, BuildError> {
        assert!(["age", "length"].contains(&params.text("order")?), "nothing else reaches the constructor");
        Ok(Sorted)
    }
}

#[test]
fn a_host_that_does_not_know_choices_cannot_set_another_text() {
    const OFFERS: &[crate::Offer] = &[crate::Offer::of::<Sorted>()];
    let build = |order: &str| {
        let value = RawValue::from(&Value::Text(order.to_owned()));
        let params = [crate::abi::manifest::RawParam { name: "order".into(), value }];
        crate::export::build(OFFERS, "sorted".into(), params.as_slice().into()).into_result()
    };
    assert!(build("length").is_ok());
    let refused = build("size").map(|_| ()).expect_err("it is not one of them");
    assert_eq!(
        (refused.panicked, refused.message.as_str()),
        (false, r#"`order` is "size", expected one of "age", "length""#)
    );
}

#[test]
fn an_older_host_sees_what_it_knows() {
    use crate::info::{Info, Slot};
    let info = Info::new("router", Family::ResourceMapping, "")
        .slots_beside_children(const { &[Slot { name: "fallback", doc: "the\nrest" }] })
        .optional_slots(&["fallback"])
        .params(const { &[Param::choice("order", "age", &["age", "length"], "")] });
    let raw = RawInfo::from(&info.describe());
    assert_eq!((raw.arity, raw.slots.len()), (2, 0), "many children, and no slots");
    assert_eq!((raw.params[0].default.kind, raw.params[0].min.kind), (3, 0), "a text");
    let read = raw.read().expect("this host knows all");
    assert_eq!((read.arity, &*read.slots[0].doc, read.slots[0].optional), (Arity::ManyAndSlots, "the rest", true));
}
