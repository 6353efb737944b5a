//! A finding about one tool, from its calls.

use mcpace_record::Nanos;

use crate::findings::scene::Scene;
use crate::findings::tally::Tally;
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason};
use crate::inside::{ToolCall, sum_times};

/// A finding about one tool, with the stretches of its calls that the cause takes.
pub(super) fn make_finding<'s, 'a>(
    scene: &mut Scene<'s, 'a>,
    calls: &[ToolCall<'s, 'a>],
    cause: Cause,
    (level, reason): (Level, Reason),
    disproof: Disproof,
    stretches: impl Fn(&ToolCall<'s, 'a>) -> Vec<(Nanos, Nanos)>,
) -> Finding {
    let mut tally = Tally::default();
    let mut operation = None;
    for call in calls {
        operation = operation.or(scene.operation_of(call.exchange));
        let claimed = stretches(call).into_iter().map(|(from, to)| scene.claim_stretch(call.exchange.call, from, to));
        let time = sum_times(claimed);
        tally.add_cost(call.exchange.call, time, 0, 0);
        let back = call.exchange.back();
        tally.prove_events(&[
            (ProofRole::RequestReceived, back.and_then(|back| back.request_end)),
            (ProofRole::Answered, back.and_then(|back| back.result_start)),
        ]);
    }
    let severity = tally.median_severity();
    tally.into_finding(cause, operation, severity, scene.confidence_for(level, reason), disproof)
}
