use super::*;
use std::panic::catch_unwind;

const ONE: Slot = Slot { name: "one", doc: "" };

/// The message with which a description would not compile.
fn flaw(info: &'static Info) -> Option<String> {
    let payload = catch_unwind(|| info.assert_sound()).err()?;
    Some(payload.downcast_ref::<&str>().map(ToString::to_string).unwrap_or_default())
}

#[test]
fn descriptions_that_no_host_accepts_do_not_compile() {
    const fn info(name: &'static str) -> Info {
        Info::new(name, Family::FlowControl, "")
    }
    static SOUND: Info =
        info("a-2nd-one").storage(Storage::BoundedBy(&["room"])).params(const { &[Param::int("room", 1, "")] });
    assert_eq!(flaw(&SOUND), None);
    static NAMES: [Info; 6] = [info(""), info("Upper"), info("a--b"), info("a-"), info("-a"), info("2nd")];
    for wrong in &NAMES {
        assert_eq!(flaw(wrong).as_deref(), Some("the name of a component is not lower-case words joined by `-`"));
    }
    static WRONG: [Info; 16] = [
        info("a").params(const { &[Param::int("room", 1, ""), Param::bool("room", true, "")] }),
        info("a").params(const { &[Param::int("room", 0, "").at_least(1)] }),
        info("a").params(const { &[Param::float("Room", 0.0, "")] }),
        info("a").storage(Storage::BoundedBy(&["room"])),
        info("a").arity(Arity::Slots),
        info("a").slots(&[ONE]).arity(Arity::One),
        info("a").slots(&[ONE, ONE]),
        info("a").slots(&[ONE]).optional_slots(&["two"]),
        info("a").slots_beside_children(&[]),
        info("a").params(const { &[Param::choice("order", "size", &["age", "length"], "")] }),
        info("a").params(const { &[Param::choice("order", "age", &["age", "By_Length"], "")] }),
        info("a").params(const { &[Param::float("beta", 2.5, "").within(0.0, 1.5)] }),
        info("each"),
        info("a").slots(&[Slot { name: "use", doc: "" }]),
        info("a").arity(Arity::Leaf),
        Info::new("a", Family::Worker, "").arity(Arity::One),
    ];
    let messages: Vec<String> = WRONG.iter().filter_map(flaw).collect();
    let expected = [
        "a component has two parameters of one name",
        "the default of a parameter is out of its range",
        "the name of a parameter is not lower-case words joined by `-`",
        "the storage of a component is bounded by a parameter that it does not declare",
        "a component has a child for each slot, and no slots",
        "a component has slots, and its children do not go into slots",
        "a component has two slots of one name",
        "an optional slot of a component is no slot of it",
        "a component has a child for each slot, and no slots",
        "the default of a parameter is out of its range",
        "a choice of a parameter is not lower-case words joined by `-`",
        "the default of a parameter is out of its range",
        "the name of a component is a word of the policy language",
        "the name of a slot is a word of the policy language",
        "a component of the worker family takes children, or one of another family takes none",
        "a component of the worker family takes children, or one of another family takes none",
    ];
    assert_eq!(messages, expected);
}
