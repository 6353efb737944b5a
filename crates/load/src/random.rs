//! Random numbers that cost next to nothing and come again with the same seed (SplitMix64, Steele, Lea and Flood 2014).
//!
//! Not for secrets.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to, but without, 1.
    pub(crate) fn unit_float(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 up to, but without, `end`. The bias of the multiplication is below 2⁻³² for all that is chosen from here.
    pub(crate) fn below_end(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_bits()) * u128::from(end)) >> 64) as u64
    }

    /// Exponentially distributed with mean 1.
    pub(crate) fn exponential_one(&mut self) -> f64 {
        -(1.0 - self.unit_float()).ln()
    }
}
