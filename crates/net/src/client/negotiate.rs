//! Finds out what the server speaks, and begins to speak it (2026-07-28, basic/versioning, "Era negotiation").
//!
//! Modern first: `server/discover`. A modern refusal keeps us there; anything else that isn't a refusal of *us* means
//! legacy: `initialize`, and over HTTP at last the GET of 2024-11-05.

use std::sync::Arc;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::quoted;
use mcpace_wire::revision::Revision;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::process::Command;

use super::http::{Http, Other, Reply};
use super::link::{Ids, Link, is_modern_refusal, result_of};
use super::message::{Answer, Outgoing};
use super::params::Dialect;
use super::results::{self, ServerInfo};
use super::stdio::Stdio;
use super::{ClientError, ClientOptions, Endpoint};
use crate::Sink;

/// What is known of a server from an earlier connection: the protocol asks to keep it per origin or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Modern(Revision),
    Legacy,
    HttpSse,
}

/// All that connecting needs.
pub(super) struct Negotiation<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) http: Option<&'a Arc<Http>>,
    pub(super) options: &'a ClientOptions,
    pub(super) sink: &'a Arc<Sink>,
    pub(super) ids: &'a Ids,
    pub(super) verdict: Option<Verdict>,
}

/// What the question for the era came to.
enum Probe {
    Modern(Box<ServerInfo>),
    /// Legacy; the newest revision to offer, where the server named some.
    Legacy(Revision),
}

