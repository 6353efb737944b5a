//! Several processes behind one port, each with its own sessions: a request is forwarded to the process that has its
//! session.
//!
//! Constraints: the session's id names the process that has the session, so processes share no table and need no look-up.
//! The request is forwarded unchanged over a Unix socket in a folder that only this user may enter. The owner makes all its
//! checks as if it had accepted the request itself. Connections between processes are kept and used again.
//!
//! Deliberately absent: sessions that outlive their process. A successor doesn't know its predecessor's sessions and
//! answers 404; the client then begins a new session, as the protocol provides. With a store ([`super::shared_sessions`])
//! the process that accepts the request takes the session up.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mcpace_wire::http::name;
use mcpace_wire::jsonrpc::code;

use super::connection_ends::RequestOrigin;
use super::http_response::HttpResponse;
use super::reply_body::ReplyBody;
use super::session_key::SessionKey;
use super::worker_socket::connect_worker;

const SESSION_ID: HeaderName = HeaderName::from_static(name::SESSION_ID);
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Connections to one other process that are kept while nothing goes over them.
const KEPT: usize = 64;

/// Bytes of a reply that are read ahead of the client, for each reply that is passed on.
const BUFFER: usize = 64 << 10;

/// Which of several processes this is, and where each of them takes what is passed on to it.
#[derive(Clone, Debug)]
pub struct WorkerGroup {
    own: u8,
    sockets: Arc<[PathBuf]>,
}

impl WorkerGroup {
    /// This is the process `own`, counted from 0; `sockets` has one path for each. `None` if there is no such process, or
    /// more than 256.
    #[must_use]
    pub fn new(own: usize, sockets: Vec<PathBuf>) -> Option<Self> {
        let fits = own < sockets.len() && sockets.len() <= 256;
        fits.then(|| Self { own: u8::try_from(own).unwrap_or(u8::MAX), sockets: sockets.into() })
    }

    /// Number of this process, which the ids of its sessions contain.
    pub(super) fn own_number(&self) -> u8 {
        self.own
    }

    /// Where this process takes what is passed on to it.
    pub(super) fn own_socket(&self) -> &PathBuf {
        &self.sockets[usize::from(self.own)]
    }
}

/// The ways to the other processes.
pub(super) struct SessionRouter {
    family: WorkerGroup,
    idle: Box<[Mutex<Vec<SendRequest<Incoming>>>]>,
}

impl SessionRouter {
    pub(super) fn new(family: WorkerGroup) -> Self {
        let idle = family.sockets.iter().map(|_| Mutex::default()).collect();
        Self { family, idle }
    }

    /// The other process that has the session of this id, if one can have it.
    pub(super) fn session_owner(&self, session: Option<&str>) -> Option<usize> {
        let owner = usize::from(SessionKey::parse_id(session?)?.process_number());
        (owner != usize::from(self.family.own) && owner < self.family.sockets.len()).then_some(owner)
    }

    /// The process that has the session of a request, read from the request's head.
    pub(super) fn owner_of(&self, head: &Parts) -> Option<usize> {
        self.session_owner(head.headers.get(SESSION_ID)?.to_str().ok())
    }

    /// Has the owner answer. The request comes back where there is no owner any more.
    pub(super) async fn pass_on(
        &self,
        owner: usize,
        mut head: Parts,
        body: Incoming,
        origin: RequestOrigin,
    ) -> Result<Response<ReplyBody>, Request<Incoming>> {
        make_http1(&mut head);
        origin.write_headers(&mut head.headers);
        let mut request = Request::from_parts(head, body);
        while let Some(mut kept) = self.take_idle(owner) {
            match kept.try_send_request(request).await {
                Ok(response) => return Ok(self.keep_connection(owner, kept, response)),
                // It was closed meanwhile, and nothing went over it: the next will do.
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Ok(lost_worker()),
                },
            }
        }
        let Ok(mut fresh) = self.connect_owner(owner).await else {
            return Err(request);
        };
        match fresh.send_request(request).await {
            Ok(response) => Ok(self.keep_connection(owner, fresh, response)),
            Err(_) => Ok(lost_worker()),
        }
    }

    fn keep_connection(
        &self,
        owner: usize,
        way: SendRequest<Incoming>,
        response: Response<Incoming>,
    ) -> Response<ReplyBody> {
        let mut kept = self.idle[owner].lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(way);
        }
        drop(kept);
        let (mut head, body) = response.into_parts();
        for hop in [CONNECTION, KEEP_ALIVE, TRANSFER_ENCODING] {
            head.headers.remove(hop);
        }
        Response::from_parts(head, ReplyBody::Passed(Box::new(body)))
    }

    /// A connection whose last reply has been read to its end.
    fn take_idle(&self, owner: usize) -> Option<SendRequest<Incoming>> {
        let mut kept = self.idle[owner].lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|way| !way.is_closed());
        let ready = kept.iter().position(SendRequest::is_ready)?;
        Some(kept.swap_remove(ready))
    }

    async fn connect_owner(
        &self,
        owner: usize,
    ) -> Result<SendRequest<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = connect_worker(&self.family.sockets[owner]).await?;
        let (way, connection) = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another process failed");
            }
        });
        Ok(way)
    }
}

/// Turns an HTTP/2 head into one of HTTP/1.1, without the headers that concern only its own connection.
fn make_http1(head: &mut Parts) {
    if let Some(host) = head.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok()) {
        head.headers.insert(HOST, host);
    }
    if let Some(target) = head.uri.path_and_query().cloned() {
        head.uri = target.into();
    }
    head.version = http::Version::HTTP_11;
    for hop in [CONNECTION, KEEP_ALIVE, TRANSFER_ENCODING] {
        head.headers.remove(hop);
    }
}

/// Whether it was carried out nobody knows any more.
fn lost_worker() -> Response<ReplyBody> {
    let reason = "the process that has the session ended while it answered";
    HttpResponse::refused(StatusCode::BAD_GATEWAY, code::INTERNAL_ERROR, reason).into_response(http::HeaderMap::new())
}
