//! What answered a request, cut out of the text that it came in.

use bytes::Bytes;
use mcpace_wire::jsonrpc::{ErrorObject, Outcome};
use mcpace_wire::mcp::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// A result's JSON text, an object's, as the server wrote it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Raw(Bytes);

impl Raw {
    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn of(text: Vec<u8>) -> Self {
        Self(text.into())
    }

    /// Reads it as the result of `method`.
    ///
    /// # Errors
    /// [`ClientError::BadReply`].
    pub fn read<T: DeserializeOwned>(&self, method: &str) -> Result<T, ClientError> {
        serde_json::from_slice(&self.0).map_err(|error| ClientError::bad_reply(method, error))
    }
}

/// A JSON-RPC error: the server's answer, or a callback's to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// See [`mcpace_wire::jsonrpc::code`].
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Whatever the code defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn of(error: ErrorObject<'_>) -> Self {
        Self { code: error.code, message: error.message.into_owned(), data: error.data.map(Json::from) }
    }
}

/// Result or error.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Result(Raw),
    Error(RpcError),
}

impl Answer {
    /// Cuts an answer out of `text`, from which it was parsed.
    pub(crate) fn of(outcome: Outcome<'_>, text: &Bytes) -> Self {
        match outcome {
            Outcome::Result(result) => Answer::Result(Raw(text.slice_ref(result.get().as_bytes()))),
            Outcome::Error(error) => Answer::Error(RpcError::of(error)),
        }
    }
}

/// What every result of 2026-07-28 says about itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Kind {
    #[serde(default, rename = "resultType")]
    pub(crate) result_type: Option<String>,
    #[serde(default, rename = "ttlMs")]
    pub(crate) ttl_ms: Option<f64>,
}

impl Kind {
    pub(crate) fn of(raw: &Raw, method: &str) -> Result<Self, ClientError> {
        // serde would take an array for an object whose members all have defaults.
        if raw.0.first() != Some(&b'{') {
            return Err(ClientError::bad_reply(method, "its result is no object"));
        }
        raw.read(method)
    }
}
