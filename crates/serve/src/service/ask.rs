//! Asking the client from within a handler: the same call in every revision.
//!
//! In a legacy session a request goes to the client and its answer is awaited. Since 2026-07-28 the handler's round ends
//! with the question ([`AskError::InputRequired`], passed on by `?`), and the handler runs again from its start when the
//! answer is there; the answers of all rounds are kept for it. So a handler that asks must do so in the same order each
//! time, and do nothing before that it can't do twice. In a task the question is
//! one of the task's, and the handler waits for `tasks/update`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, write_notification, write_request};
use mcpace_wire::mcp::{
    CancelledParams, ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams,
    ElicitResult, ElicitationCompleteParams, Extra, InputRequest, Json, ListRootsResult, Method,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Context, HandlerError, InputRequired, arguments};
use crate::session::Session;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AskError {
    /// Not a failure: the round ends here, and the client asks again with the answer. Pass it on.
    #[error("input is required")]
    InputRequired(InputRequired),
    /// The client has not declared that it can answer this. Since 2026-07-28 it is told so as −32021.
    #[error("the client has not declared the capability that this needs")]
    Undeclared {
        /// Capabilities that the client has to declare, in the shape of [`ClientCapabilities`].
        required: Extra,
    },
    /// There is no way to the client: no session, or a reply that can hold one message only.
    #[error("the client can't be asked on this connection")]
    Unreachable,
    /// As many questions as the limit wait for the client already.
    #[error("the client has too many questions to answer")]
    TooMany,
    /// The client took too long ([`crate::Limits::answer_time`]).
    #[error("the client did not answer in time")]
    TimedOut,
    /// The client answered with an error.
    #[error("the client refused: {message} ({code})")]
    Refused {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The client's answer is of another shape than the protocol says.
    #[error("the client's answer can't be read: {0}")]
    BadAnswer(String),
    /// The question can't be written as JSON.
    #[error("the question can't be written as JSON: {0}")]
    Unwritable(String),
}

/// A user's answer to a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Filled it in.
    Accepted(T),
    /// Said no.
    Declined,
    /// Went away.
    Cancelled,
}

impl Context {
    /// Asks the user, by a form or by a URL.
    ///
    /// # Errors
    /// See [`AskError`]; pass it on by `?`.
    pub async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, AskError> {
        let by_url = params.mode.as_deref() == Some("url");
        let able = if by_url {
            |client: &ClientCapabilities| client.elicitation.as_ref().is_some_and(|modes| modes.url.is_some())
        } else {
            ClientCapabilities::elicits_forms
        };
        let mode = if by_url { "url" } else { "form" };
        self.ask_client(Method::Elicit, Some(&params), able, json!({"elicitation": {mode: {}}})).await
    }

