//! Tool calls that a foreign client makes one after another although it knew them together: a host that runs the tool
//! calls of one turn of its model in turn (openai-agents over HTTP).
//!
//! A client that decides between two calls takes a while. Calls that follow the answer before them at once, after a pause
//! before the first, were decided together. Whether one needs the answer of another can't be told from the wire.

use std::collections::HashMap;

use mcpace_record::Nanos;
use serde::Serialize;

use crate::view::{Exchange, View};

/// A call within this time after the answer before it was known before that answer.
const AT_ONCE: Nanos = Nanos::from_millis(20);

/// A client that decides takes at least this long.
const SHORTEST_PAUSE: Nanos = Nanos::from_millis(100);

/// Calls that followed one another at once, over all turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SerialCalls {
    /// The calls, the first of each turn included.
    pub calls: u64,
    /// The time that they took.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// The time that they would have taken with the calls of each turn at once.
    #[serde(rename = "at_once_ns")]
    pub at_once: Nanos,
}

/// The calls of one turn up to now, in one session.
#[derive(Default)]
struct Turn {
    /// The turn's calls followed one another, and a pause came before them.
    is_serial: bool,
    calls: u64,
    time: Nanos,
    longest: Nanos,
    /// When the last answer to any request of the session was there.
    answered: Nanos,
    /// Whether that answer was a call's.
    after_call: bool,
}

impl SerialCalls {
    /// Those of a recording without operations; with operations, the program decides what it calls.
    pub(crate) fn from_view(view: &View<'_>) -> Self {
        let mut serial = Self::default();
        if !view.calls.is_empty() {
            return serial;
        }
        let mut turns: HashMap<Option<&str>, Turn> = HashMap::new();
        for exchange in view.exchanges.iter().filter(|exchange| exchange.asks()) {
            let turn = turns.entry(exchange.session()).or_default();
            serial.add_exchange(turn, exchange);
        }
        turns.into_values().for_each(|turn| serial.add_turn(&turn));
        serial
    }

    fn add_exchange(&mut self, turn: &mut Turn, exchange: &Exchange<'_>) {
        let sent = exchange.sent().at;
        let overlaps = sent < turn.answered;
        let is_call = exchange.requests("tools/call");
        let follows = is_call && turn.after_call && !overlaps && sent.since(turn.answered) <= AT_ONCE;
        // An unanswered request ends later than anything that is known.
        let answered = exchange.completed().filter(|_| exchange.answer.is_some()).map_or(Nanos(u64::MAX), |s| s.at);
        let took = answered.since(sent);
        if follows {
            turn.calls += 1;
            turn.time = Nanos(turn.time.0.saturating_add(took.0));
            turn.longest = turn.longest.max(took);
        } else if overlaps {
            turn.is_serial = false;
        } else {
            self.add_turn(turn);
            let paused = turn.answered > Nanos::ZERO && sent.since(turn.answered) >= SHORTEST_PAUSE;
            *turn = Turn { is_serial: is_call && paused, calls: 1, time: took, longest: took, ..Turn::default() };
        }
        turn.answered = turn.answered.max(answered);
        turn.after_call = is_call;
    }

    fn add_turn(&mut self, turn: &Turn) {
        if turn.is_serial && turn.calls > 1 && turn.answered < Nanos(u64::MAX) {
            self.calls += turn.calls;
            self.time = Nanos(self.time.0.saturating_add(turn.time.0));
            self.at_once = Nanos(self.at_once.0.saturating_add(turn.longest.0));
        }
    }
}
