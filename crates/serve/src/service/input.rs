//! State and answers that a request in several rounds carries to its next round (2026-07-28, basic/patterns/mrtr).

use std::collections::BTreeMap;

use mcpace_wire::mcp::{
    CreateMessageParams, ElicitParams, Extra, InputRequest, InputRequests, InputRequiredResult, Json, Method,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Context, HandlerError, HandlerFailure};

/// Ends a handler's round with questions to the client, which asks again with the answers: [`Context::input_response`],
/// [`Context::request_state`]. Only since 2026-07-28; [`Context::elicit`] and its like work in every revision, and end the
/// round by themselves.
///
/// The state is protected against changes, bound to the request's method, parameters and principal, and expires; the client
/// can read it.
///
/// ```
/// use mcpace_serve::{Context, HandlerError, InputRequired, NoArguments, Tool};
///
/// let tool = Tool::new("two-step").handler_async(|_: NoArguments, context: Context| async move {
///     match context.request_state::<u32>() {
///         None => Err(InputRequired::new().state(&1_u32)?.into()),
///         Some(step) => Ok(format!("resumed at {step}")),
///     }
/// });
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputRequired {
    pub(crate) requests: InputRequests,
    pub(crate) state: Option<Json>,
}

impl InputRequired {
    /// Asks nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the user; the answer is an [`mcpace_wire::mcp::ElicitResult`] under `key`.
    ///
    /// # Errors
    /// When the parameters can't be written as JSON.
    pub fn elicit(self, key: impl Into<String>, params: &ElicitParams) -> Result<Self, HandlerError> {
        Ok(self.add_question(key, Method::Elicit, Some(Json::of(params)?)))
    }

    /// Asks the client's model; the answer is an [`mcpace_wire::mcp::CreateMessageResult`] under `key`.
    ///
    /// # Errors
    /// When the parameters can't be written as JSON.
    pub fn sample(self, key: impl Into<String>, params: &CreateMessageParams) -> Result<Self, HandlerError> {
        Ok(self.add_question(key, Method::CreateMessage, Some(Json::of(params)?)))
    }

    /// Asks for the client's roots; the answer is an [`mcpace_wire::mcp::ListRootsResult`] under `key`.
    #[must_use]
    pub fn list_roots(self, key: impl Into<String>) -> Self {
        self.add_question(key, Method::RootsList, None)
    }

    /// Sets the value that [`Context::request_state`] returns in the next round.
    ///
    /// # Errors
    /// When the state can't be written as JSON.
    pub fn state(mut self, state: &impl Serialize) -> Result<Self, HandlerError> {
        self.state = Some(Json::of(state)?);
        Ok(self)
    }

    pub(crate) fn add_question(mut self, key: impl Into<String>, method: Method, params: Option<Json>) -> Self {
        let request = InputRequest { method: method.as_str().to_owned(), params, extra: Extra::new() };
        self.requests.insert(key.into(), request);
        self
    }
}

/// As another program wrote it. The state is kept as a string.
impl From<InputRequiredResult> for InputRequired {
    fn from(result: InputRequiredResult) -> Self {
        let state = result.request_state.and_then(|state| Json::of(&state).ok());
        Self { requests: result.input_requests.unwrap_or_default(), state }
    }
}

impl From<InputRequired> for HandlerError {
    fn from(input: InputRequired) -> Self {
        HandlerFailure::Input(input).into()
    }
}

/// Answers and state of the earlier rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// The answers of all rounds, by key.
    pub(crate) answers: BTreeMap<String, Json>,
    pub(crate) state: Option<Json>,
    /// How many rounds there were.
    pub(crate) round: u32,
}

impl Context {
    /// The state that the round before gave, if it gave one and `T` reads it. It is our own, unchanged: anything else was
    /// refused before the handler ran.
    #[must_use]
    pub fn request_state<T: DeserializeOwned>(&self) -> Option<T> {
        self.request().inputs.state.as_ref().and_then(|state| state.parse().ok())
    }

    /// All answers of the client, of all rounds, by key. Empty in the first round.
    #[must_use]
    pub fn input_responses(&self) -> &BTreeMap<String, Json> {
        &self.request().inputs.answers
    }

    /// The client's answer under `key`, this round's or an earlier one's. `None` where there is none, or `T` doesn't read
    /// it: ask again.
    #[must_use]
    pub fn input_response<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.request().inputs.answers.get(key).and_then(|answer| answer.parse().ok())
    }
}
