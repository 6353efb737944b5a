//! Guards asked before a handler runs. Where asking takes time, the request is kept and goes on by itself.
//!
//! Constraint: a request that may borrows from its message all the way; one that has to wait is copied then, and read again
//! when it goes on. It goes on with the catalogue that it began with: what was asked about is what runs.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, Message, Request};
use mcpace_wire::mcp::{Method, ParamsOutline};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::clocks::Clocks;
use super::in_flight::InFlight;
use super::{Call, Refusal};
use crate::catalogue::Catalogue;
use crate::exchange::{Channel, Handled, Incoming, Peer, Reply, TransportKind};
use crate::guard::{
    AccessRequest, BoxFuture, By, Compiled, ComponentKind, Denial, Exceeded, Keyed, LimiterDown, OnLimiterDown,
    Permitted, RateLimit, Taking,
};
use crate::headers::Headers;
use crate::outlet::Outlet;
use crate::server_state::ServerState;
use crate::service::{catch_panic, caught_future};

/// Component that a request wants to use.
#[derive(Clone, Copy)]
pub(super) struct Used<'u> {
    pub(super) kind: ComponentKind,
    pub(super) name: &'u str,
    pub(super) uri: Option<&'u str>,
    pub(super) guard: &'u Arc<Compiled>,
    /// Whether it counts as a use.
    pub(super) counts: bool,
}

impl Used<'_> {
    fn rate_limits(&self) -> &[RateLimit] {
        if self.counts { &self.guard.limits } else { &[] }
    }
}

impl Call<'_> {
    /// Asks a guard. Nothing: the request may go on now. An answer: somebody has to be asked; the request goes on, or is
    /// refused, in there.
    pub(super) fn authorize_use(&self, catalogue: &Arc<Catalogue>, used: Used<'_>) -> Result<Option<Handled>, Refusal> {
        if self.has_passed {
            return Ok(None);
        }
        let asked = self.access_request(used.kind, used.name, used.uri);
        let limits = used.rate_limits();
        let (agreeing, waits) = match check_permissions(used.guard, &asked) {
            Permitted::No(denial) => return Err(Refusal::Denied(denial)),
            Permitted::Later(agreeing) => (agreeing, None),
            Permitted::Yes => match count_uses(self.server, limits, 0, &asked)? {
                None => return Ok(None),
                waits => (Vec::new(), waits),
            },
        };
        let (kept, in_flight) = (self.to_owned_call(catalogue), InFlight::begin_request(self)?);
        let (guard, counts) = (Arc::clone(used.guard), used.counts);
        let (kind, name, uri) = (used.kind, Box::from(used.name), used.uri.map(Box::from));
        Ok(Some(Handled::Later(Box::pin(async move {
            let passing = async {
                all_agree(agreeing).await.map_err(Refusal::Denied)?;
                let asked = || AccessRequest { uri: uri.as_deref(), ..kept.access_request(kind, &name) };
                let limits = if counts { &guard.limits[..] } else { &[] };
                count_later(&kept.server, limits, waits, asked).await
            };
            let passed = in_flight.run_cancellable(passing).await;
            // The handler has a place of its own among the requests under way.
            drop(in_flight);
            match passed {
                Some(Ok(())) => kept.go_on().await,
                Some(Err(refusal)) => refusal.into_reply(&kept.id, kept.revision),
                None => Refusal::Cancelled.into_reply(&kept.id, kept.revision),
            }
        }))))
    }

    pub(super) fn access_request<'s>(
        &'s self,
        kind: ComponentKind,
        name: &'s str,
        uri: Option<&'s str>,
    ) -> AccessRequest<'s> {
        let channel = self.incoming.channel;
        let principal = self.incoming.peer.principal.as_ref();
        AccessRequest {
            kind,
            name,
            uri,
            principal,
            session: channel.session_id(),
            listing: false,
            channel: Some(channel),
        }
    }

    /// The request without its message.
    pub(super) fn to_owned_call(&self, catalogue: &Arc<Catalogue>) -> WaitingUse {
        let Incoming { peer, channel, received, timed, .. } = self.incoming;
        WaitingUse {
            server: Arc::clone(self.server),
            catalogue: Arc::clone(catalogue),
            id: self.id().clone().into_owned(),
            method: self.method,
            revision: self.revision,
            params: self.request.params.map(|params| self.keep_part(params.get())),
            peer: Peer::clone(peer),
            way: KeptWay {
                outlet: channel.open_outlet(),
                headers: channel.headers(),
                session: channel.session_id().map(Box::from),
                transport: channel.transport(),
                closed: channel.connection_closed(),
                connection: channel.connection_number(),
            },
            clocks: self.clocks,
            received: *received,
            timed: *timed,
        }
    }
}

