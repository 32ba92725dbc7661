//! Writes a codelet's performance model in StarPU's format.

use super::codelet::{CodeletFile, Comb, Implementation, VERSION};
use std::fmt::{self, Write};

impl CodeletFile {
    /// The text of the file, with StarPU's comments.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        file(&mut out, self).expect("writing to a string never fails");
        out
    }
}

impl Comb {
    /// What was measured, without the devices: equal for equal measurements, of which NaN may be a part.
    pub(super) fn measured_text(&self) -> String {
        let mut out = String::new();
        let mut each = self.implementations.iter();
        each.try_for_each(|measured| implementation(&mut out, measured)).expect("writing to a string never fails");
        out
    }
}

fn file(out: &mut String, file: &CodeletFile) -> fmt::Result {
    write!(out, "##################\n# Performance Model Version\n{VERSION}\n\n")?;
    let count = file.combs.len();
    writeln!(out, "####################\n# COMBs\n# number of combinations\n{count}")?;
    file.combs.iter().enumerate().try_for_each(|(index, one)| comb(out, index, one))
}

fn comb(out: &mut String, index: usize, comb: &Comb) -> fmt::Result {
    let count = comb.devices.len();
    writeln!(out, "####################\n# COMB_{index}\n# number of types devices\n{count}")?;
    for (number, device) in comb.devices.iter().enumerate() {
        let title = format!("####################\n# DEV_{number}");
        writeln!(
            out,
            "{title}\n# device type (CPU - 0, CUDA - 1, OPENCL - 2, MAX_FPGA - 4, MPI_SC - 5, TCPIP_SC - 6, HIP - 7, SYCL - 8)\n{}",
            device.kind
        )?;
        writeln!(out, "{title}\n# device id\n{}\n{title}\n# number of cores\n{}", device.id, device.cores)?;
    }
    writeln!(out, "##########\n# number of implementations\n{}", comb.implementations.len())?;
    for (number, measured) in comb.implementations.iter().enumerate() {
        writeln!(out, "#####\n# Model for impl{number} (Comb{index})")?;
        implementation(out, measured)?;
    }
    writeln!(out)
}

fn implementation(out: &mut String, measured: &Implementation) -> fmt::Result {
    writeln!(out, "# number of entries\n{}", measured.history.len())?;
    let l = &measured.linear;
    writeln!(out, "# sumlnx\tsumlnx2\t\tsumlny\t\tsumlnxlny\talpha\t\tbeta\t\tn\tminx\t\tmaxx")?;
    for value in [l.sumlnx, l.sumlnx2, l.sumlny, l.sumlnxlny, l.alpha, l.beta] {
        write!(out, "{}\t", Scientific(value))?;
    }
    writeln!(out, "{}\t{}\t{}", l.samples, l.min, l.max)?;
    let [a, b, c] = measured.nonlinear.map(Scientific);
    writeln!(out, "# a\t\tb\t\tc\n{a}\t{b}\t{c}")?;
    if measured.multiple.is_empty() {
        writeln!(out, "# not multiple-regression-base\n0")?;
    } else {
        writeln!(out, "# n\tintercept\tcoefficients\n{}", measured.multiple.len())?;
        let coefficients: Vec<String> = measured.multiple.iter().map(|c| Scientific(*c).to_string()).collect();
        writeln!(out, "{}", coefficients.join("\t"))?;
    }
    if !measured.history.is_empty() {
        writeln!(out, "# hash\t\tsize\t\tflops\t\tmean (us or J)\tdev (us or J)\tsum\t\tsum2\t\tn")?;
    }
    for entry in &measured.history {
        write!(out, "{:08x}\t{}\t", entry.footprint, entry.size)?;
        for value in [entry.flops, entry.mean, entry.deviation, entry.sum, entry.sum2] {
            write!(out, "{}\t", Scientific(value))?;
        }
        writeln!(out, "{}", entry.samples)?;
    }
    Ok(())
}

/// A number in the notation of C's `%e`.
pub(crate) struct Scientific(pub(crate) f64);

impl fmt::Display for Scientific {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            return f.write_str(if self.0.is_nan() {
                "nan"
            } else if self.0 > 0.0 {
                "inf"
            } else {
                "-inf"
            });
        }
        let text = format!("{:.6e}", self.0);
        let (mantissa, exponent) = text.split_once('e').expect("a number in this notation has an exponent");
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        write!(f, "{mantissa}e{sign}{digits:0>2}")
    }
}
