//! How server processes ended, and how many requests they left without an answer.

use serde::Serialize;

use crate::view::{Process, View};

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
}

/// The ends of the processes that ended, in the order of their starts.
pub(crate) fn process_exits(view: &View<'_>) -> Vec<ProcessExit> {
    view.processes.iter().filter(|process| process.exited.is_some()).map(|process| exit_of(view, process)).collect()
}

fn exit_of(view: &View<'_>, process: &Process<'_>) -> ProcessExit {
    let (mut answered, mut unanswered, mut cancelled) = (0, 0_u64, 0);
    for exchange in process.exchanges.iter().filter_map(|id| view.exchange(*id)) {
        answered += u64::from(exchange.asks() && exchange.answer.is_some());
        unanswered += u64::from(exchange.asks() && exchange.answer.is_none());
        cancelled += u64::from(exchange.notifies("notifications/cancelled"));
    }
    let unanswered = unanswered.saturating_sub(cancelled);
    ProcessExit { code: process.exit_code, signal: process.exit_signal, answered, unanswered }
}
