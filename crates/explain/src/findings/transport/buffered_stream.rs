//! `buffered-stream`: progress that a server sends while it works reaches the client in one piece, with the result: a reverse
//! proxy or a compressor holds the stream back (nginx #1505, starlette #2753).
//!
//! One recorder sees only what comes out. That progress comes all at once, after a silence, and with the result, is no
//! server's intention; whether something on the way holds it or the server itself could not send is for an experiment,
//! except where the stream is compressed, or where a second recording shows that behind it the same progress was spread out.

use std::collections::HashMap;

use mcpace_record::{ExchangeId, MessageKind, Nanos};

use super::BufferedStream;
use crate::findings::behind::{Passage, gateway_passages};
use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Alternative, Cause, Disproof, Finding, Level, ProofRole, Reason, Severity};
use crate::view::{Exchange, ReplyShape, Stamp};

/// Progress that came at once; less may be chance.
const FEWEST_EVENTS: usize = 3;

/// Silence before it: a tool that is quicker has no progress to tell.
const SILENCE: Nanos = Nanos::from_millis(200);

/// One write, however it was cut.
const AT_ONCE: Nanos = Nanos::from_millis(5);

#[derive(Default)]
struct Replies<'a> {
    tally: Tally,
    replies: u64,
    events: u64,
    longest: Nanos,
    encoding: Option<&'a str>,
    /// Replies among these that were spread out behind the gateway.
    spread_behind: u64,
}

/// A reply whose progress came at once.
struct Bunched {
    silent_from: Stamp,
    first: Stamp,
    result: Stamp,
    events: usize,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let mut operations: ByOperation<'_, Replies<'_>> = ByOperation::new();
    let spread: HashMap<ExchangeId, (Stamp, Stamp)> = gateway_passages(scene, None)
        .iter()
        .filter_map(|passage| Some((passage.before.id, progress_spread(passage)?)))
        .collect();
    for exchange in &scene.view.exchanges {
        let Some(bunched) = bunched_events(exchange) else { continue };
        let replies = operations.value_of(scene.operation_of(exchange));
        replies.tally.add_cost(exchange.call, Nanos::ZERO, 0, 0);
        replies.tally.prove_events(&[
            (ProofRole::RequestReceived, Some(bunched.silent_from)),
            (ProofRole::FirstProgress, Some(bunched.first)),
            (ProofRole::Result, Some(bunched.result)),
        ]);
        if let Some((first, last)) = spread.get(&exchange.id) {
            replies.tally.prove_behind([*first, *last].into_iter().map(|stamp| (ProofRole::FirstProgress, stamp)));
            replies.spread_behind += 1;
        }
        replies.replies += 1;
        replies.events += bunched.events as u64;
        replies.longest = replies.longest.max(bunched.first.at.since(bunched.silent_from.at));
        replies.encoding = replies.encoding.or(exchange.content_encoding().filter(|name| *name != "identity"));
    }
    operations
        .into_iter()
        .filter(|(_, replies)| replies.replies > 0)
        .map(|(operation, replies)| make_finding(scene, operation, replies))
        .collect()
}

fn bunched_events(exchange: &Exchange<'_>) -> Option<Bunched> {
    let back = exchange.back()?;
    let (silent_from, result) = (back.request_end?, back.result_end?);
    if exchange.shape != ReplyShape::Events || exchange.is_standalone_stream() {
        return None;
    }
    let told = progress_stamps(exchange);
    let first = *told.first()?;
    let at_once = result.at.since(first.at) <= AT_ONCE && told.iter().all(|stamp| stamp.at <= result.at + AT_ONCE);
    let silent = first.at.since(silent_from.at) >= SILENCE;
    let enough = told.len() >= FEWEST_EVENTS && at_once && silent;
    enough.then_some(Bunched { silent_from, first, result, events: told.len() })
}

/// The first and the last progress behind what stands between, where it came with pauses.
fn progress_spread(passage: &Passage<'_, '_>) -> Option<(Stamp, Stamp)> {
    passage.behind.iter().find_map(|exchange| {
        let told = progress_stamps(exchange);
        let (first, last) = (*told.first()?, *told.last()?);
        (told.len() >= FEWEST_EVENTS && last.at.since(first.at) >= SILENCE).then_some((first, last))
    })
}

/// Stamps of the progress notifications of an exchange, in order.
fn progress_stamps(exchange: &Exchange<'_>) -> Vec<Stamp> {
    let told = exchange.events.iter().filter(|event| {
        event
            .messages
            .iter()
            .any(|m| m.kind() == MessageKind::Notification && m.method() == Some("notifications/progress"))
    });
    let mut told: Vec<Stamp> = told.filter_map(|event| event.read()).collect();
    told.sort_by_key(|stamp| stamp.at);
    told
}

fn make_finding(scene: &Scene<'_, '_>, operation: Option<&str>, replies: Replies<'_>) -> Finding {
    let context = BufferedStream {
        replies: replies.replies,
        events: replies.events,
        encoding: replies.encoding.map(str::to_owned),
        longest: replies.longest,
    };
    let spread_behind = replies.spread_behind == replies.replies;
    let confidence = match (replies.encoding, replies.replies) {
        _ if spread_behind => scene.confidence_for(Level::High, Reason::SpreadBehind),
        (Some(_), _) => scene.confidence_for(Level::High, Reason::StreamCompressed),
        (None, 1) => scene.confidence_for(Level::Low, Reason::SeenOnce),
        (None, _) => scene.confidence_for(Level::Medium, Reason::AnotherLooksAlike),
    };
    let compressed = replies.encoding.is_some();
    let disproof = if compressed { Disproof::AskUncompressed } else { Disproof::BypassProxy };
    let cause = Cause::BufferedStream(context);
    // The severity does not depend on the time: a waiting user sees no progress.
    let finding = replies.tally.into_finding(cause, operation, Severity::Medium, confidence, disproof);
    if compressed || spread_behind {
        finding
    } else {
        finding.or_alternative(Alternative::BLOCKED_EVENT_LOOP_BY_BYPASS)
    }
}
