//! The libraries: where they are looked for, and their handles.

use crate::CudaMathError;
use crate::error;
use crate::queue::CudaQueue;
use crate::symbols::{Blas, BlasFunctions, Common, Handle, Solver, SolverFunctions, Status};
use libloading::Library;
use sched_runtime::RawDevice;
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The environment variable with folders in which the libraries are looked for first, joined by `:`; `none` turns them
/// off.
pub const LIBRARIES_VARIABLE: &str = "SCHED_CUDA_LIBRARIES";

/// File names of cuBLAS, the newest version first: the functions that are used here are the same since CUDA 4.
const CUBLAS: [&str; 4] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"];

/// File names of cuSOLVER, whose versions are not those of CUDA.
const CUSOLVER: [&str; 4] = ["libcusolver.so.12", "libcusolver.so.11", "libcusolver.so.10", "libcusolver.so"];

/// Handles of the libraries for one context, as numbers: they may be used by any thread, one at a time.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) blas: usize,
    pub(crate) solver: Option<usize>,
}

/// cuBLAS, and cuSOLVER where it is there too, loaded.
#[derive(Debug)]
pub struct CudaMath {
    pub(crate) blas: BlasFunctions,
    pub(crate) solver: Result<SolverFunctions, CudaMathError>,
    /// Handles by context. They are kept for the life of the process, as contexts are.
    handles: Mutex<HashMap<u64, &'static Mutex<Handles>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CudaMath {
    /// The libraries of this system, which are loaded the first time.
    ///
    /// # Errors
    /// If cuBLAS is not there, or is [turned off](LIBRARIES_VARIABLE).
    pub fn of_this_system() -> Result<&'static CudaMath, CudaMathError> {
        static LOADED: OnceLock<Result<CudaMath, CudaMathError>> = OnceLock::new();
        let load = || match std::env::var_os(LIBRARIES_VARIABLE) {
            Some(text) if text == "none" => Err(CudaMathError::TurnedOff),
            Some(text) => CudaMath::load(&std::env::split_paths(&text).collect::<Vec<PathBuf>>()),
            None => CudaMath::load(&[]),
        };
        LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// Loads the libraries from one of these folders, or else from where the system has libraries.
    ///
    /// # Errors
    /// If cuBLAS is not there, or lacks a function.
    pub fn load(folders: &[PathBuf]) -> Result<CudaMath, CudaMathError> {
        Ok(CudaMath { blas: load_blas(folders)?, solver: load_solver(folders), handles: Mutex::default() })
    }

    /// Whether cuSOLVER is there.
    #[must_use]
    pub fn has_solver(&self) -> bool {
        self.solver.is_ok()
    }

    /// The libraries on a device, for one raw closure: calls go to the device's queue for kernels.
    ///
    /// # Errors
    /// If the device is none of CUDA's, or a library cannot use it.
    pub fn on<'a>(&'a self, device: &'a RawDevice<'a>) -> Result<CudaQueue<'a>, CudaMathError> {
        // Asking for the context makes it that of this thread, which the libraries need.
        let context = device.context()?;
        let handles = locked(self.handles_of(context)?);
        CudaQueue::new(self, device, handles)
    }

    fn handles_of(&self, context: u64) -> Result<&'static Mutex<Handles>, CudaMathError> {
        let mut all = locked(&self.handles);
        if let Some(known) = all.get(&context) {
            return Ok(known);
        }
        let handle = |common: &Common, result: fn(&'static str, Status) -> Result<(), CudaMathError>, name| {
            let mut made: Handle = null_mut();
            // SAFETY: the function writes a handle there.
            result(name, unsafe { (common.create)(&raw mut made) })?;
            Ok::<usize, CudaMathError>(made.addr())
        };
        let blas = handle(&self.blas.common, error::blas, "cublasCreate")?;
        let solver = match &self.solver {
            Ok(solver) => Some(handle(&solver.common, error::solver, "cusolverDnCreate")?),
            Err(_) => None,
        };
        let made: &'static Mutex<Handles> = Box::leak(Box::new(Mutex::new(Handles { blas, solver })));
        all.insert(context, made);
        Ok(made)
    }
}

