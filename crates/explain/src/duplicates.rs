//! Which requests are sent again though their first sending succeeded.
//!
//! Equal bytes alone prove nothing: every fresh client starts with the same `initialize`, the same ids and the same
//! `notifications/initialized`. A repeat counts only inside one call or, outside calls and for messages that every session
//! begins with, back to back. A failure between the two (connection, status, JSON-RPC error) makes it a retry, which is
//! legitimate.

use std::collections::HashMap;

use mcpace_record::{Digest, Nanos, ReplyEnding};
use serde::Serialize;

use crate::view::{Exchange, Transport, View};

/// How soon after the first reply's end a repeat must leave to count as caused by it. An HTTP library repeats within
/// microseconds, a retry policy waits longer.
pub(crate) const BACK_TO_BACK: Nanos = Nanos::from_millis(20);

/// Stamps of the two sides of one instant may cross by this much.
const CROSSING: Nanos = Nanos::from_millis(1);

/// A request that was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate {
    /// Position of the first sending in [`View::exchanges`].
    pub(crate) original: usize,
    /// Position of the sending just before the repeat.
    pub(crate) previous: usize,
    /// Position of the repeat.
    pub(crate) repeat: usize,
    /// Evidence that ties the repeat to its first sending.
    pub(crate) basis: Basis,
    /// Whether the repeat left after the whole of the previous reply.
    pub(crate) after_end: bool,
}

/// Evidence that ties a repeat to its first sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Basis {
    /// Equal bytes, back to back; there is no id.
    Bytes,
    /// Equal bytes and JSON-RPC id.
    BytesAndId,
}

#[derive(PartialEq, Eq, Hash)]
struct Sender<'a> {
    target: &'a str,
    session: Option<&'a str>,
    authorization: Option<&'a str>,
}

/// All repeats, in the order of their start.
pub(crate) fn find_duplicates(view: &View<'_>) -> Vec<Duplicate> {
    let mut found = Vec::new();
    let sendings = request_sendings(view);
    for equal in sendings.chunk_by(|one, next| one.digest == next.digest).filter(|equal| equal.len() > 1) {
        let mut last: HashMap<Sender<'_>, &Sending> = HashMap::new();
        let mut original: HashMap<u32, u32> = HashMap::new();
        for sending in equal {
            let exchange = sending.exchange_in(view);
            let Some(previous) = last.insert(sender_of(exchange), sending) else { continue };
            let consecutive = sending.order == previous.order + 1;
            if let Some((basis, after_end)) = tie_basis(previous.exchange_in(view), exchange, consecutive) {
                let origin = original.get(&previous.at).copied().unwrap_or(previous.at);
                original.insert(sending.at, origin);
                let [original, previous, repeat] = [origin, previous.at, sending.at].map(|at| at as usize);
                found.push(Duplicate { original, previous, repeat, basis, after_end });
            }
        }
    }
    found.sort_unstable_by_key(|duplicate| duplicate.repeat);
    found
}

/// A request whose body counts.
struct Sending {
    digest: Digest,
    /// Its position among all exchanges.
    at: u32,
    /// And among those whose bodies count.
    order: u32,
}

impl Sending {
    fn exchange_in<'v, 'a>(&self, view: &'v View<'a>) -> &'v Exchange<'a> {
        &view.exchanges[self.at as usize]
    }
}

/// All of them; equal bodies stand together, in the order of their start.
fn request_sendings(view: &View<'_>) -> Vec<Sending> {
    let carries = |exchange: &&Exchange<'_>| exchange.method() == "POST" || exchange.transport == Transport::Stdio;
    let counting = (0_u32..).zip(&view.exchanges).filter(|(_, exchange)| carries(exchange) && exchange.is_message());
    let counting = counting.filter_map(|(at, exchange)| Some((at, exchange.digest?)));
    let mut sendings: Vec<Sending> =
        (0..).zip(counting).map(|(order, (at, digest))| Sending { digest, at, order }).collect();
    sendings.sort_unstable_by_key(|sending| (sending.digest, sending.order));
    sendings
}

/// Whether `second`, a standalone GET, repeats `first` back to back. Says nothing on its own, since clients may reopen a
/// stream that ended; beside repeated POSTs it is the same fault.
pub(crate) fn repeats_stream(first: &Exchange<'_>, second: &Exchange<'_>) -> bool {
    first.is_standalone_stream()
        && second.is_standalone_stream()
        && first.target() == second.target()
        && first.session_sent() == second.session_sent()
        && first.status == second.status
        && first.ending == Some(ReplyEnding::Complete)
        && same_connection(first, second)
        && back_to_back(first, second)
}

fn sender_of<'a>(exchange: &Exchange<'a>) -> Sender<'a> {
    Sender { target: exchange.target(), session: exchange.session_sent(), authorization: exchange.authorization() }
}

fn tie_basis(first: &Exchange<'_>, second: &Exchange<'_>, consecutive: bool) -> Option<(Basis, bool)> {
    if !went_well(first) {
        return None;
    }
    let completed = first.completed()?.at;
    if second.sent().at + CROSSING < completed {
        return None;
    }
    let same_call = first.call.is_some() && first.call == second.call;
    let related = same_call || same_connection(first, second);
    let close = back_to_back(first, second);
    let names_itself = first.asks() && !first.requests("initialize");
    // Without sessions the next client may begin on the same connection with the same ids: another call's is another's.
    let elsewhere = first.call.is_some() && second.call.is_some() && !same_call;
    let tied =
        if names_itself { same_call || (related && close && !elsewhere) } else { related && close && consecutive };
    let basis = if first.asks() { Basis::BytesAndId } else { Basis::Bytes };
    tied.then_some((basis, left_after_end(first, second)))
}

fn went_well(first: &Exchange<'_>) -> bool {
    let accepted = first.transport == Transport::Stdio || matches!(first.status, Some(200..=299));
    let whole = matches!(first.ending, None | Some(ReplyEnding::Complete));
    accepted && whole && (first.succeeded() || !first.asks())
}

fn same_connection(first: &Exchange<'_>, second: &Exchange<'_>) -> bool {
    let conn = |exchange: &Exchange<'_>| exchange.near().and_then(|leg| leg.conn);
    conn(first).is_some() && conn(first) == conn(second)
}

fn left_after_end(first: &Exchange<'_>, second: &Exchange<'_>) -> bool {
    first.ended().is_some_and(|end| second.sent().at + CROSSING >= end.at)
}

fn back_to_back(first: &Exchange<'_>, second: &Exchange<'_>) -> bool {
    left_after_end(first, second) && first.ended().is_some_and(|end| second.sent().at.since(end.at) <= BACK_TO_BACK)
}
