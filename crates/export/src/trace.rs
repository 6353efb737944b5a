//! Chrome's trace event format (<https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>), which
//! Perfetto and chrome://tracing read.
//!
//! Three groups of rows: the client program's operations, each with its ledger beneath; its exchanges, one row a
//! connection; the server's side of them. Every slice lies within the one above it. Each program that reported spans has a
//! group of its own, with as many rows as spans overlap.

use std::collections::HashMap;
use std::io::Write;

use mcpace_explain::{Exchange, Ledger, Leg, Texts, Transport, call_ledgers, join_events};
use mcpace_record::{ConnectionId, Nanos, Recording};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::ExportError;
use crate::lanes::Lanes;
use crate::otlp::name_of;
use crate::program_spans::{Program, span_programs};

const OPERATIONS: u64 = 1;
const CLIENT: u64 = 2;
const SERVER: u64 = 3;
const FIRST_PROGRAM: u64 = 4;
/// Rows of stdio, where there are no connections, and of exchanges without one.
const NO_CONNECTION: u64 = 1 << 40;

/// Writes all operations and exchanges of `recording`.
pub fn write_trace(recording: &Recording, into: impl Write) -> Result<(), ExportError> {
    let mut file =
        TraceFile { into, first: true, origin: recording.events().first().map_or(Nanos::ZERO, |event| event.at) };
    file.into.write_all(br#"{"displayTimeUnit":"ms","traceEvents":["#)?;
    let groups = [
        (OPERATIONS, "operations of the client"),
        (CLIENT, "exchanges, client's side"),
        (SERVER, "exchanges, server's side"),
    ];
    for (pid, name) in groups {
        file.write_group(pid, name)?;
    }
    let mut lanes = Lanes::default();
    for ledger in call_ledgers(recording) {
        file.write_operation(&ledger, lanes.place_span(ledger.start, ledger.end))?;
    }
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let mut rows: HashMap<u64, Rows> = HashMap::new();
    for exchange in &view.exchanges {
        for (pid, leg) in [(CLIENT, exchange.near()), (SERVER, exchange.front().and(exchange.back()))] {
            if let Some(leg) = leg {
                let tid = rows.entry(pid).or_default().row_of(exchange, &leg);
                file.write_exchange(pid, tid, exchange, &leg)?;
            }
        }
    }
    for (pid, program) in (FIRST_PROGRAM..).zip(span_programs(recording)) {
        file.write_program(pid, &program)?;
    }
    let head = &recording.head;
    let about = json!({"mcpace": head.mcpace, "started": head.started, "upstream": head.upstream, "partial": recording.partial});
    file.into.write_all(br#"],"otherData":"#)?;
    serde_json::to_writer(&mut file.into, &about)?;
    file.into.write_all(b"}\n")?;
    Ok(file.into.flush()?)
}

/// A row a connection; what a connection can't carry at the same time lies in rows of its own.
#[derive(Default)]
struct Rows {
    last: HashMap<ConnectionId, Nanos>,
    others: Lanes,
}

impl Rows {
    fn row_of(&mut self, exchange: &Exchange<'_>, leg: &Leg) -> u64 {
        let (from, to) = leg_window(exchange, leg);
        if let Some(conn) = leg.conn.filter(|_| exchange.transport == Transport::Http) {
            let last = self.last.entry(conn).or_default();
            if *last <= from {
                *last = to;
                return conn.0.saturating_add(1);
            }
        }
        NO_CONNECTION + self.others.place_span(from, to)
    }
}

fn leg_window(exchange: &Exchange<'_>, leg: &Leg) -> (Nanos, Nanos) {
    let stamps = [leg.request_end, leg.reply_head, leg.body_start, leg.result_end, leg.end];
    let from = leg.request_start.map_or(exchange.start.at, |stamp| stamp.at);
    (from, stamps.into_iter().flatten().map(|stamp| stamp.at).fold(from, Nanos::max))
}

struct TraceFile<W> {
    into: W,
    first: bool,
    origin: Nanos,
}

#[derive(Serialize)]
struct Slice<'a> {
    ph: &'a str,
    pid: u64,
    tid: u64,
    name: &'a str,
    cat: &'a str,
    /// Microseconds.
    ts: f64,
    dur: f64,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl<W: Write> TraceFile<W> {
    fn write_event(&mut self, event: &impl Serialize) -> Result<(), ExportError> {
        self.into.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        Ok(serde_json::to_writer(&mut self.into, event)?)
    }

    fn write_group(&mut self, pid: u64, name: &str) -> Result<(), ExportError> {
        self.write_event(&json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}}))?;
        let sorted =
            json!({"ph": "M", "pid": pid, "tid": 0, "name": "process_sort_index", "args": {"sort_index": pid}});
        self.write_event(&sorted)
    }

    fn write_program(&mut self, pid: u64, program: &Program<'_>) -> Result<(), ExportError> {
        let name = match program.service {
            "" => "spans of the server's programs".to_owned(),
            service => format!("spans of {service}"),
        };
        self.write_group(pid, &name)?;
        let mut lanes = Lanes::default();
        for program_span in &program.spans {
            let (span, from, to) = (program_span.span, program_span.began(), program_span.ended);
            let attributes: Map<String, Value> =
                span.attributes.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            let args = json!({
                "trace": span.trace, "span": span.span, "parent": span.parent, "kind": span.kind, "failed": span.failed,
                "library": span.library, "attributes": attributes,
            });
            self.write_slice(pid, lanes.place_span(from, to), "span", &span.name, from, to, args)?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a slice has as many parts")]
    fn write_slice(
        &mut self,
        pid: u64,
        tid: u64,
        cat: &str,
        name: &str,
        from: Nanos,
        to: Nanos,
        args: Value,
    ) -> Result<(), ExportError> {
        let micros = |span: Nanos| span.0 as f64 / 1e3;
        let (ts, dur) = (micros(from.since(self.origin)), micros(to.since(from)));
        self.write_event(&Slice { ph: "X", pid, tid, name, cat, ts, dur, args })
    }

    fn write_operation(&mut self, ledger: &Ledger, tid: u64) -> Result<(), ExportError> {
        let name =
            ledger.tool.as_ref().map_or(ledger.operation.to_string(), |tool| format!("{} {tool}", ledger.operation));
        let args = json!({"outcome": ledger.outcome, "parts_ns": ledger.parts});
        self.write_slice(OPERATIONS, tid, "operation", &name, ledger.start, ledger.end, args)?;
        for segment in ledger.segments.iter().filter(|segment| segment.from < segment.to) {
            let args = segment.exchange.map_or(Value::Null, |exchange| json!({"exchange": exchange}));
            self.write_slice(OPERATIONS, tid, "ledger", segment.part.name(), segment.from, segment.to, args)?;
        }
        Ok(())
    }

    fn write_exchange(&mut self, pid: u64, tid: u64, exchange: &Exchange<'_>, leg: &Leg) -> Result<(), ExportError> {
        let (from, to) = leg_window(exchange, leg);
        let args = json!({
            "exchange": exchange.id, "http": [exchange.method(), exchange.target()], "status": exchange.status,
            "sent_bytes": exchange.request_bytes, "received_bytes": exchange.reply_bytes, "ending": exchange.ending,
        });
        self.write_slice(pid, tid, "exchange", &name_of(exchange), from, to, args)?;
        // Each phase lasts until the next one that was seen.
        let marks = [("send", leg.request_start), ("wait", leg.request_end), ("receive", leg.reply_head)];
        let seen: Vec<(&str, Nanos)> =
            marks.into_iter().filter_map(|(name, stamp)| Some((name, stamp?.at.max(from).min(to)))).collect();
        for (place, (name, begun)) in seen.iter().enumerate() {
            let until = seen.get(place + 1).map_or(to, |(_, next)| *next).max(*begun);
            self.write_slice(pid, tid, "phase", name, *begun, until, Value::Null)?;
        }
        for event in &exchange.events {
            let stamp = if pid == CLIENT { event.passed().or(event.read()) } else { event.read() };
            if let Some(stamp) = stamp {
                let ts = stamp.at.since(self.origin).0 as f64 / 1e3;
                let name = event.event.unwrap_or("message");
                let args = json!({"seq": event.seq, "bytes": event.bytes});
                self.write_event(&json!({"ph": "i", "s": "t", "pid": pid, "tid": tid, "name": name, "cat": "sse", "ts": ts, "args": args}))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mcpace_record::{Event, EventKind, ExchangeId, Instrument, RecordingHead, Side, Span};

    use super::*;

    #[test]
    fn spans_that_overlap_lie_in_rows_of_their_programs_own_group() {
        let span = |service: &str, began| {
            Box::new(Span {
                service: service.to_owned(),
                name: "GET".to_owned(),
                began: Nanos(began),
                ..Span::default()
            })
        };
        let spans = [(30, span("a", 10)), (40, span("b", 20)), (50, span("a", 20)), (70, span("a", 60))];
        let events = spans.map(|(at, span)| Event { at: Nanos(at), kind: EventKind::Span(span) });
        let mut written = Vec::new();
        write_trace(&Recording::new(RecordingHead::bare(Instrument::Client), events.to_vec()), &mut written).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        let of = |name: &str, key: &str| {
            let events = written["traceEvents"].as_array().unwrap().iter();
            events.filter(|event| event["name"] == name).map(|event| event[key].clone()).collect::<Vec<Value>>()
        };
        assert_eq!(of("GET", "pid"), [4, 4, 4, 5]);
        assert_eq!(of("GET", "tid"), [0, 1, 0, 0]);
        let groups: Vec<Value> =
            of("process_name", "args").into_iter().skip(3).map(|args| args["name"].clone()).collect();
        assert_eq!(groups, ["spans of a", "spans of b"]);
    }

    #[test]
    fn numbers_at_their_end_are_no_reason_to_panic() {
        let head = RecordingHead::bare(Instrument::Recorder);
        let (method, target) = ("GET".to_owned(), "/".to_owned());
        let (conn, ex) = (ConnectionId(u64::MAX), ExchangeId(u64::MAX));
        let kind = EventKind::RequestHead { side: Side::Front, conn, ex, method, target, headers: Vec::new() };
        let mut written = Vec::new();
        write_trace(&Recording::new(head, vec![Event { at: Nanos(u64::MAX), kind }]), &mut written).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        let rows: Vec<&Value> = written["traceEvents"].as_array().unwrap().iter().map(|event| &event["tid"]).collect();
        assert!(rows.contains(&&json!(u64::MAX)), "{rows:?}");
    }
}
