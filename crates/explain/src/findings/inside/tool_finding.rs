//! A finding about one tool, from its calls.

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::inside::{ToolCall, sum_times};
use crate::view::Exchange;

/// A finding about one tool, with the stretches of its calls that the cause takes.
pub(super) fn make_finding<'s, 'a>(
    scene: &mut Scene<'s, 'a>,
    calls: &[ToolCall<'s, 'a>],
    cause: Cause,
    (level, reason): (Level, Reason),
    disproof: Disproof,
    stretches: impl Fn(&ToolCall<'s, 'a>) -> Vec<(Nanos, Nanos)>,
) -> Finding {
    let exchanges = calls.iter().map(|call| (call.exchange, stretches(call)));
    make_finding_of_exchanges(scene, exchanges, cause, (level, reason), disproof)
}

/// A finding about one tool, from the exchanges of its calls, each with the stretches that the cause takes.
pub(super) fn make_finding_of_exchanges<'s, 'a: 's>(
    scene: &mut Scene<'s, 'a>,
    exchanges: impl Iterator<Item = (&'s Exchange<'a>, Vec<(Nanos, Nanos)>)>,
    cause: Cause,
    (level, reason): (Level, Reason),
    disproof: Disproof,
) -> Finding {
    let mut tally = Tally::default();
    let mut operation = None;
    for (exchange, stretches) in exchanges {
        operation = operation.or(scene.operation_of(exchange));
        let claimed = stretches.into_iter().map(|(from, to)| scene.claim_stretch(exchange.call, from, to));
        let time = sum_times(claimed);
        tally.add_cost(exchange.call, time, 0, 0);
        let back = exchange.back();
        tally.prove_events(&[
            (ProofRole::RequestReceived, back.and_then(|back| back.request_end)),
            (ProofRole::Answered, back.and_then(|back| back.result_start)),
        ]);
    }
    let severity = tally.median_severity();
    tally.into_finding(cause, operation, severity, scene.confidence_for(level, reason), disproof)
}
