//! Weights that reduce the influence of outliers.

use sched_text::median;

/// Residuals below this fraction of the value never count as outliers.
const FINE: f64 = 0.01;

/// Tukey's biweight: 1 for a residual of 0, decreasing to 0 at about seven times the typical residual.
pub(super) fn biweights(residuals: &[f64]) -> Vec<f64> {
    let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
    let reach = 4.685 * (1.4826 * median(&mut sizes)).max(FINE);
    let weight = |residual: &f64| {
        let part = residual / reach;
        if part.abs() < 1.0 { (1.0 - part * part).powi(2) } else { 0.0 }
    };
    residuals.iter().map(weight).collect()
}
