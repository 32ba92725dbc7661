use super::*;
use clap::Parser;
use sched_core::Arch;
use sched_model::{Kind, Measurements, SizeInfo, Variant};
use std::path::Path;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn sched(directory: &Path, words: &[&str]) -> miette::Result<String> {
    let path = directory.to_str().expect("a name that is text");
    let place = ["model", "--models", path, "--machine", "here"];
    let cli = Cli::try_parse_from([&place, words].concat()).into_diagnostic()?;
    let mut out = Vec::new();
    run(&cli.args, || Ok(Registry::compiled_in()), &mut out)?;
    Ok(String::from_utf8(out).expect("output is text").replace(path, "DIR"))
}

/// A directory with a model of three sizes, one of them with an outlier.
fn measured() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut measurements = Measurements::default();
    for (arch, factor) in [(Arch::CPU, 1.0), (Arch::CUDA, 0.05)] {
        let measured = measurements.variants.entry((Variant::of(arch), Quantity::Time)).or_default();
        for (order, count) in [(64u64, 12), (256, 10), (1024, 4)] {
            let size = SizeInfo { footprint: order as u32, bytes: order * order * 8, ..SizeInfo::default() };
            for sample in 0..count {
                let outlier = if sample == 3 { 1000.0 } else { 1.0 };
                assert!(measured.add(&size, factor * outlier * (order as f64).powi(3) / 1e4));
            }
        }
    }
    let store = Store::new(directory.path(), Fingerprint::named("here"));
    store.add("gemm", &Kind::Regression, &measurements).expect("it can be written");
    directory
}

