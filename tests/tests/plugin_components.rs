//! Components of plugins: how they are offered and built.

use sched_core::{
    Build, BuildError, Component, Family, Info, Node, Offer, Params, Push, Refusal, Refused, Task, Value,
};
use sched_host::plugin::{ComponentState, FileState, Registry};
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, fixture_folder, folder_of, load};
use sched_tests::program::sched;

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let read = |path: &str| std::fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let example = read("sched-plugins/example-lifo/src/lib.rs");
    let begin = example.find("#![forbid(unsafe_code)]").unwrap();
    let end = example.find("\n#[cfg(test)]").unwrap_or(example.len());
    assert!(read("README.md").contains(&format!("```rust\n{}\n```", example[begin..end].trim_end())));
}

#[test]
fn values_that_do_not_fit_are_reported_and_defaults_filled_in() {
    let folder = fixture_folder(&["panics-in-build"]);
    let registry = load(folder.path());
    let build = |name: &str, values: &[(&str, Value)]| {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        match registry.component(name).unwrap().build(&Params::from_values(values)) {
            Ok(_) => "built".to_owned(),
            Err(error) => format!("{error}\nfix: {}", error.fix()).replace(folder.path().to_str().unwrap(), "DIR"),
        }
    };
    let refuses = |values: &[(&str, Value)]| build("refuses-in-build", values);
    assert_eq!(refuses(&[]), "built");
    assert_eq!(refuses(&[("low", Value::Int(3)), ("high", Value::Int(3))]), "built");
    insta::assert_snapshot!(refuses(&[("low", Value::Int(3))]), @"
    component `refuses-in-build` of DIR/panics-in-build.so does not accept its parameters: low is 3, and high only 2
    fix: change the parameters in the policy
    ");
    insta::assert_snapshot!(refuses(&[("low", Value::Int(101))]), @"
    `low` of component `refuses-in-build` is 101, expected a whole number from 0 to 100
    fix: `sched plugins` lists the parameters of every component
    ");
    insta::assert_snapshot!(refuses(&[("lo", Value::Int(1))]), @"
    component `refuses-in-build` has no parameter `lo`
    fix: `sched plugins` lists the parameters of every component
    ");
    insta::assert_snapshot!(build("panics-in-build", &[]), @"
    component `panics-in-build` of DIR/panics-in-build.so panicked while it was built: this constructor always does (at plugins/panics-in-build/src/lib.rs:13:9)
    fix: tell the author of the plugin, or use another component
    ");
}

#[test]
fn a_check_says_what_a_constructor_refuses_once() {
    let plugins = fixture_folder(&["panics-in-build"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.kdl");
    let check = |each: &str| {
        let text =
            format!("policy \"mine\" {{\n    fifo {{ eager {{ each \"worker\" {{ {each} {{ worker }} }} }} }}\n}}\n");
        std::fs::write(&file, text).expect("there is room");
        let folder = plugins.path().to_str().expect("text");
        sched(&["check", file.to_str().expect("text"), "--workers", "3", "--plugin-dir", folder])
    };
    let ran = check("refuses-in-build low=3 high=3.0");
    assert!(ran.code == 0 && ran.out.ends_with("ok\n"), "{ran:?}");
    let ran = check("refuses-in-build low=3");
    assert!(ran.code == 1 && ran.says("mine.kdl:2:36") && ran.says("change the parameters in the policy"), "{ran:?}");
    assert_eq!(ran.err.matches("does not accept its parameters").count(), 1, "for all workers: {ran:?}");
}

/// Has the name of another component, and cannot be built.
struct BuiltIn;

impl Component for BuiltIn {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Full))
    }
}

impl Build for BuiltIn {
    const INFO: Info = Info::new("lifo", Family::FlowControl, "Refuses every task.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        panic!("not {}", "today")
    }
}

#[test]
fn built_in_components_stand_beside_plugins() {
    let mut alone = Registry::empty();
    alone.add_builtin("my-program", vec![Offer::of::<BuiltIn>()]).unwrap();
    let registered = alone.component("lifo").unwrap();
    assert_eq!((registered.plugin().package.as_str(), &registered.plugin().path), ("my-program", &None));
    insta::assert_snapshot!(registered.build(&Params::default()).err().unwrap(), @"component `lifo` of my-program panicked while it was built: not today");

    let folder = folder_of([("lifo.so", stock_plugin(LIFO, Profile::Debug))]);
    let mut beside = load(folder.path());
    let errors = beside.add_builtin("my-program", vec![Offer::of::<BuiltIn>()]).unwrap_err();
    insta::assert_snapshot!(errors[0].to_string().replace(folder.path().to_str().unwrap(), "DIR"), @"my-program offers a component `lifo`, and DIR/lifo.so does so first");
}

#[test]
fn the_stock_plugins_have_no_faults() {
    let folder = folder_of(
        ["example-lifo", "flow-control", "resource-mapping", "special-purpose", "worker"]
            .map(|name| (format!("{name}.so"), stock_plugin(&format!("sched-plugin-{name}"), Profile::Debug))),
    );
    let registry = load(folder.path());
    for file in registry.files() {
        let FileState::Loaded(plugin) = &file.state else { panic!("{file:?}") };
        assert_eq!(plugin.warnings, Vec::<String>::new());
        for component in &plugin.components {
            assert_eq!(component.state, ComponentState::Usable, "{}", component.info.name);
            registry.component(&component.info.name).unwrap().build(&Params::default()).unwrap();
        }
    }
}

#[test]
fn every_misbehaving_component_is_offered_and_can_be_built() {
    let folder = fixture_folder(&["misbehaving"]);
    let registry = load(folder.path());
    let names: Vec<&str> = registry.components().map(|component| component.info().name.as_str()).collect();
    insta::assert_snapshot!(names.join(" "), @"deep drops-tasks hoarder leaks-tasks lies-of-bounds lies-of-emptiness lies-of-ends lies-of-pulls lies-of-pumping lies-of-pushes lies-of-refusals lies-of-sorting lies-of-storage lies-of-waking panics-in-can-pull panics-in-can-push panics-in-estimates panics-in-pull panics-in-push refuser sticks talkative verbose");
    for component in registry.components() {
        component.build(&Params::default()).unwrap();
    }
}
