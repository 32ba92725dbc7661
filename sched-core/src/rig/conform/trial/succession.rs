//! An instance that takes the place of another, as when a policy is swapped.

use super::super::step::Step;
use super::{Answer, Flaw, Made, Running, nothing};

impl Running<'_> {
    /// Has another instance take the place of the component, as when a policy is swapped. The tasks are the test's
    /// then.
    pub(super) fn replace(&mut self) -> Option<Flaw> {
        self.journal.step("build another instance");
        // Its parameters were accepted before: who refuses them now has run out of something.
        let Ok(successor) = (self.again)() else { return None };
        self.journal.answer("");
        let step = Step::Replace;
        let flaw = self
            .call(&step, "export", Box::new(|rig| Answer::Left(rig.export())))
            .or_else(|| self.call(&Step::Drain, "drain", Box::new(|rig| Answer::Drained(rig.drain()))));
        if flaw.is_some() || self.seen > 0 {
            return flaw;
        }
        let former = self.rig.host.component.replace(successor)?;
        (self.was_pushed, self.newest) = (false, None);
        let notify: Made = Box::new(|rig| nothing(|| rig.notify_change_workers()));
        let left = self.left.take();
        self.call(&step, "the other instance: notify_change_workers", notify)
            .or_else(|| {
                let left = left?;
                let words = format!("the other instance: import of {} bytes", left.len());
                self.call(&step, &words, Box::new(move |rig| nothing(|| rig.import(&left))))
            })
            .or_else(|| self.call(&step, "drop", Box::new(move |rig| nothing(|| rig.dropped(former)))))
    }
}
