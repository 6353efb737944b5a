//! Agreement on a revision (2026-07-28, basic/versioning, "Era negotiation") as a state machine.
//!
//! Modern first: `server/discover`. A modern refusal is final. Every other answer that does not refuse the client itself
//! means a legacy server: `initialize`, and over HTTP at last the GET of 2024-11-05.
//!
//! A driver takes the first [`Step`] from [`Negotiation::begin`], carries it out, reports the outcome with a `handle_*` method
//! and gets the next step. It ends with [`Step::Connected`] or an error.

use std::time::Duration;

use mcpace_wire::http::Era;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{DiscoverResult, Implementation, InitializeResult, ServerCapabilities, key};
use mcpace_wire::{Revision, quote_printable};
use serde::Deserialize;

use crate::{Answer, ClientError, OtherReply, Raw, RpcError, ServerReply};

/// Which revision to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Finds out what the server speaks, newest first.
    #[default]
    Auto,
    /// Begins with `initialize`, and takes the legacy revision that the server answers with.
    Legacy,
    /// Exactly this one.
    Only(Revision),
}

/// Transport between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One HTTP endpoint for all messages (2025-03-26 and later).
    StreamableHttp,
    /// A GET stream and a second endpoint (2024-11-05).
    HttpSse,
    /// A pair of streams, a line a message: a process, or within this one.
    Pipe,
}

impl Transport {
    /// The name in reports and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::StreamableHttp => "streamable-http",
            Transport::HttpSse => "http+sse",
            Transport::Pipe => "stdio",
        }
    }
}

/// The server's words about itself when the client connected.
#[derive(Clone, Debug)]
pub struct ServerInfo {
    /// The revision of the session.
    pub revision: Revision,
    /// The transport of the session.
    pub transport: Transport,
    /// Name and version; a server of 2026-07-28 may keep them to itself.
    pub server: Option<Implementation>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    pub instructions: Option<String>,
    /// The whole result of `initialize` or `server/discover`.
    pub raw: Raw,
}

/// Era of a server, known from an earlier connection. The protocol asks clients to keep it per origin or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEra {
    /// `server/discover` is answered.
    Modern,
    /// `initialize` is answered.
    Legacy,
    /// `initialize` is answered over HTTP+SSE only.
    HttpSse,
}

/// Outcome of a negotiation.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The server and the revision of the session.
    pub server: ServerInfo,
    /// Worth keeping for the next connection.
    pub era: ServerEra,
}

/// Next action of the driver.
#[derive(Debug)]
pub enum Step {
    /// Open the transport anew, then call [`Negotiation::handle_open`].
    Reopen,
    /// Open HTTP+SSE, then call [`Negotiation::handle_open`], or [`Negotiation::handle_failure`].
    OpenHttpSse,
    /// Send `server/discover`, whose headers name `revision`. Call [`Negotiation::handle_reply`],
    /// [`Negotiation::handle_failure`], or [`Negotiation::handle_timeout`] after `limit`.
    Discover {
        /// Revision of the request.
        revision: Revision,
        /// Time that the server has to answer; `None` for the limit of the whole connection.
        limit: Option<Duration>,
    },
    /// Send `initialize`, whose headers name neither revision nor session. Call [`Negotiation::handle_reply`] or
    /// [`Negotiation::handle_failure`].
    Initialize {
        /// Revision that is offered.
        offer: Revision,
    },
    /// The end: a legacy session begins with `notifications/initialized`.
    Connected(Box<Agreement>),
}

/// State machine of one connection's negotiation.
#[derive(Debug)]
pub struct Negotiation {
    mode: Mode,
    /// `None` on a pair of streams.
    http: Option<HttpState>,
    probe_limit: Duration,
    state: NegotiationState,
}

#[derive(Debug, Default)]
struct HttpState {
    /// Reason for which HTTP+SSE is tried. It says more than the failure of that second try.
    refusal: Option<ClientError>,
    is_sse: bool,
}

#[derive(Clone, Copy, Debug)]
enum NegotiationState {
    /// `server/discover` may show either era.
    Probing { is_repeated: bool },
    /// `server/discover` must succeed.
    Discovering { revision: Revision },
    Initializing {
        offer: Revision,
        /// Whether the server has yet to read `server/discover`.
        has_probe: bool,
    },
}

impl Negotiation {
    /// Starts a negotiation over a transport that was just opened. `probe_limit` is the time that a program has to answer
    /// `server/discover` before it counts as legacy; an HTTP server has the limit of the whole connection.
    #[must_use]
    pub fn begin(mode: Mode, is_http: bool, probe_limit: Duration, known: Option<ServerEra>) -> (Self, Step) {
        let http = is_http.then(HttpState::default);
        let state = NegotiationState::Probing { is_repeated: false };
        let mut negotiation = Self { mode, http, probe_limit, state };
        let step = match (mode, known) {
            (Mode::Only(revision), _) if revision.is_modern() => negotiation.send_discover(revision),
            (Mode::Only(revision), _) => negotiation.send_initialize(revision),
            (Mode::Auto, Some(ServerEra::Modern)) => negotiation.send_discover(Revision::LATEST),
            (_, Some(ServerEra::HttpSse)) if is_http => Step::OpenHttpSse,
            (Mode::Legacy, _) | (_, Some(_)) => negotiation.send_initialize(Revision::LATEST_LEGACY),
            (Mode::Auto, None) => negotiation.next_probe(),
        };
        (negotiation, step)
    }

