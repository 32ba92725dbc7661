//! Loading plugins: good ones of every age and build, and bad ones of every kind.

use sched_core::{
    Build, BuildError, Component, Family, Info, LogLevel, Node, Offer, Params, Push, Refusal, Refused, Task, Time,
    Value, WorkerId, WorkerSet, adapt,
};
use sched_host::cli::plugins::{Args, run};
use sched_host::plugin::{ComponentState, FileState, FolderState, LoadErrorKind, Registry, SearchPath};
use sched_host::tree::{Ledger, Part, Services, Tree, WorkerFacts};
use sched_tests::fixtures::{self, Profile, stock_plugin};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const LIFO: &str = "sched-plugin-example-lifo";
const PLAIN: Args = Args { json: false, verbose: false };

/// A folder with these files under these names.
fn folder_of(files: impl IntoIterator<Item = (impl AsRef<str>, PathBuf)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, file) in files {
        symlink(file, folder.path().join(name.as_ref())).unwrap();
    }
    folder
}

fn fixture_folder(packages: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for package in packages {
        symlink(fixtures::plugin(package), folder.path().join(format!("{package}.so"))).unwrap();
    }
    folder
}

fn load(folder: &Path) -> Registry {
    Registry::load(&SearchPath::empty().with_folder(folder))
}

/// What `sched plugins` writes, with the folder's name replaced.
fn listing(args: &Args, registry: &Registry, folder: &Path) -> String {
    let mut out = Vec::new();
    run(args, registry, &mut out).unwrap();
    String::from_utf8(out).unwrap().replace(folder.to_str().unwrap(), "DIR")
}

