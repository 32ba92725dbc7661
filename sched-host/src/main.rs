//! The `sched` command.
fn main() {}
