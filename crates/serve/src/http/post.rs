//! POST: one message, or in the revisions that have them a batch, from bytes to dispatch.

use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use mcpace_wire::Revision;
use mcpace_wire::http::{Era, Rejection, check_legacy, check_modern, check_params};
use mcpace_wire::jsonrpc::{Id, Message, Payload, is_deeper_than};
use mcpace_wire::mcp::{Method, ParamsOutline, key};
use memchr::memmem::Finder;

use super::event_log::Log;
use super::fields::Fields;
use super::held_results::{self, Accounts, Finished, ReplyAccount, SessionAccount};
use super::http_response::HttpResponse;
use super::http_server::{HttpRequest, HttpServer};
use super::http_session::HttpSession;
use super::in_flight::Calls;
use super::options::ResponseMode;
use super::reply::PostExchange;
use super::request_body;
use super::sessions::SessionPlace;
use super::shared_sessions::Elsewhere;
use crate::exchange::{Channel, Handled, Incoming, Peer};
use crate::headers::Headers;
use crate::outlet::{Gone, Outlet};
use crate::principal::Principal;

impl HttpServer {
    /// Messages from the client.
    pub(super) async fn handle_post(&self, asked: HttpRequest<'_>) -> Result<HttpResponse, HttpResponse> {
        let HttpRequest { fields, body, connection_state, protocol, .. } = asked;
        let (principal, mode) = self.check_head(fields).await?;
        let body =
            request_body::read_body(body, fields.content_length(), self.body_bounds(), connection_state, protocol)
                .await?;
        self.take_body(fields, mode, principal, &body, connection_state.account()).await
    }

    /// Messages from the client, in a body that is there already. `unsent` counts the replies of its connection.
    pub(super) async fn post_whole(
        &self,
        fields: &Fields<'_>,
        body: &Bytes,
        unsent: &Arc<ReplyAccount>,
    ) -> Result<HttpResponse, HttpResponse> {
        let (principal, mode) = self.check_head(fields).await?;
        self.take_body(fields, mode, principal, body, unsent).await
    }

    /// Makes the checks that need no body: token, media types, response mode.
    async fn check_head(&self, fields: &Fields<'_>) -> Result<(Option<Principal>, ResponseMode), HttpResponse> {
        let principal = self.authenticate_request(fields).await?;
        if !fields.is_json() {
            return Err(Rejection::UnsupportedMediaType.into());
        }
        Ok((principal, self.response_mode(fields)?))
    }

    async fn take_body(
        &self,
        fields: &Fields<'_>,
        mode: ResponseMode,
        principal: Option<Principal>,
        body: &Bytes,
        unsent: &Arc<ReplyAccount>,
    ) -> Result<HttpResponse, HttpResponse> {
        let mut elsewhere = Elsewhere::default();
        let Some(sharing) = &self.sharing else {
            return Ok(self
                .await_reply(self.begin_calls(fields, mode, principal, body, unsent, &mut elsewhere)?)
                .await);
        };
        let is_modern = Era::of(&fields.mcp, &ParamsOutline::default()) == Era::Modern;
        let http_session = match fields.mcp.session_id.ascii().filter(|_| !is_modern) {
            Some(id) => sharing.find_session(Some(id), principal.as_ref(), Instant::now()).await?,
            None => None,
        };
        let step = self.begin_calls(fields, mode, principal, body, unsent, &mut elsewhere)?;
        // Before anybody waits for the answer: it may be the answer to what a call elsewhere asks.
        sharing.forward_messages(http_session.as_ref(), elsewhere).await?;
        Ok(sharing.persist_session(self.await_reply(step).await).await)
    }

    async fn await_reply(&self, step: PostStep) -> HttpResponse {
        match step {
            PostStep::Done(answer) => answer,
            PostStep::Wait(exchange, calls) => self.settle_calls(*exchange, calls).await,
        }
    }

    /// How to answer: as the server is set, or the other way where the client takes only that.
    fn response_mode(&self, fields: &Fields<'_>) -> Result<ResponseMode, Rejection> {
        let accept = fields.accepted_types();
        match (accept.json(), accept.event_stream()) {
            (true, true) => Ok(self.response),
            (true, false) => Ok(ResponseMode::Json),
            (false, true) => Ok(ResponseMode::Sse),
            (false, false) => Err(Rejection::NotAcceptable),
        }
    }

