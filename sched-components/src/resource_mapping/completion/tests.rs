use super::*;

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
        candidates.map(|candidate| weights.fitness(&candidate, 50_000, 50_000))
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
