//! The kernels of fake devices.

mod reflectors;

use super::{Device, DriverError, DriverErrorKind, invalid, locked};
use sched_core::driver::{Arg, BufferId, KernelId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of reflectors in a block.
const INNER: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel {
    Fill,
    Scale,
    Axpy,
    Gemm,
    Syrk,
    Trsm,
    GemmNn,
    TrsmRow,
    TrsmColumn,
    Unmqr,
    Tsmqr,
    Fail,
    Lose,
    Panic,
}

impl Kernel {
    const ALL: [(&'static str, Kernel); 14] = [
        ("fill", Kernel::Fill),
        ("scale", Kernel::Scale),
        ("axpy", Kernel::Axpy),
        ("gemm", Kernel::Gemm),
        ("syrk", Kernel::Syrk),
        ("trsm", Kernel::Trsm),
        ("gemm_nn", Kernel::GemmNn),
        ("trsm_row", Kernel::TrsmRow),
        ("trsm_column", Kernel::TrsmColumn),
        ("unmqr", Kernel::Unmqr),
        ("tsmqr", Kernel::Tsmqr),
        ("fail", Kernel::Fail),
        ("lose", Kernel::Lose),
        ("panic", Kernel::Panic),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Number of buffers that it writes, the last ones.
    fn written(self) -> usize {
        if self == Kernel::Tsmqr { 2 } else { 1 }
    }

    /// Its number, for elements of one type.
    pub(crate) fn id(self, is_double: bool) -> KernelId {
        KernelId(self as u64 * 2 + u64::from(is_double))
    }

    pub(crate) fn of_id(id: KernelId) -> Option<(Kernel, bool)> {
        let (_, kernel) = Self::ALL.get(usize::try_from(id.0 / 2).ok()?)?;
        Some((*kernel, id.0 % 2 == 1))
    }

    /// The kernels that a text declares, or the log of what is wrong.
    pub(crate) fn declared_in(text: &str) -> Result<Vec<Kernel>, String> {
        let (mut kernels, mut log) = (Vec::new(), String::new());
        for (number, line) in text.lines().enumerate() {
            let Some((_, rest)) = line.split_once("kernel void ") else { continue };
            let name = rest.split('(').next().unwrap_or_default().trim();
            match Self::ALL.iter().find(|(known, _)| *known == name) {
                Some((_, kernel)) => kernels.push(*kernel),
                None => {
                    let known: Vec<&str> = Self::ALL.iter().map(|(known, _)| *known).collect();
                    let known = known.join(", ");
                    log += &format!("line {}: fake devices have no kernel `{name}`, only {known}\n", number + 1);
                }
            }
        }
        match log.is_empty() && !kernels.is_empty() {
            true => Ok(kernels),
            false if log.is_empty() => Err("the text declares no kernel (`kernel void NAME(`)".to_owned()),
            false => Err(log),
        }
    }
}

type Buffer = Arc<Mutex<Vec<u8>>>;

/// A kernel with its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    kernel: Kernel,
    is_double: bool,
    buffers: Vec<Buffer>,
    sizes: Vec<usize>,
    factor: f64,
}

impl Call {
    /// Reads arguments: buffers, sizes and at most one factor, each in order.
    pub(crate) fn read(
        kernel: Kernel,
        is_double: bool,
        args: &[Arg],
        buffer: impl Fn(BufferId) -> Result<Buffer, DriverError>,
    ) -> Result<Call, DriverError> {
        let mut call = Call { kernel, is_double, buffers: Vec::new(), sizes: Vec::new(), factor: 0.0 };
        let shape = |call: &Call| (call.buffers.len(), call.sizes.len());
        let expected = match kernel {
            Kernel::Fill | Kernel::Scale => (1, 2),
            Kernel::Axpy => (2, 3),
            Kernel::Gemm | Kernel::GemmNn => (3, 9),
            Kernel::Syrk | Kernel::Trsm | Kernel::TrsmRow | Kernel::TrsmColumn => (2, 6),
            Kernel::Unmqr => (3, 8),
            Kernel::Tsmqr => (4, 11),
            Kernel::Fail | Kernel::Lose | Kernel::Panic => (usize::MAX, 0),
        };
        let has_factor = matches!(kernel, Kernel::Fill | Kernel::Scale | Kernel::Axpy);
        for (at, arg) in args.iter().enumerate() {
            match *arg {
                Arg::Buffer(id) => call.buffers.push(buffer(id)?),
                Arg::Scalar { bytes, .. } if has_factor && at + 1 == args.len() => {
                    call.factor = match is_double {
                        true => f64::from_ne_bytes(bytes),
                        false => f64::from(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
                    };
                }
                Arg::Scalar { bytes, .. } => {
                    call.sizes.push(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize);
                }
                Arg::Local(_) => {}
            }
        }
        if expected.0 != usize::MAX && shape(&call) != expected {
            let found = shape(&call);
            return Err(invalid(format!(
                "the kernel `{}` got {} buffers and {} sizes, expected {} and {}",
                kernel.name(),
                found.0,
                found.1,
                expected.0,
                expected.1
            )));
        }
        Ok(call)
    }

    /// Runs the kernel.
    pub(crate) fn run(&self, device: &Device) -> Result<(), DriverError> {
        match self.kernel {
            Kernel::Fail => {
                return Err(DriverError::new(DriverErrorKind::Other, "the kernel `fail` failed, as it was asked to"));
            }
            Kernel::Lose => {
                device.is_lost.store(true, Ordering::SeqCst);
                return device.check();
            }
            Kernel::Panic => return Err(invalid("it is not launched")),
            _ => {}
        }
        if let [.., one, other] = &*self.buffers
            && self.kernel.written() == 2
            && Arc::ptr_eq(one, other)
        {
            return Err(invalid(format!("`{}` writes two parts of one buffer", self.kernel.name())));
        }
        let is_written = |at: usize| at + self.kernel.written() >= self.buffers.len();
        // Locked until the end: other parts of these buffers may be copied meanwhile.
        let mut written: Vec<MutexGuard<'_, Vec<u8>>> =
            (0..self.buffers.len()).filter(|at| is_written(*at)).map(|at| locked(&self.buffers[at])).collect();
        let first = self.buffers.len() - written.len();
        let of_written = |buffer: &Buffer| self.buffers[first..].iter().position(|other| Arc::ptr_eq(other, buffer));
        let decode = |(at, buffer): (usize, &Buffer)| match of_written(buffer) {
            // Both are parts of one array.
            Some(same) if !is_written(at) => self.decode(&written[same]),
            Some(_) => self.decode(&written[at - first]),
            None => self.decode(&locked(buffer)),
        };
        let mut values: Vec<Vec<f64>> = self.buffers.iter().enumerate().map(decode).collect();
        let Some((last, read)) = values.split_last_mut() else { return Ok(()) };
        if !self.fits(last, read) {
            return Err(invalid(format!("the sizes of `{}` reach beyond its buffers", self.kernel.name())));
        }
        self.compute(last, read);
        written.iter_mut().zip(&values[first..]).for_each(|(bytes, values)| self.encode(values, bytes));
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Vec<f64> {
        match self.is_double {
            true => bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect(),
            false => bytes.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_ne_bytes(*bytes))).collect(),
        }
    }

    fn encode(&self, values: &[f64], bytes: &mut [u8]) {
        match self.is_double {
            true => {
                let numbers = bytes.as_chunks_mut::<8>().0.iter_mut().zip(values);
                numbers.for_each(|(bytes, value)| *bytes = value.to_ne_bytes());
            }
            false => {
                let numbers = bytes.as_chunks_mut::<4>().0.iter_mut().zip(values);
                numbers.for_each(|(bytes, value)| *bytes = (*value as f32).to_ne_bytes());
            }
        }
    }

    /// Whether all elements that are used are inside the buffers.
    fn fits(&self, written: &[f64], read: &[Vec<f64>]) -> bool {
        let s = &self.sizes;
        let matrix = |values: &[f64], at: usize, ld: usize, rows: usize, columns: usize| {
            rows == 0 || columns == 0 || (rows <= ld && at + ld * (columns - 1) + rows <= values.len())
        };
        match self.kernel {
            Kernel::Fill | Kernel::Scale => s[0] + s[1] <= written.len(),
            Kernel::Axpy => s[0] + s[2] <= read[0].len() && s[1] + s[2] <= written.len(),
            Kernel::Gemm => {
                matrix(&read[0], s[0], s[1], s[6], s[8])
                    && matrix(&read[1], s[2], s[3], s[7], s[8])
                    && matrix(written, s[4], s[5], s[6], s[7])
            }
            Kernel::Syrk => matrix(&read[0], s[0], s[1], s[4], s[5]) && matrix(written, s[2], s[3], s[4], s[4]),
            Kernel::GemmNn => {
                matrix(&read[0], s[0], s[1], s[6], s[8])
                    && matrix(&read[1], s[2], s[3], s[8], s[7])
                    && matrix(written, s[4], s[5], s[6], s[7])
            }
            Kernel::TrsmRow => matrix(&read[0], s[0], s[1], s[4], s[4]) && matrix(written, s[2], s[3], s[4], s[5]),
            Kernel::Unmqr => {
                matrix(&read[0], s[0], s[1], s[6], s[6])
                    && matrix(&read[1], s[2], s[3], s[6].min(INNER), s[6])
                    && matrix(written, s[4], s[5], s[6], s[7])
            }
            Kernel::Tsmqr => {
                matrix(&read[0], s[0], s[1], s[8], s[9])
                    && matrix(&read[1], s[2], s[3], s[9].min(INNER), s[9])
                    && matrix(&read[2], s[4], s[5], s[9], s[10])
                    && matrix(written, s[6], s[7], s[8], s[10])
            }
            _ => matrix(&read[0], s[0], s[1], s[5], s[5]) && matrix(written, s[2], s[3], s[4], s[5]),
        }
    }

    fn compute(&self, written: &mut [f64], read: &mut [Vec<f64>]) {
        let s = &self.sizes;
        match self.kernel {
            Kernel::Fill => written[s[0]..][..s[1]].fill(self.factor),
            Kernel::Scale => written[s[0]..][..s[1]].iter_mut().for_each(|value| *value *= self.factor),
            Kernel::Axpy => {
                let sums = written[s[1]..][..s[2]].iter_mut().zip(&read[0][s[0]..][..s[2]]);
                sums.for_each(|(y, x)| *y += self.factor * x);
            }
            Kernel::Gemm => {
                let (a, b) = (
                    |i: usize, p: usize| read[0][s[0] + i + p * s[1]],
                    |j: usize, p: usize| read[1][s[2] + j + p * s[3]],
                );
                for (j, i) in (0..s[7]).flat_map(|j| (0..s[6]).map(move |i| (j, i))) {
                    let product: f64 = (0..s[8]).map(|p| a(i, p) * b(j, p)).sum();
                    written[s[4] + i + j * s[5]] -= product;
                }
            }
            Kernel::Syrk => {
                let a = |i: usize, p: usize| read[0][s[0] + i + p * s[1]];
                for (j, i) in (0..s[4]).flat_map(|j| (j..s[4]).map(move |i| (j, i))) {
                    let product: f64 = (0..s[5]).map(|p| a(i, p) * a(j, p)).sum();
                    written[s[2] + i + j * s[3]] -= product;
                }
            }
            Kernel::GemmNn => {
                let (a, b) = (
                    |i: usize, p: usize| read[0][s[0] + i + p * s[1]],
                    |p: usize, j: usize| read[1][s[2] + p + j * s[3]],
                );
                for (j, i) in (0..s[7]).flat_map(|j| (0..s[6]).map(move |i| (j, i))) {
                    let product: f64 = (0..s[8]).map(|p| a(i, p) * b(p, j)).sum();
                    written[s[4] + i + j * s[5]] -= product;
                }
            }
            Kernel::TrsmRow => {
                let l = |i: usize, j: usize| read[0][s[0] + i + j * s[1]];
                let at = |i: usize, j: usize| s[2] + i + j * s[3];
                for (j, i) in (0..s[5]).flat_map(|j| (0..s[4]).map(move |i| (j, i))) {
                    let known: f64 = (0..i).map(|p| l(i, p) * written[at(p, j)]).sum();
                    written[at(i, j)] -= known;
                }
            }
            Kernel::Unmqr => reflectors::unmqr(s, read, written),
            Kernel::Tsmqr => reflectors::tsmqr(s, read, written),
            _ => self.solve_from_the_right(written, &read[0]),
        }
    }

    /// B := B·L⁻ᵀ, or B·U⁻¹.
    fn solve_from_the_right(&self, written: &mut [f64], triangle: &[f64]) {
        let s = &self.sizes;
        let u = |p: usize, j: usize| match self.kernel {
            Kernel::Trsm => triangle[s[0] + j + p * s[1]],
            _ => triangle[s[0] + p + j * s[1]],
        };
        let at = |i: usize, j: usize| s[2] + i + j * s[3];
        for (j, i) in (0..s[5]).flat_map(|j| (0..s[4]).map(move |i| (j, i))) {
            let known: f64 = (0..j).map(|p| written[at(i, p)] * u(p, j)).sum();
            written[at(i, j)] = (written[at(i, j)] - known) / u(j, j);
        }
    }
}
