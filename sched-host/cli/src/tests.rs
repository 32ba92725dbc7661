//! Tests of subcommands, with the stock components.

mod options;
mod policies;

use miette::{GraphicalReportHandler, GraphicalTheme};
use sched_core::Build;
use sched_policy::Catalogue;

/// The stock components, with which shipped policies have to work.
fn stock() -> Catalogue {
    use sched_components::{flow_control::*, resource_mapping::*, special_purpose::*, worker::*};
    Catalogue::new([
        (Fifo::INFO.describe(), "flow-control"),
        (Prio::INFO.describe(), "flow-control"),
        (BlockCyclic::INFO.describe(), "resource-mapping"),
        (Eager::INFO.describe(), "resource-mapping"),
        (EagerCalibration::INFO.describe(), "resource-mapping"),
        (EagerPrio::INFO.describe(), "resource-mapping"),
        (Heft::INFO.describe(), "resource-mapping"),
        (Heteroprio::INFO.describe(), "resource-mapping"),
        (Mct::INFO.describe(), "resource-mapping"),
        (Random::INFO.describe(), "resource-mapping"),
        (sched_components::resource_mapping::Plan::INFO.describe(), "resource-mapping"),
        (Replan::INFO.describe(), "resource-mapping"),
        (WorkStealing::INFO.describe(), "resource-mapping"),
        (BestImplementation::INFO.describe(), "special-purpose"),
        (PerfmodelSelect::INFO.describe(), "special-purpose"),
        (Stage::INFO.describe(), "special-purpose"),
        (UserChoice::INFO.describe(), "special-purpose"),
        (Simple::INFO.describe(), "worker"),
        (Combined::INFO.describe(), "worker"),
    ])
}

fn shown(error: &dyn miette::Diagnostic) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(110)
        .without_syntax_highlighting();
    handler.render_report(&mut text, error).expect("a String takes any text");
    // Empty lines that carry the frame's indentation would be trimmed by editors.
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

const HEFT: &str = r#"
policy "tree-heft" {
    prio {
        perfmodel-select {
            perfmodel    { mct alpha=1.0 beta=2.0 { each "worker" { prio ntasks-threshold=30 { use "leaf" } } } }
            calibrator   { eager-calibration { use "leaf" } }
            no-perfmodel { eager             { use "leaf" } }
        }
    }
    shared "leaf" each="worker" { best-implementation { worker } }
}"#;
