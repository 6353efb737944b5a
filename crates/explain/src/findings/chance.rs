//! How likely chance alone brings evidence.

/// Chance may bring as much evidence in one healthy recording of ten thousand.
const RARE: f64 = 1e-4;

/// Advantage in the logarithm of the likelihood of a model that is far likelier than another: ten thousand to one.
pub(super) const FAR_LIKELIER: f64 = 9.2;

/// Whether chance, which brings `expected` observations on average, hardly ever brings as many as `observed`: the upper tail
/// of the Poisson distribution.
pub(super) fn exceeds_chance(observed: usize, expected: f64) -> bool {
    if expected <= 0.0 {
        return observed > 0;
    }
    // Probability of fewer than `observed`.
    let mut term = (-expected).exp();
    let mut fewer = 0.0;
    for count in 0..observed {
        fewer += term;
        term *= expected / (count + 1) as f64;
    }
    1.0 - fewer < RARE
}

/// Probability that as many as `observed` of `number` have what each has with probability `share`: the upper tail of the
/// binomial distribution.
pub(super) fn chance_of_many(observed: usize, number: usize, share: f64) -> f64 {
    let share = share.clamp(1e-9, 1.0 - 1e-9);
    let mut logarithm = number as f64 * (1.0 - share).ln();
    let mut fewer = 0.0;
    for count in 0..observed.min(number + 1) {
        fewer += logarithm.exp();
        logarithm += ((number - count) as f64 / (count + 1) as f64 * share / (1.0 - share)).ln();
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::{chance_of_many, exceeds_chance};

    #[test]
    fn the_binomial_tail_is_that_of_throws_of_coins() {
        let is_near = |chance: f64, expected: f64| (chance - expected).abs() < 1e-6;
        assert!(is_near(chance_of_many(0, 10, 0.5), 1.0));
        assert!(is_near(chance_of_many(2, 2, 0.5), 0.25));
        assert!(is_near(chance_of_many(1, 3, 0.5), 0.875));
        assert!(is_near(chance_of_many(3, 2, 0.5), 0.0));
        assert!(is_near(chance_of_many(1, 1, 0.0), 0.0) && is_near(chance_of_many(1, 1, 1.0), 1.0));
        assert!(chance_of_many(900, 100_000, 0.01) > 0.99 && chance_of_many(1_200, 100_000, 0.01) < 1e-6);
    }

    #[test]
    fn what_is_expected_is_chance_and_many_times_as_much_is_none() {
        assert!(!exceeds_chance(0, 0.0));
        assert!(exceeds_chance(1, 0.0));
        assert!(!exceeds_chance(5, 5.0));
        assert!(!exceeds_chance(2, 0.1));
        assert!(exceeds_chance(3, 0.05));
        assert!(exceeds_chance(40, 10.0));
        assert!(!exceeds_chance(10_500, 10_000.0));
    }
}
