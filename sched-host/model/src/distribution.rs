//! Robust online statistics of samples.
//!
//! One bad sample must not decide a mean: a worker that was preempted once would get no task any more. The
//! requirements: a location that outliers do not move, bounded memory, samples that arrive one by one and are
//! discarded, and lossless merging of what two processes observed separately.
//!
//! Samples are counted in bins of equal width on a logarithmic scale, eight per doubling, and each bin keeps count, sum
//! and sum of squares. Two distributions merge by adding their bins, in any order. The location is the **midmean**: the
//! mean of the middle half of the samples, which no quarter of outliers at either end can move, and which, unlike a
//! median, lies between the modes when a kernel has two. It uses the bins' own means, so that it is not rounded to
//! bins. A kernel's times fill a handful of bins; there are at most 2048.

/// Number of bins per doubling.
const PER_OCTAVE: f64 = 8.0;
/// Bound of the bin numbers: samples range from 2⁻¹²⁸ to 2¹²⁸.
const LIMIT: f64 = 1024.0;
/// Larger than any time or energy, in any unit; its square can still be summed.
const HUGE: f64 = 1e100;

/// Positive samples, counted in bins.
///
/// ```
/// use sched_model::Distribution;
/// let mut times = Distribution::default();
/// for time in [10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 10.1, 10_000.0, 10.0, 9.9] {
///     times.add(time);
/// }
/// assert!((times.midmean().unwrap() - 10.0).abs() < 0.1 && times.mean().unwrap() > 1000.0);
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Distribution {
    /// The bins by number, none empty.
    bins: Vec<Bin>,
    /// Number of samples in all of them.
    count: u64,
}

/// The samples of one bin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bin {
    /// Eight times the binary logarithm of its lower bound.
    pub number: i32,
    /// Number of samples.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub sum2: f64,
}

impl Bin {
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

fn number_of(sample: f64) -> i32 {
    (sample.log2() * PER_OCTAVE).floor().clamp(-LIMIT, LIMIT) as i32
}

impl Distribution {
    /// Adds a sample. Returns whether it is valid: positive, and within the range of the sums.
    pub fn add(&mut self, sample: f64) -> bool {
        let is_sample = sample > 0.0 && sample < HUGE;
        if is_sample {
            self.put(Bin { number: number_of(sample), count: 1, sum: sample, sum2: sample * sample });
        }
        is_sample
    }

    /// Adds samples of which only number, sum and sum of squares are known, as if all were near their mean. Returns
    /// whether they are valid.
    pub fn add_many(&mut self, count: u64, sum: f64, sum2: f64) -> bool {
        let mean = sum / count as f64;
        let are_samples = count > 0 && mean > 0.0 && sum < HUGE;
        if are_samples {
            let sum2 = if sum2 >= 0.0 && sum2.is_finite() { sum2 } else { sum * mean };
            self.put(Bin { number: number_of(mean), count, sum, sum2 });
        }
        are_samples
    }

    /// Adds a bin of another distribution. Returns whether the bin is valid.
    pub fn add_bin(&mut self, bin: Bin) -> bool {
        let can_be = bin.count > 0
            && bin.sum.is_finite()
            && bin.sum > 0.0
            && bin.sum2.is_finite()
            && bin.sum2 >= 0.0
            && f64::from(bin.number).abs() <= LIMIT;
        if can_be {
            self.put(bin);
        }
        can_be
    }

    /// Adds `count` samples of which only the mean is known. Returns whether they are valid.
    pub fn add_equal(&mut self, mean: f64, count: u64) -> bool {
        match count {
            1 => self.add(mean),
            _ => {
                let sum = count as f64 * mean;
                self.add_many(count, sum, sum * mean)
            }
        }
    }

    fn put(&mut self, bin: Bin) {
        self.count = self.count.saturating_add(bin.count);
        match self.bins.binary_search_by_key(&bin.number, |known| known.number) {
            Ok(index) => {
                let known = &mut self.bins[index];
                known.count = known.count.saturating_add(bin.count);
                known.sum += bin.sum;
                known.sum2 += bin.sum2;
            }
            Err(index) => self.bins.insert(index, bin),
        }
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        other.bins.iter().for_each(|bin| self.put(*bin));
    }

    /// Removes all samples, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.bins.clear();
        self.count = 0;
    }

