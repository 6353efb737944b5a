//! The instrumented MCP client: connects, lists tools, calls them, and notes what it sees as it goes.
//!
//! It speaks every revision over Streamable HTTP, HTTP+SSE and stdio. It is one caller doing one thing after another; load
//! has an engine of its own. Design constraint: an operation's stamps stand at its outermost edges, nothing that is ours
//! to do before or after (waiting for the last reply's stream to end, above all) is between them, and each operation has
//! a limit.
//!
//! Deliberately absent: resources, prompts, sampling, elicitation, tasks, caching. A measurement needs tools.

mod connect;
mod error;
mod http;
mod inbound;
mod link;
mod operation;
mod options;
mod results;
mod stdio;
mod task;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcpace_client_protocol::{Agreement, ClientProfile, Dialect, Outgoing, ParamsWriter, Raw, ServerEra};
use mcpace_record::CallOutcome;
use mcpace_wire::http::ParamHeader;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{ClientCapabilities, Extra, Implementation, ListToolsResult, Tool, key};
use serde_json::value::RawValue;

use self::http::Http;
use self::link::{Ids, Link};
use self::operation::RecordedOperation;
use crate::Sink;
use crate::trace::begin_trace;

pub use mcpace_client_protocol::{ClientError, ServerInfo, Transport};
pub use mcpace_oauth::{Auth, BrowserConsent, Consent, OAuthError, OAuthOptions, RegisteredClient, Secret};
pub use options::{ClientOptions, ServerEndpoint};
pub use results::CallResult;

/// Pages of a listing that are read at most.
const PAGE_LIMIT: usize = 100;
/// How long telling the server that a request is given up may take.
const CANCEL_LIMIT: Duration = Duration::from_millis(500);

/// A client of one server. Tokens, and what was learnt of the server's era, outlast `disconnect`.
pub struct Client {
    endpoint: ServerEndpoint,
    options: ClientOptions,
    sink: Arc<Sink>,
    http: Option<Arc<Http>>,
    ids: Ids,
    profile: ClientProfile,
    era: Option<ServerEra>,
    session: Option<ClientSession>,
}

/// State between `connect` and `disconnect`.
struct ClientSession {
    link: Link,
    info: ServerInfo,
    dialect: Dialect,
    /// Which arguments of which tool go into headers too; `None` until the tools were listed.
    mirrored: Option<HashMap<String, Vec<ParamHeader>>>,
    /// The request under way, to be cancelled when its time is up.
    asking: Option<i64>,
}

impl Client {
    /// Makes a client; nothing is sent yet.
    ///
    /// # Errors
    /// The URL can't be used; `extra_root` is no certificate.
    pub fn new(endpoint: ServerEndpoint, options: ClientOptions, sink: Arc<Sink>) -> Result<Self, ClientError> {
        let http = match &endpoint {
            ServerEndpoint::Http(url) => Some(Arc::new(Http::new(url.clone(), &options, &sink)?)),
            ServerEndpoint::Stdio { .. } => None,
        };
        let mut request_meta = Extra::new();
        if options.server_timing {
            request_meta.insert(key::TIMING.to_owned(), true.into());
        }
        let profile = ClientProfile {
            info: Implementation::new("mcpace", env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::default(),
            log_level: None,
            request_meta,
        };
        Ok(Self { endpoint, options, sink, http, ids: Ids::default(), profile, era: None, session: None })
    }

    /// Connects: opens the transport, authorizes where asked to, agrees on a revision. Ends an earlier session first.
    ///
    /// # Errors
    /// Any [`ClientError`]; nothing of the attempt is left open.
    pub async fn connect(&mut self) -> Result<ServerInfo, ClientError> {
        if let Some(session) = self.session.take() {
            session.link.close(self.options.shutdown_limit).await;
        }
        let operation = RecordedOperation::begin_operation(&self.sink, "connect", None);
        let outcome = operation.run_limited(self.options.limit, self.open_link()).await;
        match operation.end_operation(outcome, |_| CallOutcome::Ok) {
            Ok((link, Agreement { server, era })) => {
                self.era = Some(era);
                let dialect = self.profile.dialect(server.revision);
                self.session =
                    Some(ClientSession { link, info: server.clone(), dialect, mirrored: None, asking: None });
                Ok(server)
            }
            Err(error) => {
                self.era = None;
                if let Some(http) = &self.http {
                    http.close().await;
                }
                Err(error)
            }
        }
    }

    /// Lists all tools, page by page; in 2026-07-28 without those whose header annotations are invalid.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_tools(&mut self) -> Result<Vec<Tool>, ClientError> {
        self.settle_reply().await;
        let operation = RecordedOperation::begin_operation(&self.sink, "list", None);
        let outcome = operation.run_limited(self.options.limit, list_tools(self)).await;
        let outcome = operation.end_operation(outcome, |_| CallOutcome::Ok);
        self.cancel_if_timed_out(&outcome).await;
        outcome
    }

