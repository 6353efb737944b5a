//! The client's requests by method: what a recording shows of a foreign client, whose operations nobody marked.

use std::collections::HashMap;

use mcpace_record::{MessageKind, Nanos};
use serde::Serialize;

use crate::median::lower_median;
use crate::view::{Exchange, View};

/// Methods told apart; a hostile recording may name many, and then shares the last entry.
const METHODS: usize = 200;

/// The requests of one method, and of `tools/call` for one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Method {
    /// The JSON-RPC method.
    pub method: String,
    /// The tool, of `tools/call`; the name or URI of others that have one.
    pub name: Option<String>,
    /// Requests.
    pub requests: u64,
    /// Requests that were answered with a result.
    pub succeeded: u64,
    /// Requests that were answered with an error, or with a tool's own failure.
    pub failed: u64,
    /// The median time from a request's first byte to its answer's last, over the answered ones.
    #[serde(rename = "median_ns")]
    pub median: Option<Nanos>,
    /// The longest such time.
    #[serde(rename = "slowest_ns")]
    pub slowest: Option<Nanos>,
    /// The median processor time that the server's process spent on a request, over those for which it is known.
    #[serde(rename = "processor_ns")]
    pub processor: Option<Nanos>,
    /// Bytes of all requests' bodies.
    pub request_bytes: u64,
    /// Bytes of all replies' bodies.
    pub reply_bytes: u64,
    /// Bytes of the largest reply.
    pub largest_reply_bytes: u64,
}

/// The requests of the client by method, in the order in which methods first occur.
pub(crate) fn count_methods(view: &View<'_>) -> Vec<Method> {
    let mut known: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    let mut found: Vec<(Method, Times)> = Vec::new();
    for exchange in &view.exchanges {
        let Some(request) = exchange.messages.iter().find(|message| message.kind() == MessageKind::Request) else {
            continue;
        };
        let Some(method) = request.method() else { continue };
        let key = (method, request.name());
        let at = known.get(&key).copied().unwrap_or_else(|| {
            if found.len() < METHODS {
                let name = request.name().map(str::to_owned);
                found.push((Method { method: method.to_owned(), name, ..Method::default() }, Times::default()));
            }
            known.insert(key, found.len() - 1);
            found.len() - 1
        });
        let (entry, times) = &mut found[at];
        entry.add_exchange(exchange, &mut times.answered);
        times.processor.extend(view.processor_time(exchange));
    }
    found.into_iter().map(|(method, times)| method.with_times(times)).collect()
}

/// Times of one method's requests.
#[derive(Default)]
struct Times {
    answered: Vec<Nanos>,
    processor: Vec<Nanos>,
}

impl Method {
    fn add_exchange(&mut self, exchange: &Exchange<'_>, times: &mut Vec<Nanos>) {
        self.requests += 1;
        self.request_bytes = self.request_bytes.saturating_add(exchange.request_bytes);
        self.reply_bytes = self.reply_bytes.saturating_add(exchange.reply_bytes);
        self.largest_reply_bytes = self.largest_reply_bytes.max(exchange.reply_bytes);
        let Some(answer) = exchange.answer else { return };
        let is_good = exchange.succeeded() && !answer.is_error();
        self.succeeded += u64::from(is_good);
        self.failed += u64::from(!is_good);
        if let Some(completed) = exchange.completed() {
            times.push(completed.at.since(exchange.sent().at));
        }
    }

    fn with_times(mut self, mut times: Times) -> Self {
        self.median = lower_median(&mut times.answered);
        self.slowest = times.answered.last().copied();
        self.processor = lower_median(&mut times.processor);
        self
    }
}
