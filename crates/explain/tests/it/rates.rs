//! A small, fixed part of `make bench-explain-rates`: scenes of each cause, and scenes without one.

use crate::codes;
use crate::simulation::{faulty_scene, healthy_scene, random_pair, simulated_causes};

const SCENES: usize = 12;

/// The first scenes of a cause from `seed` on in which it matters, and whether each is named.
fn named(causes: impl Fn(u64) -> Vec<&'static str>, seed: u64) -> Vec<bool> {
    let scenes = (seed..).filter_map(|seed| faulty_scene(&causes(seed), seed)).take(SCENES);
    scenes
        .map(|scene| {
            let found = codes(&scene.recording);
            let is_accepted = |code: &&str| scene.accepted.contains(code);
            scene.causes.iter().all(|cause| found.contains(cause) || found.iter().any(is_accepted))
        })
        .collect()
}

fn share(named: &[bool]) -> f64 {
    named.iter().filter(|named| **named).count() as f64 / named.len() as f64
}

#[test]
fn causes_are_named_in_nearly_all_scenes() {
    let mut all = Vec::new();
    for cause in simulated_causes() {
        let named = named(|_| vec![cause], 1);
        assert!(share(&named) >= 0.4, "{cause}: {named:?}");
        all.extend(named);
    }
    assert!(share(&all) >= 0.9, "{}", share(&all));
}

#[test]
fn both_of_two_causes_are_named_in_most_scenes() {
    let named = named(|seed| random_pair(seed).to_vec(), 1);
    assert!(share(&named) >= 0.75, "{named:?}");
}

#[test]
fn nothing_is_found_in_healthy_scenes() {
    for seed in 0..200 {
        let scene = healthy_scene(seed);
        let marks = if scene.is_marked { "with marks" } else { "without marks" };
        assert_eq!(codes(&scene.recording), [""; 0], "seed {seed}, {marks}: {}", scene.description);
    }
}
