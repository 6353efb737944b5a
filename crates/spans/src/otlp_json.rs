//! `ResourceSpans` in the JSON encoding of OTLP (OTLP Specification 1.9, "JSON Protobuf Encoding").

use std::fmt;

use mcpace_record::SpanKind;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::json_parts::{ListOf, ReadPart, ReadState, null_as_default};
use crate::reported::ReportedSpan;
use crate::scalar::Scalar;

/// The spans of one program. The resource comes before the spans, as in the protocol's own order.
pub(crate) struct ResourceSpans;

impl<'de> ReadPart<'de> for ResourceSpans {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error> {
        state.service.clear();
        deserializer.deserialize_map(ResourceVisitor(state))
    }
}

struct ResourceVisitor<'s, 'r, 't>(&'s mut ReadState<'r, 't>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ResourceMember {
    Resource,
    ScopeSpans,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    #[serde(deserialize_with = "null_as_default")]
    attributes: Vec<Attribute>,
}

impl<'de> Visitor<'de> for ResourceVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of ResourceSpans")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key()? {
            match member {
                ResourceMember::Resource => {
                    let resource = map.next_value::<Option<Resource>>()?.unwrap_or_default();
                    self.0.service = service_name(resource.attributes.into_iter().filter_map(Attribute::into_pair));
                }
                ResourceMember::ScopeSpans => map.next_value_seed(ListOf::<ScopeSpans>::new(self.0))?,
                ResourceMember::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The name of a program by the attributes of its resource; empty where it was given none.
pub(crate) fn service_name(attributes: impl IntoIterator<Item = (String, String)>) -> String {
    let name = attributes.into_iter().find(|(name, _)| name == "service.name").map(|(_, value)| value);
    name.filter(|name| !name.starts_with("unknown_service")).unwrap_or_default()
}

struct ScopeSpans;

impl<'de> ReadPart<'de> for ScopeSpans {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error> {
        state.library.clear();
        deserializer.deserialize_map(ScopeVisitor(state))
    }
}

struct ScopeVisitor<'s, 'r, 't>(&'s mut ReadState<'r, 't>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ScopeMember {
    Scope,
    Spans,
    #[serde(other)]
    Other,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scope {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
}

impl<'de> Visitor<'de> for ScopeVisitor<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of ScopeSpans")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_key()? {
            match member {
                ScopeMember::Scope => {
                    self.0.library = map.next_value::<Option<Scope>>()?.unwrap_or_default().name;
                }
                ScopeMember::Spans => map.next_value_seed(ListOf::<OtlpSpan>::new(self.0))?,
                ScopeMember::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OtlpSpan {
    #[serde(deserialize_with = "null_as_default")]
    trace_id: String,
    #[serde(deserialize_with = "null_as_default")]
    span_id: String,
    #[serde(deserialize_with = "null_as_default")]
    parent_span_id: String,
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    kind: Scalar,
    start_time_unix_nano: Scalar,
    end_time_unix_nano: Scalar,
    #[serde(deserialize_with = "null_as_default")]
    attributes: Vec<Attribute>,
    #[serde(deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: Scalar,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute {
    #[serde(deserialize_with = "null_as_default")]
    key: String,
    #[serde(deserialize_with = "null_as_default")]
    value: AnyValue,
}

/// A plain value; lists, maps and bytes are passed over, which no rule reads.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnyValue {
    string_value: Scalar,
    bool_value: Scalar,
    int_value: Scalar,
    double_value: Scalar,
}

impl Attribute {
    fn into_pair(self) -> Option<(String, String)> {
        let AnyValue { string_value, bool_value, int_value, double_value } = self.value;
        let text = [string_value, bool_value, int_value, double_value].into_iter().find_map(Scalar::into_text)?;
        Some((self.key, text))
    }
}

impl<'de> ReadPart<'de> for OtlpSpan {
    fn read_part<D: Deserializer<'de>>(deserializer: D, state: &mut ReadState<'_, '_>) -> Result<(), D::Error> {
        let span = OtlpSpan::deserialize(deserializer)?;
        let reported = ReportedSpan {
            trace: span.trace_id,
            span: span.span_id,
            parent: span.parent_span_id,
            name: span.name,
            kind: span_kind(&span.kind),
            began: span.start_time_unix_nano.to_number(),
            ended: span.end_time_unix_nano.to_number(),
            library: state.library.clone(),
            service: state.service.clone(),
            attributes: span.attributes.into_iter().filter_map(Attribute::into_pair).collect(),
            failed: matches!(&span.status.code, Scalar::Text(name) if name == "STATUS_CODE_ERROR")
                || span.status.code.to_number() == 2,
        };
        state.take_span(reported)
    }
}

/// The kind by its number or by its name in the protocol.
fn span_kind(kind: &Scalar) -> SpanKind {
    let name = match kind {
        Scalar::Text(name) => name.as_str(),
        _ => "",
    };
    match (kind.to_number(), name) {
        (2, _) | (_, "SPAN_KIND_SERVER") => SpanKind::Server,
        (3, _) | (_, "SPAN_KIND_CLIENT") => SpanKind::Client,
        (4, _) | (_, "SPAN_KIND_PRODUCER") => SpanKind::Producer,
        (5, _) | (_, "SPAN_KIND_CONSUMER") => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}
