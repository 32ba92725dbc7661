use super::*;
use proptest::prelude::*;

const CPU: Variant = Variant::of(Arch::CPU);

fn sized(bytes: u64) -> SizeInfo<'static> {
    SizeInfo { footprint: bytes as u32 * 7, bytes, flops: None, params: &[] }
}

fn micros(count: f64) -> Estimate {
    Estimate::Known(Duration::from_secs_f64(count / 1e6))
}

fn model(model: Model) -> CodeletModel {
    CodeletModel::new(model, 10, Measurements::default())
}

#[test]
fn an_estimate_takes_ten_samples_of_the_same_footprint_and_variant() {
    let potrf = model(Model::history("potrf"));
    for count in 0..10 {
        assert_eq!(potrf.estimate(CPU, &sized(100)), Estimate::Uncalibrated, "with {count} samples");
        assert!(potrf.record_time(CPU, &sized(100), Duration::from_micros(50)));
    }
    assert_eq!(potrf.estimate(CPU, &sized(100)), micros(50.0));
    assert_eq!(potrf.estimate(CPU, &sized(200)), Estimate::Uncalibrated);
    let others =
        [Variant { arch: Arch::CUDA, ..CPU }, Variant { cores: 2, ..CPU }, Variant { implementation: 1, ..CPU }];
    assert!(others.iter().all(|other| potrf.estimate(*other, &sized(100)) == Estimate::Uncalibrated));
    assert_eq!(potrf.energy(CPU, &sized(100)), None);
}

#[test]
fn one_outlier_of_a_thousandfold_hardly_moves_an_estimate() {
    let potrf = model(Model::history("potrf"));
    (0..9).for_each(|_| assert!(potrf.record(CPU, Quantity::Time, &sized(8), 50.0)));
    assert!(potrf.record(CPU, Quantity::Time, &sized(8), 50_000.0));
    assert_eq!(potrf.estimate(CPU, &sized(8)), micros(50.0));
}

#[test]
fn what_this_run_measures_counts_alone_where_it_contradicts_what_was_stored() {
    let before = model(Model::history("potrf"));
    (0..1000).for_each(|_| assert!(before.record(CPU, Quantity::Time, &sized(8), 50.0)));
    let now = CodeletModel::new(Model::history("potrf"), 10, before.measurements());
    for count in 0..12 {
        let expected = if count < 10 { 50.0 } else { 20.0 };
        assert_eq!(now.estimate(CPU, &sized(8)), micros(expected), "after {count}");
        assert!(now.record(CPU, Quantity::Time, &sized(8), 20.0));
    }
    assert_eq!(now.measurements().samples(), 1012, "nothing is lost");
}

#[test]
fn energy_is_learned_beside_time() {
    let potrf = model(Model::history("potrf"));
    (0..10).for_each(|_| assert!(potrf.record(CPU, Quantity::Energy, &sized(8), 2.5)));
    assert_eq!(potrf.energy(CPU, &sized(8)), Some(2.5));
    assert_eq!(potrf.estimate(CPU, &sized(8)), Estimate::Uncalibrated);
}

#[test]
fn a_batch_counts_as_many_samples_as_it_had_tasks() {
    let potrf = model(Model::history("potrf"));
    assert!(potrf.record_equal(CPU, Quantity::Energy, &sized(8), 2.5, 9));
    assert_eq!(potrf.energy(CPU, &sized(8)), None);
    assert!(potrf.record(CPU, Quantity::Energy, &sized(8), 2.5));
    assert_eq!(potrf.energy(CPU, &sized(8)), Some(2.5));
    assert_eq!((potrf.measurements().samples(), potrf.take_fresh().samples()), (10, 10));
    assert!(!potrf.record_equal(CPU, Quantity::Energy, &sized(8), -2.5, 9), "what is no energy is no sample");
    assert!(!potrf.record_equal(CPU, Quantity::Energy, &sized(8), 2.5, 0), "nor is nothing");
}

#[test]
fn the_best_implementation_is_known_when_all_are() {
    let gemm = model(Model::history("gemm"));
    let second = Variant { implementation: 1, ..CPU };
    (0..10).for_each(|_| assert!(gemm.record(CPU, Quantity::Time, &sized(8), 30.0)));
    assert_eq!(gemm.estimate_best(Arch::CPU, 1, 1, &sized(8)), micros(30.0));
    assert_eq!(gemm.estimate_best(Arch::CPU, 1, 2, &sized(8)), Estimate::Uncalibrated);
    (0..10).for_each(|_| assert!(gemm.record(second, Quantity::Time, &sized(8), 20.0)));
    assert_eq!(gemm.estimate_best(Arch::CPU, 1, 2, &sized(8)), micros(20.0));
    assert_eq!(gemm.estimate_best(Arch::CPU, 1, 0, &sized(8)), Estimate::NoModel);
}

