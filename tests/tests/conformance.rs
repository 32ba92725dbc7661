//! Every stock component and every shipped policy, compiled in and from plugins.

use sched_tests::conformance::{Origin, check, check_policies, check_with_a_device};

#[test]
fn compiled_in_components_conform_in_the_runtime() {
    check(Origin::BuiltIn);
}

#[test]
fn plugins_conform_in_the_runtime() {
    check(Origin::Plugin);
}

#[test]
fn compiled_in_components_conform_with_a_device() {
    check_with_a_device(Origin::BuiltIn);
}

#[test]
fn plugins_conform_with_a_device() {
    check_with_a_device(Origin::Plugin);
}

#[test]
fn shipped_policies_run() {
    check_policies(Origin::BuiltIn);
}

#[test]
fn shipped_policies_run_with_plugins() {
    check_policies(Origin::Plugin);
}
