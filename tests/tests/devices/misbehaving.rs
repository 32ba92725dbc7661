//! A driver that does not come back from a call, or ends the process, is named.

use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::program::{Ran, command};
use std::process::Command;

/// A small factorisation with a fake device of these settings, which has to execute most tasks.
fn factorisation(settings: &str) -> Command {
    let fake = stock_plugin("sched-plugin-driver-fake", Profile::Debug);
    let folder = fake.parent().expect("it is in a folder");
    let mut command = command(&["--patience", "0.2", "run", "cholesky", "-n", "3", "-b", "32", "-w", "1"]);
    command.args(["--devices", "fake:0", "--where", "gemm=opencl", "--where", "trsm=opencl"]);
    command.arg("--plugin-dir").arg(folder);
    command.env("SCHED_FAKE_DEVICES", settings).env("NO_COLOR", "1");
    command
}

#[test]
fn a_call_of_a_driver_that_does_not_come_back_is_named() {
    let ran = Ran::of(&mut factorisation("hangs-at=2"));
    assert_eq!(ran.code, 1, "{ran:?}");
    let (warned, stalled) = ("driver `fake` of", "stuck: driver `fake` of");
    assert!(ran.says(warned) && ran.says(stalled), "{ran:?}");
    assert!(ran.says("` has not come back for") && ran.says("the run has stalled"), "{ran:?}");
    assert!(!ran.says("given up"), "a driver may take its time: {ran:?}");
}

#[test]
fn a_driver_that_ends_the_process_is_named() {
    let ran = Ran::of(&mut factorisation("exits-at=1"));
    assert!(
        ran.code == 1 && ran.says("there is no result, since a driver ended the process: driver `fake` of"),
        "{ran:?}"
    );
    assert!(ran.says("`launch` (thread `worker-1`)") && ran.says("it returns errors, which fail tasks"), "{ran:?}");

    let ended = factorisation("aborts-at=1").output().expect("it starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code().is_none(), "it ends as crashes do: {said}");
    assert!(said.contains("error: there is no result, since a driver crashed:\n  driver `fake` of"), "{said}");
    assert!(said.contains(": `launch` (thread `worker-1`)\n"), "{said}");
}
