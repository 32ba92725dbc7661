//! Ranks find out together that nothing moves on any of them.
//!
//! A rank whose tasks wait for values cannot know whether they will come: another rank may be at work, or a component
//! there may keep a task for ever. So ranks on which nothing moves report to rank 0 what they have sent, received and
//! done. When all have, it asks once more: where all of them report the same again, and as much was received as sent,
//! nothing has moved in between on any rank, and nothing will (Mattern, *Algorithms for distributed termination
//! detection*, 1987). Ranks without tasks, which wait for the others, report when they are asked.

/// What a rank has sent, received and done.
type Counts = [u64; 3];

/// A message for a rank.
pub(crate) type Notice = (usize, Vec<u8>);

const REPORT: u64 = 0;
const ASK: u64 = 1;
const DECIDED: u64 = 2;

/// What a rank knows of this. Each wait of all ranks is an epoch, and so is the time between two waits: what is left of
/// those before is ignored.
pub(crate) struct Quiet {
    rank: usize,
    epoch: u64,
    /// The question that was asked last.
    wave: u64,
    sent: u64,
    received: u64,
    /// Tasks that this rank has done, if none are left.
    done: Option<u64>,
    is_decided: bool,
    /// On rank 0: what each has reported in this wave, and whether it has tasks.
    reports: Vec<Option<(Counts, bool)>>,
    /// What they reported in the wave before.
    before: Option<Vec<Counts>>,
}

impl Quiet {
    pub(crate) fn new(rank: usize, ranks: usize) -> Quiet {
        let (epoch, wave, sent, received) = (0, 0, 0, 0);
        Quiet {
            rank,
            epoch,
            wave,
            sent,
            received,
            done: None,
            is_decided: false,
            reports: vec![None; ranks],
            before: None,
        }
    }

    /// A value, or the reason why there is none, is to be sent.
    pub(crate) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// A value, or the reason why there is none, has come.
    pub(crate) fn note_received(&mut self) {
        self.received += 1;
    }

    /// All ranks begin to wait, or have waited.
    pub(crate) fn begin(&mut self) {
        (self.epoch, self.wave, self.done, self.is_decided) = (self.epoch + 1, 0, None, false);
        self.reports.fill(None);
        self.before = None;
    }

