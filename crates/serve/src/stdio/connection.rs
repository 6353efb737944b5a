//! One client's messages, and what each of them starts.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::http::{Era, Rejection, RequestHeaders, check_meta};
use mcpace_wire::jsonrpc::{Id, Message, Payload, code, is_deeper_than, write_error};
use mcpace_wire::lines::LineError;
use mcpace_wire::mcp::{CancelledParams, Method, ParamsOutline};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Options;
use super::answer::{BatchReply, CallOutlet, Destination, InFlightCall, ReplySlot};
use super::client::StdioClient;
use super::outbox::Outbox;
use super::waiting::{WaitingLine, WaitingLines};
use crate::session::Session;
use crate::{Channel, Handled, Incoming, Outlet, Peer, Principal, Reply, Server, TransportKind};

/// One client.
pub(super) struct StdioConnection {
    client: Arc<StdioClient>,
    tasks: JoinSet<()>,
    waiting: WaitingLines,
    call_limit: usize,
    nesting_limit: usize,
    timed: bool,
    principal: Option<Principal>,
    transport: TransportKind,
    /// Fires when the connection ends, however it does: the tasks that it began end with it.
    closed: CancellationToken,
    _closes: DropGuard,
}

impl StdioConnection {
    pub(super) fn new(server: Server, options: &Options, outbox: Outbox) -> Self {
        let closed = CancellationToken::new();
        Self {
            _closes: closed.clone().drop_guard(),
            closed,
            client: Arc::new(StdioClient::new(server, outbox)),
            tasks: JoinSet::new(),
            waiting: WaitingLines::new(options.waiting_limit),
            call_limit: options.call_limit.max(1),
            nesting_limit: options.nesting_limit,
            timed: options.timed,
            principal: options.principal.clone(),
            transport: options.transport,
        }
    }

    /// Waits until another line may be taken; lets those that wait have their turn.
    pub(super) async fn wait_for_room(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.start_waiting();
        self.client.outbox.wait_for_room().await;
    }

    /// Waits until one that waits may have its turn; for ever, while none waits.
    pub(super) async fn wait_for_slot(&self) {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        self.client.calls.wait_for_slot(self.call_limit).await;
    }

    /// Waits until no request is in flight or waits.
    pub(super) async fn join_finished(&mut self) {
        loop {
            self.start_waiting();
            if self.tasks.join_next().await.is_none() && self.waiting.is_empty() {
                return;
            }
        }
    }

    fn start_waiting(&mut self) {
        while self.has_turn() {
            let Some(WaitingLine { body, received, .. }) = self.waiting.next() else { return };
            // It was parsed before it had to wait.
            if let Ok(payload) = Payload::parse(&body) {
                self.take_payload(&payload, &body, received);
            }
        }
    }

    fn has_turn(&self) -> bool {
        self.client.calls.has_turn(self.call_limit)
    }

    /// The input is over: ends what would otherwise last as long as the client.
    pub(super) fn hear_no_more(&self) {
        self.client.hear_no_more();
    }

    /// The client is gone: nothing is done for it any more.
    pub(super) fn end_connection(&mut self) {
        self.client.end_client();
        self.tasks.abort_all();
        self.closed.cancel();
    }

    /// Takes one line.
    pub(super) fn take_body(&mut self, body: Bytes) {
        let received = Instant::now();
        if is_deeper_than(&body, self.nesting_limit) {
            return self.refuse_message(
                None,
                &Rejection::NotAllowed("the message nests too deep"),
                &self.line_destination(),
            );
        }
        let payload = match Payload::parse(&body) {
            Ok(payload) => payload,
            Err(error) => return self.refuse_message(None, &Rejection::from(error), &self.line_destination()),
        };
        let ids: Vec<_> = payload.messages().iter().filter_map(request_id).collect();
        let has_turn = if ids.is_empty() {
            // Messages that end requests never wait. All others belong to the session that an `initialize` in flight begins.
            !self.client.calls.begins_session() || !payload.messages().iter().any(belongs_to_session)
        } else {
            self.has_turn() && self.waiting.is_empty()
        };
        if has_turn {
            return self.take_payload(&payload, &body, received);
        }
        let ids = ids.into_iter().map(|id| id.clone().into_owned()).collect();
        if let Err(WaitingLine { ids, .. }) = self.waiting.add(WaitingLine { body: body.clone(), received, ids }) {
            ids.iter().for_each(|id| self.refuse_for_now(id));
        }
    }

