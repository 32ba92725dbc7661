//! The random choices of a search.

/// Random numbers by SplitMix64, seeded from the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Other dice, which need not be rolled as often as these.
    pub(super) fn split(&mut self) -> Dice {
        Dice(self.roll())
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }

    /// A number from 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    /// A roughly normal number around 0.
    pub(super) fn normal(&mut self) -> f64 {
        (self.unit() + self.unit() + self.unit() - 1.5) * 2.0
    }
}
