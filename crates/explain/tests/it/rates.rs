//! A small, fixed part of `make bench-explain-rates`: scenes of each cause, and scenes without one.

use crate::codes;
use crate::simulation::{faulty_scene, healthy_scene, random_pair, simulated_causes};

const SCENES: usize = 12;

/// Findings in one scene.
#[derive(Debug)]
struct Outcome {
    /// Whether all of its causes are named.
    is_named: bool,
    /// Whether nothing else is named.
    is_exact: bool,
}

/// The first scenes of a cause from `seed` on in which it matters.
fn outcomes(causes: impl Fn(u64) -> Vec<&'static str>, seed: u64) -> Vec<Outcome> {
    let scenes = (seed..).filter_map(|seed| faulty_scene(&causes(seed), seed)).take(SCENES);
    scenes
        .map(|scene| {
            let found = codes(&scene.recording);
            let is_accepted = |code: &&str| scene.accepted.contains(code);
            let is_right =
                |code: &&str| scene.causes.contains(code) || is_accepted(code) || scene.beside.contains(code);
            Outcome {
                is_named: scene.causes.iter().all(|cause| found.contains(cause) || found.iter().any(is_accepted)),
                is_exact: found.iter().all(is_right),
            }
        })
        .collect()
}

fn share(outcomes: &[Outcome], is_so: impl Fn(&Outcome) -> bool) -> f64 {
    outcomes.iter().filter(|outcome| is_so(outcome)).count() as f64 / outcomes.len() as f64
}

#[test]
fn causes_are_named_in_nearly_all_scenes_and_hardly_others() {
    let mut all = Vec::new();
    for cause in simulated_causes() {
        let outcomes = outcomes(|_| vec![cause], 1);
        assert!(share(&outcomes, |outcome| outcome.is_named) >= 0.4, "{cause}: {outcomes:?}");
        all.extend(outcomes);
    }
    let shares = (share(&all, |outcome| outcome.is_named), share(&all, |outcome| outcome.is_exact));
    assert!(shares.0 >= 0.9 && shares.1 >= 0.96, "named, exact: {shares:?}");
}

#[test]
fn both_of_two_causes_are_named_in_most_scenes() {
    let outcomes = outcomes(|seed| random_pair(seed).to_vec(), 1);
    assert!(share(&outcomes, |outcome| outcome.is_named) >= 0.75, "{outcomes:?}");
}

#[test]
fn nothing_is_found_in_healthy_scenes() {
    for seed in 0..200 {
        let scene = healthy_scene(seed);
        let marks = if scene.is_marked { "with marks" } else { "without marks" };
        assert_eq!(codes(&scene.recording), [""; 0], "seed {seed}, {marks}: {}", scene.description);
    }
}
