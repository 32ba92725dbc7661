use super::*;
use sched_test_support::Powercap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

fn problem(powercap: &Powercap) -> String {
    let error = EnergyMeter::open_at(powercap.path()).expect_err("it cannot be used");
    report(&error).replace(&powercap.path().display().to_string(), "ROOT")
}

/// The message and the fix.
fn report(error: &EnergyError) -> String {
    let help = miette::Diagnostic::help(error).expect("there is a fix");
    format!("{error}\n{help}")
}

fn one() -> Powercap {
    Powercap::new(&[("intel-rapl:0", "package-0", 5_000_000)])
}

#[test]
fn one_package_is_read_before_and_after() {
    let powercap = one();
    let meter = EnergyMeter::open_at(powercap.path()).expect("there is a counter");
    let (result, consumption) =
        meter.measure(|| powercap.write("intel-rapl:0", "energy_uj", "7500000\n")).expect("it can be read");
    assert_eq!((result, consumption.joules, consumption.idle), ((), 2.5, 0.0));
}

#[test]
fn packages_are_added_up_without_their_parts_and_without_the_board() {
    let powercap = Powercap::new(&[
        ("intel-rapl:10", "package-1", 900_000),
        ("intel-rapl:0", "package-0", 0),
        ("intel-rapl:0:0", "core", 0),
        ("intel-rapl:1", "psys", 0),
        ("intel-rapl-mmio:0", "package-0", 0),
    ]);
    let meter = EnergyMeter::open_at(powercap.path()).expect("there are counters");
    let names: Vec<&str> = meter.counters().iter().map(|counter| counter.name.as_str()).collect();
    assert_eq!(names, ["package-0", "package-1"]);
    let work = || {
        for zone in ["intel-rapl:0", "intel-rapl:10", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl-mmio:0"] {
            powercap.write(zone, "energy_uj", "1000000");
        }
    };
    assert_eq!(meter.measure(work).expect("they can be read").1.joules, 1.1);
}

#[test]
fn a_counter_that_began_again_is_no_surprise() {
    let powercap = Powercap::new(&[("intel-rapl:0", "package-0", 262_143_328_850 - 250_000)]);
    let meter = EnergyMeter::open_at(powercap.path()).expect("there is a counter");
    let (_, consumption) = meter.measure(|| powercap.write("intel-rapl:0", "energy_uj", "750000")).expect("read");
    assert_eq!(consumption.joules, 1.0);
}

#[test]
fn what_idling_takes_is_taken_off_only_where_that_is_asked_for() {
    let powercap = one();
    let meter = EnergyMeter::open_at(powercap.path()).expect("there is a counter");
    assert_eq!(meter.idle_watts(Duration::from_millis(1)).expect("it can be read"), 0.0);
    for (watts, taken_off) in [(0.0, false), (10.0, true), (-1.0, false), (f64::NAN, false), (f64::INFINITY, false)] {
        powercap.write("intel-rapl:0", "energy_uj", "5000000");
        let meter = meter.clone().above_idle(watts);
        let work = || powercap.write("intel-rapl:0", "energy_uj", "8000000");
        let consumption = meter.measure(work).expect("it can be read").1;
        assert_eq!(consumption.idle > 0.0, taken_off, "{watts} W");
        assert!((consumption.joules + consumption.idle - 3.0).abs() < 1e-9, "{consumption:?}");
    }
}

#[test]
fn no_counters_is_an_error_that_says_why() {
    let powercap = Powercap::new(&[("intel-rapl:0", "psys", 0), ("dtpm", "dtpm", 0)]);
    insta::assert_snapshot!(problem(&powercap), @"
    ROOT: found `psys`, expected at least one folder `intel-rapl:N` with a `name` such as `package-0`
    `modprobe intel_rapl_msr` as root makes the counters, where the processor has them
    ");
    assert!(problem(&Powercap::new(&[])).starts_with("ROOT: found none, expected"));
    let error = EnergyMeter::open_at("/no/such/folder").expect_err("it is not there");
    insta::assert_snapshot!(report(&error), @"
    /no/such/folder: there is no such folder, expected the kernel's energy counters in it
    on the machine itself, `modprobe intel_rapl_msr` as root makes them (for AMD's processors too); into a container, mount its host's /sys/devices/virtual/powercap/intel-rapl under another name, and say so (`--powercap`, SCHED_POWERCAP or `EnergyMeter::open_at`); most virtual machines have none
    ");
}

#[test]
fn a_counter_that_a_container_hides_is_told_with_the_fix() {
    let powercap = one();
    std::os::unix::fs::symlink("/no/such/folder", powercap.path().join("intel-rapl:1")).expect("a link");
    insta::assert_snapshot!(problem(&powercap), @"
    ROOT/intel-rapl:1: found nothing in it, expected `name`, `energy_uj` and `max_energy_range_uj`
    containers hide energy counters: into a container, mount its host's /sys/devices/virtual/powercap/intel-rapl under another name, and say so (`--powercap`, SCHED_POWERCAP or `EnergyMeter::open_at`)
    ");
}

#[test]
fn a_counter_that_this_user_may_not_read_is_told_with_the_fix() {
    // The user who runs this test may be allowed to read everything.
    let path = Path::new("/sys/class/powercap/intel-rapl:0/energy_uj");
    let error = EnergyError::unreadable(path, io::ErrorKind::PermissionDenied.into());
    insta::assert_snapshot!(report(&error), @"
    /sys/class/powercap/intel-rapl:0/energy_uj: this user may not read it
    kernels since 5.10 let only root read energy counters; root can let everybody read them until the next boot: `chmod a+r /sys/class/powercap/*/energy_uj`
    ");
    let powercap = one();
    fs::remove_file(powercap.energy("intel-rapl:0")).expect("it is there");
    assert!(problem(&powercap).starts_with("ROOT/intel-rapl:0/energy_uj: it cannot be read: "));
}

#[test]
fn what_is_no_number_is_told_with_its_file() {
    for file in ["energy_uj", "max_energy_range_uj"] {
        for wrong in ["", "-5", "1.5", "much"] {
            let powercap = one();
            powercap.write("intel-rapl:0", file, wrong);
            let expected =
                format!("ROOT/intel-rapl:0/{file}: found `{wrong}`, expected a whole number of microjoules\n");
            assert!(problem(&powercap).starts_with(&expected), "{}", problem(&powercap));
        }
    }
}

#[test]
fn a_counter_that_goes_while_something_is_measured_is_an_error() {
    let powercap = one();
    let meter = EnergyMeter::open_at(powercap.path()).expect("there is a counter");
    let file = powercap.energy("intel-rapl:0");
    assert!(meter.measure(|| fs::remove_file(&file).expect("it is there")).is_err());
    let done = meter.measure(|| panic!("nothing is done where it cannot be measured"));
    assert!(done.is_err());
}
