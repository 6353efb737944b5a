//! Lists, and the requests that have no result but that they went well.

use std::sync::Arc;

use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::SetLevelParams;
use serde_json::value::RawValue;

use super::cursor;
use super::in_flight::InFlight;
use super::reply::{ResultEnd, reply_head};
use super::visible_page::PageSelection;
use super::{Call, Refusal};
use crate::catalogue::{Catalogue, Listed, Pages, UnknownCursor};
use crate::exchange::{Handled, Reply};
use crate::guard::AccessRequest;

/// A catalogue's entries of one sort.
pub(super) type EntriesOf<T> = fn(&Catalogue) -> &[Arc<T>];

impl Call<'_> {
    /// A page of a list: one that was written before there was a request; where not everybody may see all, one of what the
    /// caller may use.
    pub(super) fn list_page<T: Listed>(
        &self,
        catalogue: &Arc<Catalogue>,
        pages: &Pages,
        entries: EntriesOf<T>,
    ) -> Result<Handled, Refusal> {
        let cursor = self.outline.cursor.as_deref();
        if !pages.is_selective() {
            return Ok(self.members_reply(pages.find_page(self.revision, cursor)?));
        }
        let begins = |cursor| cursor::open_cursor(&self.server.key, T::LIST, pages.generation(), cursor);
        let at = cursor.map_or(Some(0), begins).ok_or(UnknownCursor)?;
        let mut picking = PageSelection::new(at, self.server.tell.page_size);
        let waits = picking.go_on(entries(catalogue), |entry| AccessRequest {
            listing: true,
            ..self.access_request(T::KIND, entry.lookup_key(), None)
        });
        if waits.is_empty() {
            return self.page_reply(&picking, pages, entries(catalogue)).map(Handled::Now);
        }
        let (kept, in_flight) = (self.to_owned_call(catalogue), InFlight::begin_request(self)?);
        let pages_of = T::pages_of;
        Ok(Handled::Later(Box::pin(async move {
            let entries = entries(&kept.catalogue);
            let share = kept.server.turns.share_of(&kept.access_request(T::KIND, ""));
            let picked = picking.see_through(&share, entries, waits, |entry| AccessRequest {
                listing: true,
                ..kept.access_request(T::KIND, entry.lookup_key())
            });
            if in_flight.run_cancellable(picked).await.is_none() {
                return Refusal::Cancelled.into_reply(&kept.id, kept.revision);
            }
            let reply = kept
                .resume_call(|call| call.page_reply(&picking, pages_of(&kept.catalogue), entries).map(Handled::Now));
            match reply {
                Handled::Now(reply) => reply,
                Handled::Nothing | Handled::Later(_) => Refusal::internal_error().into_reply(&kept.id, kept.revision),
            }
        })))
    }

    /// A page of what was picked.
    fn page_reply<T: Listed>(
        &self,
        picking: &PageSelection,
        pages: &Pages,
        entries: &[Arc<T>],
    ) -> Result<Reply, Refusal> {
        let mut out = reply_head(self.id());
        let (page, next) = picking.selected_page();
        let page = page.iter().filter_map(|&position| entries.get(position));
        let next = next.map(|at| cursor::seal_cursor(&self.server.key, T::LIST, pages.generation(), at));
        Pages::write_page(page, next, &self.server.tell, self.revision, &mut out)
            .map_err(|_| Refusal::internal_error())?;
        Ok(self.reply_end().close_complete(out))
    }

    /// A result of these members.
    pub(super) fn members_reply(&self, members: &[u8]) -> Handled {
        let mut out = reply_head(self.id());
        out.extend_from_slice(members);
        Handled::Now(self.reply_end().close_complete(out))
    }

    /// `{}`
    pub(super) fn empty_reply(&self) -> Handled {
        self.members_reply(b"")
    }

    pub(super) fn set_level(&self) -> Result<Handled, Refusal> {
        let params: SetLevelParams = self.read_params()?;
        if let Some(session) = &self.incoming.peer.session {
            session.set_log_level(params.level);
        }
        Ok(self.empty_reply())
    }

    /// The parameters as the method's own type.
    pub(super) fn read_params<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refusal> {
        Ok(serde_json::from_str(self.request.params.map_or("{}", RawValue::get))?)
    }

    pub(super) fn reply_end(&self) -> ResultEnd<'_> {
        ResultEnd::new(self.server, self.revision, self.clocks.as_ref())
    }
}

impl From<UnknownCursor> for Refusal {
    fn from(_: UnknownCursor) -> Self {
        Refusal::error(code::INVALID_PARAMS, "cursor: unknown, or no longer valid")
    }
}
