//! Finds out what the server speaks, and begins to speak it (2026-07-28, basic/versioning, "Era negotiation").
//!
//! Modern first: `server/discover`. A modern refusal keeps us there; anything else that isn't a refusal of *us* means
//! legacy: `initialize`, and over HTTP at last the GET of 2024-11-05.

use std::sync::Arc;

use mcpace_wire::http::Era;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{DiscoverResult, InitializeResult, key};
use mcpace_wire::{Revision, quoted};
use serde::Deserialize;

use crate::answer::Answer;
use crate::client::Inner;
use crate::envelope::{Dialect, Members};
use crate::session::Session;
use crate::transport::{Http, HttpSession, LegacySse, Link, Other, Outgoing, Pipe, Place, Reply};
use crate::{ClientError, Mode, Raw, RpcError, ServerInfo};

/// What is known of a server: the protocol asks to keep it per origin or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Modern,
    Legacy,
    HttpSse,
}

/// What the question for the era came to.
enum Probe {
    Modern(Box<ServerInfo>),
    /// Legacy; the newest revision to offer, where the server named some.
    Legacy(Revision),
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

/// Connects. The verdict is worth keeping.
pub(crate) async fn connect(inner: &Inner, verdict: Option<Verdict>) -> Result<(Session, Verdict), ClientError> {
    let mode = inner.options.mode;
    let mut link = open(inner, Some(Revision::LATEST)).await?;
    let offer = match (mode, verdict) {
        (Mode::Only(revision), _) if revision.is_modern() => return discovered(inner, link, revision).await,
        (Mode::Only(revision), _) => revision,
        (Mode::Auto, Some(Verdict::Modern)) => return discovered(inner, link, Revision::LATEST).await,
        (_, Some(Verdict::HttpSse)) => return http_sse(inner).await,
        (Mode::Legacy, _) | (_, Some(Verdict::Legacy)) => Revision::LATEST_LEGACY,
        (Mode::Auto, None) => match probe(inner, &link).await {
            Ok(Probe::Modern(info)) => return Ok((modern(inner, link, *info), Verdict::Modern)),
            Ok(Probe::Legacy(offer)) => offer,
            // Some old servers end when anything but `initialize` comes first.
            Err(ClientError::ProcessEnded { .. }) => {
                link = open(inner, None).await?;
                Revision::LATEST_LEGACY
            }
            Err(error) => return Err(error),
        },
    };
    if let Some(http) = &inner.http {
        link = Link::Http(Arc::new(HttpSession::new(http, &inner.inbound, None)));
    }
    match initialize(inner, &link, offer).await {
        Ok((info, dialect)) => Ok((legacy(link, info, dialect).await?, Verdict::Legacy)),
        Err(Refused::AsOlder(error)) => {
            if !matches!(mode, Mode::Auto | Mode::Legacy | Mode::Only(Revision::V2024_11_05)) {
                return Err(error);
            }
            // What `initialize` came to says more than that there is no stream either.
            http_sse(inner).await.map_err(|_| error)
        }
        // A slow starter: it answered the question for its era too late, and is modern.
        Err(Refused::For(ClientError::Rpc { error, .. }))
            if mode == Mode::Auto && error.code == code::UNSUPPORTED_PROTOCOL_VERSION =>
        {
            let link = if inner.http.is_some() { open(inner, Some(Revision::LATEST)).await? } else { link };
            discovered(inner, link, Revision::LATEST).await
        }
        Err(Refused::For(error)) => Err(error),
    }
}

async fn open(inner: &Inner, revision: Option<Revision>) -> Result<Link, ClientError> {
    let inbound = &inner.inbound;
    match (&inner.place, &inner.http) {
        (_, Some(http)) => Ok(Link::Http(Arc::new(HttpSession::new(http, inbound, revision)))),
        (Place::Program(program), None) => Pipe::start(program, inbound).map(Link::Pipe),
        (Place::Pipe(connect), None) => {
            let refused = |error: std::io::Error| ClientError::Connect {
                address: "the server".to_owned(),
                reason: error.to_string(),
            };
            let (reader, writer) = tokio::io::split(connect().await.map_err(refused)?);
            Ok(Link::Pipe(Pipe::within(reader, writer, inbound)))
        }
        (Place::Http(..), None) => Err(ClientError::Closed),
    }
}

/// Asks for the era. Answers that only a legacy server gives are `Legacy`, not errors.
async fn probe(inner: &Inner, link: &Link) -> Result<Probe, ClientError> {
    const LEGACY: Probe = Probe::Legacy(Revision::LATEST_LEGACY);
    let revision = Revision::LATEST;
    let dialect = inner.dialect(revision);
    let mut again = true;
    loop {
        let asked = ask(inner, link, "server/discover", &dialect, &|_| {});
        let reply = if let Link::Pipe(_) = link {
            match tokio::time::timeout(inner.options.limits.probe_time, asked).await {
                Ok(reply) => reply?,
                Err(_) => return Ok(LEGACY),
            }
        } else {
            asked.await?
        };
        let error = match reply {
            // A busy server may be of either era: asking it more would be rude and prove nothing.
            Reply::Other(other) if matches!(other.status, 429 | 502 | 503 | 504) => {
                return Err(other.into_error(link.address(), true));
            }
            Reply::Other(_) => return Ok(LEGACY),
            Reply::Answer { answer: Answer::Result(result), .. } => {
                return Ok(told(link, &result, revision).map_or(LEGACY, |info| Probe::Modern(Box::new(info))));
            }
            Reply::Answer { answer: Answer::Error(error), .. } => error,
        };
        if error.code != code::UNSUPPORTED_PROTOCOL_VERSION {
            return match Era::of_error_code(error.code) {
                Some(Era::Modern) => Err(ClientError::Rpc { method: "server/discover", error }),
                _ => Ok(LEGACY),
            };
        }
        let offered = supported(&error);
        match offered.iter().filter_map(|version| version.parse::<Revision>().ok()).max() {
            Some(best) if best.is_legacy() => return Ok(Probe::Legacy(best)),
            // It names the very one that it refused: it may have meant something else by it.
            Some(best) if best == revision && again => again = false,
            _ => return Err(no_common(revision, &offered)),
        }
    }
}

/// The modern way, without a question.
async fn discovered(inner: &Inner, link: Link, revision: Revision) -> Result<(Session, Verdict), ClientError> {
    let reply = ask(inner, &link, "server/discover", &inner.dialect(revision), &|_| {}).await?;
    let result = result_of(reply, "server/discover", &link, true).map_err(|error| match error {
        ClientError::Rpc { error, .. } if error.code == code::UNSUPPORTED_PROTOCOL_VERSION => {
            no_common(revision, &supported(&error))
        }
        ClientError::Rpc { error, .. } if Era::of_error_code(error.code).is_none() => {
            no_common(revision, &["older revisions only, by its answer".to_owned()])
        }
        error => error,
    })?;
    let info = told(&link, &result, revision)?;
    Ok((modern(inner, link, info), Verdict::Modern))
}

fn told(link: &Link, result: &Raw, revision: Revision) -> Result<ServerInfo, ClientError> {
    let found: DiscoverResult = result.read("server/discover")?;
    if !found.supported_versions.iter().any(|version| version == revision.as_str()) {
        return Err(no_common(revision, &found.supported_versions));
    }
    let server = found.meta.as_ref().and_then(|meta| meta.get(key::SERVER_INFO));
    Ok(ServerInfo {
        revision,
        transport: link.kind(),
        server: server.and_then(|server| serde_json::from_value(server.clone()).ok()),
        capabilities: found.capabilities,
        instructions: found.instructions,
        raw: result.clone(),
    })
}

fn modern(inner: &Inner, link: Link, info: ServerInfo) -> Session {
    Session::new(link, inner.dialect(info.revision), info, None)
}

/// The legacy way: `initialize`.
async fn initialize(inner: &Inner, link: &Link, offer: Revision) -> Result<(ServerInfo, Dialect), Refused> {
    let fill = |params: &mut Members<'_>| {
        params.value("protocolVersion", offer.as_str());
        params.value("capabilities", &inner.capabilities());
        params.value("clientInfo", &inner.options.client_info);
    };
    let reply = ask(inner, link, "initialize", &inner.dialect(offer), &fill).await?;
    let older = matches!(&reply, Reply::Other(Other { status: 400 | 404 | 405, .. }))
        || matches!(&reply, Reply::Answer { status: 400 | 404 | 405, answer: Answer::Error { .. } });
    if let Reply::Answer { status: status @ (404 | 405), answer: Answer::Error(error) } = &reply {
        // There is no session yet that could be unknown: the URL is, also where a server says so in JSON-RPC.
        let answer = format!("status {status}, {}", quoted(&error.message));
        return Err(Refused::AsOlder(ClientError::NotMcp { address: link.address(), answer }));
    }
    let result = match result_of(reply, "initialize", link, true) {
        Ok(result) => result,
        Err(error) if older && inner.http.is_some() => return Err(Refused::AsOlder(error)),
        Err(error) => return Err(Refused::For(error)),
    };
    let found: InitializeResult = result.read("initialize")?;
    let spoken = found.protocol_version.parse::<Revision>().ok().filter(|revision| revision.is_legacy());
    let asked = inner.options.mode;
    let fits = |spoken: &Revision| !matches!(asked, Mode::Only(only) if only != *spoken);
    let Some(revision) = spoken.filter(fits) else {
        return Err(Refused::For(no_common(offer, &[found.protocol_version])));
    };
    let info = ServerInfo {
        revision,
        transport: link.kind(),
        server: Some(found.server_info),
        capabilities: found.capabilities,
        instructions: found.instructions,
        raw: result,
    };
    Ok((info, inner.dialect(revision)))
}

