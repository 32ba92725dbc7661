use super::*;
use crate::component::{Component, Push, Refused};
use crate::info::Family;
use crate::node::Node;
use crate::{Refusal, Task};
use std::panic::panic_any;

/// A payload of a panic whose drop panics again.
struct Stubborn;

impl Drop for Stubborn {
    fn drop(&mut self) {
        panic!("on purpose, once more");
    }
}

struct Unbuildable;

impl Component for Unbuildable {
    fn push_task(&self, _node: Node<'_>, task: Task) -> Push {
        Err(Refused::new(task, Refusal::Full))
    }
}

impl Build for Unbuildable {
    const INFO: Info = Info::new("unbuildable", Family::FlowControl, "Panics.");

    fn build(_params: &Params) -> Result<Self, BuildError> {
        panic_any(Stubborn)
    }
}

#[test]
fn no_panic_of_a_constructor_gets_out_of_the_library() {
    let built = build(&[Offer::of::<Unbuildable>()], "unbuildable".into(), RSlice::EMPTY);
    let failure = built.into_result().err().expect("it is not built");
    assert!(failure.panicked && failure.message.starts_with("a panic without a message"), "{failure:?}");
}
