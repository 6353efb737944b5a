//! A client's notifications, and its responses to the server's requests.

use mcpace_wire::jsonrpc::{Notification, Outcome, Response};
use mcpace_wire::mcp::{CancelledParams, Method};
use serde_json::value::RawValue;

use crate::exchange::Peer;
use crate::session::ClientRefusal;

/// Handles a notification. An unknown or useless one is ignored, because a notification has no response.
pub(super) fn handle_notification(peer: &Peer, notification: &Notification<'_>) {
    if Method::parse(&notification.method) != Some(Method::Cancelled) {
        return;
    }
    let Some(session) = &peer.session else { return };
    let params = notification.params.map_or("{}", RawValue::get);
    let Ok(params) = serde_json::from_str::<CancelledParams>(params) else { return };
    if let Some(id) = params.request_id {
        ::tracing::debug!(jsonrpc.request.id = %id, reason = params.reason, "cancelled by the client");
        session.cancel_request(&id);
    }
}

pub(super) fn handle_response(peer: &Peer, response: &Response<'_>) {
    let (Some(session), Some(id)) = (&peer.session, &response.id) else { return };
    let answer = match &response.outcome {
        Outcome::Result(result) => Ok(result.get().into()),
        Outcome::Error(error) => Err(ClientRefusal { code: error.code, message: error.message.clone().into_owned() }),
    };
    session.deliver_answer(id, answer);
}