/// The session that begins after `initialize`: `notifications/initialized`, and the stream for what the server says unasked.
async fn legacy(link: Link, info: ServerInfo, dialect: Dialect) -> Result<Session, ClientError> {
    let mut listening = None;
    let link = match link {
        Link::Http(session) => Link::Http(Arc::new(session.begun(info.revision))),
        link => link,
    };
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    link.notify(&Outgoing::notification("notifications/initialized", body.into())).await?;
    if let Link::Http(session) = &link
        && session.has_session()
        && session.inbound().callbacks.any()
    {
        listening = Some(session.listen().await);
    }
    Ok(Session::new(link, dialect, info, listening))
}

async fn http_sse(inner: &Inner) -> Result<(Session, Verdict), ClientError> {
    let http: &Arc<Http> = inner.http.as_ref().ok_or(ClientError::Closed)?;
    let link = Link::Sse(LegacySse::open(HttpSession::new(http, &inner.inbound, None)).await?);
    match initialize(inner, &link, Revision::V2024_11_05).await {
        Ok((info, dialect)) => Ok((legacy(link, info, dialect).await?, Verdict::HttpSse)),
        Err(Refused::AsOlder(error) | Refused::For(error)) => Err(error),
    }
}

async fn ask(
    inner: &Inner,
    link: &Link,
    method: &'static str,
    dialect: &Dialect,
    fill: &(dyn Fn(&mut Members<'_>) + Sync),
) -> Result<Reply, ClientError> {
    let id = inner.next_id();
    let body = dialect.request(id, method, fill, None, false);
    link.request(&Outgoing::request(id, method, body, true)).await
}

/// The result of a reply; everything else is an error.
pub(crate) fn result_of(reply: Reply, method: &'static str, link: &Link, connecting: bool) -> Result<Raw, ClientError> {
    match reply {
        Reply::Answer { answer: Answer::Result(result), .. } => Ok(result),
        Reply::Answer { answer: Answer::Error(error), .. } => Err(ClientError::Rpc { method, error }),
        Reply::Other(other) => Err(other.into_error(link.address(), connecting)),
    }
}

/// Whether an error is −32022 and yet names `revision` as supported.
pub(crate) fn names(error: &RpcError, revision: Revision) -> bool {
    error.code == code::UNSUPPORTED_PROTOCOL_VERSION
        && supported(error).iter().any(|version| version == revision.as_str())
}

/// `data.supported` of −32022.
fn supported(error: &RpcError) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Data {
        #[serde(default)]
        supported: Vec<String>,
    }
    error.data.as_ref().and_then(|data| data.parse::<Data>().ok()).unwrap_or_default().supported
}

fn no_common(asked: Revision, offered: &[String]) -> ClientError {
    let offered = if offered.is_empty() { "no version that it names".to_owned() } else { quoted(&offered.join(", ")) };
    ClientError::Revision { asked: asked.to_string(), offered }
}
