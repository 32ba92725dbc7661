use super::*;
use proptest::prelude::*;

fn candidate(child: u32, length: u64, transfer: u64, avail: u64) -> Candidate {
    Candidate { child: Child(child), workers: 1, length, transfer, energy: 0.0, avail, end: 0, asked: true }
}

const WEIGHTS: Weights = Weights { alpha: 1.0, beta: 1.0, gamma: 1000.0, idle_power: 0.0, transfers: 1.0 };

fn chosen(weights: Weights, now: u64, candidates: &mut [Candidate]) -> u32 {
    weights.choose(Time::from_nanos(now), candidates).0.child.0
}

#[test]
fn a_transfer_hides_behind_earlier_work() {
    let mut candidates = [candidate(0, 10_000, 4_000, 0), candidate(1, 10_000, 4_000, 103_000)];
    let (_, min_end) = WEIGHTS.choose(Time::from_nanos(100_000), &mut candidates);
    assert_eq!(candidates.map(|candidate| candidate.avail), [100_000, 103_000], "nobody begins in the past");
    assert_eq!(candidates.map(|candidate| candidate.end), [114_000, 114_000]);
    assert_eq!(min_end, 114_000);
}

#[test]
fn the_earliest_end_wins_and_the_first_child_on_ties() {
    assert_eq!(chosen(WEIGHTS, 0, &mut [candidate(0, 9_000, 0, 2_000), candidate(1, 10_000, 0, 0)]), 1);
    assert_eq!(chosen(WEIGHTS, 0, &mut [candidate(0, 10_000, 0, 0), candidate(1, 10_000, 0, 0)]), 0);
}

#[test]
fn alpha_weighs_ends_against_transfers() {
    // The first ends 4 µs later; the second has 5 µs of transfer that its work hides.
    let candidates = [candidate(0, 24_000, 0, 0), candidate(1, 10_000, 5_000, 10_000)];
    assert_eq!(chosen(WEIGHTS, 0, &mut candidates.clone()), 0);
    assert_eq!(chosen(Weights { alpha: 2.0, ..WEIGHTS }, 0, &mut candidates.clone()), 1);
}

#[test]
fn a_hidden_transfer_is_paid_for_by_beta() {
    // Both end at 20 µs, and the first has 5 µs of transfer.
    let candidates = [candidate(0, 10_000, 5_000, 10_000), candidate(1, 20_000, 0, 0)];
    assert_eq!(chosen(WEIGHTS, 0, &mut candidates.clone()), 1);
    assert_eq!(chosen(Weights { beta: 0.0, ..WEIGHTS }, 0, &mut candidates.clone()), 0);
}

#[test]
fn gamma_is_microseconds_for_a_joule() {
    // 2 mJ more cost 2 µs at 1000 µs/J.
    let thrifty = Candidate { energy: 0.001, ..candidate(0, 11_000, 0, 0) };
    let fast = Candidate { energy: 0.003, ..candidate(1, 10_000, 0, 0) };
    assert_eq!(chosen(WEIGHTS, 0, &mut [thrifty, fast]), 0);
    assert_eq!(chosen(Weights { gamma: 400.0, ..WEIGHTS }, 0, &mut [thrifty, fast]), 1);
}

#[test]
fn idle_power_counts_the_time_after_all_are_busy() {
    // The second child is the last to become free, at 50 µs. The first would end just then, so that no child idles; the
    // second would end 2 µs later.
    let candidates = [candidate(0, 50_000, 0, 0), candidate(1, 2_000, 0, 50_000)];
    let fitness = |idle_power| {
        let weights = Weights { idle_power, ..WEIGHTS };
        let mut candidates = candidates;
        weights.choose(Time::ZERO, &mut candidates);
        candidates.map(|it| weights.fitness(it.end, it.transfer, it.energy, 50_000, 50_000))
    };
    assert_eq!(fitness(0.0), [0.0, 2.0]);
    assert_eq!(fitness(100.0), [0.0, 2.0 + 1000.0 * 100.0 * 2.0 / 1e6], "W · µs / 10⁶ are J, and 1000 µs each");
}

#[test]
fn the_candidates_list_may_be_used_inside_itself() {
    with_candidates(|outer| {
        outer.push(candidate(0, 1, 0, 0));
        with_candidates(|inner| assert!(inner.is_empty()));
        assert_eq!(outer.len(), 1);
    });
    with_candidates(|next| assert!(next.is_empty()));
}

/// Costs of some runs of children, with the end of each child.
fn runs() -> impl Strategy<Value = Vec<(Run, Vec<u64>)>> {
    let run = (0..4_u64, 0..4_u64, 0..3_u64, prop::collection::vec(0..12_u64, 1..5));
    let run = run.prop_map(|(length, transfer, energy, ends)| {
        let (length, energy) = (if length == 3 { u64::MAX } else { length * 5 }, energy as f64 * 0.000_001);
        let count = ends.len() as u32;
        (Run { count, length, transfer: transfer * 3, energy, workers: 1, first: (0, 0), start: u64::MAX }, ends)
    });
    prop::collection::vec(run, 1..5)
}

proptest! {
    /// A decision by runs, without the ends that do not matter, is that of a look at each child.
    #[test]
    fn runs_decide_as_children_do(runs in runs(), now in 0..8_u64, idle_power in 0..3_u32) {
        let weights = Weights { idle_power: f64::from(idle_power), ..WEIGHTS };
        let mut candidates = Vec::new();
        let mut found = Runs::default();
        let mut all_ends = Vec::new();
        for (run, ends) in &runs {
            for end in ends {
                let child = all_ends.len() as u32;
                if run.length != u64::MAX {
                    let energy = run.energy;
                    candidates.push(Candidate { energy, ..candidate(child, run.length, run.transfer, *end) });
                }
                all_ends.push(Time::from_nanos(*end));
            }
            found.runs.push(*run);
        }
        let mut taker = found.taker(now, idle_power != 0);
        let mut child = 0;
        while let Some(end) = all_ends.get(child) {
            child = child.saturating_add(1 + taker(Child(child as u32), *end) as usize);
        }
        drop(taker);
        let expected = (!candidates.is_empty()).then(|| weights.choose(Time::from_nanos(now), &mut candidates).0);
        prop_assert_eq!(weights.choose_run(&found), expected);
    }
}