    /// Reads the body and hands its messages to dispatch. Plain handlers have run when this returns.
    fn begin_calls(
        &self,
        fields: &Fields<'_>,
        mode: ResponseMode,
        principal: Option<Principal>,
        body: &Bytes,
        unsent: &Arc<ReplyAccount>,
        elsewhere: &mut Elsewhere,
    ) -> Result<PostStep, HttpResponse> {
        let received = Instant::now();
        let payload = self.parse_body(body)?;
        let admitted = match &payload {
            Payload::Single(message) => self.admit_message(fields, message, body, principal.as_ref(), received),
            Payload::Batch(messages) => {
                self.admit_batch(fields, messages, principal.as_ref(), received).map(|admitted| (admitted, None))
            }
        };
        let (mut admitted, outline) = admitted.map_err(|refusal| refusal.error_response(&payload))?;
        let is_full = unsent.is_closed()
            || admitted.http_session.as_ref().is_some_and(|http_session| http_session.is_unsent_full());
        if is_full && payload.messages().iter().any(|message| matches!(message, Message::Request(_))) {
            return Err(HttpResponse::overloaded(StatusCode::TOO_MANY_REQUESTS, UNREAD));
        }
        let shared = self.sharing.as_ref().and_then(|sharing| Some((sharing, admitted.http_session.clone()?)));
        if let Some((sharing, http_session)) = &shared {
            for message in payload.messages() {
                elsewhere.posts.extend(sharing.posts_elsewhere(http_session, message)?);
            }
            elsewhere.changes = payload.messages().iter().any(|message| changes_session(message).is_some());
            admitted.asked = request_ids(&payload);
        }
        let mode = if opens_stream(&payload, admitted.revision) {
            fields.accepted_types().event_stream().then_some(ResponseMode::Sse).ok_or(Rejection::NotAcceptable)?
        } else {
            mode
        };
        let peer = Peer {
            revision: admitted.revision,
            session: admitted.http_session.as_ref().map(|http_session| Arc::clone(&http_session.session)),
            principal,
        };
        let way = Way { http_server: self, mode, admitted: &admitted, fields, unsent, log: OnceCell::new() };
        let handle = |message| {
            let channel: &dyn Channel = &way;
            let timed = self.server_timing;
            let outline = outline.as_ref();
            let handled =
                self.server.handle(Incoming { message, outline, body, peer: &peer, channel, received, timed });
            match (handled, &shared) {
                (Handled::Later(call), Some((sharing, http_session))) => {
                    Handled::Later(match changes_session(message) {
                        Some(id) => sharing.answered_once_told(http_session, id.clone().into_owned(), call),
                        None => call,
                    })
                }
                (handled, _) => handled,
            }
        };
        let accounts = || Accounts { connection: Arc::clone(unsent), session: admitted.session_account() };
        let work = match &payload {
            Payload::Single(message) => match handle(message) {
                Handled::Nothing => PostWork::Nothing,
                Handled::Now(reply) => PostWork::Done(held_results::finish_reply(
                    unsent,
                    admitted.http_session.as_deref().map(|session| session as &dyn SessionAccount),
                    reply,
                )),
                Handled::Later(call) => {
                    let mut calls = Calls::new(accounts());
                    calls.push_call(call);
                    PostWork::Open(calls)
                }
            },
            Payload::Batch(messages) => PostWork::of_batch(messages.iter().map(handle), accounts()),
        };
        let log = way.log.into_inner();
        let is_batch = payload.is_batch();
        let exchange = |admitted: Admitted| PostExchange { mode, admitted, log, received, is_batch };
        match work {
            PostWork::Nothing => Ok(PostStep::Done(HttpResponse::empty_response(StatusCode::ACCEPTED))),
            PostWork::Done(finished) => Ok(PostStep::Done(self.whole_reply(exchange(admitted), finished))),
            PostWork::Open(calls) => Ok(PostStep::Wait(Box::new(exchange(admitted)), calls)),
        }
    }

