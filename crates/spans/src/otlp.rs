//! The OpenTelemetry protocol (OTLP Specification 1.9, "OTLP/HTTP"): protobuf, and its JSON encoding.

use std::fmt::Write as _;

use mcpace_record::{Redactor, Span, SpanKind};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{Span as OtlpSpan, span::SpanKind as OtlpKind, status::StatusCode};
use prost::Message as _;

use crate::{SpanError, TimedSpan, WallClock};

/// Encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`.
    Protobuf,
    /// `application/json`.
    Json,
}

/// The spans of one `ExportTraceServiceRequest`. Spans that have not ended, and those before the clock's zero, are left out.
///
/// # Errors
/// [`SpanError::Malformed`].
pub fn decode_otlp(
    body: &[u8],
    encoding: Encoding,
    redactor: &Redactor,
    clock: WallClock,
) -> Result<Vec<TimedSpan>, SpanError> {
    let malformed = |error: &dyn std::fmt::Display| SpanError::Malformed(error.to_string());
    let request: ExportTraceServiceRequest = match encoding {
        Encoding::Protobuf => ExportTraceServiceRequest::decode(body).map_err(|error| malformed(&error))?,
        Encoding::Json => serde_json::from_slice(body).map_err(|error| malformed(&error))?,
    };
    let mut spans = Vec::new();
    for scoped in request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans) {
        let library = scoped.scope.map(|scope| scope.name).unwrap_or_default();
        spans.extend(scoped.spans.into_iter().filter_map(|span| timed_span(span, &library, redactor, clock)));
    }
    Ok(spans)
}

fn timed_span(span: OtlpSpan, library: &str, redactor: &Redactor, clock: WallClock) -> Option<TimedSpan> {
    let ended = clock.recording_time(span.end_time_unix_nano)?;
    let began = clock.recording_time(span.start_time_unix_nano)?;
    if began > ended {
        return None;
    }
    let kind = match span.kind() {
        OtlpKind::Server => SpanKind::Server,
        OtlpKind::Client => SpanKind::Client,
        OtlpKind::Producer => SpanKind::Producer,
        OtlpKind::Consumer => SpanKind::Consumer,
        OtlpKind::Internal | OtlpKind::Unspecified => SpanKind::Internal,
    };
    let mut result = Span {
        trace: hexadecimal(&span.trace_id),
        span: hexadecimal(&span.span_id),
        parent: (!span.parent_span_id.is_empty()).then(|| hexadecimal(&span.parent_span_id)),
        name: redactor.target(&span.name).chars().take(200).collect(),
        kind,
        began,
        library: library.chars().take(200).collect(),
        attributes: Vec::new(),
        failed: span.status.is_some_and(|status| status.code() == StatusCode::Error),
    };
    for KeyValue { key, value, .. } in span.attributes {
        if let Some(text) = value.and_then(attribute_text) {
            result.add_attribute((&key, &redactor.attribute(&key, &text)));
        }
    }
    Some((ended, result))
}

/// A plain value as text; `None` for lists, maps and bytes, which no rule reads.
fn attribute_text(value: AnyValue) -> Option<String> {
    match value.value? {
        Value::StringValue(text) => Some(text),
        Value::BoolValue(value) => Some(value.to_string()),
        Value::IntValue(value) => Some(value.to_string()),
        Value::DoubleValue(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The digits of an id; ids of a wrong length are cut.
fn hexadecimal(id: &[u8]) -> String {
    id.iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use mcpace_record::Nanos;

    use super::*;

    const CLOCK: WallClock = WallClock { unix_ns: 1_000_000, at: Nanos(500) };

    fn json() -> String {
        r#"{"resourceSpans": [{"scopeSpans": [{"scope": {"name": "opentelemetry.instrumentation.httpx"}, "spans": [
            {"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "parentSpanId": "", "name": "GET",
             "kind": 3, "startTimeUnixNano": "1000100", "endTimeUnixNano": "1000300", "status": {"code": 2},
             "attributes": [{"key": "http.url", "value": {"stringValue": "http://h/a?token=PLANTED"}},
                            {"key": "http.status_code", "value": {"intValue": "500"}}]},
            {"traceId": "", "spanId": "", "name": "backwards", "startTimeUnixNano": "1000300", "endTimeUnixNano": "1000100"},
            {"traceId": "", "spanId": "", "name": "open", "startTimeUnixNano": "1000300", "endTimeUnixNano": "0"}
        ]}]}]}"#
            .to_owned()
    }

    #[test]
    fn both_encodings_give_the_same_spans() {
        let redactor = Redactor::new(1);
        let from_json = decode_otlp(json().as_bytes(), Encoding::Json, &redactor, CLOCK).unwrap();
        let request: ExportTraceServiceRequest = serde_json::from_str(&json()).unwrap();
        let from_protobuf = decode_otlp(&request.encode_to_vec(), Encoding::Protobuf, &redactor, CLOCK).unwrap();
        assert_eq!(from_json, from_protobuf);
        let [(ended, span)] = from_json.as_slice() else { panic!("{from_json:?}") };
        assert_eq!((span.began, *ended, span.kind, span.failed), (Nanos(600), Nanos(800), SpanKind::Client, true));
        assert_eq!((span.trace.as_str(), span.parent.as_deref()), ("0102030405060708090a0b0c0d0e0f10", None));
        assert_eq!(span.attribute(&["http.status_code"]), Some("500"));
        assert!(!format!("{span:?}").contains("PLANTED"), "{span:?}");
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for (body, encoding) in [(&b"\xff\xff"[..], Encoding::Protobuf), (b"[", Encoding::Json), (b"3", Encoding::Json)]
        {
            assert!(decode_otlp(body, encoding, &Redactor::new(1), CLOCK).is_err());
        }
    }
}
