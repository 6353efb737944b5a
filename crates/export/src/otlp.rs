//! OTLP as JSON lines (the OpenTelemetry protocol's JSON encoding and its file exporter's framing): each line is one
//! `ExportTraceServiceRequest`, small enough to be posted to a collector's `/v1/traces` as it is.
//!
//! Each operation of the client's program becomes a trace: the operation, and beneath it the stretches of its ledger
//! and its exchanges as client spans. Exchanges outside any operation are traces of their own. The server's own timing
//! of its layers has no position in time and is given as attributes. Attributes are those of the semantic conventions
//! for MCP and HTTP, where these define one. Spans that programs reported follow as they are, under the programs' own names.

use std::collections::HashMap;
use std::io::Write;

use mcpace_explain::{Exchange, Ledger, Texts, call_ledgers, join_events};
use mcpace_record::{CallOutcome, ExchangeId, MessageKind, Nanos, Recording, SpanKind, digest_bytes};
use serde_json::{Value, json};

use crate::program_spans::{ProgramSpan, span_programs};
use crate::{ExportError, Wall};

/// Spans a line, and their bytes: well below the four megabytes that collectors take.
const SPANS_A_LINE: usize = 512;
const BYTES_A_LINE: usize = 1 << 20;

/// A stream's further events are counted, not listed; longer words are cut. A span takes a hundred kilobytes at most.
const EVENTS_A_SPAN: usize = 128;
const LONGEST_TEXT: usize = 1024;

/// The service that operations and exchanges are of.
const RECORDING: &str = "mcpace recording";

const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
const PRODUCER: u8 = 4;
const CONSUMER: u8 = 5;
const FAILED: u8 = 2;

/// Writes all operations and exchanges of `recording`.
pub fn write_otlp(recording: &Recording, into: impl Write) -> Result<(), ExportError> {
    let texts = Texts::default();
    let view = join_events(recording, &texts);
    let ledgers = call_ledgers(recording);
    let mut calls: HashMap<ExchangeId, &Ledger> = HashMap::new();
    for ledger in &ledgers {
        calls.extend(ledger.exchanges.iter().map(|id| (*id, ledger)));
    }
    let origin = Origin { service: RECORDING, library: "mcpace" };
    let mut lines =
        OtlpLines { into, recording, wall: Wall::wall_clock(recording), origin, spans: Vec::new(), bytes: 0 };
    for ledger in &ledgers {
        lines.write_operation(ledger)?;
    }
    for exchange in &view.exchanges {
        lines.write_exchange(exchange, calls.get(&exchange.id).copied())?;
    }
    for program in span_programs(recording) {
        for (number, span) in (0..).zip(&program.spans) {
            lines.set_origin(Origin { service: program.service, library: &span.span.library })?;
            lines.write_program_span(number, span)?;
        }
    }
    lines.flush_line()?;
    Ok(lines.into.flush()?)
}

/// `tools/call echo`; of what is no JSON-RPC, `GET /mcp`.
pub(crate) fn name_of(exchange: &Exchange<'_>) -> String {
    let asked = exchange.messages.iter().find(|m| matches!(m.kind(), MessageKind::Request | MessageKind::Notification));
    match asked.and_then(|asked| Some((asked.method()?, asked.name()))) {
        Some((method, Some(name))) => format!("{method} {name}"),
        Some((method, None)) => method.to_owned(),
        None => format!("{} {}", exchange.method(), exchange.target()).trim().to_owned(),
    }
}

/// The program that spans are of, and the library that reports them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin<'a> {
    service: &'a str,
    library: &'a str,
}

struct OtlpLines<'a, W> {
    into: W,
    recording: &'a Recording,
    wall: Wall,
    origin: Origin<'a>,
    /// Each as JSON.
    spans: Vec<String>,
    bytes: usize,
}

impl<'a, W: Write> OtlpLines<'a, W> {
    /// Spans of one line are of one origin.
    fn set_origin(&mut self, origin: Origin<'a>) -> Result<(), ExportError> {
        if origin != self.origin {
            self.flush_line()?;
            self.origin = origin;
        }
        Ok(())
    }