    /// The transport of a [`Step::Reopen`] or [`Step::OpenHttpSse`] is open.
    pub fn handle_open(&mut self, transport: Transport) -> Step {
        if transport == Transport::HttpSse {
            if let Some(http) = &mut self.http {
                http.is_sse = true;
            }
            return self.send_initialize(Revision::V2024_11_05);
        }
        self.send_initialize(Revision::LATEST_LEGACY)
    }

    /// The limit of [`Step::Discover`] ran out: a legacy program may ignore requests before `initialize`.
    pub fn handle_timeout(&mut self) -> Step {
        self.send_initialize_after(Revision::LATEST_LEGACY, true)
    }

    /// A step failed without a reply.
    ///
    /// # Errors
    /// The reason for which the connection fails.
    pub fn handle_failure(&mut self, error: ClientError) -> Result<Step, ClientError> {
        match (self.state, error) {
            // Some old servers end when the first request is not `initialize`.
            (
                NegotiationState::Probing { .. } | NegotiationState::Initializing { has_probe: true, .. },
                ClientError::ProcessEnded { .. },
            ) => Ok(Step::Reopen),
            (_, error) => Err(self.http.as_mut().and_then(|http| http.refusal.take()).unwrap_or(error)),
        }
    }

    /// A request was answered. `address` is the URL or the program, for messages.
    ///
    /// # Errors
    /// The reason for which the connection fails.
    pub fn handle_reply(&mut self, reply: ServerReply, address: &str) -> Result<Step, ClientError> {
        match self.state {
            NegotiationState::Probing { is_repeated } => self.handle_probe(reply, address, is_repeated),
            NegotiationState::Discovering { revision } => {
                self.modern_agreement(&discovery_result(reply, address, revision)?, revision).map(Step::Connected)
            }
            NegotiationState::Initializing { offer, .. } => self.handle_initialized(reply, address, offer),
        }
    }

    fn next_probe(&mut self) -> Step {
        let limit = self.http.is_none().then_some(self.probe_limit);
        Step::Discover { revision: Revision::LATEST, limit }
    }

    fn send_discover(&mut self, revision: Revision) -> Step {
        self.state = NegotiationState::Discovering { revision };
        Step::Discover { revision, limit: None }
    }

    fn send_initialize(&mut self, offer: Revision) -> Step {
        self.send_initialize_after(offer, false)
    }

    fn send_initialize_after(&mut self, offer: Revision, has_probe: bool) -> Step {
        self.state = NegotiationState::Initializing { offer, has_probe };
        Step::Initialize { offer }
    }

    /// A reply that only a legacy server gives leads to `initialize`.
    fn handle_probe(&mut self, reply: ServerReply, address: &str, is_repeated: bool) -> Result<Step, ClientError> {
        let revision = Revision::LATEST;
        let error = match reply {
            // A busy server may be of either era: a second request would be rude and prove nothing.
            ServerReply::Other(other) if other.is_busy() => return Err(other.into_error(address.to_owned(), true)),
            ServerReply::Other(_) => return Ok(self.send_initialize(Revision::LATEST_LEGACY)),
            ServerReply::Answer { answer: Answer::Result(result), .. } => {
                let agreement = self.modern_agreement(&result, revision);
                return Ok(agreement.map_or_else(|_| self.send_initialize(Revision::LATEST_LEGACY), Step::Connected));
            }
            ServerReply::Answer { answer: Answer::Error(error), .. } => error,
        };
        if error.code != code::UNSUPPORTED_PROTOCOL_VERSION {
            return match Era::of_error_code(error.code) {
                Some(Era::Modern) => Err(ClientError::Rpc { method: "server/discover", error }),
                _ => Ok(self.send_initialize(Revision::LATEST_LEGACY)),
            };
        }
        let offered = supported_versions(&error);
        match offered.iter().filter_map(|version| version.parse::<Revision>().ok()).max() {
            Some(best) if best.is_legacy() => Ok(self.send_initialize(best)),
            // The server names the revision that it refused: the refusal may have had another cause.
            Some(best) if best == revision && !is_repeated => {
                self.state = NegotiationState::Probing { is_repeated: true };
                Ok(self.next_probe())
            }
            _ => Err(no_common_revision(revision, &offered)),
        }
    }

    fn modern_agreement(&self, result: &Raw, revision: Revision) -> Result<Box<Agreement>, ClientError> {
        let found: DiscoverResult = result.read("server/discover")?;
        if !found.supported_versions.iter().any(|version| version == revision.as_str()) {
            return Err(no_common_revision(revision, &found.supported_versions));
        }
        let server = found.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
        let server = ServerInfo {
            revision,
            transport: self.transport(),
            server: server.and_then(|server| serde_json::from_value(server.clone()).ok()),
            capabilities: found.capabilities,
            instructions: found.instructions,
            raw: result.clone(),
        };
        Ok(Box::new(Agreement { server, era: ServerEra::Modern }))
    }

