//! `auth-deadlock`: the client asked for a token, then sent nothing any more, and the call never returned or failed long
//! after: the authentication code waits for a lock that nobody gives back (python-sdk #1326; FastMCP 2.14, which loses it
//! where a connect is given up while its token is renewed).
//!
//! Sees: inside an operation that failed or never returned, the last thing on the wire is a token request that succeeded,
//! every other request of the operation had its reply, and then comes silence. Or such an operation sent nothing at all, and
//! the last thing that anybody had sent was a token request, which is over. A session's own stream may stand. A stream of the
//! transport of 2024-11-05 may not: everything comes on it, and a client that does nothing after it opened one hangs with a
//! good token, too (mcp 1.12 reads it to its end).
//!
//! Without operations the refused request takes the operation's place: a client that got a token repeats what was refused for
//! want of one.

use std::cell::OnceCell;

use mcpace_record::{Nanos, ReplyEnding};

use crate::Part;
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{AuthDeadlock, Cause, Disproof, Finding, Level, ProofRole, Reason, Severity};
use crate::ledger::sweep_call;
use crate::view::{Call, Exchange, Stamp};

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
    // Only lost calls ask for them, of which there mostly are none.
    let working = OnceCell::new();
    for call in &scene.view.calls {
        let deadlocks = operations.value_of(Some(call.operation));
        deadlocks.of_calls += 1;
        if let Some(token) = last_token(scene, call).or_else(|| token_before(scene, call, &working)) {
            charge_deadlock(scene, call, token, deadlocks);
        }
    }
    if let Some((refused, token)) = token_without_calls(scene) {
        let deadlocks = operations.value_of(None);
        deadlocks.of_calls += 1;
        deadlocks.calls += 1;
        deadlocks.longest = scene.view.end.since(token.from);
        deadlocks.tally.add_cost(None, deadlocks.longest, 0, 0);
        deadlocks.tally.prove_events(&[
            (ProofRole::RefusedRequest, Some(refused)),
            (ProofRole::TokenRequest, Some(token.asked)),
            (ProofRole::TokenGranted, token.granted),
        ]);
    }
    operations
        .into_iter()
        .filter(|(_, deadlocks)| deadlocks.calls > 0)
        .map(|(operation, deadlocks)| make_finding(scene, operation, deadlocks))
        .collect()
}

/// A request for a token after which nothing came.
struct Token {
    asked: Stamp,
    /// Unless the client gave it up.
    granted: Option<Stamp>,
    /// Begin of the call's silence.
    from: Nanos,
}

/// One in the call, granted.
fn last_token<'a>(scene: &Scene<'_, 'a>, call: &Call<'a>) -> Option<Token> {
    if !call.is_lost() {
        return None;
    }
    let exchanges = scene.exchanges_of(call);
    let working = || exchanges.iter().filter(|exchange| !exchange.is_standalone_stream());
    let token = working().max_by_key(|exchange| exchange.sent().at)?;
    let granted = token.completed().filter(|_| token.sends_form() && token.status == Some(200))?;
    let open = |exchange: &Exchange<'_>| exchange.completed().is_none_or(|end| end.at > granted.at);
    let mut others = exchanges.iter().filter(|exchange| exchange.id != token.id);
    let waits_elsewhere = others.any(|other| open(other) && !may_stand(other, granted));
    let silent = scene.view.end_of(call).since(granted.at) >= SHORTEST;
    let connecting =
        || sweep_call(scene.view, &scene.stalls, call).segments.last().is_some_and(|last| last.part == Part::Connect);
    let token = Token { asked: token.sent(), granted: Some(granted), from: granted.at };
    (silent && !waits_elsewhere && !connecting()).then_some(token)
}

/// A stream that was there before the token, or that a session keeps for what the server says unasked.
fn may_stand(exchange: &Exchange<'_>, granted: Stamp) -> bool {
    let stands = exchange.near().is_some_and(|near| near.reply_head.is_some());
    let of_session = exchange.session_sent().is_some() && stands;
    exchange.is_standalone_stream() && (of_session || exchange.sent().at < granted.at)
}

/// One before the call, granted or given up, where nobody sent anything from then to the call's end.
fn token_before<'s, 'a>(
    scene: &Scene<'s, 'a>,
    call: &Call<'a>,
    working: &OnceCell<Vec<&'s Exchange<'a>>>,
) -> Option<Token> {
    if !call.is_lost() || !call.exchanges.is_empty() || !call.failed_connects.is_empty() {
        return None;
    }
    let end = scene.view.end_of(call);
    let working = working.get_or_init(|| {
        let exchanges = scene.view.exchanges.iter();
        exchanges.filter(|exchange| !exchange.is_standalone_stream()).collect()
    });
    let until = working.partition_point(|exchange| exchange.start.at <= end);
    let token = working[..until].last()?;
    let over = token.ended().filter(|_| token.sends_form())?;
    let granted = match (token.ending?, token.status) {
        (ReplyEnding::Complete, Some(200)) => Some(over),
        (ReplyEnding::ClientLeft, _) => None,
        _ => return None,
    };
    let from = over.at.max(call.start.at);
    let silent = token.start.at < call.start.at && end.since(from) >= SHORTEST;
    silent.then_some(Token { asked: token.sent(), granted, from })
}

/// The last request of a recording without operations: for a token, granted, after a refusal that nothing followed up.
fn token_without_calls(scene: &Scene<'_, '_>) -> Option<(Stamp, Token)> {
    let view = scene.view;
    if !view.calls.is_empty() {
        return None;
    }
    let mut working = view.exchanges.iter().filter(|exchange| !exchange.is_standalone_stream()).rev();
    let token = working.next()?;
    let granted = token.completed().filter(|_| token.sends_form() && token.status == Some(200))?;
    let refused = working.find(|exchange| exchange.is_message())?;
    let waits_elsewhere = view.exchanges.iter().any(|other| other.is_message() && other.ended().is_none());
    let silent = view.end.since(granted.at) >= SHORTEST;
    let token = Token { asked: token.sent(), granted: Some(granted), from: granted.at };
    (refused.status == Some(401) && silent && !waits_elsewhere).then_some((refused.sent(), token))
}

fn charge_deadlock(scene: &mut Scene<'_, '_>, call: &Call<'_>, token: Token, deadlocks: &mut Deadlocks) {
    let end = scene.view.end_of(call);
    let time = scene.claim_stretch(Some(call.id), token.from, end);
    deadlocks.tally.add_cost(Some(call.id), time, 0, 0);
    deadlocks.tally.prove_events(&[
        (ProofRole::CallStarted, Some(call.start)),
        (ProofRole::TokenRequest, Some(token.asked)),
        (ProofRole::TokenGranted, token.granted),
        (ProofRole::CallReturned, call.end),
    ]);
    deadlocks.calls += 1;
    deadlocks.longest = deadlocks.longest.max(end.since(token.from));
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, deadlocks: Deadlocks) -> Finding {
    let context = AuthDeadlock { calls: deadlocks.calls, of_calls: deadlocks.of_calls, longest: deadlocks.longest };
    deadlocks.tally.into_finding(
        Cause::AuthDeadlock(context),
        operation,
        // The call is lost, however long it took.
        Severity::High,
        scene.confidence_for(if operation.is_some() { Level::Medium } else { Level::Low }, Reason::NothingOnTheWire),
        Disproof::CallWithGoodToken,
    )
}
