//! Results of operations, read from raw results. Pure.

use mcpace_client_protocol::{Raw, ResultKind};
use mcpace_record::ServerTiming;
use mcpace_wire::mcp::{Extra, key};
use mcpace_wire::quote_printable;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ClientError;

/// Outcome of a tool call.
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
    pub(super) fn from_raw(result: &Raw) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct ToolResultShape {
            #[serde(default, rename = "isError")]
            is_error: Option<bool>,
            #[serde(default, rename = "_meta")]
            meta: Option<Extra>,
        }
        let shape: ToolResultShape = read_result("tools/call", result)?;
        let timing = shape.meta.and_then(|mut meta| meta.remove(key::TIMING));
        let timing = timing.and_then(|timing| ServerTiming::from_json(&timing.to_string()));
        Ok(Self { is_error: shape.is_error.unwrap_or(false), timing, result: result.read("tools/call")? })
    }
}

/// Reads a result as its type. A result that asks for more input (2026-07-28, multi-round-trip requests) is an error.
pub(super) fn read_result<T: DeserializeOwned>(method: &str, result: &Raw) -> Result<T, ClientError> {
    #[derive(Deserialize)]
    struct Wanted {
        #[serde(default, rename = "inputRequests")]
        input_requests: Option<Extra>,
    }
    match result.kind(method)? {
        ResultKind::Complete { .. } => result.read(method),
        ResultKind::InputRequired => {
            let wanted: Wanted = result.read(method)?;
            let keys: Vec<String> = wanted.input_requests.unwrap_or_default().keys().cloned().collect();
            let wants = if keys.is_empty() { "a second try".to_owned() } else { quote_printable(&keys.join(", ")) };
            Err(ClientError::InputRequired { method: method.to_owned(), wants })
        }
        ResultKind::Task => {
            Err(ClientError::bad_reply(method, "its resultType is \"task\", which this client does not know"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Result<CallResult, ClientError> {
        CallResult::from_raw(&Raw::new(text))
    }

    #[test]
    fn a_call_tells_its_failure_and_the_servers_timing() {
        let text = r#"{"content":[],"isError":true,
            "_meta":{"dev.mcpace/timing":{"transport_ns":1,"dispatch_ns":2,"service_ns":3}}}"#;
        let result = read(text).unwrap();
        assert!(result.is_error && result.timing.unwrap().service.0 == 3);
        assert!(!read(r#"{"content":[],"resultType":"complete"}"#).unwrap().is_error);
    }

    #[test]
    fn a_result_that_wants_input_is_an_error_that_says_what_it_wants() {
        let text = r#"{"resultType":"input_required","inputRequests":{"who":{},"where":{}},"requestState":"x"}"#;
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), "input-required");
        assert!(error.to_string().contains("where, who") || error.to_string().contains("who, where"), "{error}");
        let task = read(r#"{"resultType":"task","taskId":"1"}"#).unwrap_err();
        assert_eq!(task.code(), "bad-reply");
        assert_eq!(read("[]").unwrap_err().code(), "bad-reply");
    }
}