    fn write_program_span(&mut self, number: u64, program_span: &ProgramSpan<'_>) -> Result<(), ExportError> {
        let span = program_span.span;
        let kind = match span.kind {
            SpanKind::Internal => INTERNAL,
            SpanKind::Server => SERVER,
            SpanKind::Client => CLIENT,
            SpanKind::Producer => PRODUCER,
            SpanKind::Consumer => CONSUMER,
        };
        let own = ("program", number);
        let attributes = span.attributes.iter().map(|(name, value)| text_attribute(name, value)).collect();
        let mut told =
            self.span_value(own, own, None, &span.name, kind, program_span.began(), program_span.ended, attributes);
        // A span without ids of its own keeps those that were made for it.
        if !span.trace.is_empty() && !span.span.is_empty() {
            (told["traceId"], told["spanId"]) = (json!(span.trace), json!(span.span));
            if let Some(parent) = &span.parent {
                told["parentSpanId"] = json!(parent);
            }
        }
        if span.failed {
            told["status"] = json!({"code": FAILED});
        }
        self.add_span(told)
    }

    fn write_operation(&mut self, ledger: &Ledger) -> Result<(), ExportError> {
        let mut attributes = vec![text_attribute("mcpace.operation", &ledger.operation)];
        attributes.extend(ledger.tool.as_deref().map(|tool| text_attribute("gen_ai.tool.name", tool)));
        let failure = match &ledger.outcome {
            Some(CallOutcome::Failed(words)) => Some(words.as_str()),
            Some(CallOutcome::ToolError) => Some("tool_error"),
            _ => None,
        };
        let key = ("call", ledger.call.0);
        let name =
            ledger.tool.as_ref().map_or(ledger.operation.to_string(), |tool| format!("{} {tool}", ledger.operation));
        let mut span = self.span_value(key, key, None, &name, INTERNAL, ledger.start, ledger.end, attributes);
        if let Some(failure) = failure {
            span["status"] = json!({"code": FAILED, "message": cut_text(failure)});
        }
        self.add_span(span)?;
        for (place, segment) in ledger.segments.iter().enumerate().filter(|(_, segment)| segment.from < segment.to) {
            let own = (segment.part.name(), ledger.call.0 << 20 | place as u64);
            let about =
                segment.exchange.map(|exchange| number_attribute("mcpace.exchange", exchange.0)).into_iter().collect();
            let span =
                self.span_value(key, own, Some(key), segment.part.name(), INTERNAL, segment.from, segment.to, about);
            self.add_span(span)?;
        }
        Ok(())
    }

    fn write_exchange(&mut self, exchange: &Exchange<'_>, ledger: Option<&Ledger>) -> Result<(), ExportError> {
        let own = ("exchange", exchange.id.0);
        let call = ledger.map(|ledger| ("call", ledger.call.0));
        let from = exchange.sent().at;
        let near = exchange.near();
        let end = near.and_then(|leg| leg.end.or(leg.result_end).or(leg.reply_head)).map_or(from, |stamp| stamp.at);
        let mut span = self.span_value(
            call.unwrap_or(own),
            own,
            call,
            &name_of(exchange),
            CLIENT,
            from,
            end,
            exchange_attributes(exchange),
        );
        let mut events = exchange.events.iter().filter_map(|event| {
            let at = event.passed().or(event.read())?.at;
            let unix = self.wall.unix_ns(at).to_string();
            let attributes = [number_attribute("mcpace.sse.bytes", event.bytes)];
            Some(json!({"timeUnixNano": unix, "name": cut_text(event.event.unwrap_or("message")), "attributes": attributes}))
        });
        let listed: Vec<Value> = events.by_ref().take(EVENTS_A_SPAN).collect();
        if !listed.is_empty() {
            span["events"] = json!(listed);
        }
        let dropped = events.count();
        if dropped > 0 {
            span["droppedEventsCount"] = json!(dropped);
        }
        let failed = exchange.status.is_some_and(|status| status >= 400)
            || exchange.answer.is_some_and(|answer| answer.kind() == MessageKind::Error || answer.is_error());
        if failed {
            span["status"] = json!({"code": FAILED});
        }
        self.add_span(span)
    }

