//! `superlinear-line`: over stdio, a client takes longer for an answer the longer it is, and more than in proportion: it
//! puts the line together anew with each piece that it reads (typescript-sdk #2245).
//!
//! The time counts that the client let the recorder wait while it took the line, and from the line's end to the call's
//! return: a server that writes slowly has no part in it.

use mcpace_record::Nanos;

use super::SuperlinearLine;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::view::{Call, Exchange, Transport};

/// Answers that make a curve.
const FEWEST: usize = 5;

/// A shorter line is read in one piece or two.
const SMALLEST: u64 = 64 * 1024;

/// The longest must be so many times the shortest.
const SPAN: u64 = 8;

/// Time that the longest line must take to be noticed.
const FELT: Nanos = Nanos::from_millis(100);

/// Time must grow with this power of the size at least; parsing and copying grow with the first.
const POWER: f64 = 1.5;

/// How much of the scatter the curve must explain.
const FIT: f64 = 0.85;

/// An answer's size, and what the client took for it.
struct LargeAnswer<'e, 'a> {
    exchange: &'e Exchange<'a>,
    bytes: u64,
    time: Nanos,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut taken: Vec<LargeAnswer<'_, '_>> =
        scene.view.calls.iter().flat_map(|call| large_answer(scene, call)).collect();
    taken.sort_by_key(|one| one.bytes);
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Vec::new() };
    if taken.len() < FEWEST || last.bytes < first.bytes.saturating_mul(SPAN) || last.time < FELT {
        return Vec::new();
    }
    let (power, fit) = fit_power(&taken);
    if power < POWER || fit < FIT {
        return Vec::new();
    }
    // Time that the line would take in proportion to the shortest one.
    let each = first.time.0 as f64 / first.bytes as f64;
    let context = SuperlinearLine {
        lines: taken.len() as u64,
        largest: last.bytes,
        longest: last.time,
        power: (power * 10.0).round() / 10.0,
    };
    let mut operations: ByOperation<'_, Tally> = ByOperation::new();
    for one in taken.iter().rev() {
        let (exchange, usual) = (one.exchange, Nanos((one.bytes as f64 * each) as u64));
        let end =
            exchange.call.and_then(|call| scene.view.call(call)).map_or(Nanos::ZERO, |call| scene.view.end_of(call));
        let time = scene.claim_stretch(exchange.call, end - one.time.since(usual), end);
        let tally = operations.value_of(scene.operation_of(exchange));
        tally.add_cost(exchange.call, time, 0, 0);
        tally.prove_events(&[
            (ProofRole::AnswerBegan, exchange.back().and_then(|back| back.result_start)),
            (ProofRole::AnswerTaken, exchange.front().and_then(|front| front.result_end)),
        ]);
    }
    let found = operations.into_iter().map(|(operation, tally)| {
        let severity = tally.median_severity();
        let confidence = scene.confidence_for(Level::Medium, Reason::GrowsFaster);
        let cause = Cause::SuperlinearLine(context.clone());
        tally.into_finding(cause, operation, severity, confidence, Disproof::SplitAnswer)
    });
    found.collect()
}

/// The call's large answer, where it has one alone.
fn large_answer<'s, 'a>(scene: &Scene<'s, 'a>, call: &Call<'a>) -> Option<LargeAnswer<'s, 'a>> {
    let [id] = *call.exchanges else { return None };
    let exchange = scene.view.exchange(id).filter(|e| e.transport == Transport::Stdio)?;
    let handed = exchange.front()?.result_end?;
    let bytes = exchange.reply_bytes;
    let returned = call.end?;
    let time = exchange.blocked + returned.at.since(handed.at);
    (bytes >= SMALLEST && time > Nanos::ZERO).then_some(LargeAnswer { exchange, bytes, time })
}

/// The power of the size that times grow with, and the share of the variance that it explains: a line through the
/// logarithms, by least squares.
fn fit_power(taken: &[LargeAnswer<'_, '_>]) -> (f64, f64) {
    let points: Vec<(f64, f64)> = taken.iter().map(|one| ((one.bytes as f64).ln(), (one.time.0 as f64).ln())).collect();
    let count = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|(x, _)| x).sum::<f64>() / count, points.iter().map(|(_, y)| y).sum::<f64>() / count);
    let sum = |part: fn(f64, f64) -> f64| points.iter().map(|(x, y)| part(x - mean_x, y - mean_y)).sum::<f64>();
    let (xx, yy, xy) = (sum(|x, _| x * x), sum(|_, y| y * y), sum(|x, y| x * y));
    if xx <= 0.0 || yy <= 0.0 {
        return (0.0, 0.0);
    }
    (xy / xx, xy * xy / (xx * yy))
}
