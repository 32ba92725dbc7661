//! What the program says where devices cannot be used: what was found, and what to do.

use sched_test_support::skipped;
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::program::{Ran, command};
use std::path::Path;

/// What a small factorisation with these devices writes to the standard error, on one line.
fn run(driver: &Path, settings: (&str, &str), options: &[&str]) -> String {
    let folder = driver.parent().expect("it is in a folder").to_owned();
    let mut command = command(&["run", "cholesky", "-n", "3", "-b", "32", "-w", "1", "--plugin-dir"]);
    command.arg(folder).args(options).env(settings.0, settings.1).env("NO_COLOR", "1");
    Ran::of(&mut command).said()
}

#[test]
fn what_is_wrong_with_devices_is_said_with_a_fix() {
    let fake = stock_plugin("sched-plugin-driver-fake", Profile::Debug);
    let cases: [(&str, &[&str], &str, &str); 8] = [
        (
            "",
            &["--devices", "fake:3"],
            "there is no device `fake:3`: the driver `fake` has 1",
            "`sched topology` lists",
        ),
        ("", &["--devices", "fke"], "there is no driver `fke`", "did you mean `fake`?"),
        ("devices=0", &["--devices", "fake:0"], "the driver `fake` finds no device", "see that the vendor's driver"),
        ("devices=x", &["--devices", "fake"], "found `devices=x`, expected devices=", "correct the settings"),
        ("memory=100", &["--devices", "fake"], "128 bytes were asked for, and 0 of 100", "end other programs"),
        (
            "devices=0 too-old=1",
            &["--devices", "fake"],
            "old fake device 0: found version 0.0, expected 1.0 or later; update its driver",
            "use another device",
        ),
        // The run goes on with the other one.
        (
            "devices=1 too-old=1",
            &["--devices", "fake"],
            "old fake device 0 is left out: the device cannot do this: found version 0.0, expected 1.0 or later",
            "update its driver",
        ),
        (
            "",
            &["--devices", "fake", "--device-memory", "10000", "--where", "gemm=opencl"],
            "out of device memory: 8192 bytes are needed, and 8192 of 10000 are in use; no other worker can execute",
            "3 tasks that depend on what failed were not run",
        ),
    ];
    for (settings, options, problem, fix) in cases {
        let said = run(&fake, ("SCHED_FAKE_DEVICES", settings), options);
        assert!(said.contains(problem) && said.contains(fix), "{settings} {options:?}: {said}");
    }
}

#[test]
fn a_system_without_the_vendors_library_is_told_what_to_install() {
    let opencl = stock_plugin("sched-plugin-driver-opencl", Profile::Debug);
    // Where the loader of OpenCL is installed, it finds no vendor's library there.
    let said = run(&opencl, ("OCL_ICD_VENDORS", "/nonexistent"), &["--devices", "opencl:0"]);
    let (no_vendor, no_loader) = ("the driver `opencl` finds no device", "libOpenCL.so cannot be loaded");
    assert!(said.contains(no_vendor) || said.contains(no_loader), "{said}");
    assert!(said.contains("installed") || said.contains("install the vendor's library"), "{said}");

    let cuda = stock_plugin("sched-plugin-driver-cuda", Profile::Debug);
    let said = run(&cuda, ("CUDA_VISIBLE_DEVICES", ""), &["--devices", "cuda:0"]);
    if said.contains("finds no device") {
        return skipped("there is an NVIDIA driver here");
    }
    assert!(said.contains("libcuda.so cannot be loaded: there is no NVIDIA driver on this system"), "{said}");
    assert!(said.contains("install the vendor's library, or choose other devices"), "{said}");
}

#[test]
fn the_list_of_plugins_says_where_the_driver_of_nvidia_was_run() {
    let cuda = stock_plugin("sched-plugin-driver-cuda", Profile::Debug);
    let ran = command(&["plugins", "--plugin-dir"]).arg(cuda.parent().expect("it is in a folder")).output();
    let listed = String::from_utf8(ran.expect("it starts").stdout).expect("it is text");
    assert!(listed.contains("note: run on one model of device so far, an H200"), "{listed}");
}
