use super::*;
use proptest::prelude::*;

fn point(size: f64, value: f64) -> Point {
    Point { size, params: vec![size], value, samples: 3 }
}

/// Small deterministic noise.
fn wobble(index: usize) -> f64 {
    1.0 + 0.02 * ((index * 7 % 5) as f64 - 2.0) / 2.0
}

fn sizes() -> impl Iterator<Item = (usize, f64)> {
    (0..12).map(|index| (index, 1000.0 * 1.7f64.powi(index as i32)))
}

#[test]
fn a_power_is_found_whatever_one_point_says() {
    let mut points: Vec<Point> =
        sizes().map(|(index, size)| point(size, 0.003 * size.powf(1.5) * wobble(index))).collect();
    for bad in 0..points.len() {
        let good = points[bad].value;
        points[bad].value *= 1000.0;
        let fit = Power::linear(&points).expect("there are many sizes");
        assert!((fit.b - 1.5).abs() < 0.02 && (fit.a / 0.003 - 1.0).abs() < 0.2, "{fit:?}");
        points[bad].value = good;
    }
}

#[test]
fn what_does_not_depend_on_the_size_is_found() {
    let points: Vec<Point> = sizes().map(|(i, size)| point(size, (0.01 * size + 500.0) * wobble(i))).collect();
    let fit = Power::nonlinear(&points).expect("there are many sizes");
    for (_, size) in sizes() {
        let expected = 0.01 * size + 500.0;
        let found = fit.predict(size).expect("a size that was measured");
        assert!((found / expected - 1.0).abs() < 0.05, "{size}: {found}, expected {expected}");
    }
    assert!((400.0..600.0).contains(&fit.c), "{fit:?}");
}

#[test]
fn nothing_is_said_of_sizes_that_are_far_from_those_measured() {
    let fit = Power::linear(&[point(100.0, 10.0), point(1000.0, 100.0)]).expect("two sizes");
    assert!(fit.predict(95.0).is_some() && fit.predict(1095.0).is_some());
    assert!(fit.predict(80.0).is_none() && fit.predict(1200.0).is_none());
    assert!(fit.is_calibrated(6) && !fit.is_calibrated(7));
    assert!(Power::linear(&[point(100.0, 10.0), point(100.0, 11.0)]).is_none());
    let narrow = Power::linear(&[point(100.0, 10.0), point(105.0, 11.0)]).expect("two sizes");
    assert!(!narrow.is_calibrated(1));
}

#[test]
fn several_parameters_are_told_apart() {
    let monomials = [Monomial::from([1, 1, 1]), Monomial::from([1, 1, 0])];
    let mut points = Vec::new();
    for (index, (m, n)) in (1..6).flat_map(|m| (1..6).map(move |n| (m, n))).enumerate() {
        let k = 1 + index % 4;
        let params: Vec<f64> = [m * 64, n * 64, k * 64].iter().map(|size| *size as f64).collect();
        let exact = 20.0 + 2e-4 * params.iter().product::<f64>() + 3e-3 * params[0] * params[1];
        points.push(Point { size: 0.0, params, value: exact * wobble(index), samples: 1 });
    }
    points[7].value *= 1000.0;
    let fit = Linear::fit(&monomials, &points).expect("25 points determine 3 numbers");
    let found = fit.predict(&monomials, &[128.0, 128.0, 128.0]).expect("a time");
    let expected = 20.0 + 2e-4 * 128f64.powi(3) + 3e-3 * 128f64.powi(2);
    assert!((found / expected - 1.0).abs() < 0.05, "{found}, expected {expected}");
}

#[test]
fn what_the_points_do_not_determine_is_not_made_up() {
    let twice = [Monomial::from([1]), Monomial::from([1])];
    let points: Vec<Point> = sizes().map(|(_, size)| point(size, size)).collect();
    assert_eq!(Linear::fit(&twice, &points), None);
    assert_eq!(Linear::fit(&[Monomial::from([1])], &points[..1]), None);
}

proptest! {
    #[test]
    fn no_points_make_a_fit_panic(raw in prop::collection::vec((any::<f64>(), any::<f64>(), 0..1000u64), 0..40)) {
        let points: Vec<Point> = raw
            .into_iter()
            .map(|(size, value, samples)| Point { size, params: vec![size], value, samples })
            .collect();
        let _ = (Power::linear(&points), Power::nonlinear(&points), Linear::fit(&[Monomial::from([2])], &points));
    }

    #[test]
    fn exact_powers_are_found(a in 1e-6..1e3f64, b in 0.2..3.2f64) {
        let points: Vec<Point> = sizes().map(|(_, size)| point(size, a * size.powf(b))).collect();
        let fit = Power::linear(&points).expect("many sizes");
        prop_assert!((fit.b - b).abs() < 1e-6 && (fit.a / a - 1.0).abs() < 1e-4, "{:?}", fit);
    }
}
