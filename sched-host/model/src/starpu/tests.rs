use super::*;
use crate::{Bus, BusConfig, DataShape, NodeMatrix, task_footprint};
use proptest::prelude::*;
use sched_core::Arch;
use sched_test_support::reference_data;
use std::path::{Path, PathBuf};

fn square(n: u32) -> DataShape {
    DataShape::Matrix { nx: n, ny: n }
}

#[test]
fn footprints_are_starpus() {
    assert_eq!(task_footprint(&[square(960); 1]), 0x617e_5fe6);
    assert_eq!(task_footprint(&[square(960); 2]), 0xff82_dda0);
    assert_eq!(task_footprint(&[square(960); 3]), 0x24c8_4a50);
    assert_eq!(task_footprint(&[square(640); 3]), 0xf0ac_7beb);
    assert_eq!(task_footprint(&[square(320); 3]), 0xd464_31bb);
}

const SMALL: &str = "\
##################
# Performance Model Version
45

# COMBs
1
# COMB_0
1
0
0
1
# implementations
2
# entries
2
1.0e+00 2.0e+00 3.0e+00 4.0e+00 nan -nan 7 10 1000
nan\tnan\tnan
# not multiple-regression-base
0
# hash size flops mean dev sum sum2 n
24c84a50\t11059200       \t1.769472e+09\t8.778020e+04\t9.598441e+02\t2.889724e+08\t2.536909e+13\t3292
# seven columns, from a hand
0000ff01\t4096\t5.0e+1\t2.5\t6.0e+2\t3.0075e+4\t12
0
0 0 0 0 nan nan 0 0 0
1.5 0.5 inf
3 0.25 1 2
";

#[test]
fn both_kinds_of_history_lines_are_read() {
    let file = CodeletFile::parse(SMALL).expect("it is a model");
    assert_eq!(file.history_mean(Arch::CPU, 0, 1, 0, 0x24c8_4a50), Some(87780.2));
    let old = file.combs[0].implementations[0].entry(0xff01).expect("the second line");
    assert_eq!((old.size, old.mean, old.sum, old.samples), (4096, 50.0, 600.0, 12));
    assert!(old.flops.is_nan());
    let second = &file.combs[0].implementations[1];
    assert_eq!(second.nonlinear, [1.5, 0.5, f64::INFINITY]);
    assert_eq!(second.multiple, [0.25, 1.0, 2.0]);
    assert_eq!(file.history_mean(Arch::CPU, 0, 2, 0, 0x24c8_4a50), None, "nothing ran on two cores");
    assert_eq!(file.history_mean(Arch::CUDA, 0, 1, 0, 0x24c8_4a50), None);
}

#[test]
fn what_is_written_reads_the_same() {
    let file = CodeletFile::parse(SMALL).expect("it is a model");
    let text = file.to_text();
    let again = CodeletFile::parse(&text).expect("what was written is a model");
    // NaN is not equal to itself.
    assert_eq!(format!("{again:?}"), format!("{file:?}"));
    assert_eq!(again.to_text(), text);
}

