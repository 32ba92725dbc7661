//! cuBLAS and cuSOLVER for kernels on NVIDIA devices, as raw closures of codelets call them
//! ([`device_raw`](sched_runtime::CodeletBuilder::device_raw)). Nothing of CUDA is needed to build: the libraries are
//! loaded when they are first asked for, and a program does without them where they are absent.
//!
//! ```
//! use sched_core::Arch;
//! use sched_cublas::{CudaMath, Op};
//! use sched_runtime::{Read, ReadWrite, Submitter};
//!
//! # fn make(submitter: &Submitter) {
//! // C := C − A·Bᵀ, all three square.
//! type Matrices = (Read<[f64]>, Read<[f64]>, ReadWrite<[f64]>);
//! let gemm = submitter.codelet::<Matrices, usize>("gemm");
//! let gemm = match CudaMath::of_this_system() {
//!     Ok(math) => gemm.device_raw(Arch::CUDA, "cublas", move |device, n, (a, b, c)| {
//!         let queue = math.on(device)?;
//!         let (a, b, c) = (queue.matrix(&a, *n, *n)?, queue.matrix(&b, *n, *n)?, queue.matrix(&c, *n, *n)?);
//!         queue.gemm(-1.0, (a, Op::None), (b, Op::Transposed), 1.0, c)
//!     }),
//!     // Without the libraries: the core does it.
//!     Err(_) => gemm.cpu("loops", |context, (a, b, c)| {
//!         let n = *context.params;
//!         for (at, c) in c.iter_mut().enumerate() {
//!             let (row, column) = (at % n, at / n);
//!             *c -= (0..n).map(|k| a[row + k * n] * b[column + k * n]).sum::<f64>();
//!         }
//!     }),
//! };
//! # }
//! ```
//!
//! Matrices are column-major. Calls put work into the queue of the device for kernels, and return.

mod element;
mod error;
mod library;
mod matrix;
mod queue;
mod symbols;

pub use element::Element;
pub use error::CudaMathError;
pub use library::{CudaMath, LIBRARIES_VARIABLE};
pub use matrix::DeviceTile;
pub use queue::CudaQueue;
pub use symbols::{Diagonal, Op, Side, Triangle};

#[cfg(test)]
mod tests;
