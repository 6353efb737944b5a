//! `auth-deadlock`: the token came, then nothing was sent any more, and the call never returned or failed long after
//! (python-sdk #1326: the authentication code waits for a lock that it holds itself).
//!
//! Sees: inside an operation that failed or never returned, the last thing on the wire is a token request that succeeded,
//! every other request of the operation had its reply, and then comes silence. Streams that the client opens for the server's
//! own messages may stand; but one of the transport of 2024-11-05, before its first event, is what such a client waits for.

use mcpace_record::Nanos;

use crate::Part;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{AuthDeadlock, Cause, Disproof, Finding, Level, Reason, Role, Severity};
use crate::ledger::sweep;
use crate::view::{Call, Exchange, Outcome, Stamp};

/// Silence below this may be a slow client.
const SHORTEST: Nanos = Nanos::from_millis(5_000);

#[derive(Default)]
struct Deadlocks {
    tally: Tally,
    calls: u64,
    of_calls: u64,
    longest: Nanos,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Deadlocks> = ByOperation::new();
    for call in &scene.view.calls {
        let deadlocks = operations.of(Some(call.operation));
        deadlocks.of_calls += 1;
        if let Some(token) = last_token(scene, call) {
            charge(scene, call, token, deadlocks);
        }
    }
    operations
        .into_iter()
        .filter(|(_, deadlocks)| deadlocks.calls > 0)
        .map(|(operation, deadlocks)| conclude(scene, operation, deadlocks))
        .collect()
}

/// The token's reply after which nothing came.
fn last_token<'a>(scene: &Scene<'_, 'a>, call: &Call<'a>) -> Option<(Stamp, Stamp)> {
    if !matches!(call.outcome, None | Some(Outcome::Failed(_))) {
        return None;
    }
    let exchanges = scene.exchanges_of(call);
    let working = || exchanges.iter().filter(|exchange| !exchange.is_standalone_stream());
    let token = working().max_by_key(|exchange| exchange.sent().at)?;
    let granted = token.completed().filter(|_| token.sends_form() && token.status == Some(200))?;
    let open = |exchange: &Exchange<'_>| exchange.completed().is_none_or(|end| end.at > granted.at);
    let untold = |exchange: &Exchange<'_>| exchange.session_sent().is_none() && exchange.events.is_empty();
    let mut others = exchanges.iter().filter(|exchange| exchange.id != token.id);
    let waits_elsewhere = others.any(|other| open(other) && (!other.is_standalone_stream() || untold(other)));
    let silent = scene.view.end_of(call).since(granted.at) >= SHORTEST;
    let connecting = || sweep(scene.view, call).segments.last().is_some_and(|last| last.part == Part::Connect);
    (silent && !waits_elsewhere && !connecting()).then_some((token.sent(), granted))
}

fn charge(scene: &mut Scene<'_, '_>, call: &Call<'_>, (asked, granted): (Stamp, Stamp), deadlocks: &mut Deadlocks) {
    let end = scene.view.end_of(call);
    let time = scene.claim(Some(call.id), granted.at, end);
    deadlocks.tally.cost(Some(call.id), time, 0, 0);
    deadlocks.tally.prove(&[
        (Role::CallStarted, Some(call.start)),
        (Role::TokenRequest, Some(asked)),
        (Role::TokenGranted, Some(granted)),
        (Role::CallReturned, call.end),
    ]);
    deadlocks.calls += 1;
    deadlocks.longest = deadlocks.longest.max(end.since(granted.at));
}

fn conclude(scene: &Scene<'_, '_>, operation: Option<&str>, deadlocks: Deadlocks) -> Finding {
    let context = AuthDeadlock { calls: deadlocks.calls, of_calls: deadlocks.of_calls, longest: deadlocks.longest };
    deadlocks.tally.finding(
        Cause::AuthDeadlock(context),
        operation,
        // The call is lost, however long it took.
        Severity::High,
        scene.confidence(Level::Medium, Reason::NothingOnTheWire),
        Disproof::CallWithGoodToken,
    )
}
