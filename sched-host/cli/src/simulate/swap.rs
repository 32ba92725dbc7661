//! `--swap-to POLICY[@TIME]`.

use sched_text::quantity::parse_time;
use std::time::Duration;

/// The policy to swap to, and the virtual time if given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Swap {
    pub(crate) policy: String,
    pub(crate) at: Option<Duration>,
}

/// Reads `tree-prio@20ms`.
pub(crate) fn swap(text: &str) -> Result<Swap, String> {
    let whole = || Swap { policy: text.to_owned(), at: None };
    // A file name may contain `@`.
    let Some((policy, at)) = text.rsplit_once('@').filter(|(_, at)| !at.contains(['/', '\\']) && !at.ends_with(".kdl"))
    else {
        return Ok(whole());
    };
    match parse_time(at) {
        Some(at) => Ok(Swap { policy: policy.to_owned(), at: Some(at) }),
        None => Err(format!("`{at}` is not a time: write tree-prio@20ms (units: ns, us, ms, s)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_may_have_a_time() {
        let read = |text| swap(text).expect("it is right");
        assert_eq!(read("tree-ws"), Swap { policy: "tree-ws".to_owned(), at: None });
        assert_eq!(read("tree-ws@1.5 s"), Swap { policy: "tree-ws".to_owned(), at: Some(Duration::from_millis(1500)) });
        assert_eq!(read("me@home/a.kdl").policy, "me@home/a.kdl");
        assert_eq!(
            read("me@home/a.kdl@3us"),
            Swap { policy: "me@home/a.kdl".to_owned(), at: Some(Duration::from_micros(3)) }
        );
        insta::assert_snapshot!(swap("tree-ws@noon").expect_err("it is wrong"), @"`noon` is not a time: write tree-prio@20ms (units: ns, us, ms, s)");
    }
}
