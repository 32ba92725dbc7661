//! The search for plugins, and reports about the folders.

use sched_cli::plugins::Args;
use sched_host::plugin::{FolderState, Registry, SearchPath};
use sched_tests::fixtures::{self, Profile, stock_plugin};
use sched_tests::plugin_folder::{LIFO, PLAIN, fixture_folder, folder_of, listing};
use sched_tests::program;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn the_first_folder_has_the_name_and_a_file_is_looked_at_once() {
    let lifo = stock_plugin(LIFO, Profile::Debug);
    let mine = fixture_folder(&["duplicate-name"]);
    let theirs = folder_of([("lifo.so", lifo.clone()), ("lifo-again.so", lifo)]);
    let list = std::env::join_paths([theirs.path(), mine.path(), &mine.path().join("none")]).unwrap();
    let registry = Registry::load(&SearchPath::empty().with_folder(mine.path()).with_list(&list));
    let shown = listing(&PLAIN, &registry, mine.path());
    insta::assert_snapshot!(shown.replace(theirs.path().to_str().unwrap(), "THEIRS"), @r#"
    DIR (--plugin-dir)
      duplicate-name.so: duplicate-name 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
          hides the component of THEIRS/lifo-again.so
        other (flow-control, one child): Refuses every task.

    THEIRS (SCHED_PLUGIN_PATH)
      lifo-again.so: sched-plugin-example-lifo 0.1.0, interface 1.1
        lifo (flow-control, one child): Gives back the task that was pushed last.
          rejected: THEIRS/lifo-again.so offers a component `lifo`, and DIR/duplicate-name.so does so first
            fix: rename one of the two, or put the folder of the one that you want first in the search path
      lifo.so: already seen as THEIRS/lifo-again.so

    DIR/none (SCHED_PLUGIN_PATH): there is no such folder

    2 components from 2 plugins
    "#);
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
        fix: update this host, or build the plugin against an older sched-core
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
fn default_folders_that_are_missing_are_reported_only_on_request() {
    let prefix = tempfile::tempdir().unwrap();
    let registry = Registry::load(&SearchPath::empty().with_defaults_of(prefix.path().join("no/where/sched")));
    insta::assert_snapshot!(listing(&PLAIN, &registry, prefix.path()), @"0 components from 0 plugins");
    insta::assert_snapshot!(listing(&Args::new(true, false), &registry, prefix.path()), @"
    DIR/no/where/plugins (beside the executable): there is no such folder

    DIR/no/where (the executable's folder): there is no such folder

    DIR/no/lib/sched/plugins (installed): there is no such folder

    0 components from 0 plugins
    ");
}

#[test]
fn a_component_that_is_missed_may_be_in_what_was_not_loaded() {
    let folder = fixture_folder(&["other-abi"]);
    let (missing, policy) = (folder.path().join("no-such-folder/of-plugins"), folder.path().join("mine.kdl"));
    fs::write(&policy, "policy \"mine\" { fifo { mine { each \"worker\" { worker } } } }").unwrap();
    let named = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let folders = ["--plugin-dir", &named(folder.path()), "--plugin-dir", &named(&missing)];
    let ran = program::sched(&[&["check", &named(&policy)][..], &folders].concat());
    assert_eq!(ran.code, 1);
    // Paths are whole, however long the lines are.
    let rejected = format!("not loaded: {}/other-abi.so: it was built for ABI 2,", named(folder.path()));
    assert!(ran.says(&rejected), "{ran:?}");
    assert!(ran.says(&format!("{} (there is no such folder)", named(&missing))), "{ran:?}");
}
