//! Programs, from their text or as the vendor's compiler has made them.

use super::status::error;
use cl3::program::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BUILD_LOG, build_program, create_program_with_binary, create_program_with_source,
    get_program_build_info, get_program_info, release_program,
};
use cl3::types::{cl_context, cl_device_id, cl_program};
use sched_core::driver::{DriverError, DriverErrorKind};
use std::ffi::CString;
use std::ptr::null_mut;

/// Words for OpenCL.
pub(crate) fn text(words: &str) -> Result<CString, DriverError> {
    CString::new(words).map_err(|error| DriverError::new(DriverErrorKind::Invalid, error.to_string()))
}

/// Compiles a text.
pub(crate) fn of_text(
    context: cl_context,
    device: cl_device_id,
    text: &str,
    options: &str,
) -> Result<cl_program, DriverError> {
    let program =
        create_program_with_source(context, &[text]).map_err(|status| error("clCreateProgramWithSource", status))?;
    build(program, device, options)
}

/// Takes what a compiler has made.
pub(crate) fn of_binary(
    context: cl_context,
    device: cl_device_id,
    binary: &[u8],
    options: &str,
) -> Result<cl_program, DriverError> {
    // SAFETY: the binary is read during the call; the device is that of the context.
    let program = unsafe { create_program_with_binary(context, &[device], &[binary]) };
    build(program.map_err(|status| error("clCreateProgramWithBinary", status))?, device, options)
}

/// Builds a program; one that cannot be built is released.
fn build(program: cl_program, device: cl_device_id, options: &str) -> Result<cl_program, DriverError> {
    let built = text(options).and_then(|options| {
        build_program(program, &[device], &options, None, null_mut()).map_err(|status| {
            let failure = error("clBuildProgram", status);
            let log = get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG).map(String::from);
            let log = log.unwrap_or_default();
            let message = format!("{}\n{}", failure.message, log.trim_end_matches(['\0', '\n', ' ']));
            DriverError::new(DriverErrorKind::Build, message.trim_end())
        })
    });
    if built.is_err() {
        // SAFETY: the program was just made, and nobody else has it.
        let _ = unsafe { release_program(program) };
    }
    built.map(|()| program)
}

/// What the compiler has made of a program; nothing if the vendor does not say.
pub(crate) fn binary(program: cl_program) -> Vec<u8> {
    let binaries = get_program_info(program, CL_PROGRAM_BINARIES).map(|info| info.to_vec_vec_uchar());
    binaries.ok().and_then(|binaries| binaries.into_iter().next()).unwrap_or_default()
}
