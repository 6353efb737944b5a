//! Requests that go to the server behind the registry.

use std::sync::Arc;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, code, write_error};
use mcpace_wire::mcp::Method;

use super::in_flight::InFlight;
use super::{Call, Refusal};
use crate::exchange::{Handled, Reply, ReplyStatus};
use crate::service::{Delegate, DelegateError, Inputs, caught_future};
use crate::session::Session;

impl Call<'_> {
    /// The delegate that this request is for, if there is one.
    pub(super) fn request_delegate(&self) -> Option<&Arc<dyn Delegate>> {
        let delegate = self.server.delegate.get()?;
        if !delegate.takes(self.method) {
            return None;
        }
        // A tool that was taken over is ours to call.
        let ours = self.method == Method::ToolsCall
            && self.outline.name.as_deref().is_some_and(|name| self.server.catalogue.load().tools.contains_key(name));
        (!ours).then_some(delegate)
    }

    pub(super) fn call_delegate(&self, delegate: &Arc<dyn Delegate>) -> Result<Handled, Refusal> {
        // The session is ours, and so is what it agrees on; what the server says of itself is the delegate's.
        let begun = match self.method {
            Method::Initialize => match self.initialize_session()? {
                Handled::Now(reply) => reply.session,
                Handled::Nothing | Handled::Later(_) => None,
            },
            _ => None,
        };
        let in_flight = InFlight::begin_request(self)?;
        let session = begun.clone().or_else(|| self.incoming.peer.session.clone());
        let context = self.context_in(session, &in_flight, Inputs::default());
        let work = delegate.call(context);
        let (id, revision) = (self.id().clone().into_owned(), self.revision);
        Ok(Handled::Later(Box::pin(async move {
            match in_flight.run_cancellable(caught_future(work)).await {
                None => Refusal::Cancelled.into_reply(&id, revision),
                Some(Err(_)) => Refusal::internal_error().into_reply(&id, revision),
                Some(Ok(Err(error))) => error_reply(&error, &id, revision),
                Some(Ok(Ok(result))) => result_reply(&result, &id, begun),
            }
        })))
    }
}

fn result_reply(result: &[u8], id: &Id<'_>, session: Option<Arc<Session>>) -> Reply {
    let mut out = Vec::with_capacity(result.len() + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(&mut out);
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    Reply { message: out.into(), status: ReplyStatus::Ok, session, cancelled: false, timing: None, challenge: None }
}

fn error_reply(error: &DelegateError, id: &Id<'_>, revision: Revision) -> Reply {
    let mut out = Vec::with_capacity(192);
    // The data is JSON text already, which can always be written.
    let written = write_error(&mut out, Some(id), error.code, &error.message, error.data.as_ref());
    debug_assert!(written.is_ok());
    Reply {
        message: out.into(),
        status: if revision.is_modern() { reply_status(error.code) } else { ReplyStatus::Ok },
        session: None,
        cancelled: false,
        timing: None,
        challenge: None,
    }
}

/// 2026-07-28, transports: the refusals of a request that can't be, whoever notices.
fn reply_status(error: i64) -> ReplyStatus {
    match error {
        code::METHOD_NOT_FOUND => ReplyStatus::NotFound,
        code::INVALID_REQUEST
        | code::INVALID_PARAMS
        | code::HEADER_MISMATCH
        | code::MISSING_CLIENT_CAPABILITY
        | code::UNSUPPORTED_PROTOCOL_VERSION => ReplyStatus::BadRequest,
        _ => ReplyStatus::Ok,
    }
}
