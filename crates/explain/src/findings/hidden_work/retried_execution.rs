//! `retried-execution`: a tool is called again with the same arguments under a new id, though the first call may be running
//! still: after a round time-out (a client's retry; langflow #12996), or at the same moment (a host that dispatches twice;
//! claude-code #36149).
//!
//! Equal calls alone prove nothing: every load test is made of them. A pair counts if the first call had no answer when
//! the second left, and either the client gave it up after a time that people choose (whole seconds) or both left
//! together inside one operation. In a recording without operations, pairs count only where almost all calls come in
//! pairs and each pair comes out of silence: two workers that call in turns start on the answers of the calls before.

use std::collections::HashMap;

use mcpace_record::{Digest, ExchangeId, Nanos, ReplyEnding};

use crate::findings::scene::Scene;
use crate::findings::tally::{ByOperation, Tally};
use crate::findings::{Cause, Disproof, Finding, Level, ProofRole, Reason, RetriedExecution, Severity, Trigger};
use crate::view::{Exchange, Note, Stamp, Transport};

/// Nobody gives a tool up sooner.
const SHORTEST_TIMEOUT: Nanos = Nanos::from_millis(1_000);

/// Up to here time-outs are whole seconds, past it multiples of five.
const FINE_TIMEOUT: Nanos = Nanos::from_millis(10_000);

/// How late a timer may fire, and how early stamps may make it look.
const TIMER: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(5));

/// A recorder may see the end of one connection this much after the first request on the next.
const CROSSING: Nanos = Nanos::from_millis(5);

/// How soon after giving up the retry must leave.
const RETRY_WITHIN: Nanos = Nanos::from_millis(5_000);

/// How close the two of a pair leave.
const TOGETHER: Nanos = Nanos::from_millis(20);

/// How long nothing was under way before a pair.
const SILENCE: Nanos = Nanos::from_millis(50);

/// Pairs without operations below which chance explains them.
const FEWEST_PAIRS: usize = 3;

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct CallerKey<'a> {
    target: &'a str,
    session: Option<&'a str>,
    authorization: Option<&'a str>,
}

/// One sending of a tool call.
#[derive(Clone, Copy)]
struct Execution<'e, 'a> {
    exchange: &'e Exchange<'a>,
    note: &'a Note<'a>,
}

/// The tool and its arguments.
type ToolRequest<'a> = (Option<&'a str>, Option<Digest>);

impl<'a> Execution<'_, 'a> {
    fn caller_key(&self) -> CallerKey<'a> {
        let exchange = self.exchange;
        CallerKey {
            target: exchange.target(),
            session: exchange.session_sent(),
            authorization: exchange.authorization(),
        }
    }

    fn request_key(&self) -> ToolRequest<'a> {
        (self.note.name(), self.note.arguments.or(self.note.content))
    }

    /// Whether it was under way for so long that a client may have given it up.
    fn is_long(&self) -> bool {
        let sent = self.exchange.sent().at;
        let answered = self.exchange.completed().filter(|_| self.exchange.answer.is_some());
        answered.is_none_or(|answered| answered.at.since(sent) + TIMER.1 >= SHORTEST_TIMEOUT)
    }
}

/// A call that was made again.
struct Retry<'e, 'a> {
    first: Execution<'e, 'a>,
    again: Execution<'e, 'a>,
    /// When the first was given up, after a time-out.
    given_up: Option<Stamp>,
}

#[derive(Default)]
struct Retries<'a> {
    tally: Tally,
    repeats: u64,
    both_answered: u64,
    tool: Option<&'a str>,
    timeout: Option<Nanos>,
    ties: u64,
}

pub(in crate::findings) fn find(scene: &mut Scene<'_, '_>) -> Vec<Finding> {
    let executions = find_executions(scene);
    let mut retries = after_timeouts(scene, &executions);
    retries.extend(at_once(scene, &executions));
    let mut by_trigger = [(Trigger::TimeOut, ByOperation::new()), (Trigger::AtOnce, ByOperation::new())];
    for retry in &retries {
        let operations = &mut by_trigger[usize::from(retry.given_up.is_none())].1;
        charge_retry(scene, retry, operations.value_of(scene.operation_of(retry.again.exchange)));
    }
    let mut found = Vec::new();
    for (trigger, operations) in by_trigger {
        found.extend(
            operations.into_iter().map(|(operation, retries)| make_finding(scene, trigger, operation, retries)),
        );
    }
    found
}

