//! Loading plugins: good ones, and bad ones of every kind.

use sched_cli::plugins::Args;
use sched_host::plugin::{FileState, LoadErrorKind, Registry, SearchPath};
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, PLAIN, fixture_folder, listing, load};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

// Longer than 60 lines because of its golden text.
#[test]
fn every_bad_plugin_is_reported_and_none_keeps_a_good_one_from_loading() {
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
          hides the component of DIR/duplicate-name.so
      abort.so: rejected: it was built with panic = "abort", so its first panic would end this process
        fix: remove `panic = "abort"` from the profile that builds it
      drifted-extension.so: rejected: its types are laid out otherwise than this host's: extension `host-log/1`: mismatched type Expected: u32 Found: RStr<'a>
        fix: build it again against the sched-core of this host
      drifted-layout.so: rejected: its types are laid out otherwise than this host's: mismatched type Expected: AFunctionPointer Found: u64
        fix: build it again against the sched-core of this host
      drifted-task.so: rejected: its task has 192 bytes, this host's has 112
        fix: build it again against the sched-core of this host
      duplicate-name.so: duplicate-name 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
          rejected: DIR/duplicate-name.so offers a component `lifo`, and DIR/a-lifo.so does so first
            fix: rename one of the two, or put the folder of the one that you want first in the search path
        other (flow-control, one child): Refuses every task.
      from-1-0.so: from-1-0 0.1.0, interface 1.0
        from-1-0 (flow-control, one child): Gives back the task that was pushed last.
      ill-described.so: ill-described 0.1.0, interface 1.0
        Not_Kebab (flow-control, one child): Its name is not as names are.
          rejected: DIR/ill-described.so describes component `Not_Kebab` badly: its name is not lower-case words joined by `-`
            fix: ask the author of the component to fix its `Info`
        bad-default (flow-control, one child): Its default is out of range.
          rejected: DIR/ill-described.so describes component `bad-default` badly: the name of parameter `Size` is not lower-case words joined by `-`
            fix: ask the author of the component to fix its `Info`
          rejected: DIR/ill-described.so describes component `bad-default` badly: the default of `Size` is 0, expected a whole number of at least 1
            fix: ask the author of the component to fix its `Info`
          Size=0 (a whole number of at least 1): how large it is
        twice (flow-control, one child): The first of this name.
        twice (flow-control, one child)
          rejected: DIR/ill-described.so describes component `twice` badly: the plugin has an earlier component of this name
            fix: ask the author of the component to fix its `Info`
        warning: component `twice` has no description
      no-entry.so: rejected: it has a stamp and no function `sched_plugin_entry_v1`
        fix: build it with `sched_core::export_components!`
      not-a-plugin.so: rejected: it is a library without the symbol `SCHED_PLUGIN_STAMP`, expected a plugin
        fix: build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`), or take it out of the folder of plugins
      other-abi.so: rejected: it was built for ABI 2, this host has ABI 1
        fix: update this host, or build the plugin against an older sched-core
      panics-in-build.so: panics-in-build 0.1.0, interface 1.1
        panics-in-build (flow-control, one child): Its constructor panics.
        refuses-in-build (flow-control, one child): Its constructor wants low <= high.
          low=1 tasks (a whole number from 0 to 100): the lower limit
          high=2.0 (a number): the upper limit
      panics-in-manifest.so: rejected: its manifest panicked: no manifest today
        fix: ask its author, or update this host if the plugin is newer
      unresolved.so: rejected: the system's loader refuses it: undefined symbol: sched_no_such_function
        fix: install what it needs, or link it into the plugin

    6 components from 5 plugins; 9 files rejected
    "#);
    assert!(registry.component("lifo").unwrap().plugin().path.as_ref().unwrap().ends_with("a-lifo.so"));
}

// Longer than 60 lines because of its golden text.
#[test]
fn machines_read_the_same_list() {
    let folder = fixture_folder(&["other-abi", "panics-in-build"]);
    symlink(fixtures::plugin("other-abi"), folder.path().join("same.so")).unwrap();
    let registry = load(folder.path());
    insta::assert_snapshot!(listing(&Args::new(false, true), &registry, folder.path()), @r#"
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
            "fix": "update this host, or build the plugin against an older sched-core"
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
                "hides": [],
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
                "hides": [],
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
      ],
      "builtin": []
    }
    "#);
}

// Longer than 60 lines because of its golden text.
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
    insta::assert_snapshot!(listing(&Args::new(true, false), &registry, prefix.path()), @"
    DIR/bin/plugins (beside the executable): there is no such folder

    DIR/bin (the executable's folder)
      a.so: ill-described 0.1.0, interface 1.0
        Not_Kebab (flow-control, one child): Its name is not as names are.
          rejected: DIR/bin/a.so describes component `Not_Kebab` badly: its name is not lower-case words joined by `-`
            fix: ask the author of the component to fix its `Info`
          stores no tasks, wants 2 tasks in a queue below
        bad-default (flow-control, one child): Its default is out of range.
          rejected: DIR/bin/a.so describes component `bad-default` badly: the name of parameter `Size` is not lower-case words joined by `-`
            fix: ask the author of the component to fix its `Info`
          rejected: DIR/bin/a.so describes component `bad-default` badly: the default of `Size` is 0, expected a whole number of at least 1
            fix: ask the author of the component to fix its `Info`
          stores no tasks, wants 2 tasks in a queue below
          Size=0 (a whole number of at least 1): how large it is
        twice (flow-control, one child): The first of this name.
          stores no tasks, wants 2 tasks in a queue below
        twice (flow-control, one child)
          rejected: DIR/bin/a.so describes component `twice` badly: the plugin has an earlier component of this name
            fix: ask the author of the component to fix its `Info`
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
        talkative (flow-control, one child): Writes to the log all the time.
          stores tasks without limit, wants 2 tasks in a queue below
        verbose (flow-control, one child): Writes a line for each task.
          stores tasks without limit, wants 2 tasks in a queue below
        sticks (flow-control, one child): Does not come back from a method.
          stores tasks without limit, hears of the tasks that workers below execute, wants 2 tasks in a queue below
          in=\"\" (a text): the method that does not come back
        lies-of-storage (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, may refuse a task, wants 2 tasks in a queue below
        lies-of-bounds (flow-control, one child): Is a queue that does not do what it declares.
          stores tasks without limit, wants 2 tasks in a queue below
        lies-of-refusals (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, wants 2 tasks in a queue below
        lies-of-pushes (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, may refuse a task that its children refuse, wants 2 tasks in a queue below
        lies-of-pulls (flow-control, one child): Is a queue that does not do what it declares.
          stores tasks without limit, wants 2 tasks in a queue below
        lies-of-emptiness (flow-control, one child): Is a queue that does not do what it declares.
          stores tasks without limit, wants 2 tasks in a queue below
        lies-of-ends (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, may refuse a task that its children refuse, wants 2 tasks in a queue below
        lies-of-pumping (flow-control, one child): Is a queue that does not do what it declares.
          stores tasks without limit, lets them go only when it is pulled, wants 2 tasks in a queue below
        lies-of-waking (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, may refuse a task that its children refuse, leaves tasks to be pulled by its workers, wants 2 tasks in a queue below
        lies-of-sorting (special-purpose, one child): Passes tasks on, and does not do what it declares.
          stores no tasks, may refuse a task, has tasks pushed as they arrive and when it is pulled, wants 2 tasks in a queue below
      e.so: not a plugin: it is a library without the symbol `SCHED_PLUGIN_STAMP`, expected a plugin

    DIR/lib/sched/plugins (installed): there is no such folder

    26 components from 3 plugins
    ");
}

#[test]
fn files_that_are_no_libraries_are_distinguished() {
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
        fix: see that it is there and that this user may read it, or take it out of the folder
      empty.so: rejected: it is empty, expected a shared library (ELF)
        fix: take it out of the folder of plugins
      flipped-stamp.so: rejected: its `SCHED_PLUGIN_STAMP` is not a stamp of sched-core
        fix: build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`)
      folder.so: rejected: it is a directory, expected a file
        fix: take it out of the folder of plugins
      forty-bytes.so: rejected: it has 40 bytes, and its headers speak of 64
        fix: copy it again, whole
      no-unwind.so: rejected: it was built with panic = "abort", so its first panic would end this process
        fix: remove `panic = "abort"` from the profile that builds it
      other-machine.so: rejected: it was built for aarch64, this host runs on x86_64
        fix: build it for this host's target
      other-version.so: rejected: its headers make no sense: its class, byte order or version is unknown
        fix: build it again, or copy it again
      other-width.so: rejected: it was built for a 32-bit machine, this host runs on x86_64
        fix: build it for this host's target
      pipe.so: rejected: it is a pipe, expected a file
        fix: take it out of the folder of plugins
      program.so: rejected: it is an ELF file of another type, expected a shared library (ELF)
        fix: take it out of the folder of plugins
      ten-bytes.so: rejected: it has 10 bytes, and its headers speak of 64
        fix: copy it again, whole
      text.so: rejected: it is a file that begins with "INPUT(li", expected a shared library (ELF)
        fix: take it out of the folder of plugins

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
