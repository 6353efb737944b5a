//! Authorization for a caller within the process, which runs the handler itself.
//!
//! Constraint: the guards, the counted uses and the refusals equal those of a client's request. A caller without a request has
//! no session and no headers; a list that is made outside dispatch has those of its request.

use std::any::{Any, TypeId};
use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;

use super::Refusal;
use super::guard_check::{all_agree, check_permissions, count_later};
use super::visible_page::{PendingPermissions, refused_entries};
use crate::catalogue::Catalogue;
use crate::exchange::{Channel, Reply};
use crate::guard::{AccessRequest, BoxFuture, Compiled, ComponentKind, Permitted};
use crate::limits::Limits;
use crate::principal::Principal;
use crate::server_state::ServerState;
use crate::service::{Context, RequestServer};
use crate::tasks::Running;

/// A caller within the process, and the kind of the components that it wants to use.
pub(crate) struct LocalCaller {
    pub(crate) kind: ComponentKind,
    pub(crate) principal: Option<Principal>,
    /// The request that a list is made for outside dispatch.
    pub(crate) request: Option<Context>,
}

impl LocalCaller {
    /// Authorizes one use and counts it. The error is the reply that a request would have got.
    pub(crate) async fn admit_use(
        self,
        server: Arc<ServerState>,
        name: String,
        uri: Option<String>,
    ) -> Result<(), Reply> {
        let Some(guard) = self.component_guard(&server.catalogue.load(), &name) else { return Ok(()) };
        let asked = || AccessRequest { uri: uri.as_deref(), ..self.access_request(&name) };
        let admitted = async {
            // The access request ends before the first await.
            let permitted = check_permissions(&guard, &asked());
            match permitted {
                Permitted::Yes => {}
                Permitted::No(denial) => return Err(Refusal::Denied(denial)),
                Permitted::Later(agreeing) => all_agree(agreeing).await.map_err(Refusal::Denied)?,
            }
            count_later(&server, &guard.limits, None, asked).await
        };
        admitted.await.map_err(|refusal: Refusal| refusal.into_reply(&Id::Integer(0), Revision::LATEST))
    }

    /// Returns for each name whether a list would show it.
    pub(crate) async fn may_see(self, server: Arc<ServerState>, names: Vec<String>) -> Vec<bool> {
        let (mut seen, mut waits) = (vec![true; names.len()], PendingPermissions::new());
        {
            let catalogue = server.catalogue.load();
            for (index, name) in names.iter().enumerate() {
                let Some(guard) = self.component_guard(&catalogue, name) else { continue };
                match check_permissions(&guard, &AccessRequest { listing: true, ..self.access_request(name) }) {
                    Permitted::Yes => {}
                    Permitted::No(_) => seen[index] = false,
                    Permitted::Later(agreeing) => waits.push((index, agreeing)),
                }
            }
        }
        if !waits.is_empty() {
            let share = server.turns.share_of(&self.access_request(""));
            for index in refused_entries(&share, waits).await {
                seen[index] = false;
            }
        }
        seen
    }

    fn access_request<'a>(&'a self, name: &'a str) -> AccessRequest<'a> {
        let mut asked = AccessRequest { principal: self.principal.as_ref(), ..AccessRequest::new(self.kind, name) };
        if let Some(context) = &self.request {
            let channel: &dyn Channel = context.request();
            (asked.session, asked.channel) = (channel.session_id(), Some(channel));
        }
        asked
    }

    fn component_guard(&self, catalogue: &Catalogue, name: &str) -> Option<Arc<Compiled>> {
        match self.kind {
            ComponentKind::Tool => catalogue.tools.get(name)?.guard.clone(),
            ComponentKind::Resource => catalogue.resources.get(name)?.guard.clone(),
            ComponentKind::Prompt => catalogue.prompts.get(name)?.guard.clone(),
            ComponentKind::Template => {
                let templates = &catalogue.definitions.templates;
                templates.iter().find(|template| template.listed.uri_template == name)?.guard.clone()
            }
        }
    }
}

impl RequestServer for ServerState {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn user_value(&self, of: TypeId) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.user_values.get(&of)
    }

    fn publish_task(&self, task: &Running) {
        self.subscriptions.notify_task_subscribers(task);
    }

    fn visible_names(
        self: Arc<Self>,
        kind: ComponentKind,
        names: Vec<String>,
        request: Context,
    ) -> BoxFuture<Vec<bool>> {
        let caller = LocalCaller { kind, principal: request.principal().cloned(), request: Some(request) };
        Box::pin(caller.may_see(self, names))
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
