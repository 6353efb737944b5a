//! `initialize` and `server/discover`.

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{Extra, Implementation, InitializeParams, InitializeResult};
use serde::Serialize;

use super::reply::reply_head;
use super::{Call, Refusal};
use crate::catalogue::cache_hints;
use crate::exchange::Handled;
use crate::session::{ClientDescription, Session};

/// Maximum size of the parameters of `initialize`, in bytes, which limits the memory of a session.
const CLIENT_BYTES: usize = 64 * 1024;

impl Call<'_> {
    /// Begins a legacy session (2025-11-25, basic/lifecycle). The transport keeps it, or drops it.
    pub(super) fn initialize_session(&self) -> Result<Handled, Refusal> {
        if self.incoming.peer.session.is_some() {
            return Err(Refusal::error(code::INVALID_REQUEST, "the session is initialized already"));
        }
        if self.request.params.is_some_and(|params| params.get().len() > CLIENT_BYTES) {
            return Err(Refusal::error(code::INVALID_PARAMS, "params: the client says too much about itself"));
        }
        let mut params: InitializeParams = self.read_params()?;
        // Kept for as long as the session, and nobody here looks at them.
        (params.client_info.icons, params.client_info.extra) = (None, Extra::new());
        let tell = &self.server.tell;
        let revision = Revision::negotiate(&params.protocol_version, &tell.revisions);
        // Such clients have no way forward: what they can tell their user is all there is (2026-07-28, basic/versioning).
        let revision = revision.ok_or_else(|| Rejection::UnsupportedVersion {
            requested: params.protocol_version.chars().take(64).collect(),
            supported: tell.revisions.clone(),
        })?;
        let result = InitializeResult {
            protocol_version: revision.as_str().to_owned(),
            capabilities: self.server.catalogue.load().capabilities(revision).clone(),
            server_info: info_for(&tell.info, revision),
            instructions: tell.instructions.clone(),
            meta: None,
            extra: Extra::new(),
        };
        let client = ClientDescription { info: params.client_info, capabilities: params.capabilities };
        let session = Session::new(revision, self.incoming.peer.principal.clone(), client);
        let mut out = reply_head(self.id());
        write_members(&result, &mut out)?;
        let mut end = self.reply_end();
        end.session = Some(Arc::new(session));
        Ok(Handled::Now(end.close_complete(out)))
    }

    /// Answers `server/discover` with the description and capabilities of the server (2026-07-28, server/discover).
    pub(super) fn discover_server(&self) -> Result<Handled, Refusal> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct DiscoverMembers<'a> {
            supported_versions: &'a [Revision],
            capabilities: &'a mcpace_wire::mcp::ServerCapabilities,
            #[serde(skip_serializing_if = "Option::is_none")]
            instructions: Option<&'a str>,
        }
        let tell = &self.server.tell;
        let catalogue = self.server.catalogue.load();
        let members = DiscoverMembers {
            supported_versions: &tell.revisions,
            capabilities: catalogue.capabilities(self.revision),
            instructions: tell.instructions.as_deref(),
        };
        let mut out = reply_head(self.id());
        write_members(&members, &mut out)?;
        out.extend_from_slice(cache_hints(tell.ttl_ms, tell.scope).as_bytes());
        Ok(Handled::Now(self.reply_end().close_complete(out)))
    }
}

/// Appends the members of an object.
pub(super) fn write_members(object: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let text = serde_json::to_string(object).map_err(|_| Refusal::internal_error())?;
    let members = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    out.extend_from_slice(members.ok_or_else(Refusal::internal_error)?.as_bytes());
    Ok(())
}

/// Only what the revision knows: old clients with closed schemas refuse the rest.
fn info_for(info: &Implementation, revision: Revision) -> Implementation {
    let mut info = info.clone();
    if revision < Revision::V2025_06_18 {
        info.title = None;
    }
    if revision < Revision::V2025_11_25 {
        info.description = None;
        info.website_url = None;
        info.icons = None;
    }
    info
}
