//! Drives the SDK: one provider, one connection and four timed operations, written as in its own quickstart.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use rmcp::service::{RoleClient, RunningService, ServiceExt};
use rmcp::transport::auth::{AuthClient, OAuthState};
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpClientTransportConfig};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::consent;
use crate::contract::{Auth, Command, Failure, Outcome, now};
use crate::wallet;

const NAMES_LIMIT: usize = 200;
const TEXT_LIMIT: usize = 200;

type Session = RunningService<RoleClient, ()>;

/// `C` is the SDK's HTTP client.
pub struct Driver<C: StreamableHttpClient> {
    plain: fn(String) -> StreamableHttpClientTransport<C>,
    session: Option<Session>,
    /// Authorized clients by server. They keep the tokens and are reused by later connections.
    authorized: HashMap<String, AuthClient<C>>,
}

impl<C> Driver<C>
where
    C: StreamableHttpClient + Default + Sync,
{
    pub fn new(plain: fn(String) -> StreamableHttpClientTransport<C>) -> Self {
        Self { plain, session: None, authorized: HashMap::new() }
    }

    /// Runs one command. Every failure becomes an answer, so the next command can still run.
    pub async fn perform(&mut self, command: &Command, limit: Duration) -> Outcome {
        match command.cmd.as_str() {
            "provider" => self.provider(command).await,
            "connect" => self.connect(command, limit).await,
            "list_tools" => self.list_tools(limit).await,
            "call_tool" => self.call_tool(command, limit).await,
            "disconnect" if self.session.is_some() => self.leave(limit).await,
            "disconnect" => not_connected(),
            other => Outcome::refused("protocol", format!("unknown command {other}")),
        }
    }

    /// Closes the connection, if one is open.
    pub async fn leave(&mut self, limit: Duration) -> Outcome {
        let Some(session) = self.session.take() else { return not_connected() };
        timed(limit, async { Ok(session.cancel().await?) }, |_| json!({})).await.1
    }

    async fn provider(&mut self, command: &Command) -> Outcome {
        if let Err(failure) = consent::possible(&command.auth) {
            return Outcome { start: 0, end: 0, result: Err(failure) };
        }
        if command.auth.fresh {
            self.authorized.remove(&command.url);
        }
        let start = now();
        let state = OAuthState::new(&command.url, None).await;
        let end = now();
        Outcome { start, end, result: state.map(|_| json!({})).map_err(Failure::from) }
    }

    async fn connect(&mut self, command: &Command, limit: Duration) -> Outcome {
        if self.session.is_some() {
            return Outcome::refused("protocol", "already connected: disconnect first");
        }
        if let Some(mode) = &command.mode {
            return Outcome::refused("unsupported", format!("rmcp has no mode {mode} here"));
        }
        let (session, outcome) = timed(limit, self.open(command), server).await;
        self.session = session;
        outcome
    }

    async fn open(&mut self, command: &Command) -> Result<Session, Failure> {
        let url = command.url.clone();
        if let Some((program, arguments)) = command.command.split_first() {
            let mut server = tokio::process::Command::new(program);
            server.args(arguments).envs(&command.env);
            return Ok(().serve(TokioChildProcess::new(server)?).await?);
        }
        match command.auth.kind.as_str() {
            "" | "none" => Ok(().serve((self.plain)(url)).await?),
            "bearer" => {
                let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(&command.auth.token);
                Ok(().serve(StreamableHttpClientTransport::with_client(C::default(), config)).await?)
            }
            "oauth" => {
                let client = self.authorized(&command.url, &command.auth).await?;
                let config = StreamableHttpClientTransportConfig::with_uri(url);
                Ok(().serve(StreamableHttpClientTransport::with_client(client, config)).await?)
            }
            other => Err(Failure::unsupported(format!("unknown kind of authorization: {other}"))),
        }
    }

    /// The SDK's way: authorization comes first, and the transport is made of what came of it.
    async fn authorized(&mut self, url: &str, auth: &Auth) -> Result<AuthClient<C>, Failure> {
        consent::possible(auth)?;
        if let Some(kept) = self.authorized.get(url) {
            return Ok(kept.clone());
        }
        let mut state = OAuthState::new(url, None).await?;
        let scopes: Vec<&str> = auth.scope.split_whitespace().collect();
        let name = if auth.client_name.is_empty() { "mcpace" } else { &auth.client_name };
        wallet::start(&mut state, &scopes, consent::REDIRECT, name).await?;
        let answer = consent::follow(&state.get_authorization_url().await?).await?;
        wallet::finish(&mut state, &answer).await?;
        let manager = state.into_authorization_manager().ok_or_else(|| Failure::auth("the SDK isn't authorized"))?;
        let client = AuthClient::new(C::default(), manager);
        self.authorized.insert(url.to_owned(), client.clone());
        Ok(client)
    }

    async fn list_tools(&mut self, limit: Duration) -> Outcome {
        let Some(session) = &self.session else { return not_connected() };
        timed(limit, async { Ok(session.list_tools(None).await?) }, |reply| tools(&plain(reply))).await.1
    }

    async fn call_tool(&mut self, command: &Command, limit: Duration) -> Outcome {
        let Some(session) = &self.session else { return not_connected() };
        // Built from JSON, because the name of the type differs between releases.
        let params = json!({"name": command.name, "arguments": command.arguments});
        let params = match serde_json::from_value(params) {
            Ok(params) => params,
            Err(error) => return Outcome::refused("protocol", error.to_string()),
        };
        timed(limit, async { Ok(session.call_tool(params).await?) }, |reply| called(&plain(reply))).await.1
    }
}

/// Runs an operation with its limit and stamps its start and end. Returns the operation's value, and the outcome with
/// the `summary` of that value.
async fn timed<T>(
    limit: Duration,
    operation: impl Future<Output = Result<T, Failure>>,
    summary: impl FnOnce(&T) -> Value,
) -> (Option<T>, Outcome) {
    let start = now();
    let done = timeout(limit, operation).await.unwrap_or_else(|_| Err(Failure::timeout(limit)));
    let end = now();
    match done {
        Ok(given) => {
            let result = Ok(summary(&given));
            (Some(given), Outcome { start, end, result })
        }
        Err(failure) => (None, Outcome { start, end, result: Err(failure) }),
    }
}

fn not_connected() -> Outcome {
    Outcome::refused("protocol", "not connected: connect first")
}

fn plain(reply: &impl serde::Serialize) -> Value {
    serde_json::to_value(reply).unwrap_or_default()
}

fn server(session: &Session) -> Value {
    let info = session.peer_info().map(|info| plain(&*info)).unwrap_or_default();
    json!({
        "protocol_version": info["protocolVersion"],
        "server_name": info["serverInfo"]["name"],
        "server_version": info["serverInfo"]["version"],
    })
}

fn tools(reply: &Value) -> Value {
    let tools = reply["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&Value> = tools.iter().take(NAMES_LIMIT).map(|tool| &tool["name"]).collect();
    json!({"tools": tools.len(), "names": names, "more": reply["nextCursor"].is_string()})
}

fn called(reply: &Value) -> Value {
    let blocks = reply["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let text: String = texts.join("\n").chars().take(TEXT_LIMIT).collect();
    json!({"is_error": reply["isError"].as_bool().unwrap_or(false), "text": text})
}
