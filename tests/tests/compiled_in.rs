//! Names that compiled-in components and plugins both offer.

use sched_host::plugin::{ComponentState, FileState, Registry, RegistryBuilder, SearchPath};
use sched_host::policy::Override;
use sched_host::runtime::Runtime;
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::plugin_folder::{PLAIN, folder_of, listing};
use sched_tests::program::{self, Ran};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CHOLESKY: [&str; 6] = ["run", "cholesky", "--tiles", "4", "--tile-size", "16"];

/// `sched` in a folder of its own, without plugins.
fn alone() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("bin/sched");
    fs::create_dir(folder.path().join("bin")).expect("a folder can be made");
    fs::copy(program::program(), &path).expect("the program can be copied");
    (folder, path)
}

fn ran(program: &Path, words: &[&str]) -> Ran {
    let folder = program.parent().expect("it lies in a folder");
    Ran::of(program::command_of(program).args(words).current_dir(folder))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// A folder with a third-party plugin that offers `fifo`.
fn strangers() -> TempDir {
    folder_of([("libmine.so", fixtures::plugin("own-fifo"))])
}

/// The component of this name among those of a file or package.
fn listed<'a>(offers: &'a Value, name: &str) -> &'a Value {
    let components = offers["components"].as_array().expect("it offers components");
    components.iter().find(|component| component["name"] == name).expect("it offers this one")
}

#[test]
fn the_program_runs_alone() {
    let (_folder, sched) = alone();
    let run = ran(&sched, &CHOLESKY);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let list = ran(&sched, &["plugins", "--json"]).json();
    assert_eq!(list["files"], Value::Array(Vec::new()));
    let builtin = &list["builtin"][0];
    assert_eq!((&builtin["package"], &builtin["refused"]), (&"sched-components".into(), &false.into()));
    assert_eq!(
        (&listed(builtin, "fifo")["usable"], &listed(builtin, "worker")["usable"]),
        (&true.into(), &true.into())
    );
    assert!(ran(&sched, &["plugins"]).out.ends_with("0 components from 0 plugins, 19 compiled in\n"));
}

