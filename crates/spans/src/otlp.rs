//! The OpenTelemetry protocol (OTLP Specification 1.9, "OTLP/HTTP"): protobuf, and its JSON encoding.

use std::fmt::Write as _;

use mcpace_record::{Redactor, SpanKind};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::{Span as OtlpSpan, span::SpanKind as OtlpKind, status::StatusCode};
use prost::Message as _;

use crate::bounded::Meter;
use crate::json::{DocumentsEnd, read_documents};
use crate::otlp_json::service_name;
use crate::reported::{ReportedSpan, SpanCounts};
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
    let (mut counts, mut spans) = (SpanCounts::default(), Vec::new());
    let mut add = |span: ReportedSpan| spans.extend(span.into_timed(redactor, clock, &mut counts));
    match encoding {
        Encoding::Protobuf => {
            let request = ExportTraceServiceRequest::decode(body).map_err(|error| malformed(&error))?;
            reported_spans(request).for_each(&mut add);
        }
        Encoding::Json => {
            let meter = Meter::new(u64::MAX, u64::MAX);
            let read = read_documents(body, u64::MAX, &meter, &mut |span| {
                add(span);
                true
            });
            match read.map_err(|error| malformed(&error))?.end {
                DocumentsEnd::Complete => {}
                DocumentsEnd::CutOff | DocumentsEnd::Stopped => return Err(malformed(&"it ends within a message")),
            }
        }
    }
    Ok(spans)
}

/// An `ExportTraceServiceResponse` that says how many spans were refused, and why.
#[must_use]
pub fn encode_partial_success(refused: u64, reason: &str, encoding: Encoding) -> Vec<u8> {
    let rejected_spans = i64::try_from(refused).unwrap_or(i64::MAX);
    match encoding {
        Encoding::Protobuf => {
            let error_message = reason.to_owned();
            let partial_success = Some(ExportTracePartialSuccess { rejected_spans, error_message });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Encoding::Json => {
            // 64-bit integers are strings in the protocol's JSON.
            let rejected_spans = rejected_spans.to_string();
            serde_json::json!({"partialSuccess": {"rejectedSpans": rejected_spans, "errorMessage": reason}})
                .to_string()
                .into_bytes()
        }
    }
}

fn reported_spans(request: ExportTraceServiceRequest) -> impl Iterator<Item = ReportedSpan> {
    request.resource_spans.into_iter().flat_map(|resource| {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = service_name(attributes.into_iter().filter_map(attribute_pair));
        resource.scope_spans.into_iter().flat_map(move |scoped| {
            let library = scoped.scope.map(|scope| scope.name).unwrap_or_default();
            let service = service.clone();
            scoped.spans.into_iter().map(move |span| reported_span(span, &library, &service))
        })
    })
}

fn reported_span(span: OtlpSpan, library: &str, service: &str) -> ReportedSpan {
    let kind = match span.kind() {
        OtlpKind::Server => SpanKind::Server,
        OtlpKind::Client => SpanKind::Client,
        OtlpKind::Producer => SpanKind::Producer,
        OtlpKind::Consumer => SpanKind::Consumer,
        OtlpKind::Internal | OtlpKind::Unspecified => SpanKind::Internal,
    };
    ReportedSpan {
        trace: hexadecimal(&span.trace_id),
        span: hexadecimal(&span.span_id),
        parent: hexadecimal(&span.parent_span_id),
        name: span.name,
        kind,
        began: span.start_time_unix_nano,
        ended: span.end_time_unix_nano,
        library: library.to_owned(),
        service: service.to_owned(),
        attributes: span.attributes.into_iter().filter_map(attribute_pair).collect(),
        failed: span.status.is_some_and(|status| status.code() == StatusCode::Error),
    }
}

fn attribute_pair(attribute: KeyValue) -> Option<(String, String)> {
    attribute.value.and_then(attribute_text).map(|text| (attribute.key, text))
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

/// The digits of an id; ids that are too long are cut, and are no ids then.
fn hexadecimal(id: &[u8]) -> String {
    id.iter().take(17).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use mcpace_record::Nanos;
    use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Status};

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

    /// The message of [`json`].
    fn protobuf() -> Vec<u8> {
        let text = |key: &str, value: Value| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValue::default()
        };
        let span = |name: &str, began, ended| OtlpSpan {
            name: name.to_owned(),
            start_time_unix_nano: began,
            end_time_unix_nano: ended,
            ..OtlpSpan::default()
        };
        let request = OtlpSpan {
            trace_id: (1..=16).collect(),
            span_id: (1..=8).collect(),
            kind: 3,
            status: Some(Status { code: 2, ..Status::default() }),
            attributes: vec![
                text("http.url", Value::StringValue("http://h/a?token=PLANTED".to_owned())),
                text("http.status_code", Value::IntValue(500)),
            ],
            ..span("GET", 1_000_100, 1_000_300)
        };
        let scope = InstrumentationScope {
            name: "opentelemetry.instrumentation.httpx".to_owned(),
            ..InstrumentationScope::default()
        };
        let spans = vec![request, span("backwards", 1_000_300, 1_000_100), span("open", 1_000_300, 0)];
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }

    #[test]
    fn both_encodings_give_the_same_spans() {
        let redactor = Redactor::new(1);
        let from_json = decode_otlp(json().as_bytes(), Encoding::Json, &redactor, CLOCK).unwrap();
        let from_protobuf = decode_otlp(&protobuf(), Encoding::Protobuf, &redactor, CLOCK).unwrap();
        assert_eq!(from_json, from_protobuf);
        let [(ended, span)] = from_json.as_slice() else { panic!("{from_json:?}") };
        assert_eq!((span.began, *ended, span.kind, span.failed), (Nanos(600), Nanos(800), SpanKind::Client, true));
        assert_eq!((span.trace.as_str(), span.parent.as_deref()), ("0102030405060708090a0b0c0d0e0f10", None));
        assert_eq!(span.attribute(&["http.status_code"]), Some("500"));
        assert!(!format!("{span:?}").contains("PLANTED"), "{span:?}");
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        let cut = &json().into_bytes()[..400];
        for (body, encoding) in [
            (&b"\xff\xff"[..], Encoding::Protobuf),
            (b"[", Encoding::Json),
            (b"3", Encoding::Json),
            (cut, Encoding::Json),
        ] {
            assert!(decode_otlp(body, encoding, &Redactor::new(1), CLOCK).is_err());
        }
    }

    #[test]
    fn refused_spans_are_told_in_both_encodings() {
        let json = encode_partial_success(7, "too many", Encoding::Json);
        assert_eq!(json, br#"{"partialSuccess":{"errorMessage":"too many","rejectedSpans":"7"}}"#);
        let protobuf = encode_partial_success(7, "too many", Encoding::Protobuf);
        let response = ExportTraceServiceResponse::decode(protobuf.as_slice()).unwrap();
        assert_eq!(response.partial_success.unwrap().rejected_spans, 7);
    }
}
