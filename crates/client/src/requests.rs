//! The requests of the protocol, one by one; lists are in `lists`, subscriptions in `subscription`. Those whose results
//! programs hand on have a raw form that gives the result's text.

use mcpace_wire::mcp::{
    CallToolResult, CompleteContext, CompleteResult, CompletionArgument, CompletionRef, EmptyResult, GetPromptResult,
    InputResponses, LoggingLevel, Method, ReadResourceResult,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::{Client, RequestOutcome, UnsentRequest, is_header_mismatch};
use crate::rounds::{Round, RoundsEnd};
use mcpace_client_protocol::{Outgoing, ParamsWriter};

use crate::{Arguments, CallOptions, ClientError, Raw};

impl Client {
    /// Calls a tool. A tool's own failure is no error: see [`CallToolResult::is_error`].
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::BadParams`] where `arguments` is no object (null is none).
    pub async fn call_tool(&self, name: &str, arguments: &impl Serialize) -> Result<CallToolResult, ClientError> {
        self.call_tool_raw(name, &Arguments::of(arguments)?, &CallOptions::default()).await?.read("tools/call")
    }

    /// As [`Client::call_tool`], with arguments to the letter and the result as text.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn call_tool_raw(
        &self,
        name: &str,
        arguments: &Arguments,
        options: &CallOptions,
    ) -> Result<Raw, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("name", name);
            params.text("arguments", arguments.as_json().unwrap_or("{}"));
        };
        let arguments = arguments.as_json();
        let ask = UnsentRequest {
            method: "tools/call",
            name: Some(name),
            arguments,
            fill: &fill,
            repeatable: false,
            options,
        };
        let first = match self.inner.send_request(&ask).await {
            // The tool wants arguments in headers that only its listing tells, or its listing has changed.
            Err(error) if is_header_mismatch(&error) && self.inner.current_session()?.has_headers() => {
                self.refresh_tool(name).await.map_err(|_| error)?;
                self.inner.send_request(&ask).await?
            }
            outcome => outcome?,
        };
        self.follow_outcome(first, &ask, &fill).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ClientError> {
        self.read_resource_raw(uri, &CallOptions::default()).await?.read("resources/read")
    }

    /// As [`Client::read_resource`], with the result as text.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn read_resource_raw(&self, uri: &str, options: &CallOptions) -> Result<Raw, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("uri", uri);
        let method = "resources/read";
        let ask = UnsentRequest { method, name: Some(uri), arguments: None, fill: &fill, repeatable: true, options };
        let first = self.inner.ask_kept(&ask, uri).await?;
        self.follow_outcome(first, &ask, &fill).await
    }

    /// Gets a prompt, filled in.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn get_prompt(&self, name: &str, arguments: &impl Serialize) -> Result<GetPromptResult, ClientError> {
        self.get_prompt_raw(name, &Arguments::of(arguments)?, &CallOptions::default()).await?.read("prompts/get")
    }

    /// As [`Client::get_prompt`], with arguments to the letter and the result as text.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn get_prompt_raw(
        &self,
        name: &str,
        arguments: &Arguments,
        options: &CallOptions,
    ) -> Result<Raw, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("name", name);
            if let Some(arguments) = arguments.as_json() {
                params.text("arguments", arguments);
            }
        };
        let method = "prompts/get";
        let ask = UnsentRequest { method, name: Some(name), arguments: None, fill: &fill, repeatable: true, options };
        let first = self.inner.send_request(&ask).await?;
        self.follow_outcome(first, &ask, &fill).await
    }

    /// Proposals for an argument of a prompt or a resource template; `context` are the arguments already settled.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn complete(
        &self,
        reference: &CompletionRef,
        argument: &CompletionArgument,
        context: Option<&CompleteContext>,
    ) -> Result<CompleteResult, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("ref", reference);
            params.value("argument", argument);
            params.optional("context", context);
        };
        self.repeatable_request("completion/complete", &fill).await?.read("completion/complete")
    }

    /// Asks whether the server is there (legacy revisions).
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in 2026-07-28.
    pub async fn ping(&self) -> Result<EmptyResult, ClientError> {
        self.repeatable_request("ping", &|_| {}).await?.read("ping")
    }

    /// From which level on log messages are wanted (legacy revisions; since 2026-07-28 [`crate::Options::log_level`]).
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in 2026-07-28.
    pub async fn set_level(&self, level: LoggingLevel) -> Result<EmptyResult, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("level", &level);
        self.repeatable_request("logging/setLevel", &fill).await?.read("logging/setLevel")
    }

    /// Asks to be told when a resource changes (legacy revisions; since 2026-07-28 [`Client::listen`]).
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in 2026-07-28.
    pub async fn subscribe_resource(&self, uri: &str) -> Result<EmptyResult, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("uri", uri);
        self.repeatable_request("resources/subscribe", &fill).await?.read("resources/subscribe")
    }

    /// Ends [`Client::subscribe_resource`].
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in 2026-07-28.
    pub async fn unsubscribe_resource(&self, uri: &str) -> Result<EmptyResult, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("uri", uri);
        self.repeatable_request("resources/unsubscribe", &fill).await?.read("resources/unsubscribe")
    }

    /// Tells the server that the roots changed (legacy revisions).
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] in 2026-07-28.
    pub async fn roots_changed(&self) -> Result<(), ClientError> {
        self.notify("notifications/roots/list_changed", "{}").await
    }

    /// Sends a notification with `params`, a JSON object's text.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn notify(&self, method: &'static str, params: &str) -> Result<(), ClientError> {
        let session = self.inner.current_session()?;
        self.must_exist(method)?;
        let bad = |error: serde_json::Error| ClientError::BadParams { method, reason: error.to_string() };
        let params: &RawValue = serde_json::from_str(params).map_err(bad)?;
        let body = mcpace_wire::jsonrpc::Notification::new(method, Some(params)).to_vec();
        session.link.notify(&Outgoing::notification(method, body)).await
    }

    /// A request without rounds, headers or memory: the result's text. Never asked twice. `_meta` in `params` is ignored:
    /// [`CallOptions::meta`] has that.
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::NotInRevision`] where the revision that is spoken doesn't have the method.
    pub async fn request_raw(
        &self,
        method: &'static str,
        params: &Arguments,
        options: &CallOptions,
    ) -> Result<Raw, ClientError> {
        let members: Vec<(String, &RawValue)> = match params.as_json() {
            Some(text) => serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(text)
                .map_err(|error| ClientError::BadParams { method, reason: error.to_string() })?
                .into_iter()
                .collect(),
            None => Vec::new(),
        };
        let fill = |params: &mut ParamsWriter<'_>| {
            for (name, value) in members.iter().filter(|(name, _)| name != "_meta") {
                params.text(name, value.get());
            }
        };
        self.must_exist(method)?;
        // Nobody knows here whether asking twice does harm.
        let ask = UnsentRequest { method, name: None, arguments: None, fill: &fill, repeatable: false, options };
        require_complete(self.inner.send_request(&ask).await?, method)
    }

    /// [`Client::call_tool_raw`] with answers and state that an earlier, interrupted call was given.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn resume_tool_raw(
        &self,
        name: &str,
        arguments: &Arguments,
        responses: Option<InputResponses>,
        state: Option<String>,
        options: &CallOptions,
    ) -> Result<Raw, ClientError> {
        let round = Round { responses, state };
        let plain = |params: &mut ParamsWriter<'_>| {
            params.value("name", name);
            params.text("arguments", arguments.as_json().unwrap_or("{}"));
        };
        let fill = |params: &mut ParamsWriter<'_>| {
            plain(params);
            round.write_params(params);
        };
        let arguments = arguments.as_json();
        let ask = UnsentRequest {
            method: "tools/call",
            name: Some(name),
            arguments,
            fill: &fill,
            repeatable: false,
            options,
        };
        let first = self.inner.send_request(&ask).await?;
        self.follow_outcome(first, &ask, &plain).await
    }

    /// A request that does no harm when it is asked twice.
    async fn repeatable_request(
        &self,
        method: &'static str,
        fill: &(dyn Fn(&mut ParamsWriter<'_>) + Sync),
    ) -> Result<Raw, ClientError> {
        self.must_exist(method)?;
        let options = &CallOptions::default();
        let ask = UnsentRequest { method, name: None, arguments: None, fill, repeatable: true, options };
        require_complete(self.inner.send_request(&ask).await?, method)
    }

    async fn follow_outcome(
        &self,
        first: RequestOutcome,
        ask: &UnsentRequest<'_>,
        fill: &(dyn Fn(&mut ParamsWriter<'_>) + Sync),
    ) -> Result<Raw, ClientError> {
        match first {
            RequestOutcome::Complete(raw, _) => Ok(raw),
            first => match self.inner.answer_rounds(first, ask, fill).await? {
                RoundsEnd::Complete(raw) => Ok(raw),
                RoundsEnd::Task(task) => self.inner.follow_task(ask.method, *task).await,
            },
        }
    }

    pub(crate) fn must_exist(&self, method: &'static str) -> Result<(), ClientError> {
        let revision = self.inner.current_session()?.info.revision;
        match Method::parse(method) {
            Some(known) if !known.exists_in(revision) => Err(ClientError::NotInRevision { method, revision }),
            _ => Ok(()),
        }
    }
}

pub(crate) fn require_complete(outcome: RequestOutcome, method: &str) -> Result<Raw, ClientError> {
    match outcome {
        RequestOutcome::Complete(raw, _) => Ok(raw),
        _ => Err(ClientError::bad_reply(method, "its result is not complete")),
    }
}
