//! How server processes ended, and how many requests they left without an answer.

use mcpace_record::Nanos;
use serde::Serialize;

use crate::view::{Exchange, Process, View};

/// A process is started for a call that follows the answer before it within this time, and ends with the call where it
/// ends within the second time after it.
const LONGEST_GAP: Nanos = Nanos::from_millis(100);
const LONGEST_END: Nanos = Nanos::from_millis(500);

/// The end of one server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessExit {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal number, where a signal ended it.
    pub signal: Option<i32>,
    /// Requests that it answered.
    pub answered: u64,
    /// Requests that it did not answer, without those that the client no longer waited for.
    pub unanswered: u64,
    /// How long the tool call took, where the process was started for one call and ended after it.
    #[serde(rename = "only_call_ns")]
    pub only_call: Option<Nanos>,
}

/// The ends of the processes that ended, in the order of their starts.
pub(crate) fn process_exits(view: &View<'_>) -> Vec<ProcessExit> {
    view.processes.iter().filter(|process| process.exited.is_some()).map(|process| exit_of(view, process)).collect()
}

fn exit_of(view: &View<'_>, process: &Process<'_>) -> ProcessExit {
    let (mut answered, mut unanswered, mut cancelled) = (0, 0_u64, 0);
    let exchanges = || process.exchanges.iter().filter_map(|id| view.exchange(*id));
    for exchange in exchanges() {
        answered += u64::from(exchange.asks() && exchange.answer.is_some());
        unanswered += u64::from(exchange.asks() && exchange.answer.is_none());
        cancelled += u64::from(exchange.notifies("notifications/cancelled"));
    }
    let unanswered = unanswered.saturating_sub(cancelled);
    let only_call = only_call(process, exchanges());
    ProcessExit { code: process.exit_code, signal: process.exit_signal, answered, unanswered, only_call }
}

fn only_call<'s, 'a: 's>(process: &Process<'a>, exchanges: impl Iterator<Item = &'s Exchange<'a>>) -> Option<Nanos> {
    let (calls, others): (Vec<_>, Vec<_>) =
        exchanges.filter(|exchange| exchange.answer.is_some()).partition(|exchange| exchange.requests("tools/call"));
    let [call] = calls.as_slice() else { return None };
    let (sent, done) = (call.sent().at, call.completed()?.at);
    let answers = || others.iter().filter_map(|other| Some(other.completed()?.at));
    let before = answers().filter(|at| *at <= sent).max()?;
    let last = answers().fold(done, Nanos::max);
    let is_only = sent.since(before) <= LONGEST_GAP && process.exited?.at.since(last) <= LONGEST_END;
    is_only.then(|| done.since(sent))
}
