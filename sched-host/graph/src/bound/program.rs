//! The linear program of the area and mixed bounds.

use super::classes::Classes;
use super::{BoundError, Pool};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

/// How work is shared out best.
pub(super) struct Division {
    /// The time that this takes, in seconds.
    pub(super) makespan: f64,
    /// Seconds that a task of each class takes on average, where it is put.
    pub(super) mean_length: Vec<f64>,
}

/// Shares the tasks of all classes out among the pools, in parts if need be, so that the pool that ends last ends as early as
/// can be. Of `chain` says how many tasks of each class; together they take no longer than that either. No chain has no
/// numbers.
///
/// With `x` tasks of a class in a pool, of which `y` are of the chain:
///
/// - of each class all tasks are somewhere, and all of the chain's;
/// - in each pool, the sum of `x` · seconds is at most the makespan times its workers;
/// - over all pools, the sum of `y` · seconds is at most the makespan.
pub(super) fn solve(classes: &Classes, pools: &[Pool], chain: &[u32]) -> Result<Division, BoundError> {
    // In units of the longest length, so that numbers are near 1.
    let finite = || classes.seconds.iter().flatten().copied().filter(|seconds| seconds.is_finite());
    let unit = finite().fold(0.0, f64::max);
    if unit <= 0.0 {
        return Ok(Division { makespan: 0.0, mean_length: vec![0.0; classes.counts.len()] });
    }
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let makespan = program.add_var(1.0, (0.0, f64::INFINITY));
    let mut of_pool: Vec<Vec<(Variable, f64)>> =
        pools.iter().map(|pool| vec![(makespan, -f64::from(pool.workers))]).collect();
    let mut of_chain = vec![(makespan, -1.0)];
    // What becomes of each class: a variable and a length in each pool where it can be.
    let mut parts: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); classes.counts.len()];
    for (class, lengths) in classes.seconds.iter().enumerate() {
        let in_chain = chain.get(class).copied().unwrap_or(0);
        for (count, chained) in [(classes.counts[class] - in_chain, false), (in_chain, true)] {
            if count == 0 {
                continue;
            }
            let mut all = Vec::new();
            for (pool, seconds) in lengths.iter().enumerate().filter(|(_, seconds)| seconds.is_finite()) {
                let length = seconds / unit;
                let part = program.add_var(0.0, (0.0, f64::from(count)));
                all.push((part, 1.0));
                parts[class].push((part, *seconds));
                if length > 0.0 {
                    of_pool[pool].push((part, length));
                    if chained {
                        of_chain.push((part, length));
                    }
                }
            }
            program.add_constraint(&all, ComparisonOp::Eq, f64::from(count));
        }
    }
    for sum in of_pool.iter().filter(|sum| sum.len() > 1) {
        program.add_constraint(sum, ComparisonOp::Le, 0.0);
    }
    if of_chain.len() > 1 {
        program.add_constraint(&of_chain, ComparisonOp::Le, 0.0);
    }

    let unsolved = |why: String| BoundError::Unsolved { why };
    let outcome = program.solve().map_err(|error| unsolved(error.to_string()))?;
    let solution = outcome.into_solution().map_err(|_| unsolved("it was interrupted".to_owned()))?;
    let mean = |(parts, count): (&Vec<(Variable, f64)>, &u32)| {
        let sum: f64 = parts.iter().map(|(part, seconds)| solution.var_value(*part) * seconds).sum();
        sum / f64::from(*count)
    };
    Ok(Division {
        makespan: solution.var_value(makespan) * unit,
        mean_length: parts.iter().zip(&classes.counts).map(mean).collect(),
    })
}