    fn take_payload(&mut self, payload: &Payload<'_>, body: &Bytes, received: Instant) {
        match payload {
            Payload::Single(message) => self.take_message(message, body, received, &self.line_destination()),
            Payload::Batch(messages) => self.take_batch(messages, body, received),
        }
    }

    /// Answers a line that was not taken.
    pub(super) fn refuse_line(&self, error: &LineError) {
        let LineError::TooLong { limit } = error;
        self.refuse_message(None, &Rejection::BodyTooLarge { limit: *limit }, &self.line_destination());
    }

    fn take_batch(&mut self, messages: &[Message<'_>], body: &Bytes, received: Instant) {
        let refusal = match self.client.session() {
            Some(session) if session.revision().has_batches() => None,
            Some(_) => Some("this revision has no batches"),
            None => Some("a batch is no beginning of a session"),
        };
        if let Some(reason) = refusal {
            return self.refuse_message(None, &Rejection::NotAllowed(reason), &self.line_destination());
        }
        let batch = Destination::Batch(Arc::new(BatchReply::new(self.client.outbox.clone())));
        for message in messages {
            match message.method().and_then(Method::parse) {
                // 2025-03-26, basic/lifecycle: initialize is never part of a batch.
                Some(Method::Initialize) => {
                    self.refuse_message(message.id(), &Rejection::NotAllowed("initialize stands alone"), &batch);
                }
                _ => self.take_message(message, body, received, &batch),
            }
        }
    }

    fn take_message(&mut self, message: &Message<'_>, body: &Bytes, received: Instant, to: &Destination) {
        let peer = match self.message_peer(message) {
            Ok(Some(peer)) => peer,
            Ok(None) => return,
            Err(rejection) => {
                if let Message::Request(request) = message {
                    self.refuse_message(Some(&request.id), &rejection, to);
                }
                return;
            }
        };
        if let Message::Notification(notification) = message
            && Method::parse(&notification.method) == Some(Method::Cancelled)
        {
            self.cancel_request(message, &peer);
        }
        if let Message::Request(request) = message
            && self.client.calls.lock_calls().contains_key(&request.id)
        {
            let rejection = Rejection::NotAllowed("a request with this id is still being answered");
            return self.refuse_message(Some(&request.id), &rejection, to);
        }
        self.dispatch_message(message, body, &peer, received, to);
    }

    /// By which rules a message is read; `None` where it can only be passed over.
    fn message_peer(&self, message: &Message<'_>) -> Result<Option<Peer>, Rejection> {
        let method = message.method().and_then(Method::parse);
        let (session, server) = (self.client.session(), &self.client.server);
        if server.revisions().iter().any(|revision| revision.is_modern()) {
            let outline = ParamsOutline::parse(message.params());
            // Where the parameters can't be read, dispatch says so, by the method's own rules.
            let era = outline.as_ref().map_or(Era::Legacy, |outline| Era::of(&RequestHeaders::default(), outline));
            if era == Era::Modern || session.is_none() && method == Some(Method::Discover) {
                let outline = outline.map_err(|error| Rejection::InvalidParams(error.to_string().into()))?;
                let revision = check_meta(&outline, server.discovered_revisions())?;
                return Ok(Some(self.peer_of(revision, None)));
            }
        }
        match (session, method) {
            (Some(session), _) => Ok(Some(self.peer_of(session.revision(), Some(session)))),
            // A ping may come before the session (2025-11-25, basic/lifecycle).
            (None, Some(Method::Initialize | Method::Ping | Method::Cancelled)) => {
                Ok(Some(self.peer_of(Revision::LATEST_LEGACY, None)))
            }
            (None, _) if message.id().is_none() => Ok(None),
            (None, _) => Err(Rejection::InvalidParams(
                "without a session that initialize began, a request tells its version in _meta".into(),
            )),
        }
    }

    /// The client, by the rules of a revision.
    fn peer_of(&self, revision: Revision, session: Option<Arc<Session>>) -> Peer {
        Peer { revision, session, principal: self.principal.clone() }
    }

    fn dispatch_message(
        &mut self,
        message: &Message<'_>,
        body: &Bytes,
        peer: &Peer,
        received: Instant,
        to: &Destination,
    ) {
        let channel = CallChannel {
            outbox: &self.client.outbox,
            outlet: OnceCell::new(),
            transport: self.transport,
            closed: &self.closed,
        };
        let incoming = Incoming { message, outline: None, body, peer, channel: &channel, received, timed: self.timed };
        let handled = self.client.server.handle(incoming);
        let outlet = channel.outlet.into_inner();
        match handled {
            Handled::Nothing => {}
            Handled::Now(reply) => self.client.deliver_reply(reply, outlet.as_deref(), to),
            Handled::Later(future) => {
                // Only requests are answered later.
                let Some(id) = message.id() else { return };
                self.start_request(id.clone().into_owned(), message, future, outlet, to);
            }
        }
    }

    fn start_request(
        &mut self,
        id: Id<'static>,
        message: &Message<'_>,
        future: std::pin::Pin<Box<dyn Future<Output = Reply> + Send>>,
        outlet: Option<Arc<CallOutlet>>,
        to: &Destination,
    ) {
        let method = message.method().and_then(Method::parse);
        let (is_subscription, begins_session) =
            (method == Some(Method::SubscriptionsListen), method == Some(Method::Initialize));
        let answer = ReplySlot {
            id: id.clone(),
            destination: to.clone(),
            client: Arc::clone(&self.client),
            outlet: outlet.clone(),
            given: false,
        };
        let calls = &self.client.calls;
        // In the table before it runs, since its end takes it out again. Not locked over the spawn, for the same reason.
        calls.insert(id.clone(), InFlightCall { task: None, outlet, is_subscription, begins_session });
        let task = self.tasks.spawn(async move {
            // A local variable is dropped while a panic unwinds, which is how the answer knows of one.
            let answer = answer;
            answer.deliver_reply(future.await);
        });
        if let Some(call) = calls.lock_calls().get_mut(&id) {
            call.task = Some(task);
        }
        // One that had to wait for its turn may begin after the input's end.
        if is_subscription && self.client.hears_nothing() {
            calls.cancel_request(&id);
        }
    }

    /// The requests of a session that are under way are cancelled by dispatch, which lets their handlers clean up.
    fn cancel_request(&mut self, message: &Message<'_>, peer: &Peer) {
        let Some(params) = message.params() else { return };
        if let Ok(CancelledParams { request_id: Some(id), .. }) = serde_json::from_str(params.get()) {
            if peer.session.is_none() {
                self.client.calls.cancel_request(&id);
            }
            self.waiting.cancel_line(&id);
        }
    }

    fn refuse_message(&self, id: Option<&Id<'_>>, rejection: &Rejection, to: &Destination) {
        let mut message = Vec::new();
        rejection.write_body(id, &mut message);
        to.send_message(Bytes::from(message));
    }

    fn refuse_for_now(&self, id: &Id<'_>) {
        let mut message = Vec::new();
        let reason = "too many requests wait for their turn";
        // Nothing in it can fail to be written: it has no data.
        let _ = write_error(&mut message, Some(id), code::INTERNAL_ERROR, reason, None::<&()>);
        self.client.outbox.add_reply(Bytes::from(message));
    }

    fn line_destination(&self) -> Destination {
        Destination::Line(self.client.outbox.clone())
    }
}

fn request_id<'m, 'a>(message: &'m Message<'a>) -> Option<&'m Id<'a>> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

/// Whether a message without an id is read by its session's rules: neither an answer nor a cancellation.
fn belongs_to_session(message: &Message<'_>) -> bool {
    matches!(message, Message::Notification(notification) if Method::parse(&notification.method) != Some(Method::Cancelled))
}

/// Makes the outlet when the handler asks for it.
struct CallChannel<'a> {
    outbox: &'a Outbox,
    outlet: OnceCell<Arc<CallOutlet>>,
    transport: TransportKind,
    closed: &'a CancellationToken,
}

impl Channel for CallChannel<'_> {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::clone(self.outlet.get_or_init(|| Arc::new(CallOutlet::new(self.outbox.clone())))) as Arc<dyn Outlet>
    }

    fn transport(&self) -> TransportKind {
        self.transport
    }

    fn connection_closed(&self) -> Option<CancellationToken> {
        Some(self.closed.clone())
    }
}