    pub(super) fn parse_body<'b>(&self, body: &'b Bytes) -> Result<Payload<'b>, Rejection> {
        if is_deeper_than(body, self.limits.nesting) {
            return Err(Rejection::NotAllowed("the message nests too deep"));
        }
        Ok(Payload::parse_with_limit(body, self.limits.batch)?)
    }

    /// Whether a message may go to dispatch, with its parameters' outline where that took reading them.
    fn admit_message<'m>(
        &self,
        fields: &Fields<'_>,
        message: &'m Message<'_>,
        body: &Bytes,
        principal: Option<&Principal>,
        received: Instant,
    ) -> Result<(Admitted, Option<ParamsOutline<'m>>), PostRefusal> {
        let may_be_modern = self.server.revisions().iter().any(|revision| revision.is_modern());
        let names_version =
            || may_name_version(body) || fields.mcp.protocol_version.ascii() == Some(Revision::LATEST.as_str());
        // A server of the old revisions only must not answer as one of the new: the client would never initialize.
        if may_be_modern && names_version() {
            let (outline, is_whole) = match ParamsOutline::parse(message.params()) {
                Ok(outline) => (outline, true),
                Err(_) => (ParamsOutline::parse_routing(message.params()).map_err(parse_rejection)?, false),
            };
            if Era::of(&fields.mcp, &outline) == Era::Modern {
                let admitted = self.admit_modern(fields, message, &outline)?;
                return Ok((admitted, is_whole.then_some(outline)));
            }
        }
        let admitted = match is_initialize(message) {
            true => self.admit_initialize(principal),
            false => self.admit_legacy(fields, principal, received),
        };
        admitted.map(|admitted| (admitted, None))
    }

    fn admit_modern(
        &self,
        fields: &Fields<'_>,
        message: &Message<'_>,
        outline: &ParamsOutline<'_>,
    ) -> Result<Admitted, Rejection> {
        let revision = check_modern(&fields.mcp, message, outline, self.server.discovered_revisions())?;
        if message.method() == Some("tools/call") {
            let annotations = outline.name.as_deref().and_then(|tool| self.server.param_headers(tool));
            if let Some(annotations) = annotations {
                check_params(&fields.mcp, &annotations, outline.arguments)?;
            }
        }
        Ok(Admitted { revision, ..Admitted::default() })
    }

    fn admit_initialize(&self, principal: Option<&Principal>) -> Result<Admitted, PostRefusal> {
        let place =
            if self.stateless { None } else { Some(self.sessions.reserve_place(principal).ok_or(PostRefusal::Full)?) };
        // The revision is what the request asks for; dispatch reads it there.
        Ok(Admitted { place, ..Admitted::default() })
    }

    fn admit_legacy(
        &self,
        fields: &Fields<'_>,
        principal: Option<&Principal>,
        received: Instant,
    ) -> Result<Admitted, PostRefusal> {
        let http_session = self.request_session(fields, principal, received)?;
        let negotiated = http_session.as_ref().map(|http_session| http_session.session.revision());
        let (revision, _) = check_legacy(&fields.mcp, negotiated, self.server.revisions())?;
        Ok(Admitted { revision, http_session, ..Admitted::default() })
    }

    fn admit_batch(
        &self,
        fields: &Fields<'_>,
        messages: &[Message<'_>],
        principal: Option<&Principal>,
        received: Instant,
    ) -> Result<Admitted, PostRefusal> {
        if Era::of(&fields.mcp, &ParamsOutline::default()) == Era::Modern {
            return Err(Rejection::NotAllowed("a batch is no message of this revision").into());
        }
        if messages.iter().any(is_initialize) {
            return Err(Rejection::NotAllowed("initialize can't be part of a batch").into());
        }
        let admitted = self.admit_legacy(fields, principal, received)?;
        if admitted.revision.has_batches() {
            Ok(admitted)
        } else {
            Err(Rejection::NotAllowed("a batch is no message of this revision").into())
        }
    }
}

/// How far a POST came without waiting.
enum PostStep {
    Done(HttpResponse),
    Wait(Box<PostExchange>, Calls),
}

/// The protocol revision and session of a message that may go to dispatch.
pub(super) struct Admitted {
    pub(super) revision: Revision,
    pub(super) http_session: Option<Arc<HttpSession>>,
    /// For the session that an `initialize` may begin.
    pub(super) place: Option<SessionPlace>,
    /// The ids of the requests, a JSON array; only where other processes are to know.
    pub(super) asked: Option<Box<str>>,
}

impl Admitted {
    /// The session that counts the replies.
    pub(super) fn session_account(&self) -> Option<Arc<dyn SessionAccount>> {
        self.http_session.clone().map(|session| session as Arc<dyn SessionAccount>)
    }
}

impl Default for Admitted {
    fn default() -> Self {
        Self { revision: Revision::ASSUMED, http_session: None, place: None, asked: None }
    }
}

enum PostRefusal {
    Protocol(Rejection),
    /// No room for another session.
    Full,
}

impl From<Rejection> for PostRefusal {
    fn from(rejection: Rejection) -> Self {
        PostRefusal::Protocol(rejection)
    }
}

impl PostRefusal {
    fn error_response(&self, payload: &Payload<'_>) -> HttpResponse {
        let id = match payload {
            Payload::Single(Message::Request(request)) => Some(&request.id),
            _ => None,
        };
        match self {
            PostRefusal::Protocol(rejection) => HttpResponse::rejected(rejection, id),
            PostRefusal::Full => {
                HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, "as many sessions as may be are open")
            }
        }
    }
}