impl Negotiation<'_> {
    /// Connects. The verdict is worth keeping.
    pub(super) async fn connect(&self) -> Result<(Link, ServerInfo, Verdict), ClientError> {
        let mut link = self.open()?;
        let offer = match (self.options.revision, self.verdict) {
            (Some(revision), _) | (None, Some(Verdict::Modern(revision))) if revision.is_modern() => {
                let info = self.discover(&link, revision).await?;
                return Ok((link, info, Verdict::Modern(revision)));
            }
            (Some(revision), _) => revision,
            (None, Some(Verdict::HttpSse)) => return self.http_sse(Revision::V2024_11_05).await,
            (None, Some(_)) => Revision::LATEST_LEGACY,
            (None, None) => match self.probe(&link).await {
                Ok(Probe::Modern(info)) => {
                    let verdict = Verdict::Modern(info.revision);
                    return Ok((link, *info, verdict));
                }
                Ok(Probe::Legacy(offer)) => offer,
                // Some old servers end when anything but `initialize` comes first.
                Err(ClientError::ProcessEnded { .. }) => {
                    link = self.open()?;
                    Revision::LATEST_LEGACY
                }
                Err(error) => return Err(error),
            },
        };
        match self.initialize(&link, offer).await {
            Ok(info) => Ok((link, info, Verdict::Legacy)),
            Err(Refused::AsOlder(error)) => {
                let oldest = self.options.revision.is_none_or(|revision| revision == Revision::V2024_11_05);
                if !oldest {
                    return Err(error);
                }
                // What `initialize` came to says more than that there is no stream either.
                self.http_sse(Revision::V2024_11_05).await.map_err(|_| error)
            }
            // A slow starter: it answered the question for its era too late, and is modern.
            Err(Refused::For(ClientError::Rpc { code: code::UNSUPPORTED_PROTOCOL_VERSION, .. }))
                if self.options.revision.is_none() =>
            {
                let info = self.discover(&link, Revision::LATEST).await?;
                let verdict = Verdict::Modern(info.revision);
                Ok((link, info, verdict))
            }
            Err(Refused::For(error)) => Err(error),
        }
    }

    fn open(&self) -> Result<Link, ClientError> {
        match (self.endpoint, self.http) {
            (Endpoint::Stdio { program, args, environment }, _) => {
                let mut command = Command::new(program);
                command.args(args).envs(environment.iter().map(|(name, value)| (name, value)));
                Ok(Link::Stdio(Stdio::start(command, self.options.message_limit, self.sink)?))
            }
            (Endpoint::Http(_), Some(http)) => {
                http.forget_session();
                Ok(Link::Http(Arc::clone(http)))
            }
            (Endpoint::Http(_), None) => Err(ClientError::NotConnected),
        }
    }

    /// Asks for the era. Answers that only a legacy server gives are `Legacy`, not errors.
    async fn probe(&self, link: &Link) -> Result<Probe, ClientError> {
        let mut revision = Revision::LATEST;
        // Twice: a server may name the version that it wants.
        for _ in 0..2 {
            let Some(reply) = self.ask_discover(link, revision).await? else {
                return Ok(Probe::Legacy(Revision::LATEST_LEGACY));
            };
            let answer = match reply {
                Reply::Answer { answer, .. } => answer,
                Reply::Other(other) => return legacy_unless_busy(other, &link.address()),
            };
            match &answer {
                Answer::Result(result) => {
                    let Ok(info) = self.discovered(link, result, revision) else {
                        return Ok(Probe::Legacy(Revision::LATEST_LEGACY));
                    };
                    return Ok(Probe::Modern(Box::new(info)));
                }
                Answer::Error { code: code::UNSUPPORTED_PROTOCOL_VERSION, data, .. } => {
                    let supported = supported(data.as_deref());
                    match best(&supported) {
                        Some(best) if best.is_modern() && best != revision => revision = best,
                        Some(best) if best.is_legacy() => return Ok(Probe::Legacy(best)),
                        _ => return Err(no_common(&revision.to_string(), &supported)),
                    }
                }
                refusal if is_modern_refusal(refusal) => {
                    return result_of(Reply::Answer { status: 400, answer }, "server/discover", "", true)
                        .map(|_| Probe::Legacy(Revision::LATEST_LEGACY));
                }
                _ => return Ok(Probe::Legacy(Revision::LATEST_LEGACY)),
            }
        }
        Ok(Probe::Legacy(Revision::LATEST_LEGACY))
    }

    /// `None` where a process does not answer in time.
    async fn ask_discover(&self, link: &Link, revision: Revision) -> Result<Option<Reply>, ClientError> {
        self.speak(Some(revision));
        let params = self.dialect(revision).discover();
        let message = Outgoing::request(self.ids.next(), "server/discover", params.as_deref());
        let asked = link.request(&message);
        let outcome = match link {
            Link::Stdio(_) => match tokio::time::timeout(self.options.probe_limit, asked).await {
                Ok(outcome) => outcome.map(Some),
                Err(_) => Ok(None),
            },
            _ => asked.await.map(Some),
        };
        if !matches!(&outcome, Ok(Some(Reply::Answer { answer: Answer::Result(_), .. }))) {
            self.speak(None);
        }
        outcome
    }

    /// The modern way, without a question.
    async fn discover(&self, link: &Link, revision: Revision) -> Result<ServerInfo, ClientError> {
        self.speak(Some(revision));
        let params = self.dialect(revision).discover();
        let message = Outgoing::request(self.ids.next(), "server/discover", params.as_deref());
        let reply = link.request(&message).await?;
        if let Reply::Answer { answer: Answer::Error { code: code::UNSUPPORTED_PROTOCOL_VERSION, data, .. }, .. } =
            &reply
        {
            return Err(no_common(revision.as_str(), &supported(data.as_deref())));
        }
        if is_legacy_refusal(&reply) {
            return Err(no_common(revision.as_str(), &["older revisions only, by its answer".to_owned()]));
        }
        let result = result_of(reply, "server/discover", &link.address(), true)?;
        self.discovered(link, &result, revision)
    }

    fn discovered(&self, link: &Link, result: &RawValue, revision: Revision) -> Result<ServerInfo, ClientError> {
        let (found, server) = results::discovered(result)?;
        if !found.supported_versions.iter().any(|version| version == revision.as_str()) {
            return Err(no_common(revision.as_str(), &found.supported_versions));
        }
        Ok(ServerInfo {
            revision,
            transport: link.kind(),
            server,
            capabilities: found.capabilities,
            instructions: found.instructions,
        })
    }

    /// The legacy way: `initialize`, then `notifications/initialized`.
    async fn initialize(&self, link: &Link, offer: Revision) -> Result<ServerInfo, Refused> {
        self.speak(None);
        let params = self.dialect(offer).initialize();
        let message = Outgoing::request(self.ids.next(), "initialize", params.as_deref());
        let reply = link.request(&message).await?;
        let older = matches!(&reply, Reply::Other(Other { status: 400 | 404 | 405, .. }))
            || matches!(&reply, Reply::Answer { status: 400 | 404 | 405, answer: Answer::Error { .. } });
        let result = match result_of(reply, "initialize", &link.address(), true) {
            Ok(result) => result,
            Err(error) if older => return Err(Refused::AsOlder(error)),
            Err(error) => return Err(Refused::For(error)),
        };
        let found = results::initialized(&result)?;
        let spoken = found.protocol_version.parse::<Revision>().ok().filter(|revision| revision.is_legacy());
        let spoken = spoken.filter(|spoken| self.options.revision.is_none_or(|asked| asked == *spoken));
        let Some(revision) = spoken else {
            return Err(Refused::For(no_common(offer.as_str(), &[found.protocol_version])));
        };
        self.speak(Some(revision));
        link.notify(&Outgoing::notification("notifications/initialized", None)).await?;
        if let (Link::Http(http), true) = (link, self.options.standalone_get) {
            http.listen();
        }
        Ok(ServerInfo {
            revision,
            transport: link.kind(),
            server: Some(found.server_info),
            capabilities: found.capabilities,
            instructions: found.instructions,
        })
    }

    async fn http_sse(&self, offer: Revision) -> Result<(Link, ServerInfo, Verdict), ClientError> {
        let http = self.http.ok_or(ClientError::NotConnected)?;
        http.forget_session();
        let link = Link::Legacy(Arc::clone(http), http.legacy().await?);
        match self.initialize(&link, offer).await {
            Ok(info) => Ok((link, info, Verdict::HttpSse)),
            Err(Refused::AsOlder(error) | Refused::For(error)) => Err(error),
        }
    }

    fn speak(&self, revision: Option<Revision>) {
        if let Some(http) = self.http {
            http.speak(revision);
        }
    }

    fn dialect(&self, revision: Revision) -> Dialect {
        Dialect { revision, server_timing: self.options.server_timing }
    }
}

