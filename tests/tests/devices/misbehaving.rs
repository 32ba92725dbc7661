//! A driver that does not come back from a call, or ends the process, is named.

use super::{On, scale, with_devices};
use sched_core::abi::driver::DriverCall;
use sched_driver_fake::hold_copies;
use sched_host::runtime::RunError;
use sched_host::tree::attendance::{Method, OverdueCall, Post};
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::program::{Ran, command};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// The program goes on: a kernel may take any time.
#[test]
fn a_call_of_a_driver_that_does_not_come_back_gets_a_warning() {
    let mut child = factorisation("hangs-at=1").stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let named = |line: &String| line.contains("driver `fake` of ") && line.contains(": `launch` has not come back for");
    let warned: Vec<String> = lines.filter(named).take(1).collect();
    child.kill().and_then(|()| child.wait()).expect("it has not ended");
    assert!(warned.iter().any(|line| line.contains("(thread `worker-1`)")), "{warned:?}");
}

#[test]
fn a_stall_inside_a_driver_names_it() {
    let runtime = with_devices("fake:36").quiet_period(Duration::from_millis(60)).build().expect("it starts");
    let (scale, x) = (scale(&runtime, On::Devices), runtime.array(vec![1.0; 8]));
    let copies = hold_copies(36);
    runtime.task_with(&scale, 2.0, (&x,)).submit().expect("it is taken");
    let end = runtime.wait_all();
    let Err(RunError::Stalled(report)) = end else { panic!("{end:?}") };
    let in_wait = |call: &&OverdueCall| call.method == Method::OfDriver(DriverCall::Wait);
    let call = report.overdue.iter().find(in_wait).unwrap_or_else(|| panic!("{report}"));
    assert_eq!(call.post, Post::Driver { driver: "fake".to_owned(), plugin: "tests".to_owned() });
    assert!(report.to_string().contains("stuck: driver `fake` of tests: `wait` has not come back for"), "{report}");
    drop(copies);
    runtime.wait_all().expect("it goes on");
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
