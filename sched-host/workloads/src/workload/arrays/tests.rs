use super::*;
use crate::workload::{cholesky, lu, qr};
use sched_test_support::skipped;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What a CUDA compiler knows of itself, for a compiler of C++.
const HOST: &str = "
#define __global__
#define __shared__ static
struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim;
static void __syncthreads() {}
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
";

fn all() -> [&'static Kernels; 3] {
    [&cholesky::on_arrays::KERNELS, &lu::on_arrays::KERNELS, &qr::on_arrays::KERNELS]
}

/// Compiles a text as C++ without making anything of it; returns what the compiler says.
fn compile(text: &str, options: &str) -> std::io::Result<String> {
    // What NVRTC alone has.
    let options = options.split_whitespace().filter(|option| *option != "-default-device");
    let mut compiler = Command::new("c++");
    compiler.args(["-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-function"]);
    compiler.args(options).arg("-");
    let mut running = compiler.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    running.stdin.take().expect("it is a pipe").write_all(text.as_bytes())?;
    Ok(String::from_utf8_lossy(&running.wait_with_output()?.stderr).into_owned())
}

#[test]
fn the_kernels_are_cuda_c_as_well() {
    for kernels in all() {
        for precision in [Precision::Double, Precision::Single] {
            let (text, options) = kernels.cuda(precision);
            match compile(&format!("{HOST}{text}"), options) {
                Ok(log) => assert_eq!(log, "", "{} in {precision} precision", kernels.workload),
                Err(_) => return skipped("there is no C++ compiler (`c++`) to read CUDA C with"),
            }
        }
    }
}

#[test]
fn a_wrong_kernel_is_noticed() {
    let wrong = Kernels { workload: "wrong", text: "__kernel void wrong(__global REAL8 *x) { x = vload8(0); }" };
    let (text, options) = wrong.cuda(Precision::Double);
    if let Ok(log) = compile(&format!("{HOST}{text}"), options) {
        assert!(log.contains("vload8"), "{log}");
    }
}

#[test]
fn both_dialects_have_the_same_kernels() {
    for kernels in all() {
        let (opencl, cuda) = (kernels.opencl(Precision::Single).0, kernels.cuda(Precision::Single).0);
        assert!(opencl.ends_with(kernels.text) && cuda.ends_with(kernels.text));
        assert!(kernels.text.contains("__kernel void "), "the entries are found by this");
    }
}
