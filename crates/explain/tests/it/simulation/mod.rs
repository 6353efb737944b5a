//! Scenes whose cause of lost time is known, because they were made with it.
//!
//! Constraint: a scene is made from what protocols, kernels and programs do. It knows nothing of the rules: only the codes of
//! the causes come from them.

mod causes;
mod dice;
mod habits;
mod traffic;

use mcpace_record::Recording;

use causes::CAUSES;
use dice::Dice;
use habits::{Faults, Habits};
use traffic::{Operation, Traffic};

/// A recording, and the causes that it has.
pub(crate) struct Scene {
    pub(crate) recording: Recording,
    /// Codes of the causes. Empty for a healthy scene.
    pub(crate) causes: Vec<&'static str>,
    /// Codes that follow from a cause, or that nobody could tell from it in this recording.
    pub(crate) accepted: Vec<&'static str>,
    /// Codes that are right beside the code of a cause, and do not name it.
    pub(crate) beside: Vec<&'static str>,
    /// Whether the client program marked its operations.
    pub(crate) is_marked: bool,
    /// Traits of the scene, for people who look at a miss.
    pub(crate) description: String,
}

/// All causes that scenes are made of.
pub(crate) fn simulated_causes() -> impl Iterator<Item = &'static str> {
    CAUSES.iter().map(|cause| cause.code)
}

/// Two causes of one scene, which leave each other's traffic as it is.
pub(crate) fn random_pair(seed: u64) -> [&'static str; 2] {
    let mut dice = Dice::from_seed(seed);
    loop {
        let pair = [dice.pick(causes::INDEPENDENT), dice.pick(causes::INDEPENDENT)];
        if pair[0] < pair[1] {
            return pair;
        }
    }
}

/// A scene without a cause.
pub(crate) fn healthy_scene(seed: u64) -> Scene {
    let mut dice = Dice::from_seed(seed);
    let faults = Faults::default();
    let habits = Habits::random(&mut dice)
        .without_ambiguous_marks()
        .with_tcp_samples(&faults, &mut Dice::from_seed(seed ^ 0x7c9));
    finish(simulate(&habits, &faults, seed), &habits, &faults, &[])
}

/// A scene with these causes. `None` where chance made one in which a cause doesn't matter: it costs less than 20 ms and
/// less than a tenth of a call.
pub(crate) fn faulty_scene(codes: &[&str], seed: u64) -> Option<Scene> {
    let mut dice = Dice::from_seed(seed);
    let mut habits = Habits::random(&mut dice);
    let mut faults = Faults::default();
    let causes: Vec<_> = codes.iter().filter_map(|code| CAUSES.iter().find(|cause| cause.code == *code)).collect();
    for cause in &causes {
        (cause.adapt)(&mut dice, &mut habits, &mut faults);
    }
    let habits = habits.without_ambiguous_marks().with_tcp_samples(&faults, &mut Dice::from_seed(seed ^ 0x7c9));
    let traffic = simulate(&habits, &faults, seed);
    for cause in &causes {
        // The cost of a cause is the time that it adds to scenes that are the same without it.
        let mut without = faults.clone();
        (cause.remove)(&mut without);
        let calm = simulate(&habits, &without, seed);
        let calls = traffic.totals.calls.max(1) as f64;
        let lost = (traffic.totals.call_time + traffic.totals.connect_time)
            - (calm.totals.call_time + calm.totals.connect_time);
        let call = traffic.totals.call_time / calls;
        if cause.costs_time && lost / calls < 20.0 && lost / calls < call / 10.0 {
            return None;
        }
    }
    let codes: Vec<_> = causes.iter().map(|cause| cause.code).collect();
    Some(finish(traffic, &habits, &faults, &codes))
}

fn finish(traffic: Traffic<'_>, habits: &Habits, faults: &Faults, codes: &[&'static str]) -> Scene {
    let accepted = CAUSES.iter().filter(|cause| codes.contains(&cause.code)).flat_map(|cause| cause.accepted).copied();
    let accepted: Vec<_> = accepted.chain(causes::consequences(habits, faults)).collect();
    let beside = CAUSES.iter().filter(|cause| codes.contains(&cause.code)).flat_map(|cause| cause.beside).copied();
    Scene {
        recording: traffic.recording(),
        causes: codes.to_vec(),
        accepted,
        beside: beside.collect(),
        is_marked: habits.marks,
        description: format!("{habits} {faults:?}"),
    }
}

fn simulate<'s>(habits: &'s Habits, faults: &'s Faults, seed: u64) -> Traffic<'s> {
    let mut traffic = Traffic::new(habits, faults, seed ^ 0x5eed);
    // Times of tools are drawn apart from all else, so that a fault doesn't change them.
    let mut dice = Dice::from_seed(seed ^ 0x7001);
    let mut programs = Vec::new();
    for host in 0..habits.hosts as usize {
        for task in 0..habits.at_once {
            programs.push((host, task_program(habits, faults, task == 0, &mut dice)));
        }
        if let Some(period) = habits.ping_every {
            let length = habits.tool * habits.calls as f64 + habits.pause * habits.calls as f64;
            let pings = ((length / period) as usize).clamp(1, 200);
            let program = (0..pings).flat_map(|_| [Operation::Pause(period), Operation::Ping]).collect();
            programs.push((host, program));
        }
    }
    traffic.run(programs);
    causes::add_loops(&mut traffic, faults, habits);
    traffic
}

/// Operations of one task: its calls, one after another.
fn task_program(habits: &Habits, faults: &Faults, is_first: bool, dice: &mut Dice) -> Vec<Operation> {
    let mut program = Vec::new();
    if is_first && !faults.session_per_call && (faults.listing_bytes.is_some() || dice.chance(0.8)) {
        program.extend([Operation::Start("list"), Operation::List, Operation::Return]);
    }
    let same_arguments = dice.chance(0.1).then_some(1);
    for call in 0..habits.calls {
        let service = habits.tool * dice.jitter(habits.spread);
        let arguments = same_arguments.unwrap_or_else(|| dice.count(1, 1 << 40));
        program.push(Operation::Start("call"));
        if faults.session_per_call {
            program.push(Operation::Connect);
        }
        if faults.rediscovery.is_some() && call > 0 {
            program.push(Operation::Discover);
        }
        if faults.list_before_call {
            program.push(Operation::List);
        }
        program.push(Operation::Call { service, arguments });
        if faults.list_after_call {
            program.push(Operation::List);
        }
        if faults.session_per_call {
            program.push(Operation::Delete);
        }
        program.push(Operation::Return);
        if habits.pause > 0.0 {
            program.push(Operation::Pause(habits.pause * dice.uniform(0.3, 1.7)));
        }
    }
    program
}
