//! Lookup of the session that a request names.

use std::sync::Arc;
use std::time::Instant;

use mcpace_wire::http::{Era, Rejection, check_legacy};
use mcpace_wire::mcp::ParamsOutline;

use super::fields::Fields;
use super::http_response::HttpResponse;
use super::http_server::HttpServer;
use super::http_session::HttpSession;
use crate::principal::Principal;

impl HttpServer {
    /// The session that a request names, which it must where there are sessions.
    pub(super) fn request_session(
        &self,
        fields: &Fields<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Option<Arc<HttpSession>>, Rejection> {
        if self.stateless {
            return Ok(None);
        }
        let (_, id) = check_legacy(&fields.mcp, None, self.server.revisions())?;
        let id = id.ok_or(Rejection::SessionMissing)?;
        self.sessions.find_session(&id, principal, now).map(Some).ok_or(Rejection::SessionNotFound)
    }

    /// The session of a request without a body (GET, DELETE), which must name one, and the caller.
    pub(super) async fn bodiless_session(
        &self,
        fields: &Fields<'_>,
    ) -> Result<(Arc<HttpSession>, Option<Principal>), HttpResponse> {
        let principal = self.authenticate_request(fields).await?;
        let is_modern = Era::of(&fields.mcp, &ParamsOutline::default()) == Era::Modern;
        let has_sessions = self.server.revisions().iter().any(|revision| revision.has_http_sessions());
        if self.stateless || is_modern || !has_sessions {
            return Err(self.method_not_allowed());
        }
        if let Some(sharing) = &self.sharing {
            sharing.find_session(fields.mcp.session_id.ascii(), principal.as_ref(), Instant::now()).await?;
        }
        let http_session = self.request_session(fields, principal.as_ref(), Instant::now())?;
        Ok((http_session.ok_or(Rejection::SessionMissing)?, principal))
    }
}
