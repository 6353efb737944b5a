//! `auth-deadlock`: the token came, then nothing was sent any more, and the call never returned or failed long after
//! (python-sdk #1326: the authentication code waits for a lock that it holds itself).
//!
//! Sees: inside an operation that failed or never returned, the last thing on the wire is a token request that succeeded,
//! every other request of the operation had its reply, and then comes silence.

use mcpace_record::{CallOutcome, Nanos};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{AuthDeadlock, Cause, Disproof, Finding, Level, Reason, Role, Severity};
use crate::view::{Exchange, Stamp};
use crate::{Ledger, Part};

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
    for ledger in scene.ledgers {
        let deadlocks = operations.of(Some(&ledger.operation));
        deadlocks.of_calls += 1;
        if let Some(token) = last_token(scene, ledger) {
            charge(scene, ledger, token, deadlocks);
        }
    }
    operations
        .into_iter()
        .filter(|(_, deadlocks)| deadlocks.calls > 0)
        .map(|(operation, deadlocks)| conclude(scene, operation, deadlocks))
        .collect()
}

/// The token's reply after which nothing came.
fn last_token(scene: &Scene<'_, '_>, ledger: &Ledger) -> Option<(Stamp, Stamp)> {
    if !matches!(ledger.outcome, None | Some(CallOutcome::Failed(_))) {
        return None;
    }
    let exchanges = scene.exchanges_of(ledger);
    let working = || exchanges.iter().filter(|exchange| !exchange.is_standalone_stream());
    let token = working().max_by_key(|exchange| exchange.sent().at)?;
    let granted = token.completed().filter(|_| token.sends_form() && token.status == Some(200))?;
    let open = |exchange: &Exchange<'_>| exchange.completed().is_none_or(|end| end.at > granted.at);
    let waits_elsewhere = working().any(|exchange| exchange.id != token.id && open(exchange));
    let connecting = ledger.parts.connect > Nanos::ZERO
        && ledger.segments.iter().next_back().is_some_and(|segment| segment.part == Part::Connect);
    let silent = ledger.end.since(granted.at) >= SHORTEST;
    (silent && !waits_elsewhere && !connecting).then_some((token.sent(), granted))
}

fn charge(scene: &mut Scene<'_, '_>, ledger: &Ledger, (asked, granted): (Stamp, Stamp), deadlocks: &mut Deadlocks) {
    let time = scene.claim(Some(ledger.call), granted.at, ledger.end);
    deadlocks.tally.cost(Some(ledger.call), time, 0, 0);
    let call = scene.view.call(ledger.call);
    deadlocks.tally.prove(&[
        (Role::CallStarted, call.map(|call| call.start)),
        (Role::TokenRequest, Some(asked)),
        (Role::TokenGranted, Some(granted)),
        (Role::CallReturned, call.and_then(|call| call.end)),
    ]);
    deadlocks.calls += 1;
    deadlocks.longest = deadlocks.longest.max(ledger.end.since(granted.at));
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
