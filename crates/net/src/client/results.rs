//! What operations return, read from raw results. Pure.

use mcpace_record::ServerTiming;
use mcpace_wire::mcp::{DiscoverResult, Extra, Implementation, InitializeResult, ServerCapabilities, key};
use mcpace_wire::quoted;
use mcpace_wire::revision::Revision;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ClientError;

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// One HTTP endpoint for everything (2025-03-26 and later).
    StreamableHttp,
    /// A GET stream and a second endpoint (2024-11-05).
    HttpSse,
    /// A process's stdin and stdout.
    Stdio,
}

impl TransportKind {
    /// As it is written in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            TransportKind::StreamableHttp => "streamable-http",
            TransportKind::HttpSse => "http+sse",
            TransportKind::Stdio => "stdio",
        }
    }
}

/// What a server told about itself when it was connected to.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The revision that is spoken from here on.
    pub revision: Revision,
    /// How.
    pub transport: TransportKind,
    /// Name and version; a server of 2026-07-28 may keep them to itself.
    pub server: Option<Implementation>,
    /// What it can do.
    pub capabilities: ServerCapabilities,
    /// How to use it, for a model.
    pub instructions: Option<String>,
}

/// What a tool call came to.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// Whether the tool itself reported a failure (`isError`).
    pub is_error: bool,
    /// How long the server's layers took, where it told in the result.
    pub timing: Option<ServerTiming>,
    /// The whole result as JSON text.
    pub result: Box<RawValue>,
}

impl CallResult {
    pub(super) fn read(result: Box<RawValue>) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct Shape {
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
            #[serde(default, rename = "_meta")]
            meta: Option<Extra>,
        }
        let shape: Shape = read("tools/call", &result)?;
        let told = shape.meta.and_then(|mut meta| meta.remove(key::TIMING));
        let timing = told.and_then(|told| ServerTiming::from_json(&told.to_string()));
        Ok(Self { is_error: shape.is_error.unwrap_or(false), timing, result })
    }
}

pub(super) fn initialized(result: &RawValue) -> Result<InitializeResult, ClientError> {
    read("initialize", result)
}

pub(super) fn discovered(result: &RawValue) -> Result<(DiscoverResult, Option<Implementation>), ClientError> {
    let discovered: DiscoverResult = read("server/discover", result)?;
    let server = discovered.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
    let server = server.and_then(|server| serde_json::from_value(server.clone()).ok());
    Ok((discovered, server))
}

/// Reads a result as its type. One that asks for more input (2026-07-28, multi-round-trip requests) is an error.
pub(super) fn read<T: DeserializeOwned>(method: &str, result: &RawValue) -> Result<T, ClientError> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default, rename = "resultType")]
        result_type: Option<String>,
        #[serde(default, rename = "inputRequests")]
        input_requests: Option<Extra>,
    }
    let bad = |error: serde_json::Error| ClientError::BadReply {
        method: method.to_owned(),
        reason: quoted(&error.to_string()),
    };
    // serde would take an array for an object whose members all have defaults.
    if !result.get().starts_with('{') {
        return Err(ClientError::BadReply { method: method.to_owned(), reason: "its result is no object".to_owned() });
    }
    let kind: Kind = serde_json::from_str(result.get()).map_err(bad)?;
    match kind.result_type.as_deref() {
        None | Some("complete") => serde_json::from_str(result.get()).map_err(bad),
        Some("input_required") => {
            let keys: Vec<String> = kind.input_requests.unwrap_or_default().keys().cloned().collect();
            let wants = if keys.is_empty() { "a second try".to_owned() } else { quoted(&keys.join(", ")) };
            Err(ClientError::InputRequired { method: method.to_owned(), wants })
        }
        Some(other) => {
            let reason = format!("its resultType is {}, which this client does not know", quoted(other));
            Err(ClientError::BadReply { method: method.to_owned(), reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_call_tells_its_failure_and_the_servers_timing() {
        let text = r#"{"content":[],"isError":true,
            "_meta":{"dev.mcpace/timing":{"transport_ns":1,"dispatch_ns":2,"service_ns":3}}}"#;
        let result = CallResult::read(raw(text)).unwrap();
        assert!(result.is_error && result.timing.unwrap().service.0 == 3);
        assert!(!CallResult::read(raw(r#"{"content":[],"resultType":"complete"}"#)).unwrap().is_error);
    }

    #[test]
    fn a_result_that_wants_input_is_an_error_that_says_what_it_wants() {
        let text = r#"{"resultType":"input_required","inputRequests":{"who":{},"where":{}},"requestState":"x"}"#;
        let error = CallResult::read(raw(text)).unwrap_err();
        assert_eq!(error.code(), "input-required");
        assert!(error.to_string().contains("where, who") || error.to_string().contains("who, where"), "{error}");
        let task = CallResult::read(raw(r#"{"resultType":"task","taskId":"1"}"#)).unwrap_err();
        assert_eq!(task.code(), "bad-reply");
        assert_eq!(CallResult::read(raw("[]")).unwrap_err().code(), "bad-reply");
    }
}
