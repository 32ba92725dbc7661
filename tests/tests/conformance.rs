//! Every stock component, compiled in and from its plugin.

use sched_tests::conformance::{BackEnd, Origin, check};

#[test]
fn compiled_in_components_conform_in_the_runtime() {
    check(Origin::BuiltIn, BackEnd::Runtime);
}

#[test]
fn plugins_conform_in_the_runtime() {
    check(Origin::Plugin, BackEnd::Runtime);
}
