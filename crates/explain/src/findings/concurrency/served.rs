//! Requests as their server saw them: when each was whole there, when its reply began and when its result did.
//!
//! The server's side of the recorder alone counts here: what a client or the way to it delays says nothing about how a
//! server shares its time.

use mcpace_record::{Digest, Nanos};

use crate::view::{Exchange, Note, Stamp, Transport, View};

/// One request that was answered.
#[derive(Clone, Copy)]
pub(super) struct Served<'a> {
    /// Position in [`View::exchanges`].
    pub(super) at: usize,
    /// Whose it is.
    pub(super) owner: Owner<'a>,
    /// The tool's name, of a `tools/call`.
    pub(super) tool: Option<&'a str>,
    /// Identity of the parameters.
    pub(super) content: Option<Digest>,
    /// The server had the whole request.
    pub(super) asked: Stamp,
    /// The first of its reply: the head, or the line.
    pub(super) begun: Stamp,
    /// The first byte of its result; of its reply, where no result is due.
    pub(super) answered: Stamp,
    /// Tool's own time, as the server reported it.
    pub(super) reported: Option<Nanos>,
    /// Whether it came over HTTP.
    pub(super) http: bool,
    /// Whether its answer is no result: an error, or a refusal over HTTP. Its time is no tool's.
    pub(super) failed: bool,
}

/// To whom a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner<'a> {
    /// A session over HTTP.
    Session(&'a str),
    /// The one client of a process.
    Pipe,
    /// Nobody that is named: no two of these belong together.
    Nobody,
}

impl Served<'_> {
    /// How long the server took.
    pub(super) fn server_time(&self) -> Nanos {
        self.answered.at.since(self.asked.at)
    }

    pub(super) fn same_owner(&self, other: &Self) -> bool {
        self.owner == other.owner && self.owner != Owner::Nobody
    }
}

/// All requests that were answered, in the order in which the server had them.
pub(super) fn served_requests<'a>(view: &View<'a>) -> Vec<Served<'a>> {
    let answered = view.exchanges.iter().enumerate().filter_map(|(at, exchange)| served_request(at, exchange));
    let mut served = Vec::with_capacity(view.exchanges.len());
    served.extend(answered);
    // No two have an event in common, and a stable sort would take as much room again.
    served.sort_unstable_by_key(|one| (one.asked.at, one.asked.event));
    served
}

fn served_request<'a>(at: usize, exchange: &Exchange<'a>) -> Option<Served<'a>> {
    if exchange.is_standalone_stream() {
        return None;
    }
    let back = exchange.back()?;
    let asked = back.request_end?;
    let answered = if exchange.asks() {
        // Answers that came on another stream count too.
        exchange.answer.and(back.result_start.or(back.result_end))?
    } else {
        back.reply_head?
    };
    let begun = back.reply_head.filter(|head| head.at <= answered.at).unwrap_or(answered);
    let call: Option<&Note<'_>> = exchange.messages.iter().find(|message| message.requests("tools/call"));
    let owner = match (exchange.transport, exchange.session_sent()) {
        (Transport::Stdio, _) => Owner::Pipe,
        (Transport::Http, Some(session)) => Owner::Session(session),
        (Transport::Http, None) => Owner::Nobody,
    };
    Some(Served {
        at,
        owner,
        tool: call.map(|call| call.name().unwrap_or_default()),
        content: call.and_then(|call| call.content),
        asked,
        begun,
        answered,
        reported: exchange.server_timing().filter(|timing| !timing.malformed).map(|timing| timing.total()),
        http: exchange.transport == Transport::Http,
        failed: !exchange.succeeded(),
    })
}
