//! Every stock component and every shipped policy, compiled in and from plugins.

use sched_tests::conformance::{Origin, check, check_policies};

#[test]
fn compiled_in_components_conform_in_the_runtime() {
    check(Origin::BuiltIn);
}

#[test]
fn plugins_conform_in_the_runtime() {
    check(Origin::Plugin);
}

#[test]
fn shipped_policies_run() {
    check_policies(Origin::BuiltIn);
}

#[test]
fn shipped_policies_run_with_plugins() {
    check_policies(Origin::Plugin);
}
