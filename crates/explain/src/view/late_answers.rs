//! Answers that came on another stream than their request's reply: the old HTTP+SSE transport (2024-11-05), where every
//! answer travels on the GET stream, and resumed streams (2025-03-26, transports: resumability).

use std::collections::HashMap;

use mcpace_record::Nanos;

use super::{Exchange, Note, Stamp};

struct LateAnswer<'a> {
    began: Nanos,
    read: Stamp,
    passed: Option<Stamp>,
    answer: &'a Note<'a>,
}

/// Gives each unanswered request the first answer to its id that a standalone stream carried after it.
pub(super) fn attach_answers(exchanges: &mut [Exchange<'_>]) {
    let mut waiting: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, exchange) in exchanges.iter().enumerate() {
        if exchange.answer.is_none()
            && let Some(id) = only_request(exchange)
        {
            waiting.entry(id).or_default().push(at);
        }
    }
    if waiting.is_empty() {
        return;
    }
    for late in late_answers(exchanges) {
        let Some(asked) = late.answer.id.and_then(|id| waiting.get(id)) else {
            continue;
        };
        let before = asked.partition_point(|at| exchanges[*at].start.event < late.read.event);
        if let Some(at) = before.checked_sub(1) {
            give_answer(&mut exchanges[asked[at]], &late);
        }
    }
}

fn only_request<'a>(exchange: &Exchange<'a>) -> Option<&'a str> {
    match exchange.messages {
        [one] if exchange.asks() => one.id,
        _ => None,
    }
}

fn late_answers<'a>(exchanges: &[Exchange<'a>]) -> Vec<LateAnswer<'a>> {
    let mut late = Vec::new();
    for event in
        exchanges.iter().filter(|exchange| exchange.is_standalone_stream()).flat_map(|exchange| &exchange.events)
    {
        let Some(read) = event.read() else { continue };
        for answer in event.messages.iter().filter(|message| message.answers()) {
            late.push(LateAnswer { began: event.began, read, passed: event.passed(), answer });
        }
    }
    late.sort_by_key(|late| late.read.event);
    late
}

fn give_answer<'a>(exchange: &mut Exchange<'a>, late: &LateAnswer<'a>) {
    if exchange.answer.is_some() {
        return;
    }
    exchange.answer = Some(late.answer);
    exchange.server_timing = late.answer.timing.or(exchange.server_timing);
    exchange.set_result(late.began, Some(late.read), late.passed);
}