    /// The nonempty bins, lowest first.
    #[must_use]
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Sum of the samples, outliers included.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.bins.iter().map(|bin| bin.sum).sum()
    }

    /// Sum of the squares.
    #[must_use]
    pub fn sum2(&self) -> f64 {
        self.bins.iter().map(|bin| bin.sum2).sum()
    }

    /// The plain mean, outliers included; `None` without samples.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum() / self.count() as f64)
    }

    /// The standard deviation, outliers included; 0 without samples.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let Some(mean) = self.mean() else { return 0.0 };
        (self.sum2() / self.count() as f64 - mean * mean).max(0.0).sqrt()
    }

    /// The mean of the middle half of the samples; `None` without samples.
    #[must_use]
    pub fn midmean(&self) -> Option<f64> {
        let all = self.count() as f64;
        let (low, high) = (all / 4.0, all * 0.75);
        let (mut passed, mut sum) = (0.0, 0.0);
        for bin in &self.bins {
            let end = passed + bin.count as f64;
            sum += (end.min(high) - passed.max(low)).max(0.0) * bin.mean();
            passed = end;
        }
        (!self.is_empty()).then(|| sum / (high - low))
    }

    /// The quantile `part` (from 0 to 1), to within a bin; `None` without samples.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let wanted = self.count() as f64 * part;
        let mut passed = 0.0;
        for bin in &self.bins {
            passed += bin.count as f64;
            if passed >= wanted {
                return Some(bin.mean());
            }
        }
        self.bins.last().map(Bin::mean)
    }

    /// Number of samples that are more than three times the midmean, or less than a third of it.
    #[must_use]
    pub fn outliers(&self) -> u64 {
        let Some(middle) = self.midmean() else { return 0 };
        let far = self.bins.iter().filter(|bin| bin.mean() > 3.0 * middle || bin.mean() < middle / 3.0);
        far.fold(0, |sum, bin| sum.saturating_add(bin.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(samples: &[f64]) -> Distribution {
        let mut distribution = Distribution::default();
        samples.iter().for_each(|sample| assert!(distribution.add(*sample)));
        distribution
    }

    #[test]
    fn one_outlier_of_a_thousandfold_among_ten_samples_moves_the_midmean_by_less_than_a_hundredth() {
        let quiet = [50.0, 50.4, 49.8, 50.1, 49.9, 50.2, 49.7, 50.3, 50.0];
        for outlier in [50_000.0, 0.05] {
            let noisy = of(&[&quiet[..], &[outlier]].concat());
            let (clean, moved) = (of(&quiet).midmean().expect("samples"), noisy.midmean().expect("samples"));
            assert!((moved / clean - 1.0).abs() < 0.01, "{clean} became {moved}");
            assert_eq!(noisy.outliers(), 1);
        }
    }

    #[test]
    fn two_modes_are_both_seen() {
        let middle = of(&[[10.0; 6], [30.0; 6]].concat()).midmean().expect("samples");
        assert!((15.0..25.0).contains(&middle), "{middle}");
    }

    #[test]
    fn what_is_no_time_is_no_sample() {
        let mut distribution = Distribution::default();
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|sample| !distribution.add(*sample)));
        assert!(!distribution.add_many(0, 1.0, 1.0) && !distribution.add_many(3, -1.0, 1.0));
        assert_eq!((distribution.midmean(), distribution.mean(), distribution.count()), (None, None, 0));
    }

    proptest! {
        #[test]
        fn merging_is_the_same_as_seeing_all(
            one in prop::collection::vec(1e-3..1e9f64, 0..60),
            other in prop::collection::vec(1e-3..1e9f64, 1..60),
        ) {
            let mut merged = of(&one);
            merged.merge(&of(&other));
            let whole = of(&[one, other].concat());
            prop_assert_eq!(merged.count(), whole.count());
            let (merged, whole) = (merged.midmean().expect("samples"), whole.midmean().expect("samples"));
            prop_assert!((merged / whole - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_midmean_lies_between_the_extremes(samples in prop::collection::vec(1e-90..1e90f64, 1..200)) {
            let distribution = of(&samples);
            let middle = distribution.midmean().expect("samples");
            let (low, high) = (samples.iter().copied().fold(f64::MAX, f64::min), samples.iter().copied().fold(0.0, f64::max));
            prop_assert!(middle >= low * 0.999_999 && middle <= high * 1.000_001, "{low} {middle} {high}");
            prop_assert!(distribution.bins().len() <= 2049);
        }
    }
}
