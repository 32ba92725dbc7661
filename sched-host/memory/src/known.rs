//! The known links between the memory nodes of this machine.

use super::measure_once;
use sched_machine::topology::BindingPlan;
use sched_model::Bus;
use sched_model::Store;
use std::io;

/// The links between memory nodes, and the problems in finding them.
#[derive(Clone, PartialEq, Debug)]
pub struct Known {
    /// The links.
    pub bus: Bus,
    /// Messages about what could not be read or stored.
    pub problems: Vec<String>,
}

/// Reads the stored links between these memory nodes. If some are missing, [measures](super::measure()) all, and stores
/// them if `keep`.
///
/// # Errors
/// If a measurement is necessary and the system provides no threads.
pub fn known(store: &Store, keep: bool, nodes: &[Vec<usize>], plan: &BindingPlan) -> io::Result<Known> {
    let mut problems = Vec::new();
    match store.bus() {
        Ok(Some(bus)) if has_all(&bus, nodes) => return Ok(Known { bus, problems }),
        Ok(_) => {}
        // Storing reports this problem, and where the old file was moved.
        Err(_) if keep => {}
        Err(problem) => problems.push(problem.to_string()),
    }
    let bus = measure_once(nodes, Some(plan))?;
    if keep {
        match store.keep_bus(&bus) {
            Ok(moved) => problems.extend(moved.map(|moved| moved.to_string())),
            Err(problem) => {
                problems.push(format!("the measured links between memory nodes were not stored: {problem}"))
            }
        }
    }
    Ok(Known { bus, problems })
}

/// Whether every two nodes with workers have a link.
fn has_all(bus: &Bus, nodes: &[Vec<usize>]) -> bool {
    let with_workers = || (0..nodes.len()).filter(|node| !nodes[*node].is_empty());
    with_workers().all(|from| with_workers().all(|to| bus.transfer(from, to, 1).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched_machine::topology::Topology;
    use sched_model::Fingerprint;

    #[test]
    fn it_is_measured_once_and_again_where_a_link_is_missing() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let store = Store::new(&directory, Fingerprint::named("here"));
        // A plan for another machine, so that nothing is bound.
        let plan = BindingPlan::new(&Topology::from_synthetic("core:3 pu:1")?, 3)?;
        let (two, three) = ([vec![0], vec![1]], [vec![0], vec![1], vec![2]]);
        let first = known(&store, false, &two, &plan)?;
        assert_eq!((store.bus()?, &first.problems), (None, &Vec::new()));
        assert_eq!(known(&store, true, &two, &plan)?, first);
        assert_eq!(store.bus()?.as_ref(), Some(&first.bus));
        let more = known(&store, true, &three, &plan)?;
        assert_eq!((more.bus.nodes(), store.bus()?.as_ref()), (3, Some(&more.bus)));
        assert_eq!(known(&store, true, &two, &plan)?, more, "what is stored is enough");
        std::fs::write(store.bus_path(), "no such thing")?;
        assert_eq!(known(&store, false, &two, &plan)?.problems.len(), 1);
        assert!(known(&store, true, &two, &plan)?.problems[0].contains("it was kept as"));
        assert!(store.bus()?.is_some());
        Ok(())
    }
}
