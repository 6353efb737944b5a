//! Facts that a recording keeps of a JSON-RPC message besides its text: enough to tie requests to replies.

use mcpace_wire::jsonrpc::{Message, Outcome, Payload};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::digest::{Digest, digest_bytes};
use crate::{ServerTiming, TraceContext};

/// The four kinds of JSON-RPC 2.0 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has a result.
    Result,
    /// Has an error.
    Error,
}

/// The outline of one JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageNote {
    /// Which kind.
    pub kind: MessageKind,
    /// The id as its JSON token (`7`, `"a"`), where there is one: of `notifications/cancelled` the id of the request that it
    /// names, of `notifications/progress` the progress token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The method of a request or notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// `params.name` of `tools/call` and `prompts/get`, `params.uri` of `resources/read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Identity of `params` (requests) or `result` (results) without `_meta`: equal content under another id, progress token
    /// or trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// Identity of a tool call's `arguments`: what is asked of the tool, whatever `_meta` says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Digest>,
    /// How many tools a `tools/list` result names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u32>,
    /// The JSON-RPC error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Whether a tool's result has `isError: true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The server's own timing of this call, where it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<ServerTiming>,
    /// `params._meta.traceparent` of a request, where it is well-formed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl MessageNote {
    /// An outline of which only the kind is known.
    #[must_use]
    pub fn new(kind: MessageKind) -> Self {
        Self {
            kind,
            id: None,
            method: None,
            name: None,
            content: None,
            arguments: None,
            tools: None,
            code: None,
            is_error: false,
            timing: None,
            traceparent: None,
        }
    }

    /// The outlines of all messages in one JSON text: one, a batch's, or none where it is no JSON-RPC.
    #[must_use]
    pub fn of(json: &[u8]) -> Vec<MessageNote> {
        match Payload::parse(json) {
            Ok(payload) => payload.messages().iter().map(MessageNote::of_message).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Whether this is a request for `method`.
    #[must_use]
    pub fn requests(&self, method: &str) -> bool {
        self.kind == MessageKind::Request && self.method.as_deref() == Some(method)
    }

    /// Whether this is the notification `method`.
    #[must_use]
    pub fn notifies(&self, method: &str) -> bool {
        self.kind == MessageKind::Notification && self.method.as_deref() == Some(method)
    }

    /// Whether this answers a request: a result or an error with an id.
    #[must_use]
    pub fn answers(&self) -> bool {
        matches!(self.kind, MessageKind::Result | MessageKind::Error) && self.id.is_some()
    }

    /// Bytes of memory that it takes, nearly.
    pub(crate) fn memory_size(&self) -> usize {
        let texts = [&self.id, &self.method, &self.name].into_iter().flatten();
        size_of::<Self>() + texts.map(String::len).sum::<usize>()
    }

    fn of_message(message: &Message<'_>) -> MessageNote {
        let mut note = MessageNote::new(MessageKind::Notification);
        match message {
            Message::Request(request) => {
                note.kind = MessageKind::Request;
                note.id = Some(request.id.to_string());
                note.note_request(&request.method, request.params);
            }
            Message::Notification(notification) => note.note_request(&notification.method, notification.params),
            Message::Response(response) => {
                note.id = response.id.as_ref().map(ToString::to_string);
                match &response.outcome {
                    Outcome::Result(result) => note.note_result(result),
                    Outcome::Error(error) => {
                        note.kind = MessageKind::Error;
                        note.code = Some(error.code);
                    }
                }
            }
        }
        note
    }

    fn note_request(&mut self, method: &str, params: Option<&RawValue>) {
        self.method = Some(method.to_owned());
        if let Some(params) = params {
            let meta = params_meta(params.get());
            self.content = Some(digest_without(meta, params.get()));
            self.traceparent = meta.and_then(meta_traceparent);
            if matches!(method, "tools/call" | "prompts/get" | "resources/read") {
                let named: NamedParams<'_> = serde_json::from_str(params.get()).unwrap_or_default();
                self.arguments = named.arguments.map(|arguments| digest_bytes(arguments.get().as_bytes()));
                self.name = named.name.or(named.uri);
            }
            if matches!(method, "notifications/cancelled" | "notifications/progress") {
                let subject: SubjectParams<'_> = serde_json::from_str(params.get()).unwrap_or_default();
                self.id = subject.request.or(subject.token).map(|id| id.get().to_owned());
            }
        }
    }

    fn note_result(&mut self, result: &RawValue) {
        self.kind = MessageKind::Result;
        let shape: ResultShape<'_> = serde_json::from_str(result.get()).unwrap_or_default();
        self.content = Some(digest_without(shape.meta, result.get()));
        self.is_error = shape.is_error;
        self.tools = shape.tools.and_then(|tools| array_length(tools.get()));
        // Apart, so that a `_meta` that is no good doesn't cost the flag.
        let meta: ResultMeta<'_> =
            shape.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        self.timing = meta.timing.and_then(|told| ServerTiming::from_json(told.get()));
    }
}

/// `_meta` of a request's parameters.
fn params_meta(params: &str) -> Option<&RawValue> {
    // Many requests have none, and are not parsed for it.
    if !params.contains("\"_meta\"") {
        return None;
    }
    serde_json::from_str::<ParamsMeta<'_>>(params).ok()?.meta
}

/// The digest of a text without a value in it.
fn digest_without(value: Option<&RawValue>, text: &str) -> Digest {
    let parts = value.and_then(|value| {
        let at = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        Some([text.get(..at)?, text.get(at + value.get().len()..)?])
    });
    match parts {
        Some(parts) => digest_bytes(parts.concat().as_bytes()),
        None => digest_bytes(text.as_bytes()),
    }
}

fn meta_traceparent(meta: &RawValue) -> Option<String> {
    let traceparent = serde_json::from_str::<TracedMeta>(meta.get()).ok()?.traceparent?;
    TraceContext::parse(&traceparent).map(|context| context.to_string())
}

#[derive(Deserialize)]
struct ParamsMeta<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct TracedMeta {
    #[serde(default)]
    traceparent: Option<String>,
}

/// The part of `params` that names what is asked for.
#[derive(Default, Deserialize)]
struct NamedParams<'a> {
    name: Option<String>,
    uri: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// The part of a notification's `params` that names the request that it is about.
#[derive(Default, Deserialize)]
struct SubjectParams<'a> {
    #[serde(borrow, default, rename = "requestId")]
    request: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// The part of a result that the outline keeps.
#[derive(Default, Deserialize)]
struct ResultShape<'a> {
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

/// The length of a JSON array; `None` where it is something else.
fn array_length(json: &str) -> Option<u32> {
    let items: Vec<serde::de::IgnoredAny> = serde_json::from_str(json).ok()?;
    u32::try_from(items.len()).ok()
}

#[derive(Default, Deserialize)]
struct ResultMeta<'a> {
    #[serde(borrow, default, rename = "dev.mcpace/timing")]
    timing: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    #[test]
    fn a_notification_about_a_request_names_it() {
        let id = |json: &str| MessageNote::of(json.as_bytes())[0].id.clone();
        let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(id(cancelled).as_deref(), Some("7"));
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a","progress":1}}"#;
        assert_eq!(id(progress).as_deref(), Some("\"a\""));
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"requestId":7}}"#), None);
    }

    #[test]
    fn a_call_is_outlined_by_id_method_and_tool() {
        let notes = MessageNote::of(
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"greet","arguments":{"name":"x"}}}"#,
        );
        assert_eq!(notes.len(), 1);
        assert!(notes[0].requests("tools/call"));
        assert_eq!(notes[0].id.as_deref(), Some("7"));
        assert_eq!(notes[0].name.as_deref(), Some("greet"));
    }

    #[test]
    fn the_trace_of_a_request_is_kept_where_it_is_well_formed() {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let note = |params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            MessageNote::of(text.as_bytes()).remove(0).traceparent
        };
        assert_eq!(
            note(&format!(r#"{{"_meta":{{"traceparent":"{traceparent}","x":1}}}}"#)).as_deref(),
            Some(traceparent)
        );
        for params in [r#"{"_meta":{"traceparent":"t"}}"#, r#"{"_meta":{"traceparent":7}}"#, r#"{"traceparent":"t"}"#] {
            assert_eq!(note(params), None, "{params}");
        }
    }

    #[test]
    fn a_result_tells_its_error_flag_and_timing() {
        let notes = MessageNote::of(
            br#"{"jsonrpc":"2.0","id":"a","result":{"isError":true,"_meta":{"dev.mcpace/timing":
               {"transport_ns":1,"dispatch_ns":2,"service_ns":3}}}}"#,
        );
        assert!(notes[0].answers() && notes[0].is_error);
        assert_eq!(notes[0].timing.map(|t| t.service), Some(Nanos(3)));
    }

    #[test]
    fn the_same_arguments_are_known_whatever_stands_beside_them() {
        let note = |token: u32| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{token},"method":"tools/call","params":{{"_meta":{{"progressToken":{token}}},"name":"greet","arguments":{{"name":"x"}}}}}}"#
            );
            MessageNote::of(text.as_bytes()).remove(0)
        };
        assert_eq!(note(1).arguments, note(2).arguments);
        assert!(note(1).arguments.is_some());
        assert_eq!(note(1).content, note(2).content);
    }

    #[test]
    fn a_listings_tools_are_counted() {
        let tools =
            |json: &str| MessageNote::of(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{json}}}"#).as_bytes())[0].tools;
        assert_eq!(tools(r#"{"tools":[{"name":"a"},{"name":"b"}]}"#), Some(2));
        assert_eq!(tools(r#"{"tools":[]}"#), Some(0));
        assert_eq!(tools(r#"{"tools":{}}"#), None);
        assert_eq!(tools("{}"), None);
    }

    #[test]
    fn text_that_is_no_json_rpc_has_no_outline() {
        assert!(MessageNote::of(b"<html>").is_empty());
        assert!(MessageNote::of(b"[1,2").is_empty());
    }

    #[test]
    fn a_meta_that_is_no_good_costs_nothing_else() {
        for meta in [r#""x""#, r#"{"dev.mcpace/timing":{"service_ns":-1}}"#, r#"{"dev.mcpace/timing":"soon"}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"_meta":{meta},"isError":true}}}}"#);
            assert!(MessageNote::of(text.as_bytes())[0].is_error, "{meta}");
        }
    }
}
