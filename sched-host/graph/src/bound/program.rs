//! The linear program of the area and mixed bounds.

use super::classes::Classes;
use super::{BoundError, Pool};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

/// Optimal division of the work.
pub(super) struct Division {
    /// Makespan in seconds.
    pub(super) makespan: f64,
    /// Mean execution time in seconds of the tasks of each class, where they are put.
    pub(super) mean_length: Vec<f64>,
}

/// Divides the tasks of all classes among the pools, in fractions if needed, so that the pool that ends last ends as
/// early as possible. `chain` gives the number of tasks of each class on a chain that must fit into the makespan too;
/// it is empty if there is no chain.
///
/// With `x` tasks of a class in a pool, `y` of them on the chain:
///
/// - all tasks of each class are placed, and all of the chain's;
/// - in each pool, the sum of `x` · seconds is at most the makespan times its workers;
/// - over all pools, the sum of `y` · seconds is at most the makespan.
pub(super) fn solve(classes: &Classes, pools: &[Pool], chain: &[u32]) -> Result<Division, BoundError> {
    // In units of the longest time, so that numbers are near 1.
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
    // For each class a variable and a time in each pool where it can run.
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
