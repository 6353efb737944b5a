//! A request that fails, as the JSON-RPC error of its response.

use std::borrow::Cow;

use mcpace_wire::jsonrpc::{Id, write_error};
use serde_json::Value;

/// A JSON-RPC error.
#[derive(Debug, Clone)]
pub(crate) struct RequestFailure {
    pub(crate) code: i64,
    pub(crate) message: Cow<'static, str>,
    pub(crate) data: Option<Value>,
}

impl RequestFailure {
    pub(crate) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The error as a JSON-RPC response.
    pub(crate) fn to_response(&self, id: Option<&Id<'_>>) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing fails on maps whose keys are no strings; `Value` has none.
        let _ = write_error(&mut bytes, id, self.code, &self.message, self.data.as_ref());
        bytes
    }
}
