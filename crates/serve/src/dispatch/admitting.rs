//! Guards asked for a caller within the process, who runs the handler himself.
//!
//! Constraint: what is asked and counted, and what a refusal says, is what a client's request would meet. Who sent no request
//! has no session and no headers; a list that is made outside dispatch has its request's.

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;

use super::Refusal;
use super::guarding::{all_agree, count_later, permits};
use crate::exchange::{Channel, Principal, Reply};
use crate::guard::{Asked, Compiled, Kind, Permitted};
use crate::server::Inner;
use crate::service::Context;

/// Who asks for what, and owns it.
pub(crate) struct Caller {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) uri: Option<String>,
    pub(crate) principal: Option<Principal>,
    /// The request that a list is made for outside dispatch.
    pub(crate) request: Option<Context>,
}

impl Caller {
    /// Asks for a use, and counts it. The error is the reply that a request would have got.
    pub(crate) async fn admit(self, server: Arc<Inner>) -> Result<(), Reply> {
        let Some(guard) = self.guard(&server) else { return Ok(()) };
        let admitted = async {
            self.permit(&guard, false).await?;
            count_later(&server, &guard.limits, None, || self.asked(false)).await
        };
        admitted.await.map_err(|refusal: Refusal| refusal.reply(&Id::Integer(0), Revision::LATEST))
    }

    /// Whether a list would show it.
    pub(crate) async fn may_see(self, server: Arc<Inner>) -> bool {
        let Some(guard) = self.guard(&server) else { return true };
        self.permit(&guard, true).await.is_ok()
    }

    async fn permit(&self, guard: &Compiled, listing: bool) -> Result<(), Refusal> {
        // What was asked is gone before anybody is waited for.
        let permitted = permits(guard, &self.asked(listing));
        match permitted {
            Permitted::Yes => Ok(()),
            Permitted::No(denial) => Err(Refusal::Denied(denial)),
            Permitted::Later(agreeing) => all_agree(agreeing).await.map_err(Refusal::Denied),
        }
    }

    fn asked(&self, listing: bool) -> Asked<'_> {
        let mut asked = Asked::new(self.kind, &self.name);
        (asked.uri, asked.principal, asked.listing) = (self.uri.as_deref(), self.principal.as_ref(), listing);
        if let Some(context) = &self.request {
            let channel: &dyn Channel = context.request();
            (asked.session, asked.channel) = (channel.session_id(), Some(channel));
        }
        asked
    }

    fn guard(&self, server: &Inner) -> Option<Arc<Compiled>> {
        let catalogue = server.catalogue.load();
        let name = self.name.as_str();
        match self.kind {
            Kind::Tool => catalogue.tools.get(name)?.guard.clone(),
            Kind::Resource => catalogue.resources.get(name)?.guard.clone(),
            Kind::Prompt => catalogue.prompts.get(name)?.guard.clone(),
            Kind::Template => {
                let templates = &catalogue.definitions.templates;
                templates.iter().find(|template| template.listed.uri_template == name)?.guard.clone()
            }
        }
    }
}
