//! `slow-start`: a server process takes long until it first answers (comfyui-mcp #1447, fastmcp #2205).
//!
//! Measured from the spawn or the first request, whichever was later. Whether the time went into a package runner's network,
//! the disk or imports can't be told from lines alone; the finding names the experiment that can. One slow start among
//! several is the disk's, or a download: no cause of what starts take.

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, SlowStart};
use crate::view::{Exchange, Process};

/// A start below this is usual for an interpreted server.
const SHORTEST: Nanos = Nanos::from_millis(1_000);

/// A server whose every answer is slow doesn't start slowly: so many times as long as its typical answer to a request that
/// needs no tool, or as its quickest tool, where only tools were called.
const TIMES_TYPICAL: u64 = 5;
const TIMES_QUICKEST_TOOL: u64 = 3;

/// Programs that may fetch the server from the network before they run it.
const PACKAGE_RUNNERS: [&str; 12] =
    ["npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx", "docker", "podman", "deno", "jbang"];

#[derive(Default)]
struct Starts<'a> {
    tally: Tally,
    program: &'a str,
    starts: u64,
    of_starts: u64,
    longest: Nanos,
    typical: Option<Nanos>,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Starts<'_>> = ByOperation::new();
    for process in &scene.view.processes {
        let ids = process.exchanges.iter();
        let exchanges = ids.filter_map(|id| scene.view.exchange(*id));
        let asked: Vec<_> = exchanges.filter(|e| e.asks()).collect();
        let Some((first, later)) = asked.split_first() else {
            continue;
        };
        charge_start(scene, process, first, later, &mut operations);
    }
    let slow = operations.into_iter().filter(|(_, starts)| starts.starts * 2 > starts.of_starts);
    slow.map(|(operation, starts)| make_finding(scene, operation, starts)).collect()
}

fn charge_start<'s, 'a>(
    scene: &mut Scene<'s, 'a>,
    process: &Process<'a>,
    first: &Exchange<'a>,
    later: &[&Exchange<'a>],
    operations: &mut ByOperation<'s, Starts<'a>>,
) {
    let Some(answered) = first.completed().filter(|_| first.answer.is_some()) else {
        return;
    };
    let asked = first.near().and_then(|near| near.request_end);
    let from = process.started.at.max(asked.map_or(Nanos::ZERO, |s| s.at));
    let waited = answered.at.since(from);
    let (tools, others): (Vec<_>, Vec<_>) = later.iter().copied().partition(|exchange| exchange.requests("tools/call"));
    let mut typical = typical_answer(&others);
    let mut ordinary = typical.is_some_and(|time| waited.0 < time.0.saturating_mul(TIMES_TYPICAL));
    if typical.is_none() {
        typical = typical_answer(&tools);
        let quickest = answer_times(&tools).first().copied();
        ordinary = quickest.is_some_and(|time| waited.0 < time.0.saturating_mul(TIMES_QUICKEST_TOOL));
    }
    let starts = operations.value_of(scene.operation_of(first));
    starts.of_starts += 1;
    if waited < SHORTEST || ordinary {
        return;
    }
    let time = scene.claim_stretch(first.call, from, answered.at);
    starts.tally.add_cost(first.call, time, 0, 0);
    starts.tally.prove_events(&[
        (ProofRole::ProcessStarted, Some(process.started)),
        (ProofRole::FirstStderr, process.first_stderr),
        (ProofRole::FirstOutput, process.first_output),
        (ProofRole::InitializeAnswered, Some(answered)),
    ]);
    starts.starts += 1;
    if waited > starts.longest {
        starts.longest = waited;
        (starts.program, starts.typical) = (process.program, typical);
    }
}

/// The median time from a request's end to its result.
fn typical_answer(exchanges: &[&Exchange<'_>]) -> Option<Nanos> {
    let times = answer_times(exchanges);
    times.get(times.len() / 2).copied()
}

/// The times from the requests' ends to their results, sorted.
fn answer_times(exchanges: &[&Exchange<'_>]) -> Vec<Nanos> {
    let times = exchanges.iter().filter_map(|exchange| {
        let back = exchange.back()?;
        Some(back.result_end?.at.since(back.request_end?.at))
    });
    let mut times: Vec<Nanos> = times.collect();
    times.sort_unstable();
    times
}

fn is_package_runner(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.split('.').next().unwrap_or(name);
    PACKAGE_RUNNERS.contains(&name)
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, starts: Starts<'_>) -> Finding {
    let severity = starts.tally.median_severity();
    let context = SlowStart {
        program: starts.program.to_owned(),
        package_runner: is_package_runner(starts.program),
        starts: starts.starts,
        of_starts: starts.of_starts,
        longest: starts.longest,
        typical_answer: starts.typical,
    };
    starts.tally.into_finding(
        Cause::SlowStart(context),
        operation,
        severity,
        scene.confidence_for(Level::Medium, Reason::ProcessorTimeUnknown),
        Disproof::StartAgainWarm,
    )
}
