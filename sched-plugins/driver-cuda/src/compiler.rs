//! NVRTC, which makes PTX of CUDA C.

use cudarc::nvrtc::{result, sys};
use sched_core::driver::{DriverError, DriverErrorKind};
use std::ffi::CString;

fn failed(message: impl Into<String>) -> DriverError {
    DriverError::new(DriverErrorKind::Build, message)
}

/// Which compiler it is.
///
/// # Errors
/// [`DriverErrorKind::Unsupported`] where none is installed.
pub(crate) fn version() -> Result<String, DriverError> {
    // SAFETY: it only tries to load the library.
    if !unsafe { sys::is_culib_present() } {
        let message = "libnvrtc.so cannot be loaded: install NVRTC, or give the kernel as PTX";
        return Err(DriverError::new(DriverErrorKind::Unsupported, message));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the compiler writes numbers there.
    let asked = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    asked.result().map_err(|error| failed(format!("nvrtcVersion: {error:?}")))?;
    Ok(format!("NVRTC {major}.{minor}"))
}

/// Compiles CUDA C to PTX. [`version`] has found the compiler.
pub(crate) fn compile(text: &str, options: &str) -> Result<Vec<u8>, DriverError> {
    let text = CString::new(text).map_err(|error| failed(error.to_string()))?;
    let program =
        result::create_program(&text, None).map_err(|error| failed(format!("nvrtcCreateProgram: {error:?}")))?;
    let options: Vec<&str> = options.split_whitespace().collect();
    // SAFETY: the program was just made, and is destroyed once.
    unsafe {
        let compiled = result::compile_program(program, &options);
        let result = match compiled {
            Ok(()) => result::get_ptx(program).map_err(|error| failed(format!("nvrtcGetPTX: {error:?}"))),
            Err(error) => {
                let log = result::get_program_log(program).unwrap_or_default();
                let log: Vec<u8> = log.into_iter().map(|byte| byte as u8).filter(|byte| *byte != 0).collect();
                Err(failed(format!("nvrtcCompileProgram: {error:?}\n{}", String::from_utf8_lossy(&log).trim_end())))
            }
        };
        let _ = result::destroy_program(program);
        result.map(|ptx| ptx.into_iter().map(|byte| byte as u8).collect())
    }
}
