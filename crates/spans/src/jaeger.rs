//! The traces that Jaeger's user interface downloads and its API (`/api/traces`) answers with.

use std::collections::HashMap;
use std::fmt;

use mcpace_record::SpanKind;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::json_parts::{ListOf, ReadPart, ReadState, null_as_default};
use crate::reported::ReportedSpan;
use crate::scalar::Scalar;

/// One trace.
pub(crate) struct JaegerTrace;

impl<'de> ReadPart<'de> for JaegerTrace {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error> {
        state.library.clear();
        deserializer.deserialize_map(TraceVisitor(state))
    }
}

struct TraceVisitor<'s, 'r, 't>(&'s mut ReadState<'r, 't>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum TraceMember {
    Spans,
    Processes,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Process {
    #[serde(deserialize_with = "null_as_default")]
    service_name: String,
}

impl<'de> Visitor<'de> for TraceVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a trace's spans")
    }

    /// The spans name their programs by keys of `processes`, which mostly come last: the spans of a trace are held until its end.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names: HashMap<String, String> = HashMap::new();
        let mut has_spans = false;
        while let Some(member) = map.next_key()? {
            match member {
                TraceMember::Spans => {
                    has_spans = true;
                    map.next_value_seed(ListOf::<JaegerSpan>::new(self.0))?;
                }
                TraceMember::Processes => {
                    let processes = map.next_value::<Option<HashMap<String, Process>>>()?.unwrap_or_default();
                    names = processes.into_iter().map(|(key, process)| (key, process.service_name)).collect();
                }
                TraceMember::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_spans { self.0.end_trace(&names) } else { Ok(()) }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JaegerSpan {
    #[serde(rename = "traceID", deserialize_with = "null_as_default")]
    trace: String,
    #[serde(rename = "spanID", deserialize_with = "null_as_default")]
    span: String,
    #[serde(rename = "parentSpanID", deserialize_with = "null_as_default")]
    parent: String,
    #[serde(deserialize_with = "null_as_default")]
    operation_name: String,
    #[serde(deserialize_with = "null_as_default")]
    references: Vec<Reference>,
    /// Microseconds.
    start_time: Scalar,
    duration: Scalar,
    #[serde(deserialize_with = "null_as_default")]
    tags: Vec<Tag>,
    #[serde(rename = "processID", deserialize_with = "null_as_default")]
    process_key: String,
    #[serde(deserialize_with = "null_as_default")]
    process: Process,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    #[serde(rename = "refType", deserialize_with = "null_as_default")]
    kind: String,
    #[serde(rename = "traceID", deserialize_with = "null_as_default")]
    trace: String,
    #[serde(rename = "spanID", deserialize_with = "null_as_default")]
    span: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tag {
    #[serde(deserialize_with = "null_as_default")]
    key: String,
    value: Scalar,
}

impl<'de> ReadPart<'de> for JaegerSpan {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error> {
        let span = JaegerSpan::deserialize(deserializer)?;
        let parent = span.references.into_iter().find(|reference| {
            // A parent of another trace is a link in OpenTelemetry's terms.
            reference.kind == "CHILD_OF" && reference.trace == span.trace
        });
        let mut reported = ReportedSpan {
            parent: parent.map_or(span.parent, |parent| parent.span),
            trace: span.trace,
            span: span.span,
            name: span.operation_name,
            began: span.start_time.to_number().saturating_mul(1_000),
            // A Jaeger span that lasts no microsecond has ended.
            ended: span.start_time.to_number().saturating_add(span.duration.to_number()).saturating_mul(1_000),
            service: span.process.service_name,
            ..ReportedSpan::default()
        };
        for Tag { key, value } in span.tags {
            let Some(value) = value.into_text() else { continue };
            match (key.as_str(), value.as_str()) {
                ("span.kind", kind) => reported.kind = span_kind(kind),
                ("otel.scope.name" | "otel.library.name", _) => reported.library = value,
                ("error", "true") | ("otel.status_code", "ERROR") => reported.failed = true,
                _ => reported.attributes.push((key, value)),
            }
        }
        state.hold_span(span.process_key, reported)
    }
}

fn span_kind(kind: &str) -> SpanKind {
    match kind {
        "server" => SpanKind::Server,
        "client" => SpanKind::Client,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}
