//! How likely chance alone brings evidence.

/// Chance may bring as much evidence in one healthy recording of ten thousand.
const RARE: f64 = 1e-4;

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

#[cfg(test)]
mod tests {
    use super::exceeds_chance;

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