    /// Asks the user to fill in a `T`, whose fields are strings, numbers, booleans or enums of strings.
    ///
    /// # Errors
    /// See [`AskError`]; pass it on by `?`.
    pub async fn elicit_form<T>(&self, message: impl Into<String>) -> Result<Elicited<T>, AskError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = arguments::schema_text(&arguments::schema_form::<T>());
        let params = ElicitParams {
            mode: None,
            message: message.into(),
            requested_schema: Some(schema.map_err(|error| AskError::Unwritable(error.to_string()))?),
            url: None,
            elicitation_id: None,
            task: None,
            meta: None,
            extra: Extra::new(),
        };
        let result = self.elicit(params).await?;
        match (result.action, result.content) {
            (ElicitAction::Accept, Some(content)) => {
                content.parse().map(Elicited::Accepted).map_err(|error| AskError::BadAnswer(error.to_string()))
            }
            (ElicitAction::Accept, None) => Err(AskError::BadAnswer("accepted without content".to_owned())),
            (ElicitAction::Decline, _) => Ok(Elicited::Declined),
            (ElicitAction::Cancel, _) => Ok(Elicited::Cancelled),
        }
    }

    /// Tells the client that what it was sent to by URL is done (2025-11-25 only; nothing happens in other revisions).
    pub fn elicitation_complete(&self, elicitation_id: impl Into<String>) {
        if self.revision() == Revision::V2025_11_25 {
            let params = ElicitationCompleteParams { elicitation_id: elicitation_id.into(), extra: Extra::new() };
            self.notify_client(Method::ElicitationComplete, &params);
        }
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// See [`AskError`]; pass it on by `?`.
    pub async fn sample(&self, params: CreateMessageParams) -> Result<CreateMessageResult, AskError> {
        let (able, required): (fn(&ClientCapabilities) -> bool, _) =
            if params.tools.is_some() || params.tool_choice.is_some() {
                let able = |client: &ClientCapabilities| client.sampling.as_ref().is_some_and(|it| it.tools.is_some());
                (able, json!({"sampling": {"tools": {}}}))
            } else {
                (|client: &ClientCapabilities| client.sampling.is_some(), json!({"sampling": {}}))
            };
        self.ask_client(Method::CreateMessage, Some(&params), able, required).await
    }

    /// Asks which folders the client lets the server work in.
    ///
    /// # Errors
    /// See [`AskError`]; pass it on by `?`.
    pub async fn list_roots(&self) -> Result<ListRootsResult, AskError> {
        let able = |client: &ClientCapabilities| client.roots.is_some();
        self.ask_client(Method::RootsList, None::<&()>, able, json!({"roots": {}})).await
    }

    async fn ask_client<T: DeserializeOwned>(
        &self,
        method: Method,
        params: Option<&impl serde::Serialize>,
        able: fn(&ClientCapabilities) -> bool,
        required: serde_json::Value,
    ) -> Result<T, AskError> {
        let params = params.map(Json::of).transpose().map_err(|error| AskError::Unwritable(error.to_string()))?;
        // Counted even where nothing is sent, so that every round gives the same question the same key.
        let number = self.request().asked.fetch_add(1, Ordering::Relaxed);
        if self.revision().is_legacy() && self.session().is_none() {
            return Err(AskError::Unreachable);
        }
        if !self.client_capabilities().as_ref().is_some_and(able) {
            let required = required.as_object().cloned().unwrap_or_default();
            return Err(AskError::Undeclared { required });
        }
        let key = || format!("{}-{number}", method.as_str().replace('/', "-"));
        let answer = if let Some(session) = self.session().filter(|_| self.revision().is_legacy()) {
            self.ask_now(session, method, params.as_ref()).await?
        } else if let Some(task) = self.task() {
            let request = InputRequest { method: method.as_str().to_owned(), params, extra: Extra::new() };
            let answer = task.ask_client(key(), request);
            self.request().server.publish_task(task);
            answer.await.map_err(|_| AskError::Unreachable)?.get().into()
        } else if let Some(answer) = self.request().inputs.answers.get(&key()) {
            answer.get().into()
        } else {
            return Err(AskError::InputRequired(InputRequired::new().add_question(key(), method, params)));
        };
        serde_json::from_str(&answer).map_err(|error| AskError::BadAnswer(error.to_string()))
    }

    /// Capabilities that the client declared.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        match self.session().filter(|_| self.revision().is_legacy()) {
            Some(session) => Some(session.client_capabilities().clone()),
            None => serde_json::from_slice(self.request().capabilities.as_deref()?).ok(),
        }
    }

    pub(super) async fn ask_now(
        &self,
        session: &Arc<Session>,
        method: Method,
        params: Option<&Json>,
    ) -> Result<Box<str>, AskError> {
        let limits = self.request().server.limits();
        let (id, answer) = session.open_question(limits.asked).ok_or(AskError::TooMany)?;
        let waiting = OpenQuestion { context: self, session, id };
        let mut message = Vec::with_capacity(256);
        write_request(&mut message, &Id::from(id), method.as_str(), params)
            .map_err(|error| AskError::Unwritable(error.to_string()))?;
        self.deliver_question(message.into()).await?;
        let answer = tokio::time::timeout(limits.answer_time, answer).await;
        match answer {
            Err(_) => Err(AskError::TimedOut),
            Ok(Err(_)) => Err(AskError::Unreachable),
            Ok(Ok(answer)) => {
                waiting.finish_waiting();
                answer.map_err(|error| AskError::Refused { code: error.code, message: error.message })
            }
        }
    }

    /// Sends a question. A client may call before it has opened the stream for questions (JSON replies): then this waits for
    /// it, so long only.
    async fn deliver_question(&self, message: Bytes) -> Result<(), AskError> {
        let outlet = &self.request().outlet;
        if outlet.send(message.clone()).is_ok() {
            return Ok(());
        }
        let delivered = async {
            loop {
                let opens = outlet.opens().ok_or(AskError::Unreachable)?;
                // It may have opened before this began to wait.
                if outlet.send(message.clone()).is_ok() {
                    return Ok(());
                }
                opens.await;
            }
        };
        let limit = self.request().server.limits().stream_time;
        tokio::time::timeout(limit, delivered).await.unwrap_or(Err(AskError::Unreachable))
    }
}

/// A question that the client has. When given up, it is told so.
struct OpenQuestion<'a> {
    context: &'a Context,
    session: &'a Session,
    id: u64,
}

impl OpenQuestion<'_> {
    fn finish_waiting(self) {
        std::mem::forget(self);
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.session.forget_question(self.id);
        let params = CancelledParams {
            request_id: Some(Id::from(self.id)),
            reason: Some("no longer needed".to_owned()),
            meta: None,
            extra: Extra::new(),
        };
        let mut message = Vec::with_capacity(128);
        if write_notification(&mut message, Method::Cancelled.as_str(), Some(&params)).is_ok() {
            // A client that is gone needs no telling.
            let _ = self.context.request().outlet.send(message.into());
        }
    }
}

impl From<InputRequired> for AskError {
    fn from(input: InputRequired) -> Self {
        AskError::InputRequired(input)
    }
}

impl AskError {
    /// Converts the error to the failure that dispatch reports when a handler returns it.
    pub(crate) fn into_kind(self) -> super::HandlerFailure {
        match self {
            AskError::InputRequired(input) => super::HandlerFailure::Input(input),
            AskError::Undeclared { required } => super::HandlerFailure::Undeclared(required),
            other => HandlerError::new(other.to_string()).into_kind(),
        }
    }
}
