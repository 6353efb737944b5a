//! The standalone GET stream of the legacy revisions: what the server says outside of any reply.
//!
//! Opened once beside the calls. Deliberately absent: reconnecting when the server ends it; a measurement shows what the
//! server did.

use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, StatusCode};

use super::connection::BodyPiece;
use super::{EVENTS, HttpInner, LogicalRequest};
use crate::client::ClientError;
use crate::client::inbound::Received;

/// Requests of the server that are answered on one stream.
const ASKED_LIMIT: usize = 10_000;

/// Reads the stream until it ends; a server without one answers 405, which ends it too.
pub(super) async fn listen_stream(inner: &HttpInner) {
    // Nobody waits for this stream: how it fails stands in the recording.
    drop(read_stream(inner).await);
}

async fn read_stream(inner: &HttpInner) -> Result<(), ClientError> {
    let what = "the standalone stream";
    let mut headers = inner.session_headers();
    headers.insert(ACCEPT, EVENTS);
    let ask = LogicalRequest {
        method: Method::GET,
        url: inner.endpoint(),
        headers,
        body: Bytes::new(),
        what,
        may_be_repeated: true,
    };
    let mut open = inner.send_authorized(ask).await?;
    if open.status != StatusCode::OK || !open.is_event_stream() {
        inner.read_other(open, what).await?;
        return Ok(());
    }
    let mut asked = 0;
    while let Ok(BodyPiece::Events(events)) = open.next_piece().await {
        for event in events.into_iter().filter(|event| event.kind() == "message") {
            for reply in Received::from_text(&event.data.into(), None, None).unwrap_or_default().replies {
                asked += 1;
                if asked > ASKED_LIMIT {
                    return Err(ClientError::TooLarge {
                        what: "the number of the server's requests",
                        limit: ASKED_LIMIT,
                    });
                }
                inner.send_message(&reply, inner.endpoint()).await?;
            }
        }
    }
    inner.pool.keep_connection(open);
    Ok(())
}