#[test]
fn every_bad_plugin_is_told_and_none_keeps_a_good_one_from_loading() {
    let folder = fixture_folder(&[
        "not-a-plugin",
        "other-abi",
        "drifted-task",
        "drifted-layout",
        "drifted-extension",
        "no-entry",
        "unresolved",
        "panics-in-manifest",
        "panics-in-build",
        "ill-described",
        "duplicate-name",
        "from-1-0",
    ]);
    symlink(fixtures::aborting_plugin(), folder.path().join("abort.so")).unwrap();
    symlink(stock_plugin(LIFO, Profile::Debug), folder.path().join("a-lifo.so")).unwrap();
    let registry = load(folder.path());
    insta::assert_snapshot!(listing(&PLAIN, &registry, folder.path()), @r#"
    DIR (--plugin-dir)
      a-lifo.so: sched-plugin-example-lifo 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
      abort.so: rejected: it was built with panic = "abort", so its first panic would end this process
        mend: remove `panic = "abort"` from the profile that builds it
      drifted-extension.so: rejected: its types are laid out otherwise than this host's: extension `host-log/1`: mismatched type Expected: u32 Found: RStr<'a>
        mend: build it again against the sched-core of this host
      drifted-layout.so: rejected: its types are laid out otherwise than this host's: mismatched type Expected: AFunctionPointer Found: u64
        mend: build it again against the sched-core of this host
      drifted-task.so: rejected: its task has 192 bytes, this host's has 112
        mend: build it again against the sched-core of this host
      duplicate-name.so: duplicate-name 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
          rejected: DIR/duplicate-name.so offers a component `lifo`, and DIR/a-lifo.so does so first
            mend: rename one of the two, or put the folder of the one that you want first in the search path
        other (flow-control, one child): Refuses every task.
      from-1-0.so: from-1-0 0.1.0, interface 1.0
        from-1-0 (flow-control, one child): Gives back the task that was pushed last.
      ill-described.so: ill-described 0.1.0, interface 1.1
        Not_Kebab (flow-control, one child): Its name is not as names are.
          rejected: DIR/ill-described.so describes component `Not_Kebab` badly: its name is not lower-case words joined by `-`
            mend: ask its author to mend the `Info` of the component
        bad-default (flow-control, one child): Its default is out of range.
          rejected: DIR/ill-described.so describes component `bad-default` badly: the name of parameter `Size` is not lower-case words joined by `-`
            mend: ask its author to mend the `Info` of the component
          rejected: DIR/ill-described.so describes component `bad-default` badly: the default of `Size` is 0, expected a whole number of at least 1
            mend: ask its author to mend the `Info` of the component
          Size=0 (a whole number of at least 1): how large it is
        twice (flow-control, one child): The first of this name.
        twice (flow-control, one child)
          rejected: DIR/ill-described.so describes component `twice` badly: the plugin has an earlier component of this name
            mend: ask its author to mend the `Info` of the component
        warning: component `twice` has no description
      no-entry.so: rejected: it has a stamp and no function `sched_plugin_entry_v1`
        mend: build it with `sched_core::export_components!`
      not-a-plugin.so: rejected: it is a library without the symbol `SCHED_PLUGIN_STAMP`, expected a plugin
        mend: build it with `sched_core::export_components!`, or take it out of the folder of plugins
      other-abi.so: rejected: it was built for ABI 2, this host has ABI 1
        mend: update this host, or build the plugin against an older sched-core
      panics-in-build.so: panics-in-build 0.1.0, interface 1.1
        panics-in-build (flow-control, one child): Its constructor panics.
        refuses-in-build (flow-control, one child): Its constructor wants low <= high.
          low=1 tasks (a whole number from 0 to 100): the lower limit
          high=2.0 (a number): the upper limit
      panics-in-manifest.so: rejected: its manifest panicked: no manifest today
        mend: ask its author, or update this host if the plugin is newer
      unresolved.so: rejected: the system's loader refuses it: undefined symbol: sched_no_such_function
        mend: install what it needs, or link it into the plugin

    6 components from 5 plugins; 9 files rejected
    "#);
    assert!(registry.component("lifo").unwrap().plugin().path.as_ref().unwrap().ends_with("a-lifo.so"));
}

#[test]
fn machines_read_the_same_list() {
    let folder = fixture_folder(&["other-abi", "panics-in-build"]);
    symlink(fixtures::plugin("other-abi"), folder.path().join("same.so")).unwrap();
    let registry = load(folder.path());
    insta::assert_snapshot!(listing(&Args { json: true, verbose: false }, &registry, folder.path()), @r#"
    {
      "folders": [
        {
          "path": "DIR",
          "origin": "--plugin-dir",
          "state": "searched"
        }
      ],
      "files": [
        {
          "path": "DIR/other-abi.so",
          "folder": 0,
          "state": "rejected",
          "error": {
            "kind": "stamp",
            "message": "it was built for ABI 2, this host has ABI 1",
            "mend": "update this host, or build the plugin against an older sched-core"
          }
        },
        {
          "path": "DIR/panics-in-build.so",
          "folder": 0,
          "state": "loaded",
          "plugin": {
            "package": "panics-in-build",
            "version": "0.1.0",
            "abi": "1.1",
            "components": [
              {
                "name": "panics-in-build",
                "usable": true,
                "family": "flow-control",
                "arity": "one",
                "doc": "Its constructor panics.",
                "stores": false,
                "bounds": [],
                "may_refuse": false,
                "needs_models": false,
                "lookahead": 2,
                "slots": [],
                "params": [],
                "errors": []
              },
              {
                "name": "refuses-in-build",
                "usable": true,
                "family": "flow-control",
                "arity": "one",
                "doc": "Its constructor wants low <= high.",
                "stores": false,
                "bounds": [],
                "may_refuse": false,
                "needs_models": false,
                "lookahead": 2,
                "slots": [],
                "params": [
                  {
                    "name": "low",
                    "type": "int",
                    "default": 1,
                    "min": 0,
                    "max": 100,
                    "unit": "tasks",
                    "doc": "the lower limit"
                  },
                  {
                    "name": "high",
                    "type": "float",
                    "default": 2.0,
                    "unit": "",
                    "doc": "the upper limit"
                  }
                ],
                "errors": []
              }
            ],
            "warnings": []
          }
        },
        {
          "path": "DIR/same.so",
          "folder": 0,
          "state": "already-seen",
          "same_as": "DIR/other-abi.so"
        }
      ]
    }
    "#);
}

#[test]
fn the_verbose_list_says_what_the_scheduler_knows_of_components() {
    let prefix = tempfile::tempdir().unwrap();
    let bin = prefix.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, package) in [
        ("a.so", "ill-described"),
        ("b.so", "panics-in-build"),
        ("c.so", "panics-in-build"),
        ("d.so", "misbehaving"),
        ("e.so", "not-a-plugin"),
    ] {
        symlink(fixtures::plugin(package), bin.join(name)).unwrap();
    }
    let registry = Registry::load(&SearchPath::empty().with_defaults_of(bin.join("sched")));
    insta::assert_snapshot!(listing(&Args { json: false, verbose: true }, &registry, prefix.path()), @"
    DIR/bin/plugins (beside the executable): there is no such folder

    DIR/bin (the executable's folder)
      a.so: ill-described 0.1.0, interface 1.1
        Not_Kebab (flow-control, one child): Its name is not as names are.
          rejected: DIR/bin/a.so describes component `Not_Kebab` badly: its name is not lower-case words joined by `-`
            mend: ask its author to mend the `Info` of the component
          stores no tasks, wants 2 tasks in a queue below
        bad-default (flow-control, one child): Its default is out of range.
          rejected: DIR/bin/a.so describes component `bad-default` badly: the name of parameter `Size` is not lower-case words joined by `-`
            mend: ask its author to mend the `Info` of the component
          rejected: DIR/bin/a.so describes component `bad-default` badly: the default of `Size` is 0, expected a whole number of at least 1
            mend: ask its author to mend the `Info` of the component
          stores no tasks, wants 2 tasks in a queue below
          Size=0 (a whole number of at least 1): how large it is
        twice (flow-control, one child): The first of this name.
          stores no tasks, wants 2 tasks in a queue below
        twice (flow-control, one child)
          rejected: DIR/bin/a.so describes component `twice` badly: the plugin has an earlier component of this name
            mend: ask its author to mend the `Info` of the component
          stores no tasks, wants 2 tasks in a queue below
        warning: component `twice` has no description
      b.so: panics-in-build 0.1.0, interface 1.1
        panics-in-build (flow-control, one child): Its constructor panics.
          stores no tasks, wants 2 tasks in a queue below
        refuses-in-build (flow-control, one child): Its constructor wants low <= high.
          stores no tasks, wants 2 tasks in a queue below
          low=1 tasks (a whole number from 0 to 100): the lower limit
          high=2.0 (a number): the upper limit
      c.so: already seen as DIR/bin/b.so
      d.so: misbehaving 0.1.0, interface 1.1
        panics-in-push (flow-control, one child): Panics in push_task.
          stores tasks without limit, wants 2 tasks in a queue below
          after=0 calls (a whole number of at least 0): calls that go well before each further one panics
        panics-in-pull (flow-control, one child): Panics in pull_task.
          stores tasks without limit, wants 2 tasks in a queue below
          after=0 calls (a whole number of at least 0): calls that go well before each further one panics
        panics-in-can-push (flow-control, one child): Panics in can_push.
          stores tasks without limit, wants 2 tasks in a queue below
          after=0 calls (a whole number of at least 0): calls that go well before each further one panics
        panics-in-can-pull (flow-control, one child): Panics in can_pull.
          stores tasks without limit, wants 2 tasks in a queue below
          after=0 calls (a whole number of at least 0): calls that go well before each further one panics
        panics-in-estimates (flow-control, one child): Panics in estimated_end and estimated_load.
          stores tasks without limit, wants 2 tasks in a queue below
          after=0 calls (a whole number of at least 0): calls that go well before each further one panics
        drops-tasks (flow-control, one child): Says that it took a task, and drops it.
          stores tasks without limit, wants 2 tasks in a queue below
          every=1 (a whole number of at least 1): each task of this number is treated so
        leaks-tasks (flow-control, one child): Says that it took a task, and forgets it.
          stores tasks without limit, wants 2 tasks in a queue below
          every=1 (a whole number of at least 1): each task of this number is treated so
        hoarder (flow-control, one child): Takes every task and gives none.
          stores tasks without limit, wants 2 tasks in a queue below
        refuser (flow-control, one child): Refuses every task, although it says that it never does.
          stores tasks without limit, wants 2 tasks in a queue below
        deep (flow-control, one child): Two of them, one in the other, call each other without end.
          stores tasks without limit, wants 2 tasks in a queue below
      e.so: not a plugin: it is a library without the symbol `SCHED_PLUGIN_STAMP`, expected a plugin

    DIR/lib/sched/plugins (installed): there is no such folder

    13 components from 3 plugins
    ");
}

#[test]
fn files_that_are_no_libraries_are_told_apart() {
    let whole = fs::read(stock_plugin(LIFO, Profile::Debug)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    write("text.so", b"INPUT(libfoo.so)\n");
    write("empty.so", b"");
    write("ten-bytes.so", &whole[..10]);
    write("forty-bytes.so", &whole[..40]);
    write("other-width.so", &changed(4, 1));
    write("other-version.so", &changed(6, 9));
    write("program.so", &changed(16, 2));
    write("other-machine.so", &changed(18, 183));
    let magic = b"sched-component\0";
    let stamp = whole.windows(magic.len()).position(|window| window == magic).unwrap();
    write("flipped-stamp.so", &changed(stamp, b'S'));
    write("no-unwind.so", &changed(stamp + 28, 0));
    fs::create_dir(folder.path().join("folder.so")).unwrap();
    symlink("nowhere", folder.path().join("dangling.so")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe.so")).status().unwrap();
    assert!(made.success());
    insta::assert_snapshot!(listing(&PLAIN, &load(folder.path()), folder.path()), @r#"
    DIR (--plugin-dir)
      dangling.so: rejected: it cannot be read: No such file or directory (os error 2)
        mend: see that it is there and that this user may read it, or take it out of the folder
      empty.so: rejected: it is empty, expected a shared library (ELF)
        mend: take it out of the folder of plugins
      flipped-stamp.so: rejected: its `SCHED_PLUGIN_STAMP` is not a stamp of sched-core
        mend: build it with `sched_core::export_components!`
      folder.so: rejected: it is a directory, expected a file
        mend: take it out of the folder of plugins
      forty-bytes.so: rejected: it has 40 bytes, and its headers speak of 64
        mend: copy it again, whole
      no-unwind.so: rejected: it was built with panic = "abort", so its first panic would end this process
        mend: remove `panic = "abort"` from the profile that builds it
      other-machine.so: rejected: it was built for aarch64, this host runs on x86_64
        mend: build it for this host's target
      other-version.so: rejected: its headers make no sense: its class, byte order or version is unknown
        mend: build it again, or copy it again
      other-width.so: rejected: it was built for a 32-bit machine, this host runs on x86_64
        mend: build it for this host's target
      pipe.so: rejected: it is a pipe, expected a file
        mend: take it out of the folder of plugins
      program.so: rejected: it is an ELF file of another type, expected a shared library (ELF)
        mend: take it out of the folder of plugins
      ten-bytes.so: rejected: it has 10 bytes, and its headers speak of 64
        mend: copy it again, whole
      text.so: rejected: it is a file that begins with "INPUT(li", expected a shared library (ELF)
        mend: take it out of the folder of plugins

    0 components from 0 plugins; 13 files rejected
    "#);
}

#[test]
fn a_plugin_cut_off_anywhere_is_refused_before_the_loader_sees_it() {
    let whole = fs::read(stock_plugin(LIFO, Profile::Debug)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.so");
    // Dense where the headers lie, then spread over the file, and dense at its end.
    let spread = (1..60).map(|part| whole.len() * part / 60);
    let lengths = (0..200).step_by(7).chain(spread).chain(whole.len() - 9..whole.len());
    for length in lengths {
        fs::write(&path, &whole[..length]).unwrap();
        let registry = load(folder.path());
        let FileState::Rejected(error) = &registry.files()[0].state else {
            panic!("{length} of {} bytes: {:?}", whole.len(), registry.files()[0].state);
        };
        match &error.kind {
            LoadErrorKind::NotALibrary(_) if length < 4 => {}
            LoadErrorKind::Truncated { found, expected } => {
                assert_eq!(*found, length as u64);
                assert!(*expected > *found && *expected <= whole.len() as u64, "{expected}");
            }
            other => panic!("{length} of {} bytes: {other:?}", whole.len()),
        }
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(load(folder.path()).components().count(), 1);
}

#[test]
fn the_first_folder_has_the_name_and_a_file_is_looked_at_once() {
    let lifo = stock_plugin(LIFO, Profile::Debug);
    let mine = fixture_folder(&["duplicate-name"]);
    let theirs = folder_of([("lifo.so", lifo.clone()), ("lifo-again.so", lifo)]);
    let list = std::env::join_paths([theirs.path(), mine.path(), &mine.path().join("none")]).unwrap();
    let registry = Registry::load(&SearchPath::empty().with_folder(mine.path()).with_list(&list));
    let shown = listing(&PLAIN, &registry, mine.path());
    insta::assert_snapshot!(shown.replace(theirs.path().to_str().unwrap(), "THEIRS"), @"
    DIR (--plugin-dir)
      duplicate-name.so: duplicate-name 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
        other (flow-control, one child): Refuses every task.

    THEIRS (SCHED_PLUGIN_PATH)
      lifo-again.so: sched-plugin-example-lifo 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
          rejected: THEIRS/lifo-again.so offers a component `lifo`, and DIR/duplicate-name.so does so first
            mend: rename one of the two, or put the folder of the one that you want first in the search path
      lifo.so: already seen as THEIRS/lifo-again.so

    DIR/none (SCHED_PLUGIN_PATH): there is no such folder

    2 components from 2 plugins
    ");
    assert_eq!(registry.component("lifo").unwrap().plugin().package, "duplicate-name");
    assert_eq!(registry.folders()[2].state, FolderState::AlreadySearched);
}

#[test]
fn other_libraries_beside_the_executable_are_no_matter() {
    let prefix = tempfile::tempdir().unwrap();
    let bin = prefix.path().join("bin");
    for folder in ["bin/plugins", "lib/sched/plugins"] {
        fs::create_dir_all(prefix.path().join(folder)).unwrap();
    }
    symlink(fixtures::plugin("not-a-plugin"), bin.join("libother.so")).unwrap();
    symlink(fixtures::plugin("other-abi"), bin.join("libolder.so")).unwrap();
    fs::write(bin.join("libc.so"), "GROUP ( libc.so.6 )").unwrap();
    symlink(fixtures::plugin("uses-log"), bin.join("plugins/log.so")).unwrap();
    symlink(stock_plugin(LIFO, Profile::Debug), prefix.path().join("lib/sched/plugins/lifo.so")).unwrap();
    let registry = Registry::load(&SearchPath::empty().with_defaults_of(bin.join("sched")));
    insta::assert_snapshot!(listing(&PLAIN, &registry, prefix.path()), @"
    DIR/bin/plugins (beside the executable)
      log.so: uses-log 0.1.0, interface 1.1
        uses-log (flow-control, one child): Gives back the task that was pushed last.

    DIR/bin (the executable's folder)
      libc.so: not a plugin
      libolder.so: rejected: it was built for ABI 2, this host has ABI 1
        mend: update this host, or build the plugin against an older sched-core
      libother.so: not a plugin

    DIR/lib/sched/plugins (installed)
      lifo.so: sched-plugin-example-lifo 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.

    2 components from 2 plugins; 1 file rejected
    ");
    // A plugin that went wrong is one all the same.
    assert_eq!(registry.rejected().count(), 1);
}

#[test]
fn default_folders_that_are_missing_are_told_only_to_who_asks() {
    let prefix = tempfile::tempdir().unwrap();
    let registry = Registry::load(&SearchPath::empty().with_defaults_of(prefix.path().join("no/where/sched")));
    insta::assert_snapshot!(listing(&PLAIN, &registry, prefix.path()), @"0 components from 0 plugins");
    insta::assert_snapshot!(listing(&Args { verbose: true, json: false }, &registry, prefix.path()), @"
    DIR/no/where/plugins (beside the executable): there is no such folder

    DIR/no/where (the executable's folder): there is no such folder

    DIR/no/lib/sched/plugins (installed): there is no such folder

    0 components from 0 plugins
    ");
}

#[test]
fn values_that_do_not_fit_are_told_and_defaults_filled_in() {
    let folder = fixture_folder(&["panics-in-build"]);
    let registry = load(folder.path());
    let build = |name: &str, values: &[(&str, Value)]| {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        match registry.component(name).unwrap().build(&Params::from_values(values)) {
            Ok(_) => "built".to_owned(),
            Err(error) => format!("{error}\nmend: {}", error.mend()).replace(folder.path().to_str().unwrap(), "DIR"),
        }
    };
    let refuses = |values: &[(&str, Value)]| build("refuses-in-build", values);
    assert_eq!(refuses(&[]), "built");
    assert_eq!(refuses(&[("low", Value::Int(3)), ("high", Value::Int(3))]), "built");
    insta::assert_snapshot!(refuses(&[("low", Value::Int(3))]), @"
    component `refuses-in-build` of DIR/panics-in-build.so does not accept its parameters: low is 3, and high only 2
    mend: change the parameters in the policy
    ");
    insta::assert_snapshot!(refuses(&[("low", Value::Int(101))]), @"
    `low` of component `refuses-in-build` is 101, expected a whole number from 0 to 100
    mend: `sched plugins` lists the parameters of every component
    ");
    insta::assert_snapshot!(refuses(&[("lo", Value::Int(1))]), @"
    component `refuses-in-build` has no parameter `lo`
    mend: `sched plugins` lists the parameters of every component
    ");
    insta::assert_snapshot!(build("panics-in-build", &[]), @"
    component `panics-in-build` of DIR/panics-in-build.so panicked while it was built: this constructor always does (at plugins/panics-in-build/src/lib.rs:13:9)
    mend: tell the author of the plugin, or use another component
    ");
}

/// The leaf of a worker, which only asks further up.
struct Leaf;

impl Component for Leaf {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::PullInstead))
    }
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
    insta::assert_snapshot!(names.join(" "), @"deep drops-tasks hoarder leaks-tasks panics-in-can-pull panics-in-can-push panics-in-estimates panics-in-pull panics-in-push refuser");
    for component in registry.components() {
        component.build(&Params::default()).unwrap();
    }
}

/// The back end of a tree in which nobody sleeps.
#[derive(Default)]
struct Backend {
    log: Mutex<Vec<String>>,
}

impl Services for Backend {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn sleeping(&self) -> &[AtomicU64] {
        &[]
    }

    fn wake(&self, _worker: WorkerId) -> bool {
        false
    }

    fn log(&self, node: &str, level: LogLevel, line: &str) {
        self.log.lock().unwrap().push(format!("{node}: {level:?}: {line}"));
    }
}

/// Pushes tasks 0 to 3 into a tree of the registry's only component above one worker, and pulls them back. Gives their
/// order, and the lines that were logged.
fn order(registry: &Registry) -> (Vec<u64>, Vec<String>) {
    let registered = registry.components().next().unwrap();
    let part = |component, name: &str, children| Part {
        component,
        name: name.to_owned(),
        plugin: registered.plugin().to_string(),
        path: name.to_owned(),
        object: String::new(),
        children,
        workers: WorkerSet::first(1),
        worker: None,
        forwards_pull: false,
    };
    let root = part(registered.build(&Params::default()).unwrap(), &registered.info().name, vec![(1, String::new())]);
    let leaf = Part { worker: Some(WorkerId(0)), ..part(adapt(Leaf), "worker", Vec::new()) };
    let (backend, ledger) = (Arc::new(Backend::default()), Arc::new(Ledger::new()));
    let tree = Tree::assemble(vec![root, leaf], &[WorkerFacts::CPU], backend.clone(), Arc::clone(&ledger), 0);
    for (sequence, index) in ledger.grow().take(4).enumerate() {
        let slot = ledger.slot(index);
        slot.head().sequence.store(sequence as u64, Relaxed);
        slot.head().archs.store(1, Relaxed);
        tree.push(slot, None, None);
    }
    let pulled = std::iter::from_fn(|| tree.pull(WorkerId(0))).map(|slot| slot.head().sequence.load(Relaxed)).collect();
    assert_eq!(tree.faults(), []);
    let log = backend.log.lock().unwrap().clone();
    (pulled, log)
}

#[test]
fn a_plugin_from_before_works_in_this_host() {
    let folder = fixture_folder(&["from-1-0"]);
    let registry = load(folder.path());
    let FileState::Loaded(plugin) = &registry.files()[0].state else { panic!("{:?}", registry.files()) };
    assert_eq!(plugin.abi, (1, 0));
    assert_eq!(order(&registry), (vec![3, 2, 1, 0], vec![]));
}

#[test]
fn a_plugin_of_today_uses_what_this_host_adds() {
    let folder = fixture_folder(&["uses-log"]);
    let (pulled, log) = order(&load(folder.path()));
    assert_eq!(pulled, [3, 2, 1, 0]);
    assert_eq!(log[0], "uses-log: Info: task 0 came");
    assert_eq!(log.len(), 4);
}

#[test]
fn debug_and_release_builds_go_together() {
    for profile in [Profile::Debug, Profile::Release] {
        let folder = folder_of([("lifo.so", stock_plugin(LIFO, profile))]);
        assert_eq!(order(&load(folder.path())).0, [3, 2, 1, 0], "{profile:?}");
    }
}

/// What a host of interface 1.0 does with a plugin.
fn in_old_host(profile: Profile, plugin: &Path) -> String {
    let output = Command::new(fixtures::old_host(profile)).arg(plugin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn plugins_of_today_work_in_a_host_from_before() {
    insta::assert_snapshot!(in_old_host(Profile::Release, &stock_plugin(LIFO, Profile::Debug)), @"
    host 1.0
    plugin sched-plugin-example-lifo 0.1.0, interface 1.1
    component lifo
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    ");
    insta::assert_snapshot!(in_old_host(Profile::Debug, &fixtures::plugin("uses-log")), @"
    host 1.0
    plugin uses-log 0.1.0, interface 1.1
    component uses-log
    push 0: taken
    push 1: taken
    push 2: taken
    push 3: taken
    pull: 3
    pull: 2
    pull: 1
    pull: 0
    ");
}