    /// Calls a tool. `arguments` are sent to the letter. A tool's own failure is no error: see [`CallResult::is_error`].
    ///
    /// # Errors
    /// Any [`ClientError`]; [`ClientError::BadArguments`] where `arguments` is no JSON object.
    pub async fn call_tool(&mut self, tool: &str, arguments: &RawValue) -> Result<CallResult, ClientError> {
        if !arguments.get().starts_with('{') {
            return Err(ClientError::BadArguments { tool: tool.to_owned() });
        }
        self.settle_reply().await;
        let operation = RecordedOperation::begin_operation(&self.sink, "call", Some(tool));
        let outcome = operation.run_limited(self.options.limit, call_tool(self, tool, arguments)).await;
        let told = |result: &CallResult| if result.is_error { CallOutcome::ToolError } else { CallOutcome::Ok };
        let outcome = operation.end_operation(outcome, told);
        self.cancel_if_timed_out(&outcome).await;
        outcome
    }

    /// The server's words about itself when the client connected.
    #[must_use]
    pub fn server(&self) -> Option<&ServerInfo> {
        self.session.as_ref().map(|session| &session.info)
    }

    /// The access token that requests carry now; `None` where there is none, as over stdio.
    ///
    /// # Errors
    /// It has expired and can't be renewed.
    pub async fn token(&self) -> Result<Option<Secret>, ClientError> {
        match &self.http {
            Some(http) => http.current_token().await,
            None => Ok(None),
        }
    }

    /// Takes leave: ends the session or the process and closes every connection. Bounded by
    /// [`ClientOptions::shutdown_limit`] for each step; never fails, since there is nothing that a caller could do.
    pub async fn disconnect(&mut self) {
        let Some(session) = self.session.take() else { return };
        session.link.settle_reply().await;
        let operation = RecordedOperation::begin_operation(&self.sink, "disconnect", None);
        session.link.close(self.options.shutdown_limit).await;
        // Nothing of it can fail.
        drop(operation.end_operation(Ok(()), |()| CallOutcome::Ok));
    }

    async fn settle_reply(&self) {
        if let Some(session) = &self.session {
            session.link.settle_reply().await;
        }
    }

    /// Tells a legacy server that nobody waits any longer; a modern one over HTTP sees the stream closed.
    async fn cancel_if_timed_out<T>(&mut self, outcome: &Result<T, ClientError>) {
        let Some(session) = &mut self.session else { return };
        let Some(id) = session.asking.take() else { return };
        let silent = session.info.revision.is_modern() && session.info.transport != Transport::Pipe;
        if silent || !matches!(outcome, Err(ClientError::TimeLimit { .. })) {
            return;
        }
        let message = Outgoing::cancelled(id);
        // A courtesy: a server that doesn't take it has been given up anyway.
        drop(tokio::time::timeout(CANCEL_LIMIT, session.link.notify(&message)).await);
    }
}