    /// Whether nothing moves on any rank, which is for ever.
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided
    }

    /// Nothing has moved here for a while; `tasks` are done.
    pub(crate) fn report(&mut self, tasks: u64) -> Vec<Notice> {
        if self.done.is_some() {
            // It waits for the others.
            return self.answer();
        }
        let counts = [self.sent, self.received, tasks];
        if self.rank == 0 {
            return self.note(0, (counts, true));
        }
        vec![(0, bytes(&[self.epoch, REPORT, self.wave, counts[0], counts[1], counts[2], 1]))]
    }

    /// No task is left here; `tasks` are done.
    pub(crate) fn end(&mut self, tasks: u64) -> Vec<Notice> {
        self.done = Some(tasks);
        self.answer()
    }

    /// What a rank without tasks reports.
    fn answer(&mut self) -> Vec<Notice> {
        let Some(tasks) = self.done else { return Vec::new() };
        let counts = [self.sent, self.received, tasks];
        if self.rank == 0 {
            return self.note(0, (counts, false));
        }
        vec![(0, bytes(&[self.epoch, REPORT, self.wave, counts[0], counts[1], counts[2], 0]))]
    }

    /// Takes a message of another rank.
    pub(crate) fn take(&mut self, from: usize, message: &[u8]) -> Vec<Notice> {
        let words: Vec<u64> = message.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        match *words {
            [epoch, ..] if epoch != self.epoch => Vec::new(),
            [_, REPORT, wave, sent, received, tasks, has_tasks] if wave == self.wave => {
                self.note(from, ([sent, received, tasks], has_tasks == 1))
            }
            [_, ASK, wave] => {
                self.wave = wave;
                self.answer()
            }
            [_, DECIDED] => {
                self.is_decided = true;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Notes a report on rank 0. When it was the last one, asks again, or decides.
    fn note(&mut self, from: usize, report: (Counts, bool)) -> Vec<Notice> {
        if let Some(place) = self.reports.get_mut(from) {
            *place = Some(report);
        }
        let Some(all) = self.reports.iter().copied().collect::<Option<Vec<_>>>() else { return Vec::new() };
        if all.iter().all(|(_, has_tasks)| !has_tasks) || self.is_decided {
            return Vec::new();
        }
        let counts: Vec<Counts> = all.into_iter().map(|(counts, _)| counts).collect();
        let total = |of: usize| counts.iter().map(|counts| counts[of]).sum::<u64>();
        let is_over = total(0) == total(1) && self.before.as_ref() == Some(&counts);
        let others = 1..self.reports.len();
        if is_over {
            self.is_decided = true;
            return others.map(|rank| (rank, bytes(&[self.epoch, DECIDED]))).collect();
        }
        self.before = Some(counts);
        self.wave += 1;
        self.reports.fill(None);
        let mut notices: Vec<Notice> = others.map(|rank| (rank, bytes(&[self.epoch, ASK, self.wave]))).collect();
        notices.append(&mut self.answer());
        notices
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks whose messages arrive at once.
    struct Ranks(Vec<Quiet>);

    impl Ranks {
        fn new(ranks: usize) -> Ranks {
            let mut all: Vec<Quiet> = (0..ranks).map(|rank| Quiet::new(rank, ranks)).collect();
            all.iter_mut().for_each(Quiet::begin);
            Ranks(all)
        }

        fn deliver(&mut self, from: usize, notices: Vec<Notice>) {
            for (to, message) in notices {
                let answers = self.0[to].take(from, &message);
                self.deliver(to, answers);
            }
        }

        fn report(&mut self, rank: usize, tasks: u64) -> bool {
            let notices = self.0[rank].report(tasks);
            self.deliver(rank, notices);
            self.0[rank].is_decided()
        }

        fn end(&mut self, rank: usize, tasks: u64) {
            let notices = self.0[rank].end(tasks);
            self.deliver(rank, notices);
        }
    }

    #[test]
    fn ranks_that_report_the_same_twice_have_stalled() {
        let mut ranks = Ranks::new(3);
        ranks.end(1, 8);
        assert!(!ranks.report(0, 5) && !ranks.report(2, 7), "the first time");
        assert!(!ranks.report(0, 5), "rank 2 has not been asked");
        assert!(ranks.report(2, 7) && ranks.0.iter().all(Quiet::is_decided));
        // The next wait begins anew.
        ranks.0.iter_mut().for_each(Quiet::begin);
        assert!(!ranks.report(0, 5) && !ranks.report(0, 5) && !ranks.report(2, 7));
    }

    #[test]
    fn what_moves_between_two_reports_or_is_on_its_way_is_no_stall() {
        let mut ranks = Ranks::new(2);
        assert!(!ranks.report(0, 5) && !ranks.report(1, 7));
        // A task has ended, and a value is on its way.
        ranks.0[1].note_sent();
        assert!(!ranks.report(0, 5) && !ranks.report(1, 8));
        assert!(!ranks.report(0, 5) && !ranks.report(1, 8), "it has not come");
        ranks.0[0].note_received();
        assert!(!ranks.report(1, 8) && !ranks.report(0, 5), "it has come since");
        assert!(!ranks.report(1, 8) && ranks.report(0, 5));
        // Rank 1 learns of it, too.
        assert!(ranks.0[1].is_decided());
    }

    #[test]
    fn ranks_without_tasks_wait_for_each_other_without_a_word() {
        let mut ranks = Ranks::new(3);
        (0..3).for_each(|rank| ranks.end(rank, 4));
        assert!(ranks.0.iter().all(|rank| !rank.is_decided() && rank.wave == 0));
    }
}