#[test]
fn the_list_says_what_is_calibrated() -> miette::Result<()> {
    let directory = measured();
    insta::assert_snapshot!(sched(directory.path(), &["list"])?, @"
    machine here, models in DIR/here
    MODEL  KIND        SIZES  CALIBRATED  SAMPLES  OF    RUNS ON
    gemm   regression      6           4       52  time  cpu implementation 0, cuda implementation 0
    ");
    let listed: serde_json::Value =
        serde_json::from_str(&sched(directory.path(), &["list", "--json"])?).into_diagnostic()?;
    assert_eq!((&listed["models"][0]["calibrated"], &listed["machine"]), (&4.into(), &"here".into()));
    let none = tempfile::tempdir().into_diagnostic()?;
    assert!(sched(none.path(), &["list"])?.contains("none yet"));
    std::fs::create_dir(none.path().join("elsewhere")).into_diagnostic()?;
    assert!(sched(none.path(), &["list"])?.ends_with("models of other machines (--machine): elsewhere\n"));
    Ok(())
}

#[test]
fn every_size_is_shown_with_its_outliers() -> miette::Result<()> {
    let directory = measured();
    insta::assert_snapshot!(sched(directory.path(), &["show", "gemm"])?, @"
    gemm (regression), machine here

    cpu implementation 0, time
    regression 4.419e-6 · bytes^1.500, 26 samples
    FOOTPRINT     SIZE  SAMPLES  ESTIMATE         MIDDLE HALF  OUTLIERS
    00000040   32.8 kB       12   26.2 µs  26.2 µs to 26.2 µs         1
    00000100    524 kB       10   1.68 ms  1.68 ms to 1.68 ms         1
    00000400   8.39 MB        4    107 ms    107 ms to 107 ms         1  needs 6

    cuda implementation 0, time
    regression 2.210e-7 · bytes^1.500, 26 samples
    FOOTPRINT     SIZE  SAMPLES  ESTIMATE         MIDDLE HALF  OUTLIERS
    00000040   32.8 kB       12   1.31 µs  1.31 µs to 1.31 µs         1
    00000100    524 kB       10   83.9 µs  83.9 µs to 83.9 µs         1
    00000400   8.39 MB        4   5.37 ms  5.37 ms to 5.37 ms         1  needs 6
    ");
    let shown: serde_json::Value =
        serde_json::from_str(&sched(directory.path(), &["show", "gemm", "--json"])?).into_diagnostic()?;
    assert_eq!(shown["variants"][1]["arch"], "cuda");
    assert_eq!(shown["variants"][0]["entries"][0]["samples"], 12);
    Ok(())
}

#[test]
fn energy_stands_beside_time() -> miette::Result<()> {
    let directory = tempfile::tempdir().into_diagnostic()?;
    let mut measurements = Measurements::default();
    let size = SizeInfo { footprint: 64, bytes: 32_768, ..SizeInfo::default() };
    for (quantity, sample) in [(Quantity::Time, 26.2), (Quantity::Energy, 0.0015)] {
        let measured = measurements.variants.entry((Variant::of(Arch::CPU), quantity)).or_default();
        assert!(measured.add_equal(&size, sample, 12));
    }
    Store::new(directory.path(), Fingerprint::named("here")).add("gemm", &Kind::History, &measurements)?;
    insta::assert_snapshot!(sched(directory.path(), &["list"])?, @"
    machine here, models in DIR/here
    MODEL  KIND     SIZES  CALIBRATED  SAMPLES  OF            RUNS ON
    gemm   history      2           2       24  time, energy  cpu implementation 0
    ");
    insta::assert_snapshot!(sched(directory.path(), &["show", "gemm"])?, @"
    gemm (history), machine here

    cpu implementation 0, time
    FOOTPRINT     SIZE  SAMPLES  ESTIMATE         MIDDLE HALF  OUTLIERS
    00000040   32.8 kB       12   26.2 µs  26.2 µs to 26.2 µs         0

    cpu implementation 0, energy
    FOOTPRINT     SIZE  SAMPLES  ESTIMATE         MIDDLE HALF  OUTLIERS
    00000040   32.8 kB       12   1.50 mJ  1.50 mJ to 1.50 mJ         0
    ");
    let json = |words: &[&str]| -> miette::Result<serde_json::Value> {
        serde_json::from_str(&sched(directory.path(), words)?).into_diagnostic()
    };
    assert_eq!(json(&["list", "--json"])?["models"][0]["quantities"], serde_json::json!(["time", "energy"]));
    let shown = &json(&["show", "gemm", "--json"])?["variants"][1];
    assert_eq!((&shown["quantity"], &shown["unit"]), (&"energy".into(), &"J".into()));
    let picture = sched(directory.path(), &["plot", "gemm", "--energy"])?;
    assert!(picture.contains(">energy</text>") && picture.contains(" mJ</text>"), "{picture}");
    Ok(())
}

#[test]
fn a_model_is_drawn() -> miette::Result<()> {
    let directory = measured();
    assert!(sched(directory.path(), &["plot", "gemm"])?.starts_with("<svg "));
    let file = directory.path().join("gemm.svg");
    let path = file.to_str().expect("a name that is text");
    assert_eq!(sched(directory.path(), &["plot", "gemm", "-o", path])?, "");
    assert!(std::fs::read_to_string(file).into_diagnostic()?.ends_with("</svg>\n"));
    let error = sched(directory.path(), &["plot", "gemm", "--energy"]).expect_err("only times were measured");
    assert_eq!(error.to_string(), "no energy of `gemm` was measured");
    Ok(())
}

#[test]
fn a_wrong_name_is_answered_with_a_near_one() {
    let directory = measured();
    for words in [["show", "gem"], ["plot", "gem"], ["reset", "gem"]] {
        let error = sched(directory.path(), &words).expect_err("there is no such model");
        assert!(error.to_string().ends_with("; did you mean `gemm`?"), "{error}");
    }
    assert!(sched(directory.path(), &["show", "../gemm"]).is_err());
}

#[test]
fn what_is_reset_is_gone() -> miette::Result<()> {
    let directory = measured();
    assert_eq!(sched(directory.path(), &["reset", "gemm"])?, "forgot gemm\n");
    assert!(sched(directory.path(), &["list"])?.contains("none yet"));
    assert_eq!(sched(directory.path(), &["reset", "--all"])?, "there was nothing to delete\n");
    assert!(sched(directory.path(), &["reset"]).is_err(), "a name, or --all");
    Ok(())
}

#[test]
fn models_go_to_starpu_and_come_back() -> miette::Result<()> {
    let directory = measured();
    let sampling = directory.path().join("sampling");
    let path = sampling.to_str().expect("a name that is text");
    let written = sched(directory.path(), &["export", path, "--host", "node7", "--devices", "2"])?;
    assert_eq!(written, "DIR/sampling/codelets/45/gemm.node7\n");
    let error = sched(directory.path(), &["export", path, "--host", "node7"]).expect_err("it is there");
    assert!(error.to_string().ends_with("gemm.node7: the file exists, and nothing was written"), "{error}");
    let before = sched(directory.path(), &["show", "gemm"])?;
    let error = sched(directory.path(), &["import", path, "--host", "node7"]).expect_err("it is there");
    assert_eq!(error.to_string(), "there are models of these names: gemm");
    let imported = sched(directory.path(), &["import", path, "--host", "node7", "--replace"])?;
    insta::assert_snapshot!(imported, @"
    gemm: regression, 52 samples
    1 model is in DIR/here now
    ");
    let after = sched(directory.path(), &["show", "gemm"])?;
    assert_eq!(after.lines().count(), before.lines().count());
    assert!(after.contains("107 ms"), "{after}");
    let error = sched(directory.path(), &["import", path, "trsm", "--host", "node7"]).expect_err("only gemm");
    assert!(error.to_string().ends_with("machine `node7` has no model `trsm`"), "{error}");
    let error = sched(directory.path(), &["import", path, "gem", "--host", "node7"]).expect_err("a slip");
    assert!(error.help().is_some_and(|help| help.to_string().starts_with("did you mean `gemm`?")), "{error:?}");
    let error = sched(directory.path(), &["export", path, "--energy"]).expect_err("only times");
    assert_eq!(error.to_string(), "no energy of these models was measured: gemm");
    let none = tempfile::tempdir().into_diagnostic()?;
    let error = sched(none.path(), &["export", path]).expect_err("there is nothing");
    assert!(error.to_string().starts_with("there are no models in "), "{error}");
    Ok(())
}

#[test]
fn what_transfers_cost_on_a_platform_is_handed_on_to_starpu() -> miette::Result<()> {
    let directory = tempfile::tempdir().into_diagnostic()?;
    let sampling = directory.path().join("sampling");
    let path = sampling.to_str().expect("a name that is text");
    let export = ["export", path, "--host", "node7", "--bus", "cpu9-gpu3"];
    let files = sched(directory.path(), &export)?;
    insta::assert_snapshot!(files, @"
    DIR/sampling/bus/node7.bandwidth
    DIR/sampling/bus/node7.latency
    DIR/sampling/bus/node7.config
    DIR/sampling/bus/node7.affinity
    ");
    let read = sched_model::starpu::Sampling::load(&sampling, "node7")?;
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    assert_eq!(read.bus, Some(sched_sim::platform::find("cpu9-gpu3")?.starpu_bus()));
    let error = sched(directory.path(), &export).expect_err("they are there already");
    assert!(error.to_string().ends_with("node7.bandwidth: the file exists, and nothing was written"), "{error}");
    sched(directory.path(), &[&export[..], &["--force"]].concat())?;
    let error = sched(directory.path(), &["export", path, "--bus", "cpu9-gpu4"]).expect_err("there is none");
    assert!(format!("{error:?}").contains("did you mean `cpu9-gpu3`?"), "{error:?}");
    Ok(())
}

#[test]
fn what_transfers_take_is_shown_and_measured_for_this_machine_alone() -> miette::Result<()> {
    let directory = tempfile::tempdir().into_diagnostic()?;
    let error = sched(directory.path(), &["bus"]).expect_err("nothing is stored of that machine");
    assert!(error.to_string().starts_with("nothing is stored in "), "{error}");
    let error = sched(directory.path(), &["bus", "--measure"]).expect_err("it is not here");
    assert_eq!(error.to_string(), "only this machine can be measured, not `here`");
    let links = |value: f64| sched_model::NodeMatrix::new(2, vec![0.0, value, 2.0 * value, 0.0]);
    let bus = sched_model::Bus { bandwidth: links(5e3), latency: links(0.5), ..Default::default() };
    Store::new(directory.path(), Fingerprint::named("here")).keep_bus(&bus)?;
    insta::assert_snapshot!(sched(directory.path(), &["bus"])?, @"
    machine here, 2 memory nodes, stored in DIR/here/memory-nodes.bus
    FROM  TO  LATENCY  BANDWIDTH  A MEGABYTE
       0   1  0.50 µs     5 GB/s    200.5 µs
       1   0  1.00 µs    10 GB/s    101.0 µs
    ");
    let shown: serde_json::Value =
        serde_json::from_str(&sched(directory.path(), &["bus", "--json"])?).into_diagnostic()?;
    assert_eq!((&shown["memory_nodes"], &shown["links"][1]["bandwidth_mb_s"]), (&2.into(), &1e4.into()));
    let shown: serde_json::Value =
        serde_json::from_str(&sched(directory.path(), &["bus", "--memory-nodes", "1", "--json"])?).into_diagnostic()?;
    assert_eq!((&shown["memory_nodes"], &shown["file"]), (&1.into(), &serde_json::Value::Null));
    Ok(())
}

#[test]
fn a_damaged_file_is_left_out_of_an_import_which_fails() -> miette::Result<()> {
    let (directory, sampling) = (measured(), tempfile::tempdir().into_diagnostic()?);
    let from = sampling.path().to_str().expect("text");
    sched(directory.path(), &["export", from, "--host", "node7"])?;
    std::fs::write(sampling.path().join("codelets/45/bad.node7"), "no model").into_diagnostic()?;
    let import = ["import", from, "--host", "node7", "--replace"];
    let text = sched(directory.path(), &import)?;
    assert!(text.starts_with("left out: ") && text.contains("bad.node7") && text.contains("\n1 model is in"), "{text}");
    let error = sched(directory.path(), &[&import[..], &["--json"]].concat()).expect_err("one is damaged");
    assert!(error.to_string().contains("bad.node7"), "{error}");
    // One that is asked for by name is there, but for what is wrong about it.
    let named = |names: &[&str]| {
        let arguments = [&["import", from], names, &["--host", "node7", "--replace"]].concat();
        let error = sched(directory.path(), &arguments).expect_err("one is damaged").to_string();
        error.replace(from, "FROM")
    };
    insta::assert_snapshot!(named(&["bad"]), @"FROM/codelets/45/bad.node7:1:1: found `no`, expected the version of the format, 45");
    std::fs::write(sampling.path().join("codelets/45/old.node7"), "44 1").into_diagnostic()?;
    insta::assert_snapshot!(named(&["bad", "gemm", "old"]), @"
    FROM/codelets/45/bad.node7:1:1: found `no`, expected the version of the format, 45
    FROM/codelets/45/old.node7:1:1: found version 44 of the format, expected 45
    ");
    assert!(named(&["gemm", "other"]).ends_with("machine `node7` has no model `other`"));
    Ok(())
}

#[test]
fn a_regression_stays_one_when_means_are_added_to_it() -> miette::Result<()> {
    let (directory, sampling) = (measured(), tempfile::tempdir().into_diagnostic()?);
    let codelets = sampling.path().join("codelets/45");
    std::fs::create_dir_all(&codelets).into_diagnostic()?;
    let means = "45 1 1 0 0 1 1 1 0 0 0 0 nan nan 0 0 0 nan nan nan 0\n00000007\t64\t0\t2.0\t0\t20.0\t40.0\t10\n";
    std::fs::write(codelets.join("gemm.node7"), means).into_diagnostic()?;
    let from = sampling.path().to_str().expect("text");
    let merged = sched(directory.path(), &["import", from, "--host", "node7", "--merge"])?;
    assert!(merged.starts_with("gemm: regression, 10 samples\n"), "{merged}");
    assert!(sched(directory.path(), &["show", "gemm"])?.starts_with("gemm (regression), "));
    Ok(())
}

#[test]
fn a_model_whose_name_is_no_file_here_is_left_out_of_an_import() -> miette::Result<()> {
    let (directory, sampling) = (measured(), tempfile::tempdir().into_diagnostic()?);
    let from = sampling.path().to_str().expect("text");
    sched(directory.path(), &["export", from, "--host", "node7"])?;
    let codelet = |name: &str| sampling.path().join("codelets/45").join(format!("{name}.node7"));
    for other in ["gemm (double)", "trsm"] {
        std::fs::copy(codelet("gemm"), codelet(other)).into_diagnostic()?;
    }
    let text = sched(directory.path(), &["import", from, "--host", "node7", "--replace"])?;
    assert!(text.starts_with("left out: a model cannot be named `gemm (double)`: "), "{text}");
    assert!(text.contains("\ntrsm: ") && text.contains("\n2 models are in "), "{text}");
    Ok(())
}

#[test]
fn an_export_of_all_models_leaves_a_damaged_one_out() -> miette::Result<()> {
    let directory = measured();
    let models = directory.path().join("here");
    let files = || std::fs::read_dir(&models).into_diagnostic().map(|files| files.flatten().map(|file| file.path()));
    let good = files()?.find(|path| path.to_string_lossy().contains("gemm")).expect("it was measured");
    let bad = good.with_file_name(good.file_name().expect("a name").to_string_lossy().replace("gemm", "bad"));
    std::fs::write(&bad, "no model").into_diagnostic()?;
    let target = tempfile::tempdir().into_diagnostic()?;
    let to = target.path().to_str().expect("text");
    let exported = sched(directory.path(), &["export", to, "--host", "there"])?;
    assert!(exported.ends_with("codelets/45/gemm.there\n") && exported.lines().count() == 1, "{exported}");
    // One that is asked for by name has to be sound.
    let error = sched(directory.path(), &["export", to, "bad", "--host", "there"]).expect_err("it is damaged");
    assert!(format!("{error:?}").contains("bad"), "{error:?}");
    Ok(())
}

#[test]
fn a_model_whose_name_has_a_dot_goes_to_starpu_and_comes_back() -> miette::Result<()> {
    let (directory, sampling) = (measured(), tempfile::tempdir().into_diagnostic()?);
    let from = sampling.path().to_str().expect("text");
    sched(directory.path(), &["export", from, "--host", "node7"])?;
    let codelet = |name: &str| sampling.path().join("codelets/45").join(name);
    std::fs::rename(codelet("gemm.node7"), codelet("gemm.double")).into_diagnostic()?;
    let imported = sched(directory.path(), &["import", from, "gemm.double", "--host", "node7"])?;
    insta::assert_snapshot!(imported, @"
    gemm.double: regression, 52 samples
    1 model is in DIR/here now
    ");
    let to = tempfile::tempdir().into_diagnostic()?;
    let exported =
        sched(directory.path(), &["export", to.path().to_str().expect("text"), "gemm.double", "--host", "node7"])?;
    assert!(exported.ends_with("codelets/45/gemm.double\n"), "{exported}");
    // Nothing says that it is no model `gemm` of a machine `double`.
    let error = sched(directory.path(), &["import", from, "--host", "node7"]).expect_err("nothing is of this machine");
    assert!(error.to_string().ends_with("it has files of double"), "{error}");
    let error = sched(directory.path(), &["import", from, "../45/gemm.double", "--host", "node7"]);
    assert!(error.is_err(), "{error:?}");
    Ok(())
}
