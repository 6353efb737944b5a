//! GET and DELETE of the legacy revisions: the standalone stream, resumption, the end of a session.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use mcpace_wire::http::{Era, Field, Rejection, check_legacy};
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::ParamsOutline;

use super::answer::Answer;
use super::event_stream::EventStream;
use super::fields::Fields;
use super::reply_body::ReplyBody;
use super::sessions::Live;
use super::site::Site;
use super::streams::Standalone;

impl Site {
    /// A stream for what belongs to no request; or, with `Last-Event-ID`, a lost one taken up again.
    pub(super) async fn get(&self, fields: &Fields<'_>) -> Result<Answer, Answer> {
        let live = self.live_of_bodiless(fields).await?;
        if !fields.accept().event_stream() {
            return Err(Rejection::NotAcceptable.into());
        }
        let reader = match fields.mcp.last_event_id {
            Field::Absent => {
                let log = live.streams.open_standalone().map_err(|_| {
                    let reason = "as many standalone streams as may be are open in this session";
                    Answer::refused(StatusCode::CONFLICT, code::INVALID_REQUEST, reason)
                })?;
                let (revision, _) = check_legacy(&fields.mcp, Some(live.session.revision()), self.server.revisions())?;
                if live.streams.are_resumable() && revision.has_priming_events() {
                    log.prime(self.retry);
                }
                self.server.attach(&live.session, Arc::new(Standalone(Arc::downgrade(&live))));
                log.reader(None)
            }
            field => field.ascii().and_then(|id| live.streams.resume(id)).ok_or_else(|| {
                let reason = "Last-Event-ID is of no stream that is held";
                Answer::refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, reason)
            })?,
        };
        live.streams.is_read();
        let stream = EventStream::new(reader, self.keep_alive).holding(live);
        Ok(Answer::events(ReplyBody::Events(Box::new(stream))))
    }

    /// The end of a session.
    pub(super) async fn delete(&self, fields: &Fields<'_>) -> Result<Answer, Answer> {
        let live = self.live_of_bodiless(fields).await?;
        self.sessions.end(&live);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// The session of a request that is nothing without one.
    async fn live_of_bodiless(&self, fields: &Fields<'_>) -> Result<Arc<Live>, Answer> {
        let principal = self.principal(fields).await?;
        let is_modern = Era::of(&fields.mcp, &ParamsOutline::default()) == Era::Modern;
        let has_sessions = self.server.revisions().iter().any(|revision| revision.has_http_sessions());
        if self.stateless || is_modern || !has_sessions {
            return Err(self.method_not_allowed());
        }
        let live = self.live(fields, principal.as_ref(), Instant::now())?;
        Ok(live.ok_or(Rejection::SessionMissing)?)
    }
}
