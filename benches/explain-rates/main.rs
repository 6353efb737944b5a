//! How often `explain` names a cause that a recording has, how often it names one that the recording has not, and what is
//! taken for what. The scenes come from the simulation of the crate's tests, which knows nothing of the rules.
//!
//! Seeds of the first half were used when rules were changed. Those of the second half were not: its table is the result.

use std::collections::BTreeMap;

use mcpace_explain::find_causes;
use simulation::{Scene, faulty_scene, healthy_scene, random_pair, simulated_causes};

#[path = "../../crates/explain/tests/it/script/mod.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod script;
#[path = "../../crates/explain/tests/it/simulation/mod.rs"]
mod simulation;

/// Scenes of each cause, pairs of causes, and scenes without a cause, in each half.
const SCENES: usize = 80;
const PAIRS: usize = 300;
const HEALTHY: u64 = 1_000;
/// Tries to find a scene in which a cause matters.
const TRIES: u64 = 40;
const HALVES: [(&str, u64); 2] = [("seeds that rules were tuned on", 1_000_000), ("other seeds", 500_000_000)];

/// Findings in the scenes of one cause.
#[derive(Default)]
struct Tally {
    scenes: usize,
    named: usize,
    marked: (usize, usize),
    /// Other findings, by code.
    others: BTreeMap<&'static str, usize>,
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if let Some(cause) = only {
        return print_misses(&cause);
    }
    for (name, seed) in HALVES {
        print_half(name, seed);
    }
}

fn print_half(name: &str, seed: u64) {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for (number, cause) in simulated_causes().enumerate() {
        let first = seed + number as u64 * 1_000_000;
        let scenes = (first..first + TRIES * SCENES as u64).filter_map(|seed| faulty_scene(&[cause], seed));
        scenes.take(SCENES).for_each(|scene| add_scene(tallies.entry(cause).or_default(), &scene));
    }
    let mut pairs = (0, 0);
    let scenes = (seed + 900_000_000..).filter_map(|seed| faulty_scene(&random_pair(seed), seed)).take(PAIRS);
    for scene in scenes {
        let found = found_codes(&scene);
        pairs.0 += usize::from(scene.causes.iter().all(|cause| found.contains(cause)));
        pairs.1 += 1;
    }
    let mut false_alarms: BTreeMap<&str, usize> = BTreeMap::new();
    let mut quiet = 0;
    for seed in seed + 800_000_000..seed + 800_000_000 + HEALTHY {
        let found = found_codes(&healthy_scene(seed));
        quiet += u64::from(found.is_empty());
        found.into_iter().for_each(|code| *false_alarms.entry(code).or_default() += 1);
    }
    println!("## {name}\n");
    println!("| cause | scenes | named | 95 % interval | with marks | without | also named, wrongly |");
    println!("|---|---|---|---|---|---|---|");
    let (mut named, mut scenes) = (0, 0);
    let mut wrong = false_alarms.values().sum::<usize>();
    for (cause, tally) in &tallies {
        print_row(cause, tally);
        (named, scenes) = (named + tally.named, scenes + tally.scenes);
        wrong += tally.others.values().sum::<usize>();
    }
    let (low, high) = wilson_interval(named, scenes);
    println!("| **all** | {scenes} | {} | {low:.0}–{high:.0} % | | | |", percent(named, scenes));
    println!("\nPairs of causes, both named: {pairs} of {} ({}).", pairs.1, percent(pairs.0, pairs.1), pairs = pairs.0);
    println!("Precision: {} of {} findings.", named, named + wrong);
    println!("Healthy scenes without a finding: {quiet} of {HEALTHY}. Found in the others: {false_alarms:?}.\n");
}

fn add_scene(tally: &mut Tally, scene: &Scene) {
    let found = found_codes(scene);
    let is_named = found.iter().any(|code| scene.causes.contains(code) || scene.accepted.contains(code));
    tally.scenes += 1;
    tally.named += usize::from(is_named);
    if scene.is_marked {
        tally.marked.0 += usize::from(is_named);
        tally.marked.1 += 1;
    }
    for code in found {
        if ![&scene.causes, &scene.accepted, &scene.beside].iter().any(|codes| codes.contains(&code)) {
            *tally.others.entry(code).or_default() += 1;
        }
    }
}

fn print_row(cause: &str, tally: &Tally) {
    let (low, high) = wilson_interval(tally.named, tally.scenes);
    let others: Vec<String> = tally.others.iter().map(|(code, times)| format!("{code} {times}")).collect();
    let (marked, of_marked) = tally.marked;
    println!(
        "| {cause} | {} | {} | {low:.0}–{high:.0} % | {} | {} | {} |",
        tally.scenes,
        percent(tally.named, tally.scenes),
        percent(marked, of_marked),
        percent(tally.named - marked, tally.scenes - of_marked),
        others.join(", "),
    );
}

/// Prints the scenes of a cause in which it is not named; of `healthy`, those in which something is.
fn print_misses(cause: &str) {
    if cause == "healthy" {
        for seed in HALVES[0].1 + 800_000_000..HALVES[0].1 + 800_000_000 + HEALTHY {
            let scene = healthy_scene(seed);
            let found = found_codes(&scene);
            if !found.is_empty() {
                println!("{seed}: {found:?} in {}", scene.description);
            }
        }
        return;
    }
    for seed in HALVES[0].1..HALVES[0].1 + SCENES as u64 * 4 {
        let Some(scene) = faulty_scene(&[cause], seed) else { continue };
        let found = found_codes(&scene);
        if !found.iter().any(|code| scene.causes.contains(code) || scene.accepted.contains(code)) {
            println!("{seed}: {found:?} in {}", scene.description);
        }
    }
}

fn found_codes(scene: &Scene) -> Vec<&'static str> {
    let mut codes: Vec<_> = find_causes(&scene.recording).iter().map(|finding| finding.cause.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn percent(part: usize, of: usize) -> String {
    if of == 0 { "–".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / of as f64) }
}

/// The 95 % interval of a share, in percent (Wilson, 1927).
fn wilson_interval(part: usize, of: usize) -> (f64, f64) {
    let (number, share, z) = (of.max(1) as f64, part as f64 / of.max(1) as f64, 1.96_f64);
    let middle = share + z * z / (2.0 * number);
    let half = z * (share * (1.0 - share) / number + z * z / (4.0 * number * number)).sqrt();
    let scale = 100.0 / (1.0 + z * z / number);
    ((middle - half) * scale, (middle + half) * scale)
}