/// Why `initialize` failed.
enum Refused {
    /// As a server of 2024-11-05 refuses a POST to its GET endpoint.
    AsOlder(ClientError),
    For(ClientError),
}

impl From<ClientError> for Refused {
    fn from(error: ClientError) -> Self {
        Refused::For(error)
    }
}

/// A busy server may be of either era: asking it more would be rude and prove nothing.
fn legacy_unless_busy(other: Other, address: &str) -> Result<Probe, ClientError> {
    match other.status {
        429 | 502 | 503 | 504 => Err(other.into_error(address, true)),
        _ => Ok(Probe::Legacy(Revision::LATEST_LEGACY)),
    }
}

/// `data.supported` of −32022.
fn supported(data: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Data {
        #[serde(default)]
        supported: Vec<String>,
    }
    data.and_then(|data| serde_json::from_str::<Data>(data.get()).ok()).unwrap_or_default().supported
}

fn best(supported: &[String]) -> Option<Revision> {
    supported.iter().filter_map(|version| version.parse().ok()).max()
}

/// A server that knows no `server/discover` answers with 400, or with an error that isn't one of the modern era's.
fn is_legacy_refusal(reply: &Reply) -> bool {
    match reply {
        Reply::Answer { answer, .. } => matches!(answer, Answer::Error { .. }) && !is_modern_refusal(answer),
        Reply::Other(other) => other.status == 400,
    }
}

fn no_common(asked: &str, offered: &[String]) -> ClientError {
    let offered = if offered.is_empty() { "no version that it names".to_owned() } else { quoted(&offered.join(", ")) };
    ClientError::Revision { asked: asked.to_owned(), offered }
}
