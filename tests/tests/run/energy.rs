//! What a run takes in energy.

use super::{SMALL, cholesky, json};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// A folder with the counters of two packages, which stand still.
fn powercap() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, package) in ["package-0", "package-1"].into_iter().enumerate() {
        let zone = folder.path().join(format!("intel-rapl:{number}"));
        fs::create_dir(&zone).unwrap();
        for (file, text) in [("name", package), ("max_energy_range_uj", "262143328850"), ("energy_uj", "123456")] {
            fs::write(zone.join(file), format!("{text}\n")).unwrap();
        }
    }
    folder
}

#[test]
fn energy_is_reported_where_there_are_counters() {
    let folder = powercap();
    let options = [&SMALL[..], &["--energy", "--powercap", folder.path().to_str().unwrap()]].concat();
    let seen = json(&options);
    assert_eq!((&seen["runs"][0]["energy_j"], &seen["runs"][0]["gflop_per_j"]), (&0.0.into(), &Value::Null));
    let ran = cholesky(&options);
    assert!(ran.out.contains("\nenergy    0.0 J (processor packages)\n"), "{ran:?}");
    let compared =
        cholesky(&[&options[..], &["--policy", "tree-eager", "--policy", "tree-ws", "--repeat", "2"]].concat());
    let table: Vec<&str> =
        compared.out.lines().filter(|line| line.starts_with("POLICY") || line.starts_with("tree")).collect();
    assert!(
        table[0].ends_with("  ENERGY (J)") && table[1].ends_with("  0.0") && table[2].ends_with("  0.0"),
        "{compared:?}"
    );
    assert!(json(&SMALL)["runs"][0]["energy_j"].is_null());
}

#[test]
fn energy_without_counters_is_an_error_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("powercap");
    let ran = cholesky(&["--energy", "--tiles", "100000", "--powercap", there.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    for shown in ["there is no such folder", "expected the kernel's energy counters", "modprobe intel_rapl_msr"] {
        assert!(ran.says(shown), "{ran:?}");
    }
    let ran = cholesky(&["--energy", "--context", "a:policy=tree-ws"]);
    assert_eq!(ran.code, 2, "energy is not reported by context: {ran:?}");
}
