//! Requests in several rounds (2026-07-28, basic/patterns/mrtr): the server's result asks for input, and the client asks
//! again, with a new id, with the answers.

use std::collections::BTreeMap;

use super::{Extra, Json, ResultType, shapes::shapes};

/// Inputs that a server requests, by a key that the server chooses.
pub type InputRequests = BTreeMap<String, InputRequest>;

/// The answers, by the server's keys: results of the methods asked for.
pub type InputResponses = BTreeMap<String, Json>;

shapes! {
    /// One thing that a server asks for: `sampling/createMessage`, `elicitation/create` or `roots/list`.
    pub struct InputRequest {
        /// The method.
        method: String,
        /// Its parameters; their type is the method's.
        params?: Json,
    }

    /// A result that asks for input, for a state to be sent back, or for both.
    pub struct InputRequiredResult with _meta {
        /// [`ResultType::InputRequired`].
        result_type: ResultType,
        /// Inputs that the server requests.
        input_requests?: InputRequests,
        /// To be sent back exactly. Opaque to the client; the server must notice when it was changed.
        request_state?: String,
    }
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