/// Result of dispatching a whole POST.
enum PostWork {
    Nothing,
    Done(Finished),
    Open(Calls),
}

/// Why a request is refused while results of earlier ones wait for the client.
pub(super) const UNREAD: &str = "too many bytes of earlier results wait for this client: read them first";

impl PostWork {
    fn of_batch(all: impl Iterator<Item = Handled>, accounts: Accounts) -> Self {
        let mut calls = Calls::new(accounts);
        for handled in all {
            match handled {
                Handled::Nothing => {}
                Handled::Now(reply) => calls.push_done(reply),
                Handled::Later(call) => calls.push_call(call),
            }
        }
        if calls.is_empty() { PostWork::Nothing } else { PostWork::Open(calls) }
    }
}

fn parse_rejection(error: serde_json::Error) -> Rejection {
    Rejection::InvalidParams(error.to_string().into())
}

fn request_ids(payload: &Payload<'_>) -> Option<Box<str>> {
    let ids: Vec<&Id<'_>> = payload
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Request(request) => Some(&request.id),
            _ => None,
        })
        .collect();
    serde_json::to_string(&ids).ok().filter(|_| !ids.is_empty()).map(Into::into)
}

/// The id of a request that changes what other processes are to know of its session.
fn changes_session<'m>(message: &'m Message<'_>) -> Option<&'m Id<'m>> {
    const CHANGES: [Method; 3] = [Method::ResourcesSubscribe, Method::ResourcesUnsubscribe, Method::SetLevel];
    match message {
        Message::Request(request) if Method::parse(&request.method).is_some_and(|it| CHANGES.contains(&it)) => {
            Some(&request.id)
        }
        _ => None,
    }
}

fn is_initialize(message: &Message<'_>) -> bool {
    matches!(message, Message::Request(request) if request.method == "initialize")
}

/// Whether `_meta` could name a revision. Looking for the name is much quicker than reading the parameters, which most
/// legacy requests are spared. An escaped spelling of it has `\u` or `\/`.
fn may_name_version(body: &[u8]) -> bool {
    // Made once: making it costs more than the search in a small body.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(key::PROTOCOL_VERSION));
    NAME.find(body).is_some()
        || memchr::memchr_iter(b'\\', body).any(|at| matches!(body.get(at + 1), Some(b'u' | b'/')))
}

/// Whether a stream of events is the only reply there can be (2026-07-28, basic/transports/streamable-http, "Receiving
/// Messages").
fn opens_stream(payload: &Payload<'_>, revision: Revision) -> bool {
    matches!(payload, Payload::Single(Message::Request(request))
        if revision.is_modern() && request.method == Method::SubscriptionsListen.as_str())
}

/// The way back for one POST's handlers.
struct Way<'s> {
    http_server: &'s HttpServer,
    mode: ResponseMode,
    admitted: &'s Admitted,
    fields: &'s Fields<'s>,
    unsent: &'s Arc<ReplyAccount>,
    log: OnceCell<Arc<Log>>,
}

impl Channel for Way<'_> {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        if self.mode == ResponseMode::Json {
            return match &self.admitted.http_session {
                Some(http_session) => self.http_server.standalone_outlet(http_session),
                None => Arc::new(Nowhere),
            };
        }
        let log = self.log.get_or_init(|| self.http_server.new_log(self.admitted));
        Arc::<Log>::clone(log)
    }

    fn session_id(&self) -> Option<&str> {
        self.admitted.http_session.as_ref().and_then(|_| self.fields.mcp.session_id.ascii())
    }

    fn headers(&self) -> Option<Headers> {
        Some(self.fields.copy_headers())
    }

    fn connection_number(&self) -> u64 {
        // Each connection has an account of its own.
        Arc::as_ptr(self.unsent).addr() as u64
    }
}

/// A JSON reply without a session: there is no room for anything but the result.
struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _message: Bytes) -> Result<(), Gone> {
        Err(Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::may_name_version;

    #[test]
    fn no_spelling_of_the_version_is_overlooked() {
        for body in [
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
            r#"{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}"#,
            r#"{"\u0069o.modelcontextprotocol/protocolVersion":"2026-07-28"}"#,
        ] {
            assert!(may_name_version(body.as_bytes()), "{body}");
        }
        for body in [r#"{"text":"two\nlines \\ "}"#, r"\", ""] {
            assert!(!may_name_version(body.as_bytes()), "{body}");
        }
    }
}