    fn handle_initialized(&mut self, reply: ServerReply, address: &str, offer: Revision) -> Result<Step, ClientError> {
        if let ServerReply::Answer { status: status @ (404 | 405), answer: Answer::Error(error) } = &reply {
            // No session exists yet, so the URL is unknown, even if the server says so in JSON-RPC.
            let answer = format!("status {status}, {}", quote_printable(&error.message));
            return self.try_http_sse(ClientError::NotMcp { address: address.to_owned(), answer });
        }
        let is_older = matches!(
            &reply,
            ServerReply::Other(OtherReply { status: 400 | 404 | 405, .. })
                | ServerReply::Answer { status: 400, answer: Answer::Error(_) }
        );
        let result = match reply.into_result("initialize", || address.to_owned(), true) {
            Ok(result) => result,
            Err(error) if is_older => return self.try_http_sse(error),
            // A slow starter: it answered `server/discover` too late, and is modern.
            Err(ClientError::Rpc { error, .. })
                if self.mode == Mode::Auto
                    && self.transport() != Transport::HttpSse
                    && error.code == code::UNSUPPORTED_PROTOCOL_VERSION =>
            {
                return Ok(self.send_discover(Revision::LATEST));
            }
            Err(error) => return self.handle_failure(error),
        };
        match self.legacy_agreement(result, offer) {
            Ok(agreement) => Ok(Step::Connected(agreement)),
            Err(error) => self.handle_failure(error),
        }
    }

    fn legacy_agreement(&self, result: Raw, offer: Revision) -> Result<Box<Agreement>, ClientError> {
        let found: InitializeResult = result.read("initialize")?;
        let spoken = found.protocol_version.parse::<Revision>().ok().filter(|revision| revision.is_legacy());
        let is_wanted = |spoken: &Revision| !matches!(self.mode, Mode::Only(only) if only != *spoken);
        let Some(revision) = spoken.filter(is_wanted) else {
            return Err(no_common_revision(offer, &[found.protocol_version]));
        };
        let transport = self.transport();
        let server = ServerInfo {
            revision,
            transport,
            server: Some(found.server_info),
            capabilities: found.capabilities,
            instructions: found.instructions,
            raw: result,
        };
        let era = if transport == Transport::HttpSse { ServerEra::HttpSse } else { ServerEra::Legacy };
        Ok(Box::new(Agreement { server, era }))
    }

    /// The server refuses `initialize` as a server of 2024-11-05 refuses a POST to its GET endpoint.
    fn try_http_sse(&mut self, refusal: ClientError) -> Result<Step, ClientError> {
        let is_wanted = matches!(self.mode, Mode::Auto | Mode::Legacy | Mode::Only(Revision::V2024_11_05));
        match &mut self.http {
            Some(http) if is_wanted && !http.is_sse => {
                http.refusal = Some(refusal);
                Ok(Step::OpenHttpSse)
            }
            _ => self.handle_failure(refusal),
        }
    }

    fn transport(&self) -> Transport {
        match &self.http {
            None => Transport::Pipe,
            Some(http) if http.is_sse => Transport::HttpSse,
            Some(_) => Transport::StreamableHttp,
        }
    }
}

/// The result of a `server/discover` that has to succeed.
fn discovery_result(reply: ServerReply, address: &str, revision: Revision) -> Result<Raw, ClientError> {
    const LEGACY: &str = "older revisions only, by its answer";
    if matches!(&reply, ServerReply::Other(other) if other.status == 400) {
        return Err(no_common_revision(revision, &[LEGACY.to_owned()]));
    }
    reply.into_result("server/discover", || address.to_owned(), true).map_err(|error| match error {
        ClientError::Rpc { error, .. } if error.code == code::UNSUPPORTED_PROTOCOL_VERSION => {
            no_common_revision(revision, &supported_versions(&error))
        }
        ClientError::Rpc { error, .. } if Era::of_error_code(error.code).is_none() => {
            no_common_revision(revision, &[LEGACY.to_owned()])
        }
        error => error,
    })
}

/// Whether an error refuses the protocol version (-32022) and yet names `revision` as supported.
#[must_use]
pub fn refuses_but_names(error: &RpcError, revision: Revision) -> bool {
    error.code == code::UNSUPPORTED_PROTOCOL_VERSION
        && supported_versions(error).iter().any(|version| version == revision.as_str())
}

/// `data.supported` of error -32022.
fn supported_versions(error: &RpcError) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct ErrorData {
        #[serde(default)]
        supported: Vec<String>,
    }
    error.data.as_ref().and_then(|data| data.parse::<ErrorData>().ok()).unwrap_or_default().supported
}

fn no_common_revision(asked: Revision, offered: &[String]) -> ClientError {
    let offered =
        if offered.is_empty() { "no version that it names".to_owned() } else { quote_printable(&offered.join(", ")) };
    ClientError::Revision { asked: asked.to_string(), offered }
}

#[cfg(test)]
mod tests;
