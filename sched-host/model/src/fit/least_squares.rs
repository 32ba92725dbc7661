//! Linear least squares for a handful of unknowns.
//!
//! Implemented here in forty lines, because a linear algebra library would add forty crates to every program that runs
//! tasks.

/// Smallest ratio of the last pivot to the first at which the columns count as independent.
const INDEPENDENT: f64 = 1e-10;

/// The x that minimises ‖A·x − b‖₂, by Householder QR with column pivoting (Golub and Van Loan, *Matrix Computations*,
/// section 5.4). `columns` are those of A, each of the length of `b`; both are overwritten.
///
/// `None` if there are fewer rows than columns, if the columns are linearly dependent, or if a value is not finite.
pub(super) fn least_squares(mut columns: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let (rows, unknowns) = (b.len(), columns.len());
    if rows < unknowns || unknowns == 0 {
        return None;
    }
    let mut order: Vec<usize> = (0..unknowns).collect();
    let mut diagonal = vec![0.0; unknowns];
    for step in 0..unknowns {
        let tail = |column: &[f64]| column[step..].iter().map(|value| value * value).sum::<f64>().sqrt();
        let largest = (step..unknowns).max_by(|a, b| tail(&columns[*a]).total_cmp(&tail(&columns[*b])))?;
        columns.swap(step, largest);
        order.swap(step, largest);
        let norm = tail(&columns[step]);
        // The sign that avoids cancellation.
        diagonal[step] = if columns[step][step] > 0.0 { -norm } else { norm };
        if !norm.is_finite() || norm <= INDEPENDENT * diagonal[0].abs() {
            return None;
        }
        columns[step][step] -= diagonal[step];
        let (reflector, rest) = columns[step..].split_first_mut()?;
        let reflector = &reflector[step..];
        let square: f64 = reflector.iter().map(|value| value * value).sum();
        for column in rest.iter_mut().chain(std::iter::once(&mut b)) {
            let column = &mut column[step..];
            let dot: f64 = reflector.iter().zip(&*column).map(|(v, x)| v * x).sum();
            column.iter_mut().zip(reflector).for_each(|(x, v)| *x -= 2.0 * dot / square * v);
        }
    }
    let mut solution = vec![0.0; unknowns];
    for step in (0..unknowns).rev() {
        let known: f64 = (step + 1..unknowns).map(|column| columns[column][step] * solution[order[column]]).sum();
        solution[order[step]] = (b[step] - known) / diagonal[step];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_through_points_off_it() {
        // y = 1 + 2·x with residuals 1, −2, 1, which are orthogonal to both columns.
        let found = least_squares(vec![vec![1.0; 3], vec![0.0, 1.0, 2.0]], vec![2.0, 1.0, 6.0]).expect("independent");
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 2.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn what_is_not_determined_has_no_solution() {
        assert_eq!(least_squares(vec![vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 6.0]], vec![1.0; 3]), None);
        assert_eq!(least_squares(vec![vec![1.0], vec![2.0]], vec![1.0]), None);
        assert_eq!(least_squares(vec![vec![0.0, 0.0]], vec![1.0, 1.0]), None);
        assert_eq!(least_squares(vec![vec![f64::NAN, 0.0]], vec![1.0, 1.0]), None);
        assert_eq!(least_squares(Vec::new(), vec![1.0]), None);
    }

    proptest! {
        #[test]
        fn the_residual_is_orthogonal_to_every_column(
            entries in prop::collection::vec(-1.0..1.0f64, 24),
            b in prop::collection::vec(-1.0..1.0f64, 8),
        ) {
            let columns: Vec<Vec<f64>> = entries.chunks(8).map(<[f64]>::to_vec).collect();
            if let Some(x) = least_squares(columns.clone(), b.clone()) {
                let size: f64 = x.iter().map(|x| x.abs()).sum::<f64>() + 1.0;
                for column in &columns {
                    let residual = |row: usize| b[row] - (0..3).map(|c| columns[c][row] * x[c]).sum::<f64>();
                    let dot: f64 = column.iter().enumerate().map(|(row, value)| value * residual(row)).sum();
                    prop_assert!(dot.abs() <= 1e-12 * size, "{dot}");
                }
            }
        }
    }
}