/// A request that waits.
pub(super) struct WaitingUse {
    pub(super) server: Arc<ServerState>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) id: Id<'static>,
    method: Method,
    pub(super) revision: Revision,
    params: Option<Bytes>,
    peer: Peer,
    way: KeptWay,
    clocks: Option<Clocks>,
    received: Instant,
    timed: bool,
}

impl WaitingUse {
    pub(super) fn access_request<'s>(&'s self, kind: ComponentKind, name: &'s str) -> AccessRequest<'s> {
        AccessRequest {
            kind,
            name,
            uri: None,
            principal: self.peer.principal.as_ref(),
            session: self.way.session.as_deref(),
            listing: false,
            channel: Some(&self.way),
        }
    }

    /// Runs the handler.
    async fn go_on(&self) -> Reply {
        match self.resume_call(|call| call.route_in(&self.catalogue)) {
            Handled::Now(reply) => reply,
            Handled::Later(later) => later.await,
            // A request has an answer.
            Handled::Nothing => Refusal::internal_error().into_reply(&self.id, self.revision),
        }
    }

    /// Does something with the request as if it had come only now, and passed.
    pub(super) fn resume_call(&self, go_on: impl FnOnce(&Call<'_>) -> Result<Handled, Refusal>) -> Handled {
        // Both were read before, out of the same bytes.
        let params: Result<Option<&RawValue>, _> = self.params.as_deref().map(serde_json::from_slice).transpose();
        let read = params.and_then(|params| Ok((params, ParamsOutline::parse(params)?)));
        let Ok((params, outline)) = read else {
            return Refusal::internal_error().into_handled(&self.id, self.revision);
        };
        let message = Message::Request(Request::new(self.id.clone(), self.method.as_str(), params));
        let Message::Request(request) = &message else {
            return Refusal::internal_error().into_handled(&self.id, self.revision);
        };
        let nothing = Bytes::new();
        let incoming = Incoming {
            message: &message,
            body: self.params.as_ref().unwrap_or(&nothing),
            outline: Some(&outline),
            peer: &self.peer,
            channel: &self.way,
            received: self.received,
            timed: self.timed,
        };
        let call = Call {
            server: &self.server,
            incoming: &incoming,
            request,
            outline: std::borrow::Cow::Borrowed(&outline),
            revision: self.revision,
            method: self.method,
            clocks: self.clocks,
            has_passed: true,
        };
        go_on(&call).unwrap_or_else(|refusal| refusal.into_handled(&self.id, self.revision))
    }
}

/// The way back to the client of a request that waits.
struct KeptWay {
    outlet: Arc<dyn Outlet>,
    headers: Option<Headers>,
    session: Option<Box<str>>,
    transport: TransportKind,
    closed: Option<CancellationToken>,
    connection: u64,
}

impl Channel for KeptWay {
    fn open_outlet(&self) -> Arc<dyn Outlet> {
        Arc::clone(&self.outlet)
    }

    fn headers(&self) -> Option<Headers> {
        self.headers.clone()
    }

    fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn transport(&self) -> TransportKind {
        self.transport
    }

    fn connection_closed(&self) -> Option<CancellationToken> {
        self.closed.clone()
    }