/// Requests that were given up after a round time and sent again, each with the time at which it was given up.
pub(in crate::findings) fn given_up_requests<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<(ExchangeId, Stamp)> {
    let retries = after_timeouts(scene, &find_executions(scene));
    retries.iter().filter_map(|retry| Some((retry.first.exchange.id, retry.given_up?))).collect()
}

fn find_executions<'s, 'a>(scene: &Scene<'s, 'a>) -> Vec<Execution<'s, 'a>> {
    let calls = scene.view.exchanges.iter().filter_map(|exchange| {
        let [note] = exchange.messages else { return None };
        let called = note.requests("tools/call") && !scene.is_repeat(exchange);
        note.arguments.or(note.content).filter(|_| called)?;
        Some(Execution { exchange, note })
    });
    calls.collect()
}

fn after_timeouts<'s, 'a>(scene: &Scene<'s, 'a>, executions: &[Execution<'s, 'a>]) -> Vec<Retry<'s, 'a>> {
    let cancels = cancel_times(scene);
    // Only those that may be given up: most have their answer long before.
    let mut last: HashMap<(CallerKey<'_>, ToolRequest<'_>), Execution<'_, '_>> = HashMap::new();
    let mut found = Vec::new();
    for again in executions {
        let key = || (again.caller_key(), again.request_key());
        let first = if again.is_long() {
            last.insert(key(), *again)
        } else if last.is_empty() {
            None
        } else {
            last.remove(&key())
        };
        let Some(first) = first.filter(|first| first.note.id != again.note.id) else { continue };
        let cancelled = cancels.get(&again.caller_key().session);
        if let Some(given_up) = given_up(&first, again, cancelled.map_or(&[], Vec::as_slice)) {
            found.push(Retry { first, again: *again, given_up: Some(given_up) });
        }
    }
    found
}

/// When each session's client said that it no longer waits for something.
fn cancel_times<'a>(scene: &Scene<'_, 'a>) -> HashMap<Option<&'a str>, Vec<Stamp>> {
    let mut cancels: HashMap<Option<&str>, Vec<Stamp>> = HashMap::new();
    for exchange in scene.view.exchanges.iter().filter(|e| e.notifies("notifications/cancelled")) {
        cancels.entry(exchange.session_sent()).or_default().push(exchange.sent());
    }
    for stamps in cancels.values_mut() {
        stamps.sort_by_key(|stamp| stamp.at);
    }
    cancels
}

fn given_up(first: &Execution<'_, '_>, again: &Execution<'_, '_>, cancels: &[Stamp]) -> Option<Stamp> {
    let (sent, asked_again) = (first.exchange.sent().at, again.exchange.sent());
    if answered_before(first.exchange, asked_again.at) {
        return None;
    }
    let cancelled = cancels.get(cancels.partition_point(|stamp| stamp.at < sent));
    let cancelled = cancelled.filter(|stamp| stamp.at <= asked_again.at).copied();
    let left = match first.exchange.ending {
        Some(ReplyEnding::ClientLeft) => first.exchange.ended().filter(|end| end.at <= asked_again.at + CROSSING),
        // A broken connection or an error is a failure, and a retry after it legitimate.
        Some(ReplyEnding::ServerBroke | ReplyEnding::NoReply) => return None,
        _ => None,
    };
    let same_call = first.exchange.call.is_some() && first.exchange.call == again.exchange.call;
    // Over stdio a client can give a call up without a word: the call never gets an answer.
    let unanswered = first.exchange.transport == Transport::Stdio && first.exchange.answer.is_none();
    let given_up = left.or(cancelled).or((same_call || unanswered).then_some(asked_again))?;
    let soon = asked_again.at.since(given_up.at) <= RETRY_WITHIN;
    (soon && is_round(given_up.at.since(sent))).then_some(given_up)
}

fn answered_before(exchange: &Exchange<'_>, at: Nanos) -> bool {
    exchange.answer.is_some() && exchange.completed().is_none_or(|completed| completed.at <= at)
}

/// Whether `time` is one that people choose for a time-out.
pub(in crate::findings) fn is_round(time: Nanos) -> bool {
    let step = if time < FINE_TIMEOUT { SHORTEST_TIMEOUT } else { Nanos(SHORTEST_TIMEOUT.0 * 5) };
    let (late, early) = (time.0 % step.0, step.0 - time.0 % step.0);
    time + TIMER.1 >= SHORTEST_TIMEOUT && (late <= TIMER.0.0 || early <= TIMER.1.0)
}

