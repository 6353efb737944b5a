//! GET of the legacy revisions: opens the standalone stream, or resumes the stream that `Last-Event-ID` names.

use std::sync::Arc;

use http::StatusCode;
use mcpace_wire::http::{Field, Rejection, check_legacy};
use mcpace_wire::jsonrpc::code;

use super::event_log::{LogReader, position_after};
use super::event_stream::EventStream;
use super::fields::Fields;
use super::http_response::HttpResponse;
use super::http_server::HttpServer;
use super::http_session::{HttpSession, Standalone};
use super::reply_body::ReplyBody;
use super::shared_sessions::{Remote, SharedSessions, Unreadable};
use crate::outlet::Outlet;
use crate::store::{Cursor, Down};

impl HttpServer {
    /// A stream for what belongs to no request; or, with `Last-Event-ID`, a lost one taken up again.
    pub(super) async fn handle_get(&self, fields: &Fields<'_>) -> Result<HttpResponse, HttpResponse> {
        let (http_session, principal) = self.bodiless_session(fields).await?;
        if !fields.accepted_types().event_stream() {
            return Err(Rejection::NotAcceptable.into());
        }
        let stream = match &self.sharing {
            Some(sharing) => self.shared_stream(sharing, fields, http_session).await?,
            None => self.own_stream(fields, http_session)?,
        };
        // Nobody listens for longer than he may ask.
        let stream = stream.with_lifetime(principal.and_then(|principal| principal.remaining_time()));
        Ok(HttpResponse::event_stream(ReplyBody::Events(Box::new(stream))))
    }

    /// Opens or resumes a stream of this process.
    fn own_stream(&self, fields: &Fields<'_>, http_session: Arc<HttpSession>) -> Result<EventStream, HttpResponse> {
        let reader = match fields.mcp.last_event_id {
            Field::Absent => self.new_standalone(fields, &http_session)?,
            field => field.ascii().and_then(|id| http_session.streams.resume_stream(id)).ok_or_else(unknown_event)?,
        };
        Ok(self.open_stream(reader, http_session))
    }

    /// A standalone stream of this process's own.
    fn new_standalone(&self, fields: &Fields<'_>, http_session: &Arc<HttpSession>) -> Result<LogReader, HttpResponse> {
        let (revision, _) = check_legacy(&fields.mcp, Some(http_session.session.revision()), self.server.revisions())?;
        let primes = http_session.streams.are_resumable() && revision.has_priming_events();
        let reader = http_session.streams.open_standalone(primes.then_some(self.retry)).map_err(|_| stream_taken())?;
        self.server.attach(&http_session.session, self.standalone_outlet(http_session));
        Ok(reader)
    }

    fn open_stream(&self, reader: LogReader, http_session: Arc<HttpSession>) -> EventStream {
        http_session.streams.is_read();
        EventStream::new(reader, self.keep_alive).with_owner(http_session)
    }

    /// Opens or resumes a stream that all processes share. The standalone stream is in the store; a reply's stream may be this
    /// process's own.
    async fn shared_stream(
        &self,
        sharing: &Arc<SharedSessions>,
        fields: &Fields<'_>,
        http_session: Arc<HttpSession>,
    ) -> Result<EventStream, HttpResponse> {
        let (revision, _) = check_legacy(&fields.mcp, Some(http_session.session.revision()), self.server.revisions())?;
        let (number, from) = match fields.mcp.last_event_id {
            Field::Absent => (0, Cursor::Undelivered),
            field => {
                let id = field.ascii().ok_or_else(unknown_event)?;
                if let Some(reader) = http_session.streams.resume_stream(id) {
                    return Ok(self.open_stream(reader, http_session));
                }
                match position_after(id).ok_or_else(unknown_event)? {
                    // A standalone stream that some process had by itself while the store was away.
                    (number, _) if sharing.is_ones_own(number) => (0, Cursor::Undelivered),
                    (number, next) => (number, Cursor::After(next - 1)),
                }
            }
        };
        let primes =
            from == Cursor::Undelivered && http_session.streams.are_resumable() && revision.has_priming_events();
        match sharing.read_stream(&http_session, number, from, primes.then_some(self.retry)).await {
            Ok((reader, reading)) => {
                if number == 0 {
                    self.server.attach(&http_session.session, self.standalone_outlet(&http_session));
                    sharing.session_attached(&http_session);
                }
                Ok(EventStream::new(reader, self.keep_alive).with_owner(reading))
            }
            Err(Unreadable::Taken) => Err(stream_taken()),
            Err(Unreadable::Unknown) => Err(unknown_event()),
            Err(Unreadable::Down) => {
                sharing.while_away()?;
                if number != 0 {
                    // It may be there when the store is.
                    return Err(HttpResponse::overloaded(StatusCode::SERVICE_UNAVAILABLE, &Down.to_string()));
                }
                sharing.leave_stream(&http_session);
                Ok(self.open_stream(self.new_standalone(fields, &http_session)?, http_session))
            }
        }
    }

    /// The way to a session's client for what belongs to no request.
    pub(super) fn standalone_outlet(&self, http_session: &Arc<HttpSession>) -> Arc<dyn Outlet> {
        match &self.sharing {
            Some(sharing) => {
                Arc::new(Remote { http_session: Arc::downgrade(http_session), sharing: Arc::downgrade(sharing) })
            }
            None => Arc::new(Standalone(Arc::downgrade(http_session))),
        }
    }
}

fn stream_taken() -> HttpResponse {
    let reason = "as many standalone streams as may be are open in this session";
    HttpResponse::refused(StatusCode::CONFLICT, code::INVALID_REQUEST, reason)
}

fn unknown_event() -> HttpResponse {
    let reason = "Last-Event-ID is of no stream that is held";
    HttpResponse::refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, reason)
}