    fn connection_number(&self) -> u64 {
        self.connection
    }
}

/// As [`Compiled::check_access`]; a permission that panics refuses.
pub(super) fn check_permissions(guard: &Compiled, asked: &AccessRequest<'_>) -> Permitted {
    catch_panic(|| guard.check_access(asked)).unwrap_or_else(|_| {
        ::tracing::error!("a permission panicked");
        Permitted::No(Denial::default())
    })
}

/// Asks one after the other, until one doesn't agree.
pub(super) async fn all_agree(agreeing: Vec<BoxFuture<Result<(), Denial>>>) -> Result<(), Denial> {
    for agrees in agreeing {
        let agreed = caught_future(agrees).await;
        agreed.unwrap_or_else(|_| {
            ::tracing::error!("a permission panicked");
            Err(Denial::default())
        })?;
    }
    Ok(())
}

/// A limit that takes time, with its place among the limits.
pub(super) enum SlowLimit {
    ForKey(usize, BoxFuture<Result<String, Denial>>),
    ForCount(usize, BoxFuture<Result<Result<(), Exceeded>, LimiterDown>>),
}

/// Counts a use under each limit from `from` on, as far as that goes at once.
fn count_uses(
    server: &ServerState,
    limits: &[RateLimit],
    from: usize,
    asked: &AccessRequest<'_>,
) -> Result<Option<SlowLimit>, Refusal> {
    for (index, limit) in limits.iter().enumerate().skip(from) {
        let taking = match limit_key(limit, asked) {
            Keyed::Now(key) => server.limiter.take(limit, &key),
            Keyed::Denied(denial) => return Err(Refusal::Denied(denial)),
            Keyed::Later(key) => return Ok(Some(SlowLimit::ForKey(index, key))),
        };
        match taking {
            Taking::Now(counted) => counted?,
            Taking::Later(counted) => return Ok(Some(SlowLimit::ForCount(index, counted))),
        }
    }
    Ok(None)
}

/// Continues [`count_uses`] where it stopped to wait; `waits` of `None` begins with the first limit.
pub(super) async fn count_later<'a>(
    server: &ServerState,
    limits: &[RateLimit],
    waits: Option<SlowLimit>,
    asked: impl Fn() -> AccessRequest<'a>,
) -> Result<(), Refusal> {
    let mut waits = match waits {
        None => count_uses(server, limits, 0, &asked())?,
        waits => waits,
    };
    while let Some(waited) = waits {
        let (index, taking) = match waited {
            SlowLimit::ForCount(index, counted) => (index, Taking::Later(counted)),
            SlowLimit::ForKey(index, key) => {
                let key = caught_future(key).await.unwrap_or_else(|_| {
                    ::tracing::error!("what tells a rate limit's key panicked");
                    Err(Denial::default())
                });
                let key = key.map_err(Refusal::Denied)?;
                (index, server.limiter.take(&limits[index], &key))
            }
        };
        match taking {
            Taking::Now(counted) => counted?,
            Taking::Later(counted) => match counted.await {
                Ok(counted) => counted?,
                Err(LimiterDown) if server.on_limiter_down == OnLimiterDown::Allow => {}
                Err(LimiterDown) => return Err(Refusal::Uncounted),
            },
        }
        waits = count_uses(server, limits, index + 1, &asked())?;
    }
    Ok(())
}

/// Under what a use is counted.
fn limit_key<'a>(limit: &RateLimit, asked: &AccessRequest<'a>) -> Keyed<'a> {
    let principal = || asked.principal.map_or("", |principal| &principal.subject);
    let key = match &limit.by {
        By::Principal => principal(),
        By::Session => asked.session.unwrap_or_else(principal),
        By::Everyone => "",
        By::Key(of) => {
            return catch_panic(|| of.key(asked)).unwrap_or_else(|_| {
                ::tracing::error!("what tells a rate limit's key panicked");
                Keyed::Denied(Denial::default())
            });
        }
    };
    Keyed::Now(key.into())
}

impl From<Exceeded> for Refusal {
    fn from(Exceeded { retry_after }: Exceeded) -> Self {
        Refusal::Exceeded { retry_after }
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Refusal::Denied(denial)
    }
}