fn at_once<'s, 'a>(scene: &Scene<'s, 'a>, executions: &[Execution<'s, 'a>]) -> Vec<Retry<'s, 'a>> {
    let mut by_caller: HashMap<CallerKey<'_>, Vec<Execution<'_, '_>>> = HashMap::new();
    for execution in executions {
        by_caller.entry(execution.caller_key()).or_default().push(*execution);
    }
    let mut callers: Vec<Vec<Execution<'_, '_>>> = by_caller.into_values().collect();
    callers.sort_by_key(|calls| calls[0].exchange.start.event);
    let told = !scene.view.calls.is_empty();
    callers.iter().flat_map(|calls| retry_pairs(calls, told)).collect()
}

/// The pairs of one caller's calls; none where they may be chance.
fn retry_pairs<'s, 'a>(calls: &[Execution<'s, 'a>], told: bool) -> Vec<Retry<'s, 'a>> {
    let (mut found, mut singles, mut out_of_silence) = (Vec::new(), 0, 0);
    let mut busy_until: Option<Nanos> = None;
    let mut at = 0;
    while let Some(first) = calls.get(at) {
        let again = calls.get(at + 1).filter(|again| run_together(first, again));
        let third = calls.get(at + 2).is_some_and(|third| run_together(first, third));
        let same_call =
            |again: &Execution<'_, '_>| first.exchange.call.is_some() && first.exchange.call == again.exchange.call;
        match again.filter(|again| !third && (!told || same_call(again))) {
            Some(again) => {
                let silent = busy_until.is_none_or(|until| until + SILENCE <= first.exchange.sent().at);
                out_of_silence += usize::from(silent);
                found.push(Retry { first: *first, again: *again, given_up: None });
                at += 2;
            }
            None => {
                singles += 1;
                at += 1;
            }
        }
        let ended =
            calls[..at].iter().rev().take(2).map(|call| call.exchange.completed().map_or(Nanos(u64::MAX), |s| s.at));
        busy_until = busy_until.max(ended.max());
    }
    let by_chance = found.len() < FEWEST_PAIRS || singles * 2 > found.len() || out_of_silence + 1 < found.len();
    if !told && by_chance { Vec::new() } else { found }
}

fn run_together(first: &Execution<'_, '_>, again: &Execution<'_, '_>) -> bool {
    let sent = again.exchange.sent().at;
    first.request_key() == again.request_key()
        && first.note.id != again.note.id
        && sent.since(first.exchange.sent().at) <= TOGETHER
        && !answered_before(first.exchange, sent)
}

fn charge_retry<'a>(scene: &mut Scene<'_, 'a>, retry: &Retry<'_, 'a>, retries: &mut Retries<'a>) {
    let (first, again) = (retry.first.exchange, retry.again.exchange);
    let (from, to) = (first.sent(), again.sent());
    // Two calls at once take no time of their own; one that was waited for in vain does.
    let time = match retry.given_up {
        Some(_) => scene.claim_stretch(again.call, from.at, to.at),
        None => Nanos::ZERO,
    };
    retries.tally.add_cost(again.call, time, 1, again.bytes());
    retries.tally.prove_events(&[
        (ProofRole::FirstRequest, Some(from)),
        (ProofRole::GivenUp, retry.given_up),
        (ProofRole::RepeatedRequest, Some(to)),
        (ProofRole::RepeatedResult, again.completed()),
    ]);
    retries.repeats += 1;
    retries.both_answered += u64::from(first.answer.is_some() && again.answer.is_some());
    retries.tool = retries.tool.or(retry.again.note.name());
    let timeout = retry.given_up.map(|given_up| given_up.at.since(from.at));
    retries.timeout = retries.timeout.or(timeout);
    retries.ties += u64::from(first.call.is_some() && first.call == again.call);
}

fn make_finding(scene: &Scene<'_, '_>, trigger: Trigger, operation: Option<&str>, retries: Retries<'_>) -> Finding {
    let confidence = match retries.repeats {
        repeats if repeats == retries.ties => scene.confidence_for(Level::High, Reason::OrderInsideCall),
        1 => scene.confidence_for(Level::Low, Reason::SeenOnce),
        _ => scene.confidence_for(Level::Medium, Reason::Repeated),
    };
    let context = RetriedExecution {
        tool: retries.tool.map(str::to_owned),
        repeats: retries.repeats,
        both_answered: retries.both_answered,
        trigger,
        timeout: retries.timeout,
    };
    // A tool that runs twice is wrong at any speed.
    retries.tally.into_finding(
        Cause::RetriedExecution(context),
        operation,
        Severity::High,
        confidence,
        Disproof::CountExecutionsAtServer,
    )
}