#[test]
fn every_bad_history_line_is_reported_with_its_place() {
    let text = SMALL.replace("8.778020e+04", "-1").replace("4096", "big").replace("24c84a50", "xyz");
    let flaws = CodeletFile::parse(&text).expect_err("three fields are wrong");
    let reported: Vec<String> =
        flaws.iter().map(|flaw| format!("{}:{}: {}", flaw.line, flaw.column, flaw.message)).collect();
    insta::assert_snapshot!(reported.join("\n"), @r"
    21:1: found `xyz`, expected a footprint of 8 hexadecimal digits
    21:34: found `-1`, expected a mean from 0, and below 1.8e16
    23:10: found `big`, expected a size in bytes
    ");
}

/// What is wrong with [`SMALL`] after `changes`, a line for each error.
fn wrong(changes: &[(&str, &str)]) -> String {
    let text = changes.iter().fold(SMALL.to_owned(), |text, (from, to)| text.replace(from, to));
    let flaws = CodeletFile::parse(&text).expect_err("it is changed for the worse");
    let shown = flaws.iter().map(|flaw| format!("{}:{}: {}", flaw.line, flaw.column, flaw.message));
    shown.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_no_time_can_be_is_an_error_with_its_place() {
    insta::assert_snapshot!(wrong(&[("8.778020e+04", "nan"), ("2.5\t6.0e+2", "inf\t-nan")]), @"
    21:39: found `nan`, expected a mean from 0, and below 1.8e16
    23:22: found `inf`, expected a standard deviation from 0
    23:26: found `-nan`, expected a sum from 0
    ");
    insta::assert_snapshot!(wrong(&[("8.778020e+04", "1e300"), ("1.769472e+09", "-1")]), @"
    21:26: found `-1`, expected a number of operations from 0
    21:29: found `1e300`, expected a mean from 0, and below 1.8e16
    ");
    insta::assert_snapshot!(wrong(&[("8.778020e+04", "0")]), @"21:39: found `0`, expected the mean sum / n, which is 8.778019e4; an edited mean counts where the sum is 0");
    insta::assert_snapshot!(wrong(&[("8.778020e+04", "4.4e4"), ("6.0e+2", "7.0e+2")]), @"
    21:39: found `4.4e4`, expected the mean sum / n, which is 8.778019e4; an edited mean counts where the sum is 0
    23:15: found `5.0e+1`, expected the mean sum / n, which is 5.833333e1; an edited mean counts where the sum is 0
    ");
}

#[test]
fn a_footprint_and_a_combination_of_devices_are_listed_once() {
    insta::assert_snapshot!(wrong(&[("0000ff01", "24c84a50")]), @"23:1: found footprint 24c84a50 a second time, expected one line for each footprint: remove one of them");
    let text = "45 2 1 0 0 1 0 1 0 0 1 0";
    let flaws = CodeletFile::parse(text).expect_err("the cores are there twice");
    assert_eq!((flaws.len(), flaws[0].column), (1, 16), "{flaws:?}");
    assert!(CodeletFile::parse("45 2 1 1 0 1 0 1 1 1 1 0").is_ok(), "two devices");
}

#[test]
fn lines_without_samples_may_have_no_numbers_and_nothing_is_estimated_by_zeros() {
    let text = SMALL.replace("5.0e+1\t2.5\t6.0e+2\t3.0075e+4\t12", "-nan\tnan\tnan\tnan\t0");
    let file = CodeletFile::parse(&text).expect("StarPU may write it");
    assert_eq!(file.history_mean(Arch::CPU, 0, 1, 0, 0xff01), None);
    let text = SMALL.replace("5.0e+1\t2.5\t6.0e+2\t3.0075e+4\t12", "0\tnan\t0\t0\t12");
    let file = CodeletFile::parse(&text).expect("a counter may not tick");
    assert_eq!(file.history_mean(Arch::CPU, 0, 1, 0, 0xff01), None);
    assert_eq!(file.import(crate::Quantity::Energy).measurements.samples(), 3292);
    // An edited mean counts where there is no sum.
    let file = CodeletFile::parse(&SMALL.replace("6.0e+2", "0")).expect("some edit it");
    assert_eq!(file.history_mean(Arch::CPU, 0, 1, 0, 0xff01), Some(50.0));
    assert_eq!(file.import(crate::Quantity::Time).measurements.samples(), 3304);
}

#[test]
fn other_versions_and_cut_off_files_are_refused() {
    let reported = |text: &str| {
        let flaws = CodeletFile::parse(text).expect_err("it is no model");
        flaws.iter().map(|flaw| format!("{}:{}: {}", flaw.line, flaw.column, flaw.message)).collect::<String>()
    };
    assert_eq!(reported("# nothing\n\n"), "3:1: the file is empty, expected a performance model");
    assert_eq!(reported("# v\n44\n1\n"), "2:1: found version 44 of the format, expected 45");
    assert_eq!(reported("45 1 1 0 0"), "1:11: the file ends, expected a number of cores");
    for end in 0..SMALL.len() {
        // Without its line end, the last coefficient is still complete.
        let parsed = CodeletFile::parse(&SMALL[..end]);
        assert_eq!(parsed.is_ok(), end >= SMALL.len() - 1, "cut off at {end}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[0-9a-f#\\-\\.\n\t nan\\PC]{0,400}") {
        let _ = CodeletFile::parse(&text);
        let _ = NodeMatrix::parse(&text);
        let _ = BusConfig::parse(&text);
    }

    #[test]
    fn a_damaged_model_never_panics(at in 0..SMALL.len(), with in any::<u8>()) {
        let mut bytes = SMALL.as_bytes().to_vec();
        bytes[at] = with;
        let _ = CodeletFile::parse(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn nodes_that_were_not_there_are_left_out() {
    let text = "# to 0\t\tto 1\n0.0\t6030.9\tnan\tnan\t\n6.5e+03\t0.0\tnan\tnan\nnan\tnan\tnan\tnan\n";
    let matrix = NodeMatrix::parse(text).expect("it is a matrix");
    assert_eq!(matrix.nodes(), 2);
    assert_eq!((matrix.get(0, 1), matrix.get(1, 0), matrix.get(0, 2)), (Some(6030.9), Some(6500.0), None));
    assert_eq!(NodeMatrix::parse(&matrix.to_text()), Ok(matrix));
    let flaws = NodeMatrix::parse("0 -1\nfast 0\n").expect_err("two values are wrong");
    assert_eq!(flaws.len(), 2);
    assert_eq!((flaws[1].line, flaws[1].column), (2, 1));
}

#[test]
fn a_matrix_has_as_many_rows_as_columns() {
    let wrong = |text: &str| {
        let flaws = NodeMatrix::parse(text).expect_err("it is cut");
        let shown = flaws.iter().map(|flaw| format!("{}:{}: {}", flaw.line, flaw.column, flaw.message));
        shown.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(wrong("# to 0\tto 1\tto 2\n0 10 11\n"), @"3:1: the file ends after 1 row, expected 3: one for each memory node; the file may be cut");
    insta::assert_snapshot!(wrong("0 10 nan\n12\n11 9 0\n"), @"2:1: found 1 column, expected 3: one for each memory node; the file may be cut");
}

#[test]
fn the_counts_of_devices_are_found_by_their_comments() {
    let old =
        "# Current configuration\n12 # Number of CPUs\n3 # Number of CUDA devices\n2 # Number of OpenCL devices\n";
    let config = BusConfig::parse(old).expect("it is a configuration");
    assert_eq!((config.cpus, config.cuda, config.opencl), (12, 3, 2));
    let newer = "8 # Number of CPUs\n2 # Number of NUMA nodes\n1 # Number of CUDA devices\n";
    let config = BusConfig::parse(newer).expect("it is a configuration");
    assert_eq!((config.cpus, config.cuda, config.opencl), (8, 1, 0));
}

#[test]
fn real_measurements_are_read_whole() {
    let Some(directory) = reference_data("starpu-sampling") else { return };
    for host in ["mirage", "attila"] {
        let sampling = Sampling::load(&directory, host).expect("it has files of this machine");
        assert!(sampling.problems.is_empty(), "{:?}", sampling.problems);
        let names: Vec<_> = std::fs::read_dir(directory.join("codelets/45")).expect("it is there").collect();
        let of_host = names.iter().flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == host));
        assert_eq!(sampling.codelets.len(), of_host.count());
        let bus = sampling.bus.expect("both matrices are there");
        assert_eq!((bus.nodes(), bus.config.cpus, bus.config.cuda), (7, 12, 3));
        assert_eq!(bus.affinity.len(), 6);
        for (symbol, file) in &sampling.codelets {
            let again = CodeletFile::parse(&file.to_text()).unwrap_or_else(|flaws| panic!("{symbol}: {flaws:?}"));
            assert_eq!(format!("{again:?}"), format!("{file:?}"), "{symbol}");
        }
    }
}

#[test]
fn a_gemm_on_mirage_took_88_ms_on_a_core_and_a_tile_travels_in_half_a_ms() {
    let Some(directory) = reference_data("starpu-sampling") else { return };
    let sampling = Sampling::load(&directory, "mirage").expect("it has files of mirage");
    let gemm = &sampling.codelets["chol_model_gemm"];
    let footprint = task_footprint(&[square(960); 3]);
    assert_eq!(gemm.history_mean(Arch::CPU, 0, 1, 0, footprint), Some(87780.2));
    let on_gpus: Vec<_> = (0..3).map(|gpu| gemm.history_mean(Arch::CUDA, gpu, 1, 0, footprint)).collect();
    assert!(on_gpus.iter().all(|mean| mean.is_some_and(|mean| mean < 8000.0)), "{on_gpus:?}");
    let bus = sampling.bus.expect("both matrices are there");
    let travel = bus.transfer(0, 1, 960 * 960 * 4).expect("the link was measured");
    assert!((600.0..700.0).contains(&travel), "{travel} µs");
    assert!(bus.predicted_transfer(0, 1, 960 * 960 * 4, 3).is_some_and(|predicted| predicted > 5.5 * travel));
}

#[test]
fn bus_files_that_are_written_read_the_same() {
    let matrix = |values: [f64; 9]| NodeMatrix::new(3, values.to_vec());
    let config = "4 # Number of CPUs\n1 # Number of CUDA devices\n1 # Number of OpenCL devices\n";
    let bus = Bus {
        bandwidth: matrix([0.0, 6000.0, 5000.0, 6500.0, 0.0, 2500.0, 4000.0, 2400.0, 0.0]),
        latency: matrix([0.0, 10.0, 11.0, 12.5, 0.0, 23.0, 14.0, 24.0, 0.0]),
        config: BusConfig::parse(config).expect("it is a configuration"),
        affinity: vec![vec![0, 1], vec![1, 0]],
    };
    let directory = tempfile::tempdir().expect("a directory");
    let below = directory.path().join("bus");
    assert!(bus.write(&below, "node7").is_err(), "the directory is not there");
    std::fs::create_dir(&below).expect("a directory");
    bus.write(&below, "node7").expect("it can be written");
    let sampling = Sampling::load(directory.path(), "node7").expect("it was just written");
    assert!(sampling.problems.is_empty(), "{:?}", sampling.problems);
    assert_eq!(sampling.bus, Some(bus));
    let affinity = std::fs::read_to_string(below.join("node7.affinity")).expect("it was written");
    assert_eq!(affinity, "# GPU\tNUMA0\tNUMA1\n0\t0\t1\n0\t1\t0\n");
}

#[test]
fn a_machine_without_files_is_an_error_that_names_those_with() {
    let directory = tempfile::tempdir().expect("a directory");
    let codelets = directory.path().join("codelets/45");
    std::fs::create_dir_all(&codelets).expect("a directory");
    std::fs::write(codelets.join("potrf.node7"), SMALL).expect("a file");
    std::fs::write(codelets.join("trsm.node7"), "45 x").expect("a file");
    let error = Sampling::load(directory.path(), "node8").expect_err("nothing of node8");
    assert!(error.to_string().ends_with("neither models nor bus files of machine `node8`; it has files of node7"));
    std::fs::write(codelets.join("trsm.node9.cluster.org"), SMALL).expect("a file");
    let error = Sampling::load(directory.path(), "node8").expect_err("nothing of node8");
    assert!(error.to_string().ends_with("; it has files of node7, node9.cluster.org"), "{error}");
    let sampling = Sampling::load(directory.path(), "node7").expect("one file is good");
    assert_eq!(sampling.codelets.keys().collect::<Vec<_>>(), ["potrf"]);
    assert_eq!(sampling.problems.len(), 1);
    assert!(sampling.problems[0].to_string().contains("trsm.node7:1:4: found `x`"), "{}", sampling.problems[0]);
}

#[test]
fn the_end_of_the_name_of_a_machine_is_not_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let codelets = directory.path().join("codelets/45");
    std::fs::create_dir_all(&codelets).expect("a directory");
    std::fs::write(codelets.join("potrf.node7.cluster.org"), SMALL).expect("a file");
    let sampling = Sampling::load(directory.path(), "node7.cluster.org").expect("it has a file");
    assert_eq!(sampling.codelets.keys().collect::<Vec<_>>(), ["potrf"]);
    let error = Sampling::load(directory.path(), "org").expect_err("nothing of org");
    assert!(error.to_string().ends_with("machine `org`; it has files of node7.cluster.org"), "{error}");
}

#[cfg(unix)]
#[test]
fn models_that_are_no_files_are_problems() {
    let directory = tempfile::tempdir().expect("a directory");
    let codelets = directory.path().join("codelets/45");
    std::fs::create_dir_all(codelets.join("folder.node7")).expect("a directory");
    std::fs::create_dir_all(codelets.join("folder.node8")).expect("a directory");
    std::fs::write(codelets.join("potrf.node7"), SMALL).expect("a file");
    for name in ["loop.node7", "loop.double"] {
        std::os::unix::fs::symlink(codelets.join(name), codelets.join(name)).expect("a link");
    }
    std::os::unix::fs::symlink("/dev/null", codelets.join("null.node7")).expect("a link");
    let names = ["loop.double", "none.double"].map(str::to_owned);
    let sampling = Sampling::load_named(directory.path(), "node7", &names).expect("one file is good");
    assert_eq!(sampling.codelets.keys().collect::<Vec<_>>(), ["potrf"]);
    let problems: Vec<String> = sampling.problems.iter().map(ToString::to_string).collect();
    let starts = ["folder.node7", "loop.node7", "null.node7", "loop.double"];
    assert_eq!(problems.len(), starts.len(), "{problems:?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.contains(&format!("{start}: it cannot be read: ")), "{problem}");
    }
    assert!(problems[2].ends_with("it is a pipe or a device, expected a file"), "{}", problems[2]);
}

/// Names, lines and columns of the places that an error and its parts point at.
fn places(error: &dyn miette::Diagnostic) -> Vec<(String, usize, usize)> {
    let place = |part: &dyn miette::Diagnostic| {
        let label = part.labels().and_then(|mut labels| labels.next()).expect("it points into the file");
        let source = part.source_code().expect("it has the text");
        let contents = source.read_span(label.inner(), 0, 0).expect("the place is in the text");
        let name = Path::new(contents.name().expect("a file")).file_name().expect("a file");
        (name.to_string_lossy().into_owned(), contents.line() + 1, contents.column() + 1)
    };
    std::iter::once(place(error)).chain(error.related().into_iter().flatten().map(place)).collect()
}

#[test]
fn each_error_of_a_file_points_into_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (model, latency) = (directory.path().join("potrf.node7"), directory.path().join("node7.latency"));
    std::fs::write(&model, SMALL.replace("8.778020e+04", "-1").replace("4096", "big")).expect("a file");
    let error = CodeletFile::read(&model).expect_err("two fields are wrong");
    assert_eq!(places(&error), [("potrf.node7".to_owned(), 21, 39), ("potrf.node7".to_owned(), 23, 10)]);
    assert!(error.to_string().ends_with("; there is 1 further error in the file"), "{error}");
    assert_eq!(error.in_full().lines().count(), 2, "{}", error.in_full());
    std::fs::write(&latency, "\u{feff}0 -1\n2 0\n").expect("a file");
    let error = NodeMatrix::read(&latency).expect_err("a latency is negative");
    assert_eq!(places(&error), [("node7.latency".to_owned(), 1, 3)]);
}

#[test]
fn measurements_are_looked_for_where_starpu_does() {
    let env = |name: &str| {
        let value = match name {
            "STARPU_PERF_MODEL_PATH" => "/a:/b",
            "HOME" => "/home/me",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let expected = ["/a", "/b", "/home/me/.starpu/sampling"].map(PathBuf::from);
    assert_eq!(directories(env), expected);
    let path = Sampling::codelet_path(Path::new("/d"), "gemm", "here");
    assert_eq!(path, Path::new("/d/codelets/45/gemm.here"));
    assert_eq!(Sampling::codelet_path(Path::new("/d"), "gemm.mine", "here"), Path::new("/d/codelets/45/gemm.mine"));
    let named = |name: &str| (name == "STARPU_HOSTNAME").then(|| "node7.cluster.org".to_owned());
    assert_eq!(host_name(named), "node7.cluster.org", "the variable has all of it");
    assert_eq!(["node7.cluster.org\n", "node7\n"].map(super::sampling::without_domain), ["node7", "node7"]);
}

mod converted {
    use super::*;
    use crate::{CodeletModel, Kind, Measurements, Model, Quantity, SizeInfo, Variant};
    use sched_core::Estimate;
    use std::time::Duration;

    #[test]
    fn calibration_of_years_is_there_at_once() {
        let Some(directory) = reference_data("starpu-sampling") else { return };
        let sampling = Sampling::load(&directory, "mirage").expect("it has files of mirage");
        let imported = sampling.codelets["chol_model_gemm"].import(Quantity::Time);
        assert_eq!((&imported.kind, imported.skipped), (&Kind::History, 0));
        let model = CodeletModel::new(Model::history("chol_model_gemm"), 10, imported.measurements.clone());
        let size = SizeInfo { footprint: task_footprint(&[square(960); 3]), bytes: 11_059_200, ..SizeInfo::default() };
        let on_a_core = model.estimate(Variant::of(Arch::CPU), &size);
        assert_eq!(on_a_core.known().map(|known| known.as_millis()), Some(87));
        let on_a_gpu = model.estimate(Variant::of(Arch::CUDA), &size).known().expect("it ran there");
        assert!(on_a_gpu < Duration::from_millis(8), "{on_a_gpu:?}");
        // And back: StarPU would read the same means for a core.
        let exported = CodeletFile::export(&Kind::History, &imported.measurements, Quantity::Time, 3);
        let (again, before) = (CodeletFile::parse(&exported.to_text()), &sampling.codelets["chol_model_gemm"]);
        let again = again.expect("what is exported is a model");
        for entry in &before.comb(Arch::CPU, 0, 1).expect("it ran there").implementations[0].history {
            let mean = again.history_mean(Arch::CPU, 0, 1, 0, entry.footprint).expect("it is still there");
            assert!((mean / entry.mean - 1.0).abs() < 1e-4, "{entry:?}: {mean}");
        }
        assert!((0..3).all(|gpu| again.comb(Arch::CUDA, gpu, 1).is_some()));
    }

    #[test]
    fn every_real_model_comes_along() {
        let Some(directory) = reference_data("starpu-sampling") else { return };
        for host in ["mirage", "attila"] {
            for (symbol, file) in Sampling::load(&directory, host).expect("it has files").codelets {
                let imported = file.import(Quantity::Time);
                let lines = file.combs.iter().flat_map(|comb| &comb.implementations).flat_map(|i| &i.history);
                let samples: u64 = lines.filter(|entry| entry.sum > 0.0).map(|entry| entry.samples).sum();
                assert_eq!(imported.measurements.samples(), samples, "{symbol}");
            }
        }
    }

    #[test]
    fn a_regression_without_its_samples_is_used_and_handed_on() {
        let text = "45 1 1 0 0 1 1 0 60.0 400.0 50.0 333.0 0.002 1.5 25 1000 9000 nan nan nan 0";
        let imported = CodeletFile::parse(text).expect("it is a model").import(Quantity::Time);
        assert_eq!(imported.kind, Kind::Regression);
        let model = CodeletModel::new(Model::regression("scale"), 10, imported.measurements.clone());
        let sized = |bytes| SizeInfo { bytes, ..SizeInfo::default() };
        let found = model.expected(Variant::of(Arch::CPU), Quantity::Time, &sized(4000)).expect("the regression");
        assert!((found - 0.002 * 4000f64.powf(1.5)).abs() < 1e-6);
        assert_eq!(model.estimate(Variant::of(Arch::CPU), &sized(100_000)), Estimate::Uncalibrated);
        let exported = CodeletFile::export(&imported.kind, &imported.measurements, Quantity::Time, 1);
        assert_eq!(exported.combs[0].implementations[0].linear.sumlnxlny, 333.0);
        assert_eq!(exported.combs[0].implementations[0].linear.samples, 25);
    }

    #[test]
    fn samples_of_a_regression_are_not_counted_once_more_when_it_is_handed_on() {
        // StarPU forgets the history of a size whose times change, and not the sums of the regression.
        let history = "00000001\t1000\t0\t60.0\t0\t600.0\t36000.0\t10\n";
        let text = format!("45 1 1 0 0 1 1 1 60.0 400.0 50.0 333.0 0.002 1.5 25 1000 9000 nan nan nan 0\n{history}");
        let imported = CodeletFile::parse(&text).expect("it is a model").import(Quantity::Time);
        let exported = CodeletFile::export(&imported.kind, &imported.measurements, Quantity::Time, 1);
        let LinearRegression { sumlnx, samples, min, max, .. } = exported.combs[0].implementations[0].linear;
        assert_eq!((sumlnx, samples, min, max), (60.0, 25, 1000, 9000));
    }

    #[test]
    fn a_multiple_regression_is_handed_on_by_those_who_do_not_know_its_monomials() {
        let history = "00000001\t8\t0\t2.0\t0\t40.0\t80.0\t20\n";
        let text = format!("45 1 1 0 0 1 1 1 0 0 0 0 nan nan 0 0 0 nan nan nan 3 1.5 0.25 0.5\n{history}");
        let imported = CodeletFile::parse(&text).expect("it is a model").import(Quantity::Time);
        assert_eq!(imported.kind, Kind::History);
        let exported = CodeletFile::export(&imported.kind, &imported.measurements, Quantity::Time, 1);
        assert_eq!(exported.combs[0].implementations[0].multiple, [1.5, 0.25, 0.5]);
    }

    #[test]
    fn absurd_numbers_are_no_panic() {
        let line = format!("1f 8 1 1e15 3 1.8446744e34 1e300 {}\n", u64::MAX);
        let history = [&*line, &line.replace("1f", "2f")].concat();
        let text = format!("45 1 1 0 0 1 1 2 0 0 0 0 1 1 {} 1 2 nan nan nan 0\n{history}", u64::MAX);
        let imported = CodeletFile::parse(&text).expect("it is a model").import(Quantity::Time);
        let text = text.replace("1e300", "1e20");
        let sane = CodeletFile::parse(&text).expect("it is a model").import(Quantity::Time);
        for imported in [imported, sane] {
            let model = CodeletModel::new(Model::nonlinear("absurd"), 10, imported.measurements.clone());
            assert!(model.record_time(Variant::of(Arch::CPU), &SizeInfo::default(), Duration::from_secs(1)));
            let exported = CodeletFile::export(&imported.kind, &imported.measurements, Quantity::Time, 1);
            assert!(CodeletFile::parse(&exported.to_text()).is_ok());
        }
    }

    #[test]
    fn an_absurd_number_of_an_implementation_takes_no_memory() {
        let mut measurements = Measurements::default();
        for implementation in [1, u32::MAX] {
            let variant = Variant { implementation, ..Variant::of(Arch::CPU) };
            let measured = measurements.variants.entry((variant, Quantity::Time)).or_default();
            assert!(measured.add(&SizeInfo::default(), 5.0));
        }
        let exported = CodeletFile::export(&Kind::History, &measurements, Quantity::Time, 1);
        assert_eq!(exported.combs[0].implementations.len(), 2);
    }

    #[test]
    fn what_has_no_counterpart_is_counted() {
        // A CPU core and a GPU together, and an obsolete architecture.
        let two = "2 0 0 1 1 0 1  0";
        let old = "1 3 0 1  0";
        let imported = CodeletFile::parse(&format!("45 2 {two} {old}")).expect("it is a model").import(Quantity::Time);
        assert_eq!(imported.skipped, 2);
        assert!(imported.measurements.is_empty());
    }
}
