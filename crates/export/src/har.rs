//! HAR 1.2 (<http://www.softwareishard.com/blog/har-12-spec/>): one entry an HTTP exchange, as the client saw it.
//!
//! `wait` runs to the reply's head. Facts that HAR has no member for (the JSON-RPC method and id, the moment of the
//! result, the connection's reuse) are in members that begin with an underscore, as the format allows.

use std::collections::HashMap;
use std::io::Write;

use mcpace_explain::{Exchange, Texts, Transport, View, join_events};
use mcpace_record::{ExchangeId, Header, Instrument, MessageKind, Nanos, Recording, ReplyEnding};
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::{Value, json};

use crate::bodies::{Said, exchange_bodies};
use crate::{ExportError, Wall, to_millis};

/// Writes all HTTP exchanges of `recording`.
pub fn write_har(recording: &Recording, mut into: impl Write) -> Result<(), ExportError> {
    if recording.head.instrument == Instrument::StdioRecorder {
        return Err(ExportError::NoHttp);
    }
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let entries = Entries {
        view: &view,
        said: exchange_bodies(recording),
        wall: Wall::wall_clock(recording),
        origin: recording_origin(recording),
    };
    if !view.exchanges.is_empty() && entries.all_exchanges().next().is_none() {
        return Err(ExportError::NoHttp);
    }
    let creator = json!({"name": "mcpace", "version": recording.head.mcpace});
    into.write_all(br#"{"log":{"version":"1.2","creator":"#)?;
    serde_json::to_writer(&mut into, &creator)?;
    into.write_all(br#","entries":"#)?;
    serde_json::to_writer(&mut into, &entries)?;
    into.write_all(b"}}\n")?;
    Ok(into.flush()?)
}

/// `http://host:port` of what was reached; targets are paths mostly.
fn recording_origin(recording: &Recording) -> &str {
    let upstream = recording.head.upstream.as_str();
    let host = upstream.find("://").map_or(0, |at| at + 3);
    upstream[host..].find(['/', '?', '#']).map_or(upstream, |at| &upstream[..host + at])
}

struct Entries<'v, 'a> {
    view: &'v View<'a>,
    said: HashMap<ExchangeId, Said<'a>>,
    wall: Wall,
    origin: &'a str,
}

impl<'v, 'a> Entries<'v, 'a> {
    fn all_exchanges(&self) -> impl Iterator<Item = &'v Exchange<'a>> {
        self.view.exchanges.iter().filter(|exchange| exchange.transport == Transport::Http)
    }

    fn exchange_entry(&self, exchange: &Exchange<'a>) -> Value {
        let nothing = Said::default();
        let said = self.said.get(&exchange.id).unwrap_or(&nothing);
        let times = Times::exchange_times(self.view, exchange);
        let mut entry = json!({
            "startedDateTime": self.wall.to_rfc3339(times.from),
            "time": times.total_ms(),
            "request": self.request_entry(exchange, said),
            "response": response_entry(exchange, said),
            "cache": {},
            "timings": times.timings_entry(),
        });
        if let Some(conn) = exchange.near().and_then(|leg| leg.conn) {
            entry["connection"] = json!(conn.0.to_string());
        }
        let asked =
            exchange.messages.iter().find(|m| matches!(m.kind(), MessageKind::Request | MessageKind::Notification));
        if let Some(asked) = asked {
            entry["_mcp"] = json!({"method": asked.method(), "id": asked.id, "name": asked.name()});
        }
        if let Some(result) = exchange.near().and_then(|leg| leg.result_end) {
            entry["_result_ms"] = json!(to_millis(result.at.since(times.from)));
        }
        entry
    }

    fn request_entry(&self, exchange: &Exchange<'_>, said: &Said<'_>) -> Value {
        let target = exchange.target();
        let url = if target.starts_with("http") { target.to_owned() } else { format!("{}{target}", self.origin) };
        let mut request = json!({
            "method": exchange.method(), "url": url, "httpVersion": "HTTP/1.1", "cookies": [],
            "headers": header_entries(said.request_headers), "queryString": query_entries(target),
            "headersSize": -1, "bodySize": exchange.request_bytes,
        });
        if let Some(body) = said.request_body {
            request["postData"] = json!({"mimeType": media_type(said.request_headers), "text": body});
        }
        request
    }
}

impl Serialize for Entries<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entries = serializer.serialize_seq(None)?;
        for exchange in self.all_exchanges() {
            entries.serialize_element(&self.exchange_entry(exchange))?;
        }
        entries.end()
    }
}

