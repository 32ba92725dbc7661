//! Hashes and random numbers, equal on every machine.

/// The offset basis of the 64-bit FNV-1a hash: the hash of nothing.
pub const FNV_1A_EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// The 64-bit FNV-1a hash of `bytes`.
#[must_use]
pub fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(FNV_1A_EMPTY, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Increment of SplitMix64's state for each output.
pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function, a bijection that spreads each bit over all others (Steele, Lea and Flood: "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
#[inline]
#[must_use]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mix_rest(word)
}

/// Mixes `word` into `state`: the multiplications of [`mix`], without its first shift.
#[inline]
#[must_use]
pub const fn fold(state: u64, word: u64) -> u64 {
    mix_rest((state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

#[inline]
const fn mix_rest(word: u64) -> u64 {
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A hash of many bytes, to tell contents apart that nobody made to collide: two lanes, each of which takes in 16 of 32
/// bytes by one long multiplication.
#[must_use]
pub fn digest(bytes: &[u8]) -> u128 {
    let length = bytes.len() as u64;
    let mut lanes = [mix(length), mix(length ^ GAMMA)];
    let mut take = |block: &[u8; 32]| {
        let words = block.as_chunks().0;
        let word = |at: usize| u64::from_le_bytes(words[at]);
        lanes[0] = multiply(lanes[0] ^ word(0), word(1) ^ GAMMA).wrapping_add(lanes[0]);
        lanes[1] = multiply(lanes[1] ^ word(2), word(3) ^ GAMMA).wrapping_add(lanes[1]);
    };
    let (blocks, rest) = bytes.as_chunks();
    blocks.iter().for_each(&mut take);
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    take(&last);
    u128::from(mix(lanes[0])) << 64 | u128::from(mix(lanes[1]))
}

/// Both halves of a long product, one over the other.
#[inline]
const fn multiply(one: u64, other: u64) -> u64 {
    let product = one as u128 * other as u128;
    product as u64 ^ (product >> 64) as u64
}

/// SplitMix64, a generator of random numbers. The seed is its state.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Output number `index`, from 0, of a generator with this seed.
    #[inline]
    #[must_use]
    pub const fn output(seed: u64, index: u64) -> u64 {
        mix(seed.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1))))
    }

    /// The next output.
    #[inline]
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }
}

/// The upper 53 bits of a random number as a number that is uniform in [0, 1).
#[inline]
#[must_use]
pub const fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        // The first outputs for seed 1234567, as widely published for SplitMix64.
        let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|index| SplitMix64::output(1_234_567, index)), published);
        let mut generator = SplitMix64(1_234_567);
        assert_eq!([(); 3].map(|()| generator.next()), published);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv_1a(b""), FNV_1A_EMPTY);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn each_bit_and_the_length_change_the_digest() {
        let bytes: Vec<u8> = (0..41).collect();
        let mut seen = std::collections::BTreeSet::from([digest(&bytes), digest(&bytes[..40]), digest(b"")]);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            seen.insert(digest(&flipped));
        }
        assert!(seen.insert(digest(&[&bytes[..], &[0]].concat())));
        assert_eq!(seen.len(), 3 + bytes.len() * 8 + 1);
    }

    #[test]
    fn units_are_below_one() {
        assert_eq!((unit(0), unit(u64::MAX) < 1.0), (0.0, true));
    }
}
