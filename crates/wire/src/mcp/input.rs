//! Requests in several rounds (2026-07-28, basic/patterns/mrtr): the server's result asks for input, and the client asks
//! again, with a new id, with the answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Extra, Json, ResultType};

/// Inputs that a server requests, by a key that the server chooses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The answers, by the server's keys: results of the methods asked for.
pub type InputResponses = BTreeMap<String, Json>;

/// One thing that a server asks for: `sampling/createMessage`, `elicitation/create` or `roots/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputRequest {
    /// The method.
    pub method: String,
    /// Its parameters; their type is the method's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Json>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A result that asks for input, for a state to be sent back, or for both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// [`ResultType::InputRequired`].
    pub result_type: ResultType,
    /// Inputs that the server requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// To be sent back exactly. Opaque to the client; the server must notice when it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

impl InputRequiredResult {
    /// Asks for `requests`, giving `state` to be sent back.
    #[must_use]
    pub fn new(requests: Option<InputRequests>, state: Option<String>) -> Self {
        Self {
            result_type: ResultType::InputRequired,
            input_requests: requests,
            request_state: state,
            meta: None,
            extra: Extra::new(),
        }
    }
}
