//! Being told of changes: `resources/subscribe` in legacy sessions, `subscriptions/listen` since 2026-07-28.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{ResourceUriParams, SubscriptionFilter, SubscriptionParams};

use super::guard_check::{Used, check_permissions};
use super::in_flight::InFlight;
use super::reply::{ResultEnd, reply_head};
use super::visible_page::{self, PendingPermissions};
use super::{Call, Refusal, failure};
use crate::catalogue::Catalogue;
use crate::exchange::Handled;
use crate::guard::{ComponentKind, Permitted};
use crate::principal::Principal;
use crate::session::{WATCHED_BYTES, WATCHED_URI};

impl Call<'_> {
    pub(super) fn subscribe_resource(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        if catalogue.capabilities(self.revision).resources.is_none() {
            return Err(Refusal::UnknownMethod);
        }
        let params: ResourceUriParams = self.read_params()?;
        if params.uri.len() > WATCHED_URI {
            return Err(Refusal::error(code::INVALID_PARAMS, "the URI is too long to be watched"));
        }
        if !catalogue.has_resource(&params.uri) {
            return Err(failure::not_found(self.revision, &params.uri));
        }
        if let Some((kind, name, guard)) = catalogue.read_guard(&params.uri)
            && let Some(answer) =
                self.authorize_use(catalogue, Used { kind, name, uri: Some(&params.uri), guard, counts: false })?
        {
            return Ok(answer);
        }
        let Some(session) = &self.incoming.peer.session else {
            return Err(Refusal::error(code::INVALID_REQUEST, "a subscription needs a session"));
        };
        if !session.subscribe(&params.uri, self.server.limits.watched_resources) {
            return Err(Refusal::error(code::INTERNAL_ERROR, "the session watches too many resources"));
        }
        Ok(self.empty_reply())
    }

    pub(super) fn unsubscribe_resource(&self) -> Result<Handled, Refusal> {
        let params: ResourceUriParams = self.read_params()?;
        if let Some(session) = &self.incoming.peer.session {
            session.unsubscribe(&params.uri, self.server.limits.watched_resources);
        }
        Ok(self.empty_reply())
    }

    /// Acknowledges, then tells of changes until the client goes away or the server closes.
    pub(super) fn open_subscription(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let params: SubscriptionParams = self.read_params()?;
        let mut filter = params.notifications;
        self.check_watched(&filter)?;
        // Asked once about each, however often it is named.
        if let Some(uris) = &mut filter.resource_subscriptions {
            let mut known = HashSet::new();
            uris.retain(|uri| known.insert(uri.clone()));
        }
        let (mut refused, mut waits) = (Vec::new(), PendingPermissions::new());
        for uri in filter.resource_subscriptions.iter().flatten() {
            let Some((kind, name, guard)) = catalogue.read_guard(uri) else { continue };
            match check_permissions(guard, &self.access_request(kind, name, Some(uri))) {
                Permitted::Yes => {}
                Permitted::No(_) => refused.push(uri.clone()),
                Permitted::Later(agreeing) => waits.push((uri.clone(), agreeing)),
            }
        }
        leave_out(&mut filter, &refused);
        if waits.is_empty() {
            return self.listen_to(filter);
        }
        let (kept, in_flight) = (self.to_owned_call(catalogue), InFlight::begin_request(self)?);
        Ok(Handled::Later(Box::pin(async move {
            let share = kept.server.turns.share_of(&kept.access_request(ComponentKind::Resource, ""));
            let Some(refused) = in_flight.run_cancellable(visible_page::refused_entries(&share, waits)).await else {
                return Refusal::Cancelled.into_reply(&kept.id, kept.revision);
            };
            drop(share);
            drop(in_flight);
            leave_out(&mut filter, &refused);
            match kept.resume_call(|call| call.listen_to(filter)) {
                Handled::Later(later) => later.await,
                Handled::Now(reply) => reply,
                Handled::Nothing => Refusal::internal_error().into_reply(&kept.id, kept.revision),
            }
        })))
    }

    /// How much one subscription may watch.
    fn check_watched(&self, filter: &SubscriptionFilter) -> Result<(), Refusal> {
        let watched = || filter.resource_subscriptions.iter().chain(&filter.task_ids).flatten();
        if watched().any(|name| name.len() > WATCHED_URI) {
            return Err(Refusal::error(code::INVALID_PARAMS, "a URI is too long to be watched"));
        }
        let bytes: usize = watched().map(String::len).sum();
        if watched().count() > self.server.limits.watched_resources || bytes > WATCHED_BYTES {
            return Err(Refusal::error(code::INVALID_PARAMS, "the subscription watches too many resources"));
        }
        Ok(())
    }

    fn listen_to(&self, mut filter: SubscriptionFilter) -> Result<Handled, Refusal> {
        // The acknowledgement names only tasks of this client that exist.
        let subject = self.task_subject();
        filter.task_ids = filter.task_ids.filter(|_| self.takes_tasks());
        if let Some(ids) = &mut filter.task_ids {
            ids.retain(|id| self.server.tasks.find_task(id, subject.as_ref()).is_some());
        }
        filter.extra.clear();
        let in_flight = InFlight::begin_request(self)?;
        let outlet = self.incoming.channel.open_outlet();
        let id = self.id().clone().into_owned();
        let subscription = self
            .server
            .subscriptions
            .open_subscription(id.clone(), filter, outlet, (subject.as_ref(), self.server.limits.subscriptions))
            .ok_or_else(|| Refusal::error(code::INTERNAL_ERROR, "the server has too many subscriptions"))?;
        let (server, revision, clocks) = (Arc::clone(self.server), self.revision, self.clocks);
        // Nobody listens for longer than he may ask.
        let left = self.incoming.peer.principal.as_ref().and_then(Principal::remaining_time);
        Ok(Handled::Later(Box::pin(async move {
            let over = async {
                tokio::select! {
                    () = server.closing.cancelled() => {}
                    () = subscription.wait_gone() => {}
                    () = wait_for(left) => {}
                }
            };
            if in_flight.run_cancellable(over).await.is_none() {
                return Refusal::Cancelled.into_reply(&id, revision);
            }
            let meta = subscription.result_meta();
            let mut end = ResultEnd::new(&server, revision, clocks.as_ref());
            end.meta = Some(&meta);
            end.close_complete(reply_head(&id))
        })))
    }
}

async fn wait_for(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => pending().await,
    }
}

/// Removes the resources that the caller may not read: it may not watch them either.
fn leave_out(filter: &mut SubscriptionFilter, refused: &[String]) {
    let refused: HashSet<&String> = refused.iter().collect();
    if let Some(uris) = &mut filter.resource_subscriptions {
        uris.retain(|uri| !refused.contains(uri));
    }
}