    #[expect(clippy::too_many_arguments, reason = "a span has as many parts")]
    fn span_value(
        &self,
        trace: (&str, u64),
        own: (&str, u64),
        parent: Option<(&str, u64)>,
        name: &str,
        kind: u8,
        from: Nanos,
        to: Nanos,
        attributes: Vec<Value>,
    ) -> Value {
        let mut span = json!({
            "traceId": format!("{}{}", self.span_id("trace", trace), self.span_id("trace'", trace)),
            "spanId": self.span_id("span", own),
            "name": cut_text(name),
            "kind": kind,
            "startTimeUnixNano": self.wall.unix_ns(from).to_string(),
            "endTimeUnixNano": self.wall.unix_ns(to.max(from)).to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = json!(self.span_id("span", parent));
        }
        span
    }

    /// Eight bytes in hexadecimal, the same each time that this recording is exported: sent twice, it is one trace.
    fn span_id(&self, kind: &str, (group, number): (&str, u64)) -> String {
        let head = &self.recording.head;
        let first = self.recording.events().first().map_or(0, |event| event.at.0);
        let whole = format!("{kind} {group} {number} {} {} {first}", head.started, head.upstream);
        // All zeros would be no id, and no digest is.
        format!("{:016x}", digest_bytes(whole.as_bytes()).value())
    }

    fn add_span(&mut self, span: Value) -> Result<(), ExportError> {
        let span = span.to_string();
        if self.bytes + span.len() > BYTES_A_LINE {
            self.flush_line()?;
        }
        self.bytes += span.len();
        self.spans.push(span);
        if self.spans.len() >= SPANS_A_LINE { self.flush_line() } else { Ok(()) }
    }

    fn flush_line(&mut self) -> Result<(), ExportError> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let head = &self.recording.head;
        let mut resource = vec![text_attribute("service.name", self.origin.service)];
        let mut scope = json!({"name": cut_text(self.origin.library)});
        if self.origin.service == RECORDING {
            resource.push(text_attribute("server.address", &head.upstream));
            scope["version"] = json!(cut_text(&head.mcpace));
        }
        let resource = json!({"attributes": resource});
        self.bytes = 0;
        // The spans are JSON already.
        let spans = std::mem::take(&mut self.spans).join(",");
        writeln!(
            self.into,
            r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{spans}]}}]}}]}}"#
        )?;
        Ok(())
    }
}

fn exchange_attributes(exchange: &Exchange<'_>) -> Vec<Value> {
    let mut told = Vec::new();
    if !exchange.method().is_empty() {
        told.push(text_attribute("http.request.method", exchange.method()));
        told.push(text_attribute("url.path", exchange.target()));
    }
    told.extend(exchange.status.map(|status| number_attribute("http.response.status_code", u64::from(status))));
    let asked = exchange.messages.iter().find(|m| matches!(m.kind(), MessageKind::Request | MessageKind::Notification));
    if let Some(asked) = asked {
        told.extend(asked.method().map(|method| text_attribute("mcp.method.name", method)));
        told.extend(asked.name().map(|name| text_attribute("gen_ai.tool.name", name)));
        told.extend(asked.id.map(|id| text_attribute("jsonrpc.request.id", id)));
    }
    if let Some(code) = exchange.answer.and_then(|answer| answer.code()) {
        told.push(text_attribute("rpc.response.status_code", &code.to_string()));
    }
    told.push(number_attribute("http.request.body.size", exchange.request_bytes));
    told.push(number_attribute("http.response.body.size", exchange.reply_bytes));
    if let Some(timing) = exchange.server_timing() {
        let layers = [("transport", timing.transport), ("dispatch", timing.dispatch), ("service", timing.service)];
        told.extend(layers.map(|(layer, time)| number_attribute(&format!("mcpace.server.{layer}_ns"), time.0)));
    }
    if let Some(conn) = exchange.near().and_then(|leg| leg.conn) {
        told.push(number_attribute("mcpace.connection", conn.0));
    }
    told
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": cut_text(value)}})
}

/// A peer's words, of bounded length.
fn cut_text(words: &str) -> &str {
    let most = words.len().min(LONGEST_TEXT);
    let end = (0..=most).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    &words[..end]
}