#[test]
fn a_regression_knows_sizes_that_were_never_run() {
    for declared in [Model::regression("scale"), Model::nonlinear("scale")] {
        let scale = model(declared);
        for bytes in (1..=20u64).map(|step| step * 1000) {
            assert!(scale.record(CPU, Quantity::Time, &sized(bytes), bytes as f64 / 100.0));
        }
        let found = scale.estimate(CPU, &sized(7_777)).known().expect("within what was measured");
        assert!((found.as_secs_f64() * 1e6 / 77.77 - 1.0).abs() < 0.02, "{found:?}");
        assert_eq!(scale.estimate(CPU, &sized(50_000)), Estimate::Uncalibrated);
    }
}

#[test]
fn outside_of_its_regression_the_history_is_asked() {
    let scale = model(Model::regression("scale"));
    (0..10).for_each(|_| assert!(scale.record(CPU, Quantity::Time, &sized(64), 5.0)));
    assert_eq!(scale.estimate(CPU, &sized(64)), micros(5.0), "one size makes no regression");
}

#[test]
fn a_multiple_regression_goes_by_parameters() {
    let gemm = model(Model::multiple("gemm", [[1, 1].into()]));
    let size = |params: &'static [f64]| SizeInfo { footprint: 0, bytes: 1, flops: None, params };
    let params: Vec<[f64; 2]> = (1..5).flat_map(|m| (1..5).map(move |n| [f64::from(m), f64::from(n)])).collect();
    for (footprint, params) in params.iter().enumerate() {
        let size = SizeInfo { footprint: footprint as u32, bytes: 1, flops: None, params };
        assert!(gemm.record(CPU, Quantity::Time, &size, 3.0 + 2.0 * params[0] * params[1]));
    }
    let found = gemm.expected(CPU, Quantity::Time, &size(&[2.5, 4.0])).expect("a regression");
    assert!((found - 23.0).abs() < 1e-3, "{found}");
}

#[test]
fn many_threads_record_and_ask_at_once() {
    let gemm = model(Model::nonlinear("gemm"));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let gemm = &gemm;
            scope.spawn(move || {
                for step in 1..=200u64 {
                    let size = sized(step % 20 * 100 + thread + 1);
                    assert!(gemm.record(CPU, Quantity::Time, &size, size.bytes as f64));
                    let _ = gemm.estimate(CPU, &size);
                }
            });
        }
    });
    assert_eq!(gemm.measurements().samples(), 800);
    assert_eq!(gemm.take_fresh().samples(), 800);
    assert!(gemm.take_fresh().is_empty());
}

proptest! {
    #[test]
    fn estimates_lag_by_less_than_the_last_part_of_the_samples_and_no_sample_is_lost(
        samples in prop::collection::vec((0..3u64, 10.0..14.0f64), 1..1500),
        taken_at in prop::collection::vec(0..1500usize, 0..3),
    ) {
        let gemm = model(Model::history("gemm"));
        let mut by_size: [Distribution; 3] = Default::default();
        let mut fresh = 0;
        for (number, (size, time)) in samples.iter().enumerate() {
            prop_assert!(gemm.record(CPU, Quantity::Time, &sized(*size), *time));
            let exact = &mut by_size[*size as usize];
            exact.add(*time);
            fresh += 1;
            if taken_at.contains(&number) {
                prop_assert_eq!(gemm.take_fresh().samples(), std::mem::take(&mut fresh));
            }
            let expected = gemm.expected(CPU, Quantity::Time, &sized(*size));
            prop_assert_eq!(expected.is_some(), exact.count() >= 10);
            if let Some(expected) = expected {
                let now = exact.midmean().expect("samples");
                let most = if exact.count() <= 32 { 1e-9 } else { 0.03 };
                prop_assert!((expected / now - 1.0).abs() < most, "{} for {} after {}", expected, now, exact.count());
            }
        }
        let all = gemm.measurements();
        for (size, exact) in (0..3u64).zip(&by_size).filter(|(_, exact)| !exact.is_empty()) {
            let entry = &all.variants[&(CPU, Quantity::Time)].entries[&sized(size).footprint];
            prop_assert_eq!(entry.samples.count(), exact.count());
            let off = entry.samples.midmean().expect("samples") / exact.midmean().expect("samples") - 1.0;
            prop_assert!(off.abs() < 1e-9, "{}", off);
        }
        prop_assert_eq!(gemm.take_fresh().samples(), fresh);
    }
}
