//! OTLP as JSON lines (the OpenTelemetry protocol's JSON encoding and its file exporter's framing): each line is one
//! `ExportTraceServiceRequest`, small enough to be posted to a collector's `/v1/traces` as it is.
//!
//! A trace an operation of the client's program: the operation, beneath it the stretches of its ledger and its exchanges as
//! client spans. Exchanges outside any operation are traces of their own. What a server told of its layers has no place in
//! time and is in attributes. Attributes are those of the semantic conventions for MCP and HTTP where these have one.

use std::collections::HashMap;
use std::io::Write;

use mcpace_explain::{Exchange, Ledger, Texts, exchanges, ledgers};
use mcpace_record::{CallOutcome, ExchangeId, MessageKind, Nanos, Recording, digest};
use serde_json::{Value, json};

use crate::{ExportError, Wall};

/// Spans a line: a few hundred kilobytes, well below the four megabytes that collectors take.
const SPANS_A_LINE: usize = 512;

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// Writes all operations and exchanges of `recording`.
pub fn otlp(recording: &Recording, into: impl Write) -> Result<(), ExportError> {
    let texts = Texts::default();
    let view = exchanges(recording, &texts);
    let ledgers = ledgers(recording);
    let mut calls: HashMap<ExchangeId, &Ledger> = HashMap::new();
    for ledger in &ledgers {
        calls.extend(ledger.exchanges.iter().map(|id| (*id, ledger)));
    }
    let mut lines = Lines { into, recording, wall: Wall::of(recording), spans: Vec::new() };
    for ledger in &ledgers {
        lines.operation(ledger)?;
    }
    for exchange in &view.exchanges {
        lines.exchange(exchange, calls.get(&exchange.id).copied())?;
    }
    lines.flush()?;
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

struct Lines<'a, W> {
    into: W,
    recording: &'a Recording,
    wall: Wall,
    spans: Vec<Value>,
}

impl<W: Write> Lines<'_, W> {
    fn operation(&mut self, ledger: &Ledger) -> Result<(), ExportError> {
        let mut attributes = vec![text("mcpace.operation", &ledger.operation)];
        attributes.extend(ledger.tool.as_deref().map(|tool| text("gen_ai.tool.name", tool)));
        let failure = match &ledger.outcome {
            Some(CallOutcome::Failed(words)) => Some(words.as_str()),
            Some(CallOutcome::ToolError) => Some("tool_error"),
            _ => None,
        };
        let key = ("call", ledger.call.0);
        let name = ledger.tool.as_ref().map_or(ledger.operation.clone(), |tool| format!("{} {tool}", ledger.operation));
        let mut span = self.span(key, key, None, &name, INTERNAL, ledger.start, ledger.end, attributes);
        if let Some(failure) = failure {
            span["status"] = json!({"code": FAILED, "message": failure});
        }
        self.add(span)?;
        for (place, segment) in ledger.segments.iter().enumerate().filter(|(_, segment)| segment.from < segment.to) {
            let own = (segment.part.name(), ledger.call.0 << 20 | place as u64);
            let about = segment.exchange.map(|exchange| number("mcpace.exchange", exchange.0)).into_iter().collect();
            let span = self.span(key, own, Some(key), segment.part.name(), INTERNAL, segment.from, segment.to, about);
            self.add(span)?;
        }
        Ok(())
    }

    fn exchange(&mut self, exchange: &Exchange<'_>, ledger: Option<&Ledger>) -> Result<(), ExportError> {
        let own = ("exchange", exchange.id.0);
        let call = ledger.map(|ledger| ("call", ledger.call.0));
        let from = exchange.sent().at;
        let near = exchange.near();
        let end = near.and_then(|leg| leg.end.or(leg.result_end).or(leg.reply_head)).map_or(from, |stamp| stamp.at);
        let mut span =
            self.span(call.unwrap_or(own), own, call, &name_of(exchange), CLIENT, from, end, about(exchange));
        let events = exchange.events.iter().filter_map(|event| {
            let at = event.passed.or(event.read)?.at;
            let unix = self.wall.unix_ns(at).to_string();
            let attributes = [number("mcpace.sse.bytes", event.bytes)];
            Some(json!({"timeUnixNano": unix, "name": event.event.unwrap_or("message"), "attributes": attributes}))
        });
        let events: Vec<Value> = events.collect();
        if !events.is_empty() {
            span["events"] = json!(events);
        }
        let failed = exchange.status.is_some_and(|status| status >= 400)
            || exchange.answer.is_some_and(|answer| answer.kind() == MessageKind::Error || answer.is_error());
        if failed {
            span["status"] = json!({"code": FAILED});
        }
        self.add(span)
    }

    #[expect(clippy::too_many_arguments, reason = "a span has as many parts")]
    fn span(
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
            "traceId": format!("{}{}", self.id("trace", trace), self.id("trace'", trace)),
            "spanId": self.id("span", own),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": self.wall.unix_ns(from).to_string(),
            "endTimeUnixNano": self.wall.unix_ns(to.max(from)).to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = json!(self.id("span", parent));
        }
        span
    }

    /// Eight bytes in hexadecimal, the same each time that this recording is exported: sent twice, it is one trace.
    fn id(&self, kind: &str, (group, number): (&str, u64)) -> String {
        let head = &self.recording.head;
        let first = self.recording.events().first().map_or(0, |event| event.at.0);
        let whole = format!("{kind} {group} {number} {} {} {first}", head.started, head.upstream);
        // All zeros are no id.
        format!("{:016x}", digest(whole.as_bytes()).0.max(1))
    }

    fn add(&mut self, span: Value) -> Result<(), ExportError> {
        self.spans.push(span);
        if self.spans.len() >= SPANS_A_LINE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let head = &self.recording.head;
        let resource = [text("service.name", "mcpace recording"), text("server.address", &head.upstream)];
        let spans = std::mem::take(&mut self.spans);
        let line = json!({"resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": {"name": "mcpace", "version": head.mcpace}, "spans": spans}],
        }]});
        serde_json::to_writer(&mut self.into, &line)?;
        Ok(self.into.write_all(b"\n")?)
    }
}

fn about(exchange: &Exchange<'_>) -> Vec<Value> {
    let mut told = Vec::new();
    if !exchange.method().is_empty() {
        told.push(text("http.request.method", exchange.method()));
        told.push(text("url.path", exchange.target()));
    }
    told.extend(exchange.status.map(|status| number("http.response.status_code", u64::from(status))));
    let asked = exchange.messages.iter().find(|m| matches!(m.kind(), MessageKind::Request | MessageKind::Notification));
    if let Some(asked) = asked {
        told.extend(asked.method().map(|method| text("mcp.method.name", method)));
        told.extend(asked.name().map(|name| text("gen_ai.tool.name", name)));
        told.extend(asked.id.map(|id| text("jsonrpc.request.id", id)));
    }
    if let Some(code) = exchange.answer.and_then(|answer| answer.code()) {
        told.push(text("rpc.response.status_code", &code.to_string()));
    }
    told.push(number("http.request.body.size", exchange.request_bytes));
    told.push(number("http.response.body.size", exchange.reply_bytes));
    if let Some(timing) = exchange.told() {
        let layers = [("transport", timing.transport), ("dispatch", timing.dispatch), ("service", timing.service)];
        told.extend(layers.map(|(layer, time)| number(&format!("mcpace.server.{layer}_ns"), time.0)));
    }
    if let Some(conn) = exchange.near().and_then(|leg| leg.conn) {
        told.push(number("mcpace.connection", conn.0));
    }
    told
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    // 64-bit integers are strings in the protocol's JSON.
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