fn number_attribute(key: &str, value: u64) -> Value {
    // 64-bit integers are strings in the protocol's JSON.
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

#[cfg(test)]
mod tests {
    use mcpace_record::{ConnectionId, Event, EventKind, Instrument, RecordingHead, Side, Span};

    use super::*;

    /// Streams with many events, at paths and with types that are as long as a peer likes.
    fn hostile(exchanges: u64, events: u32, text: &str) -> Recording {
        let side = Side::Back;
        let mut seen = Vec::new();
        for number in 0..exchanges {
            let (ex, at) = (ExchangeId(number), |millis: u64| Nanos(number * 1_000_000 + millis));
            let (method, target) = ("POST".to_owned(), format!("/{text}"));
            let head = EventKind::RequestHead { side, conn: ConnectionId(1), ex, method, target, headers: Vec::new() };
            seen.push(Event { at: at(0), kind: head });
            seen.push(Event { at: at(1), kind: EventKind::ReplyHead { side, ex, status: 200, headers: Vec::new() } });
            for seq in 0..events {
                let (began, event) = (at(2), Some(text.to_owned()));
                let (id, messages, body) = (None, Vec::new(), None);
                let kind = EventKind::ReplyEvent { side, ex, seq, began, bytes: 9, event, id, messages, body };
                seen.push(Event { at: at(2), kind });
            }
        }
        let head = RecordingHead {
            instrument: Instrument::Client,
            started: "2026-11-01T12:00:00Z".to_owned(),
            started_at: None,
            mcpace: "0.1.0".to_owned(),
            upstream: text.to_owned(),
        };
        Recording::new(head, seen)
    }

    fn lines(recording: &Recording) -> Vec<String> {
        let mut written = Vec::new();
        write_otlp(recording, &mut written).unwrap();
        String::from_utf8(written).unwrap().lines().map(str::to_owned).collect()
    }

    fn spans(line: &str) -> Vec<Value> {
        let line: Value = serde_json::from_str(line).unwrap();
        line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    }

    #[test]
    fn no_line_is_larger_than_a_collector_takes() {
        // Escaped, each character is six bytes.
        let lines = lines(&hostile(24, 300, &"\u{1}".repeat(10_000)));
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| line.len() < 4 << 20), "{:?}", lines.iter().map(String::len).max());
        let spans: Vec<Value> = lines.iter().flat_map(|line| spans(line)).collect();
        assert_eq!(spans.len(), 24);
        for span in spans {
            assert_eq!(span["events"].as_array().unwrap().len(), EVENTS_A_SPAN);
            assert_eq!(span["droppedEventsCount"], 300 - EVENTS_A_SPAN);
        }
    }

    #[test]
    fn what_is_of_usual_size_is_whole() {
        let told = lines(&hostile(SPANS_A_LINE as u64 + 1, 2, "mcp"));
        assert_eq!(told.iter().map(|line| spans(line).len()).collect::<Vec<_>>(), [SPANS_A_LINE, 1]);
        let span = &spans(&told[0])[0];
        assert_eq!((&span["name"], span["events"].as_array().unwrap().len()), (&json!("POST /mcp"), 2));
        assert_eq!(span.get("droppedEventsCount"), None);
    }

    #[test]
    fn spans_of_programs_keep_their_ids_and_are_told_under_their_programs_names() {
        let recording = Recording::new(RecordingHead::bare(Instrument::Client), program_spans());
        let lines: Vec<Value> = lines(&recording).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let told: Vec<(&Value, &Value)> = lines
            .iter()
            .map(|line| &line["resourceSpans"][0])
            .map(|of| (&of["resource"]["attributes"][0]["value"]["stringValue"], &of["scopeSpans"][0]["spans"][0]))
            .collect();
        assert_eq!(told.len(), 2);
        assert_eq!(
            (told[0].0, &told[0].1["kind"], told[0].1["traceId"].as_str().unwrap().len()),
            (&json!(""), &json!(1), 32)
        );
        let (service, span) = told[1];
        assert_eq!((service, &span["traceId"], &span["parentSpanId"]), (&json!("weather"), &json!("ab"), &json!("ef")));
        assert_eq!((&span["startTimeUnixNano"], &span["endTimeUnixNano"]), (&json!("5"), &json!("35")));
        assert_eq!(span["attributes"][0]["key"], "server.address");
    }

    /// One span with ids, and one without.
    fn program_spans() -> Vec<Event> {
        let mut client = Span {
            trace: "ab".to_owned(),
            span: "cd".to_owned(),
            parent: Some("ef".to_owned()),
            name: "GET".to_owned(),
            kind: SpanKind::Client,
            began: Nanos(10),
            service: "weather".to_owned(),
            ..Span::default()
        };
        client.add_attribute(("server.address", "h"));
        let bare = Span { began: Nanos(50), ..Span::default() };
        let event = |at, span: Span| Event { at: Nanos(at), kind: EventKind::Span(Box::new(span)) };
        vec![event(40, client), event(5, bare)]
    }

    #[test]
    fn words_are_cut_between_characters() {
        assert_eq!(cut_text("short"), "short");
        assert_eq!(cut_text(&"é".repeat(2_000)).len(), LONGEST_TEXT);
        assert_eq!(cut_text(&format!("a{}", "é".repeat(2_000))).len(), LONGEST_TEXT - 1);
    }
}