fn response_entry(exchange: &Exchange<'_>, said: &Said<'_>) -> Value {
    let mut content = json!({"size": exchange.reply_bytes, "mimeType": media_type(said.reply_headers)});
    if let Some(body) = said.reply_body() {
        content["text"] = json!(body);
    }
    let mut response = json!({
        "status": exchange.status.unwrap_or(0), "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [],
        "headers": header_entries(said.reply_headers), "content": content, "redirectURL": header_value(said.reply_headers, "location"),
        "headersSize": -1, "bodySize": exchange.reply_bytes,
    });
    // Chrome's own member for a request without a (whole) reply.
    let broken = match exchange.ending {
        None | Some(ReplyEnding::Complete) => None,
        Some(ReplyEnding::ClientLeft) => Some("the client left before the reply's end"),
        Some(ReplyEnding::ServerBroke) => Some("the server broke the reply off"),
        Some(ReplyEnding::NoReply) => Some("no reply"),
        Some(ReplyEnding::Cut) => Some("the recording stopped before the reply's end"),
    };
    if let Some(broken) = broken {
        response["_error"] = json!(broken);
    }
    response
}

fn header_entries(headers: &[Header]) -> Vec<Value> {
    headers.iter().map(|Header(name, value)| json!({"name": name, "value": value})).collect()
}

fn header_value<'a>(headers: &'a [Header], wanted: &str) -> &'a str {
    headers.iter().find(|Header(name, _)| name.eq_ignore_ascii_case(wanted)).map_or("", |Header(_, value)| value)
}

fn media_type(headers: &[Header]) -> &str {
    header_value(headers, "content-type")
}

fn query_entries(target: &str) -> Vec<Value> {
    let Some((_, query)) = target.split_once('?') else { return Vec::new() };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

/// Stretches of an exchange at the client's side; absent ones are told as -1, as the format wants it.
struct Times {
    from: Nanos,
    connect: Option<Nanos>,
    ssl: Option<Nanos>,
    send: Nanos,
    wait: Nanos,
    receive: Nanos,
}

impl Times {
    fn exchange_times(view: &View<'_>, exchange: &Exchange<'_>) -> Self {
        let start = exchange.start.at;
        let at = |stamp: Option<mcpace_explain::Stamp>, or: Nanos| stamp.map_or(or, |stamp| stamp.at);
        let (sent, head, end) = exchange.near().map_or((start, start, start), |leg| {
            let sent = at(leg.request_end, start);
            let head = at(leg.reply_head, at(leg.end, sent));
            (sent, head, at(leg.end, at(leg.result_end, head)))
        });
        // Only our own client's connections are opened for a request; in the recorder they are the client's affair.
        let opened = exchange.front().is_none().then(|| view.opened_for(exchange)).flatten();
        let begun = opened.and_then(|c| Some((c.begun()?.at, c.ready()?.at, c.secured.is_some(), c.opened?.at)));
        let begun = begun.filter(|(begun, ..)| *begun <= start);
        Self {
            from: begun.map_or(start, |(begun, ..)| begun),
            connect: begun.map(|(begun, ready, ..)| ready.since(begun)),
            ssl: begun.filter(|(_, _, secured, _)| *secured).map(|(_, ready, _, opened)| ready.since(opened)),
            send: sent.since(start),
            wait: head.since(sent),
            receive: end.since(head),
        }
    }

    /// `ssl` is a part of `connect`.
    fn total_ms(&self) -> f64 {
        to_millis(self.connect.unwrap_or(Nanos::ZERO))
            + to_millis(self.send)
            + to_millis(self.wait)
            + to_millis(self.receive)
    }

    fn timings_entry(&self) -> Value {
        let or_none = |span: Option<Nanos>| span.map_or(-1.0, to_millis);
        json!({
            "blocked": -1.0, "dns": -1.0, "connect": or_none(self.connect), "ssl": or_none(self.ssl),
            "send": to_millis(self.send), "wait": to_millis(self.wait), "receive": to_millis(self.receive),
        })
    }
}
