//! Lists, and the requests that have no result but that they went well.

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::SetLevelParams;
use serde_json::value::RawValue;

use super::reply::{End, head};
use super::{Call, Refusal};
use crate::catalogue::{Pages, UnknownCursor};
use crate::exchange::Handled;

impl Call<'_> {
    /// A page of a list.
    pub(super) fn list(&self, pages: &Pages) -> Result<Handled, Refusal> {
        let cursor = self.outline.cursor.as_deref();
        let page = pages
            .page(self.revision, cursor)
            .map_err(|UnknownCursor| Refusal::error(code::INVALID_PARAMS, "cursor: unknown, or no longer valid"))?;
        Ok(self.members(page))
    }

    /// A result of these members.
    pub(super) fn members(&self, members: &[u8]) -> Handled {
        let mut out = head(self.id());
        out.extend_from_slice(members);
        Handled::Now(self.end().complete(out))
    }

    /// `{}`
    pub(super) fn empty(&self) -> Handled {
        self.members(b"")
    }

    pub(super) fn set_level(&self) -> Result<Handled, Refusal> {
        let params: SetLevelParams = self.params()?;
        if let Some(session) = &self.incoming.peer.session {
            session.set_log_level(params.level);
        }
        Ok(self.empty())
    }

    /// The parameters as the method's own type.
    pub(super) fn params<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refusal> {
        Ok(serde_json::from_str(self.request.params.map_or("{}", RawValue::get))?)
    }

    pub(super) fn end(&self) -> End<'_> {
        End::new(self.server, self.revision, self.clocks.as_ref())
    }
}