async fn list_tools(client: &mut Client) -> Result<Vec<Tool>, ClientError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGE_LIMIT {
        let fill = |params: &mut ParamsWriter<'_>| params.optional("cursor", cursor.as_deref());
        let result = send_request(client, "tools/list", &fill, None).await?;
        let page: ListToolsResult = results::read_result("tools/list", &result)?;
        tools.extend(page.tools);
        let next = page.next_cursor;
        if next.is_none() {
            return Ok(client.remember_tools(tools));
        }
        if next == cursor {
            let reason = "it names the page as the next one that it just gave".to_owned();
            return Err(ClientError::BadReply { method: "tools/list".to_owned(), reason });
        }
        cursor = next;
    }
    Err(ClientError::TooLarge { what: "the number of pages of the tools' list", limit: PAGE_LIMIT })
}

async fn call_tool(client: &mut Client, tool: &str, arguments: &RawValue) -> Result<CallResult, ClientError> {
    let fill = |params: &mut ParamsWriter<'_>| {
        params.value("name", tool);
        params.text("arguments", arguments.get());
    };
    let target = Some((tool, arguments.get()));
    let outcome = send_request(client, "tools/call", &fill, target).await;
    let is_unlisted = client.session.as_ref().is_some_and(|session| session.mirrored.is_none());
    let result = match outcome {
        // The tool may want arguments in headers, which only its listing tells.
        Err(ClientError::Rpc { error, .. }) if is_unlisted && error.code == code::HEADER_MISMATCH => {
            list_tools(client).await?;
            send_request(client, "tools/call", &fill, target).await?
        }
        outcome => outcome?,
    };
    CallResult::from_raw(&result)
}

/// Sends a request and reads its result. `target` is the tool of a call with its arguments. A lost session is begun anew,
/// once.
async fn send_request(
    client: &mut Client,
    method: &'static str,
    fill: &(dyn Fn(&mut ParamsWriter<'_>) + Sync),
    target: Option<(&str, &str)>,
) -> Result<Raw, ClientError> {
    for again in [true, false] {
        let id = client.ids.next_id();
        let session = client.session.as_mut().ok_or(ClientError::NotConnected)?;
        let trace = client.options.traceparent.then(trace_meta);
        let body = session.dialect.request(id, method, fill, trace.as_ref(), false);
        let mut message = Outgoing::request(id, method, body, method != "tools/call");
        if let Some(trace) = &trace {
            message.add_trace_headers(trace);
        }
        if let Some((tool, arguments)) = target.filter(|_| session.info.revision.has_request_headers()) {
            message.add_target_headers(tool, Some(arguments), session.tool_annotations(tool));
        }
        session.asking = Some(id);
        let reply = session.link.request(&message).await?;
        session.asking = None;
        let is_lost = matches!(&session.link, Link::Http(http) if http.has_session()) && reply.is_lost_session();
        if !(again && is_lost) {
            return reply.into_result(method, || session.link.address(), false);
        }
        client.era = Some(ServerEra::Legacy);
        let (link, Agreement { server, .. }) = client.open_link().await?;
        let dialect = client.profile.dialect(server.revision);
        if let Some(session) = &mut client.session {
            session.link = link;
            session.info = server;
            session.dialect = dialect;
        }
    }
    Err(ClientError::NotConnected)
}

/// Members of `_meta` that begin a trace.
fn trace_meta() -> Extra {
    Extra::from_iter([(key::TRACEPARENT.to_owned(), begin_trace().to_string().into())])
}

impl ClientSession {
    /// Annotated arguments of a tool, which headers repeat; none before the tools were listed.
    fn tool_annotations(&self, tool: &str) -> &[ParamHeader] {
        self.mirrored.as_ref().and_then(|mirrored| mirrored.get(tool)).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Client {
    /// Remembers what goes into headers and drops tools with invalid annotations, which is for HTTP only.
    fn remember_tools(&mut self, mut tools: Vec<Tool>) -> Vec<Tool> {
        let Some(session) = &mut self.session else { return tools };
        if !session.info.revision.has_request_headers() || session.info.transport == Transport::Pipe {
            return tools;
        }
        let mut mirrored = HashMap::new();
        tools.retain(|tool| match ParamHeader::of_schema(tool.input_schema.get()) {
            Ok(annotations) => {
                mirrored.insert(tool.name.clone(), annotations);
                true
            }
            Err(_) => false,
        });
        session.mirrored = Some(mirrored);
        tools
    }
}
