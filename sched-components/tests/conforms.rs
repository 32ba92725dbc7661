//! Every stock component keeps the contract of components, as `sched plugin test` examines it.

use sched_components::stock;
use sched_core::Params;
use sched_core::rig::Examination;

#[test]
fn every_stock_component_conforms() {
    let mut told = Vec::new();
    for offer in stock() {
        let info = offer.info().describe();
        let make = |params: &Params| offer.build(params).map_err(|error| error.to_string());
        let findings = Examination::new(&info, &make).run();
        told.extend(findings.iter().map(|finding| format!("`{}` {finding}", info.name)));
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