fn load_blas(folders: &[PathBuf]) -> Result<BlasFunctions, CudaMathError> {
    let library = open(folders, &CUBLAS)?;
    Ok(BlasFunctions {
        common: Common {
            create: symbol(library, "cublasCreate_v2")?,
            set_stream: symbol(library, "cublasSetStream_v2")?,
        },
        single: blas(library, 'S')?,
        double: blas(library, 'D')?,
    })
}

/// The functions of cuBLAS for the precision that has this letter in their names.
fn blas<T>(library: &'static Library, letter: char) -> Result<Blas<T>, CudaMathError> {
    Ok(Blas {
        gemm: symbol(library, &format!("cublas{letter}gemm_v2"))?,
        syrk: symbol(library, &format!("cublas{letter}syrk_v2"))?,
        trsm: symbol(library, &format!("cublas{letter}trsm_v2"))?,
    })
}

fn load_solver(folders: &[PathBuf]) -> Result<SolverFunctions, CudaMathError> {
    let library = open(folders, &CUSOLVER)?;
    Ok(SolverFunctions {
        common: Common {
            create: symbol(library, "cusolverDnCreate")?,
            set_stream: symbol(library, "cusolverDnSetStream")?,
        },
        single: solver(library, 'S')?,
        double: solver(library, 'D')?,
    })
}

/// The functions of cuSOLVER for the precision that has this letter in their names.
fn solver<T>(library: &'static Library, letter: char) -> Result<Solver<T>, CudaMathError> {
    Ok(Solver {
        potrf_size: symbol(library, &format!("cusolverDn{letter}potrf_bufferSize"))?,
        potrf: symbol(library, &format!("cusolverDn{letter}potrf"))?,
        getrf_size: symbol(library, &format!("cusolverDn{letter}getrf_bufferSize"))?,
        getrf: symbol(library, &format!("cusolverDn{letter}getrf"))?,
    })
}

/// Opens a library by one of these names, in one of these folders or where the system looks. It is never closed.
fn open(folders: &[PathBuf], names: &[&str]) -> Result<&'static Library, CudaMathError> {
    let in_folders = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let in_folders = in_folders.filter(|file| file.exists()).map(|file| (file, true));
    let candidates = in_folders.chain(names.iter().map(|name| (Path::new(name).to_owned(), false)));
    // What is wrong with the first that is there says more than that others are not.
    let (mut refused, mut said) = (None, String::new());
    for (candidate, is_there) in candidates {
        // SAFETY: the initializers are those of NVIDIA's library, or of what the user has put in its place.
        match unsafe { Library::new(&candidate) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => said = words_of(&error),
        }
        // The loader begins with the file that it does not find, which may be one that this one needs.
        if is_there || !said.starts_with(&*candidate.to_string_lossy()) {
            refused.get_or_insert_with(|| format!("{} cannot be loaded ({said})", candidate.display()));
        }
    }
    let (last, variable) = (names.last().copied().unwrap_or_default(), LIBRARIES_VARIABLE);
    let message = match refused {
        Some(refused) => format!("{refused}: install it again, or name the folder of another one in {variable}"),
        None => format!("{last} cannot be loaded ({said}): install it, or name its folder in {variable}"),
    };
    Err(CudaMathError::Unavailable { message })
}

/// A function of a library.
fn symbol<F: Copy>(library: &'static Library, name: &str) -> Result<F, CudaMathError> {
    // SAFETY: the types of the functions are those of NVIDIA's headers.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found
        .map(|function| *function)
        .map_err(|error| words_of(&error))
        .map_err(|said| CudaMathError::Unavailable { message: format!("there is no function `{name}`: {said}") })
}

/// What the loader says, which is the source of the error.
fn words_of(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
