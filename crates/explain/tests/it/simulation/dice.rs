//! Random choices of a scene, all from its seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub(crate) struct Dice(StdRng);

impl Dice {
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        if low < high { self.0.random_range(low..high) } else { low }
    }

    /// A value whose logarithm is distributed evenly: as many from 1 to 10 as from 10 to 100.
    pub(crate) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    /// A count whose logarithm is distributed evenly.
    pub(crate) fn count(&mut self, low: u64, high: u64) -> u64 {
        (self.magnitude(low as f64, high as f64 + 1.0) as u64).clamp(low, high)
    }

    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.0.random_range(0..values.len())]
    }

    /// A factor for one execution: most lie within `spread` of 1, and one in fifty takes up to three times as long.
    pub(crate) fn jitter(&mut self, spread: f64) -> f64 {
        let usual = self.uniform(1.0 - spread / 4.0, 1.0 + spread);
        if spread > 0.0 && self.chance(0.02) { usual * self.uniform(1.0, 3.0) } else { usual }
    }
}
