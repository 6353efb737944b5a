//! Reading a request's body: bounded in bytes and time, and without a copy where it came in one piece; and reading one away that
//! nobody wants, so that its connection can go on.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use hyper::body::{Body as _, Incoming};
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::code;

use super::connection_state::{ConnectionState, InBody};
use super::http_response::HttpResponse;

/// Version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Bounds on one body.
#[derive(Clone, Copy)]
pub(super) struct BodyBounds {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// A body longer than this isn't read before its sender is known, nor read away.
pub(super) const UNASKED: usize = 64 << 10;

/// Reads away what is left of a refused request's body: hyper closes a connection on which more than one read is left, as it
/// always is of a body in chunks. `false` where that is too much, or doesn't come.
pub(super) async fn drain_body(body: &mut Incoming, length: Option<usize>, connection_state: &ConnectionState) -> bool {
    if body.is_end_stream() {
        return true;
    }
    if length.is_some_and(|length| length > UNASKED) {
        return false;
    }
    let (watch, mut left) = (connection_state.begin_body(), UNASKED);
    loop {
        match next_piece(body, Some(&watch)).await {
            Ok(None) => return true,
            Ok(Some(piece)) if piece.len() <= left => left -= piece.len(),
            Ok(Some(_)) | Err(_) => return false,
        }
    }
}

/// The whole body.
pub(super) async fn read_body(
    body: &mut Incoming,
    length: Option<usize>,
    bounds: BodyBounds,
    connection_state: &ConnectionState,
    protocol: Protocol,
) -> Result<Bytes, HttpResponse> {
    if length.is_some_and(|length| length > bounds.bytes) {
        return Err(too_large(bounds.bytes));
    }
    match protocol {
        Protocol::Http1 => collect_body(body, length, bounds.bytes, Some(connection_state.begin_body())).await,
        // Many bodies share a connection, so its connection state can't tell them apart: a timer each.
        Protocol::Http2 => {
            let collected = tokio::time::timeout(bounds.time, collect_body(body, length, bounds.bytes, None));
            collected.await.unwrap_or_else(|_| Err(too_slow()))
        }
    }
}

async fn collect_body(
    body: &mut Incoming,
    length: Option<usize>,
    limit: usize,
    watch: Option<InBody<'_>>,
) -> Result<Bytes, HttpResponse> {
    let Some(first) = next_piece(body, watch.as_ref()).await? else {
        return Ok(Bytes::new());
    };
    if first.len() > limit {
        return Err(too_large(limit));
    }
    if length == Some(first.len()) {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(length.unwrap_or(2 * first.len()).min(limit));
    whole.extend_from_slice(&first);
    while let Some(piece) = next_piece(body, watch.as_ref()).await? {
        if piece.len() > limit - whole.len() {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// The next piece; trailers are passed over.
async fn next_piece(body: &mut Incoming, watch: Option<&InBody<'_>>) -> Result<Option<Bytes>, HttpResponse> {
    poll_fn(|cx| poll_next(body, watch, cx)).await
}

fn poll_next(
    body: &mut Incoming,
    watch: Option<&InBody<'_>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, HttpResponse>> {
    loop {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Ready(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Ok(Some(data)));
                }
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "a body broke off");
                let answer =
                    HttpResponse::refused(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "the body broke off");
                return Poll::Ready(Err(answer.close_after()));
            }
            // The worker's idle check wakes this connection when the body takes too long.
            Poll::Pending if watch.is_some_and(InBody::is_expired) => return Poll::Ready(Err(too_slow())),
            Poll::Pending => return Poll::Pending,
        }
    }
}

fn too_large(limit: usize) -> HttpResponse {
    HttpResponse::from(Rejection::BodyTooLarge { limit }).close_after()
}

pub(super) fn too_slow() -> HttpResponse {
    HttpResponse::refused(StatusCode::REQUEST_TIMEOUT, code::INVALID_REQUEST, "the body came too slowly").close_after()
}
