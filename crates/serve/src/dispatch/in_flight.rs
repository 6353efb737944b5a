//! A handler's future under way: registered, cancellable, and always ending in a reply.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use mcpace_wire::jsonrpc::{Id, code};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::tasks::Nowhere;
use super::{Call, Refusal};
use crate::outlet::Outlet;
use crate::server_state::ServerState;
use crate::service::{Context, Detach, Inputs, OwnedRequest};
use crate::session::{Busy, Session};
use crate::tasks::Running;

/// Keeps a request cancellable for as long as it lives; when dropped, whatever holds its token learns of the end.
pub(super) struct InFlight {
    registered: Option<(Arc<Session>, Id<'static>)>,
    token: CancellationToken,
    _guard: DropGuard,
}

impl InFlight {
    pub(super) fn begin_request(call: &Call<'_>) -> Result<Self, Refusal> {
        let token = CancellationToken::new();
        let registered = match &call.incoming.peer.session {
            Some(session) => {
                let id = call.id().clone().into_owned();
                session.begin_request(&id, &token, call.server.limits.in_flight).map_err(|busy| match busy {
                    Busy::SameId => Refusal::error(code::INVALID_REQUEST, "a request with this id is under way"),
                    Busy::TooMany => Refusal::error(code::INTERNAL_ERROR, "too many requests are under way"),
                })?;
                Some((Arc::clone(session), id))
            }
            None => None,
        };
        Ok(Self { registered, _guard: token.clone().drop_guard(), token })
    }

    pub(super) fn cancellation_token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `work` to its end, or to the client's change of mind: then `None`. The work is polled once more before it is
    /// dropped, so that it can end in an orderly way.
    pub(super) async fn run_cancellable<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut cancelled = pin!(self.token.cancelled());
        poll_fn(|context| {
            // Asked first: a token that fires while the work is polled wakes us for another round.
            let cancelled = cancelled.as_mut().poll(context).is_ready();
            match work.as_mut().poll(context) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending if cancelled => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some((session, id)) = &self.registered {
            session.end_request(id);
        }
    }
}

impl Call<'_> {
    /// A context for this request's handler, which may become a task where it `is_detachable`.
    pub(super) fn make_context(&self, in_flight: &InFlight, inputs: Inputs, is_detachable: bool) -> Context {
        let (outlet, session) = (self.incoming.channel.open_outlet(), self.incoming.peer.session.clone());
        let detach = is_detachable.then(Detach::default);
        self.context_with(session, outlet, in_flight.cancellation_token().clone(), inputs, None, detach)
    }

    /// A context in a session that may be only just beginning.
    pub(super) fn context_in(&self, session: Option<Arc<Session>>, in_flight: &InFlight, inputs: Inputs) -> Context {
        self.context_with(
            session,
            self.incoming.channel.open_outlet(),
            in_flight.cancellation_token().clone(),
            inputs,
            None,
            None,
        )
    }

    /// A context for a handler that runs as a task.
    pub(super) fn task_context(&self, task: &Arc<Running>, inputs: Inputs) -> Context {
        let session = self.incoming.peer.session.clone();
        self.context_with(session, Arc::new(Nowhere), task.cancellation.clone(), inputs, Some(task), None)
    }

    fn context_with(
        &self,
        session: Option<Arc<Session>>,
        outlet: Arc<dyn Outlet>,
        cancellation: CancellationToken,
        inputs: Inputs,
        task: Option<&Arc<Running>>,
        detach: Option<Detach>,
    ) -> Context {
        let (peer, channel) = (self.incoming.peer, self.incoming.channel);
        let keeps = self.server.keep_headers;
        Context::new(OwnedRequest {
            server: Arc::<ServerState>::clone(self.server),
            session,
            revision: self.revision,
            principal: peer.principal.clone(),
            id: self.id().clone().into_owned(),
            method: self.method,
            params: self.request.params.map(|params| self.keep_part(params.get())),
            headers: if keeps { channel.headers() } else { None },
            session_id: if keeps { channel.session_id().map(Box::from) } else { None },
            transport: channel.transport(),
            closed: channel.connection_closed(),
            client_key: self.incoming.client_key(),
            outlet,
            cancellation,
            progress_token: self.meta().and_then(|meta| meta.progress_token.clone()),
            progress: std::sync::Mutex::new(f64::NEG_INFINITY),
            log_level: self.meta().and_then(|meta| meta.log_level),
            timed: self.clocks.is_some(),
            capabilities: self
                .meta()
                .and_then(|meta| meta.client_capabilities)
                .map(|capabilities| self.keep_part(capabilities.get())),
            inputs,
            asked: AtomicU32::new(0),
            task: task.map(|task| OnceLock::from(Arc::clone(task))).unwrap_or_default(),
            detach,
        })
    }

    /// Keeps a part of the message, without copying where it is part of the body.
    pub(super) fn keep_part(&self, part: &str) -> bytes::Bytes {
        let body = self.incoming.body;
        let within = body.as_ptr_range().contains(&part.as_ptr());
        if within && part.as_bytes().as_ptr_range().end <= body.as_ptr_range().end {
            return body.slice_ref(part.as_bytes());
        }
        bytes::Bytes::copy_from_slice(part.as_bytes())
    }
}
