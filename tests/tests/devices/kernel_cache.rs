//! What was compiled for devices is kept on disk, and the next process takes it from there.

use super::cuda::{options, run};
use super::factorisations::opencl;
use sched_test_support::{has_compiler, skipped};
use sched_tests::cuda::{COMPILER, DRIVER, libraries};
use sched_tests::fixtures::{Profile, stock_plugin};
use sched_tests::program::{Ran, command};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files in a folder, each with its number in the file system: one that is replaced has another.
fn files(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.metadata().expect("it is there").ino())).collect()
}

#[test]
fn the_compiler_of_cuda_is_called_once_for_all_processes() {
    if !has_compiler() || std::process::Command::new("c++").arg("--version").output().is_err() {
        return skipped("there is no C++ compiler (`c++`) to compile CUDA C with");
    }
    let folder = libraries(&[DRIVER, COMPILER]);
    let folder_of = |name: &str| {
        let made = folder.path().join(name);
        fs::create_dir(&made).expect("the folder is new");
        made.to_str().expect("text").to_owned()
    };
    let (cache, kernels) = (folder_of("cache"), folder_of("kernels"));
    let words = options("cholesky", "double", &["gemm=cuda"]);
    // The number of times that a process compiles.
    let compiled = |settings: &[(&str, &str)]| {
        let before = files(Path::new(&kernels)).len();
        let ran = run(folder.path(), &[&[("CUDA_STUB_KERNELS", &*kernels)], settings].concat(), &words);
        assert!(ran.code == 0 && ran.out.contains("residual"), "{ran:?}");
        files(Path::new(&kernels)).len() - before
    };
    let kept = [("SCHED_KERNEL_CACHE", &*cache)];
    let first = compiled(&kept);
    assert!(first > 0);
    assert_eq!((compiled(&kept), files(Path::new(&cache)).len()), (0, first));
    assert_eq!(compiled(&[]), first, "tests have no cache of their own");
    // Another compiler makes other kernels.
    assert_eq!([(); 2].map(|()| compiled(&[kept[0], ("CUDA_STUB_COMPILER", "8")])), [first, 0]);
    // The driver refuses what names libraries that are gone, and it is replaced.
    fs::remove_dir_all(&kernels).and_then(|()| fs::create_dir(&kernels)).expect("it is there");
    assert_eq!([(); 2].map(|()| compiled(&kept)), [first, 0]);
}

#[test]
fn an_opencl_device_takes_what_another_process_compiled() {
    if opencl().is_none() {
        return;
    }
    let plugin = stock_plugin("sched-plugin-driver-opencl", Profile::Debug);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("kernels");
    let factorise = || {
        let run = ["run", "cholesky", "-n", "3", "-b", "20", "-w", "1", "--policy", "tree-eager"];
        let mut command = command(&run);
        command.args(["--devices", "opencl:0", "--where", "gemm=opencl", "--plugin-dir"]);
        command.arg(plugin.parent().expect("it is in a folder")).env("SCHED_KERNEL_CACHE", &cache);
        let ran = Ran::of(&mut command);
        assert!(ran.code == 0 && ran.out.contains("residual"), "{ran:?}");
        files(&cache)
    };
    let first = factorise();
    assert!(!first.is_empty());
    assert_eq!(factorise(), first, "nothing was compiled, or it would have been written again");
    // What is damaged is compiled again, and replaced.
    let (path, _) = first.first_key_value().expect("there is one");
    let mut bytes = fs::read(path).expect("it is there");
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("it can be written");
    let repaired = factorise();
    assert!(repaired.keys().eq(first.keys()) && repaired[path] != first[path], "{first:?} {repaired:?}");
    assert_eq!(factorise(), repaired);
}