#[test]
fn without_files_and_what_is_compiled_in_there_is_one_error() {
    let (folder, sched) = alone();
    let folder = text(folder.path()).to_owned();
    let run = ran(&sched, &[&["--no-builtin"][..], &CHOLESKY].concat());
    assert_eq!(run.code, 1);
    let display_text = run.said().replace(&folder, "DIR");
    insta::assert_snapshot!(display_text, @r#"policy `tree-ws`: 1 error V7 policy::component no component plugins were found: looked in DIR/bin/plugins, DIR/bin, DIR/lib/sched/plugins help: name the folder of the plugins with `--plugin-dir` or SCHED_PLUGIN_PATH or leave out `--no-builtin`, which refuses the components that are compiled in why: a policy is made of the components that plugins offer and that are compiled in"#);
    assert!(ran(&sched, &["plugins", "--no-builtin"]).out.contains("compiled in: refused\n  sched-components"));
}

#[test]
fn stock_plugins_hide_what_is_compiled_in() {
    let plugins = folder_of([("flow.so", stock_plugin("sched-plugin-flow-control", Profile::Debug))]);
    let again = tempfile::tempdir().expect("there is room for a folder");
    fs::copy(plugins.path().join("flow.so"), again.path().join("flow.so")).expect("it can be copied");
    let path = SearchPath::empty().with_folder(plugins.path()).with_folder(again.path());
    let registry = RegistryBuilder::default().search_path(path).load().expect("nothing is wrong");
    let of = |name: &str| registry.component(name).and_then(|component| component.plugin().path.clone());
    assert_eq!((of("fifo"), of("eager")), (Some(plugins.path().join("flow.so")), None));
    let first = plugins.path().join("flow.so").display().to_string();
    let FileState::Loaded(second) = &registry.files()[1].state else { panic!("{:?}", registry.files()) };
    assert!(second.components.iter().all(|component| component.state == ComponentState::Hidden(first.clone())));
    let shown = listing(&PLAIN, &registry, plugins.path()).replace(text(again.path()), "AGAIN");
    let hidden: Vec<&str> = shown.lines().filter(|line| line.contains("hid")).map(str::trim).collect();
    insta::assert_snapshot!(hidden.join("\n"), @r#"
    hides the component of AGAIN/flow.so and sched-components
    hides the component of AGAIN/flow.so and sched-components
    fifo: hidden by DIR/flow.so
    prio: hidden by DIR/flow.so
    fifo: hidden by DIR/flow.so
    prio: hidden by DIR/flow.so
    "#);
    assert!(shown.ends_with("2 components from 2 plugins, 17 compiled in\n"), "{shown}");
}

#[test]
fn the_name_of_a_stock_component_is_not_taken_by_a_plugin_of_somebody_else() {
    let plugins = strangers();
    let (folder, sched) = alone();
    // One that sets no parameters, since the stranger's component has none.
    let plain = folder.path().join("plain.kdl");
    let policy = r#"policy "plain" { fifo { eager { each "worker" { worker } } } }"#;
    fs::write(&plain, policy).expect("the file can be written");
    let run = |more: &[&'static str]| {
        let policy: &[&str] = if more.contains(&"--policy") { &[] } else { &["--policy", text(&plain)] };
        ran(&sched, &[&["--plugin-dir", text(plugins.path())][..], &CHOLESKY, policy, more].concat())
    };
    let refused = run(&[]);
    assert_eq!(refused.code, 1);
    let display_text =
        refused.err.split_whitespace().collect::<Vec<_>>().join(" ").replace(text(plugins.path()), "DIR");
    assert!(
        display_text.contains("component `fifo` is offered by DIR/libmine.so and by sched-components (compiled in)"),
        "{display_text}"
    );
    assert!(display_text.contains("`--override fifo=libmine.so`"), "{display_text}");
    // A policy that does not name it is not affected.
    assert_eq!(run(&["--policy", "tree-prio"]).code, 0);
    for chosen in ["fifo", "fifo=libmine.so", "fifo=own-fifo", "fifo=sched-components"] {
        let done = run(&["--override", chosen]);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{chosen}: {done:?}");
    }
    // With what is compiled in refused, the name is still not the stranger's.
    assert_eq!(run(&["--no-builtin", "--override", "fifo=sched-components"]).code, 1);
    let list = ran(&sched, &["plugins", "--json", "--override", "fifo", "--plugin-dir", text(plugins.path())]).json();
    let (mine, stock) = (listed(&list["files"][0]["plugin"], "fifo"), listed(&list["builtin"][0], "fifo"));
    assert_eq!((&mine["usable"], &mine["hides"][0]), (&true.into(), &"sched-components".into()));
    assert_eq!(
        (&stock["usable"], &stock["hidden_by"]),
        (&false.into(), &text(&plugins.path().join("libmine.so")).into())
    );
}

#[test]
fn an_override_that_chooses_nothing_is_an_error() {
    let plugins = strangers();
    let load = |overrides: &[Override]| {
        let builder = RegistryBuilder::default().search_path(SearchPath::empty().with_folder(plugins.path()));
        let loaded = overrides.iter().cloned().fold(builder, RegistryBuilder::overriding).load();
        loaded.map(drop).map_err(|error| format!("{error:?}").replace(text(plugins.path()), "DIR"))
    };
    assert_eq!(load(&[Override::new("fifo")]), Ok(()));
    let wrong = [
        Override::new("fofo"),
        Override::new("prio"),
        Override::new("worker").from("libmine.so"),
        Override::new("fifo").from("a.so"),
        Override::new("fifo").from("b.so"),
    ];
    insta::assert_snapshot!(load(&wrong).expect_err("none chooses anything"), @r#"
    nothing offers a component `fofo` to override: did you mean `fifo`?
    no other component `prio` is there to override: it is offered by sched-components (compiled in) only
    `libmine.so` offers no component `worker` to override: it is offered by sched-components (compiled in)
    `a.so` offers no component `fifo` to override: it is offered by DIR/libmine.so and by sched-components (compiled in)
    the component `fifo` is overridden twice, in different ways (sched::components)
      help: the list of plugins says what each offers
    "#);
    let builder = Runtime::builder().overriding("fofo").search_path(SearchPath::empty());
    assert!(format!("{:?}", builder.build().err()).contains("nothing offers a component `fofo`"));
}

#[test]
fn what_the_user_named_and_is_not_used_is_a_warning() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    fs::write(folder.path().join("libempty.so"), "").expect("the file can be written");
    let missing = folder.path().join("missing");
    let path = SearchPath::empty().with_folder(folder.path()).with_folder(missing);
    let warnings = Registry::load(&path).warnings().join("\n").replace(text(folder.path()), "DIR");
    insta::assert_snapshot!(warnings, @r#"
    no plugins from DIR/missing: there is no such folder
    a plugin is not loaded: DIR/libempty.so: it is empty, expected a shared library (ELF)
    "#);
}
