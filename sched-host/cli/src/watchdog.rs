//! Ends the program when a component does not come back from a call, and says so when a driver does not: kernels may
//! rightly take long.

use super::reports;
use miette::{Diagnostic, Report};
use sched_tree::attendance::{OverdueCall, Watch};
use sched_tree::exit_guard;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Seconds that a call of a component may take, unless the user says otherwise.
pub(super) const PATIENCE_S: &str = "10";

/// Calls that have not come back.
#[derive(Debug, Diagnostic)]
#[diagnostic(
    code(sched::stuck),
    help(
        "a component must not wait or loop inside a call: its author can find out why it does; \
         --patience SECONDS gives it more time"
    )
)]
struct Stuck(Vec<OverdueCall>);

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("given up, since a component does not come back")?;
        self.0.iter().try_for_each(|call| write!(f, "\n  {call}"))
    }
}

impl std::error::Error for Stuck {}

/// From now on, the program ends with an error when a call of a component has not come back for `patience`: whatever
/// waits for it, waits for ever. Runs and drops of a runtime that notice it themselves are faster, and say more. Of a
/// driver there is a warning, once for each call.
pub(super) fn begin(patience: Duration, json: bool) {
    let look = move || {
        let mut calls = Watch::default();
        let mut said = BTreeSet::new();
        loop {
            std::thread::sleep(patience / 4);
            let (of_drivers, stuck): (Vec<OverdueCall>, _) =
                calls.overdue(patience).into_iter().partition(|call| call.post.is_driver());
            for call in of_drivers {
                let (thread, number) = call.key();
                if said.insert((thread.to_owned(), number)) {
                    tracing::warn!("{call}; --patience SECONDS says when to warn of that");
                }
            }
            if !stuck.is_empty() {
                reports::failed(&Report::new(Stuck(stuck)), json);
                exit_guard::expect_end();
                std::process::exit(1);
            }
        }
    };
    // Without the thread the program works; it only would not end by itself.
    let _ = std::thread::Builder::new().name("watchdog".to_owned()).spawn(look);
}
