//! An HTTP/1.1 connection's plain requests, without hyper: read, handled and answered in one buffer each way.
//!
//! A server of small messages spends more on a general HTTP implementation than on the protocol, so the one request that
//! nearly all clients send (a POST with a `Content-Length`) goes this way. At the first head that is anything else the
//! connection is hyper's, with every byte that was not answered, and stays so.
//!
//! Constraint: bounded by the same limits and watched by the same connection state as hyper's connections; nothing that has been acted
//! on is handed over.

mod framing;
mod head;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connection_state::{ConnectionState, ShutdownMode};
use super::event_stream::EventStream;
use super::fields::Fields;
use super::http_response::HttpResponse;
use super::http_server::HttpServer;
use super::reply_body::ReplyBody;
use super::request_body::{self, UNASKED};
use super::tracked_stream::TrackedStream;
use framing::{CHUNK_END, LAST_CHUNK, write_chunk, write_chunk_head, write_head};
use head::{NotPlain, PlainHead};

/// How much is read at once.
const READ: usize = 4 << 10;

/// A buffer that was used for more is not kept between requests.
const KEPT: usize = 64 << 10;

/// How much a client may send ahead while its request is handled.
const AHEAD: usize = 64 << 10;

/// Bodies longer than this are written from where they are.
const COPIED: usize = 16 << 10;

/// Serves plain requests, the first of which may have begun in `ahead`. Returns the bytes that hyper is to go on with; none when
/// the connection has ended.
pub(super) async fn serve_plain<S>(
    stream: &mut S,
    ahead: Bytes,
    http_server: &HttpServer,
    connection_state: &Arc<ConnectionState>,
) -> Option<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ahead = ahead.try_into_mut().unwrap_or_else(|ahead| BytesMut::from(&*ahead));
    let stream = TrackedStream::new(stream, Bytes::new(), Arc::clone(connection_state));
    let mut connection =
        FastConnection { stream, http_server, connection_state, incoming: ahead, outgoing: Vec::new() };
    if !connection.incoming.is_empty() {
        connection_state.has_read();
    }
    let mut serving = pin!(async {
        // A connection that failed is its peer's end, and no business of others.
        let ended = connection.run_requests().await.unwrap_or(FastPathEnd::Closed);
        match ended {
            FastPathEnd::Other => Some(connection.incoming.freeze()),
            FastPathEnd::Closed => {
                let _ = connection.stream.shutdown().await;
                None
            }
        }
    });
    let mut is_known = false;
    poll_fn(|cx| {
        if !is_known {
            // The waker of a task stays the same for its life.
            connection_state.on_order(cx.waker());
            is_known = true;
        }
        if connection_state.shutdown_mode() == ShutdownMode::Cut {
            Poll::Ready(None)
        } else {
            serving.as_mut().poll(cx)
        }
    })
    .await
}

struct FastConnection<'c, S> {
    stream: TrackedStream<&'c mut S>,
    http_server: &'c HttpServer,
    connection_state: &'c ConnectionState,
    /// Received bytes that are not answered yet.
    incoming: BytesMut,
    /// A reply on its way; kept for its memory.
    outgoing: Vec<u8>,
}

/// How a connection's time here ended.
enum FastPathEnd {
    Closed,
    /// Something that isn't plain begins in `incoming`.
    Other,
}

/// The next step for the received bytes.
enum NextStep {
    /// Read on: the head is not whole.
    Head,
    /// Read on, up to this length: the body is not whole.
    Body(usize),
    /// A request of this many bytes is answered.
    Answered(usize, After),
    /// Leave them to hyper.
    Leave,
}

/// State of a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Stays,
    Closes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FastConnection<'_, S> {
    async fn run_requests(&mut self) -> io::Result<FastPathEnd> {
        loop {
            if self.incoming.is_empty() && !self.read_head().await? {
                return Ok(FastPathEnd::Closed);
            }
            let whole = std::mem::take(&mut self.incoming).freeze();
            let next = match PlainHead::read_head(&whole, &self.http_server.path) {
                Err(NotPlain::Partial) if whole.len() < self.http_server.limits.head => NextStep::Head,
                Ok(mut head) if head.body <= self.http_server.limits.body && !self.is_elsewhere(&head.fields) => {
                    head.fields.origin = self.http_server.request_origin(self.connection_state);
                    let end = head.length + head.body;
                    if whole.len() >= end {
                        NextStep::Answered(end, self.answer_request(&head.fields, whole.slice(head.length..end)).await?)
                    // Hyper's way asks for the token first.
                    } else if head.body > UNASKED && self.http_server.asks_for_tokens() {
                        NextStep::Leave
                    } else {
                        NextStep::Body(end)
                    }
                }
                Ok(_) | Err(_) => NextStep::Leave,
            };
            self.give_back(whole, if let NextStep::Answered(end, _) = next { end } else { 0 });
            let goes_on = match next {
                NextStep::Head => self.read_head().await?,
                NextStep::Body(end) => self.read_body(end).await?,
                NextStep::Answered(_, after) => after == After::Stays,
                NextStep::Leave => return Ok(FastPathEnd::Other),
            };
            if !goes_on {
                return Ok(FastPathEnd::Closed);
            }
        }
    }

    /// Whether another process has the session.
    fn is_elsewhere(&self, fields: &Fields<'_>) -> bool {
        self.http_server
            .relay
            .as_ref()
            .is_some_and(|relay| relay.session_owner(fields.mcp.session_id.ascii()).is_some())
    }

    /// Takes what is behind `used` as the beginning of the next request, and the memory, where nobody else has it.
    fn give_back(&mut self, whole: Bytes, used: usize) {
        let came_meanwhile = std::mem::take(&mut self.incoming);
        self.incoming = match whole.try_into_mut() {
            Ok(mut whole) if used == whole.len() && whole.capacity() <= KEPT => {
                whole.clear();
                whole
            }
            Ok(mut whole) => {
                whole.advance(used);
                whole
            }
            Err(whole) => BytesMut::from(&whole[used..]),
        };
        self.incoming.extend_from_slice(&came_meanwhile);
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        if self.incoming.capacity() - self.incoming.len() < READ / 4 {
            // No more memory than came already, whatever the client announces.
            self.incoming.reserve(wanted.min(self.incoming.len()).max(READ));
        }
        pin!(self.stream.read_buf(&mut self.incoming)).poll(cx)
    }

    /// Reads on. `false` at the client's end, and where an idle connection is to finish.
    async fn read_head(&mut self) -> io::Result<bool> {
        if !self.incoming.is_empty() {
            self.connection_state.has_read();
        }
        poll_fn(|cx| match self.poll_fill(cx, READ) {
            Poll::Ready(read) => Poll::Ready(read.map(|read| read > 0)),
            Poll::Pending
                if self.incoming.is_empty() && self.connection_state.shutdown_mode() != ShutdownMode::Serve =>
            {
                Poll::Ready(Ok(false))
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Reads on until `end` bytes are there. `false` when that will never be.
    async fn read_body(&mut self, end: usize) -> io::Result<bool> {
        let _busy = self.connection_state.begin_request();
        let watch = self.connection_state.begin_body();
        let is_in_time = poll_fn(|cx| {
            while self.incoming.len() < end {
                match self.poll_fill(cx, end - self.incoming.len()) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    // The worker's idle check wakes this connection when the body takes too long.
                    Poll::Pending if watch.is_expired() => return Poll::Ready(Ok(false)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(Ok(true))
        });
        let is_in_time = is_in_time.await?;
        if !is_in_time {
            self.write_answer(request_body::too_slow()).await?;
        }
        Ok(is_in_time)
    }

    async fn answer_request(&mut self, fields: &Fields<'_>, body: Bytes) -> io::Result<After> {
        let _busy = self.connection_state.begin_request();
        let http_server = self.http_server;
        let mut answer = pin!(http_server.respond_whole(fields, &body, self.connection_state.account()));
        let answer = poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            // Dropping the future, when the client has gone, cancels the call.
            Poll::Pending => self.poll_gone(cx).map(Err),
        });
        let answer = answer.await?;
        self.write_answer(answer).await
    }

    /// Ready when the client goes away. Bytes that the client sends meanwhile are kept, within bounds.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.incoming.len() < AHEAD {
            match std::task::ready!(self.poll_fill(cx, READ)) {
                Ok(0) => return Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => return Poll::Ready(error),
            }
        }
        Poll::Pending
    }

    async fn write_answer(&mut self, mut answer: HttpResponse) -> io::Result<After> {
        let closes = answer.closes_connection() || self.connection_state.shutdown_mode() != ShutdownMode::Serve;
        let body = std::mem::replace(&mut answer.body, ReplyBody::Empty);
        self.outgoing.clear();
        match body {
            ReplyBody::Empty => {
                write_head(&mut self.outgoing, &answer, Some(0), closes);
                self.stream.write_all(&self.outgoing).await?;
            }
            ReplyBody::Full(bytes) if bytes.len() <= COPIED => {
                write_head(&mut self.outgoing, &answer, Some(bytes.len()), closes);
                self.outgoing.extend_from_slice(&bytes);
                self.stream.write_all(&self.outgoing).await?;
            }
            ReplyBody::Full(mut bytes) => {
                write_head(&mut self.outgoing, &answer, Some(bytes.len()), closes);
                self.stream.write_all_buf(&mut Buf::chain(&self.outgoing[..], &mut bytes)).await?;
            }
            ReplyBody::Parts(parts) => {
                let length = parts.iter().map(Bytes::len).sum();
                write_head(&mut self.outgoing, &answer, Some(length), closes);
                self.stream.write_all(&self.outgoing).await?;
                for mut part in parts {
                    self.stream.write_all_buf(&mut part).await?;
                }
            }
            // Forwarded requests and those of a mounted service never take the fast path.
            ReplyBody::Passed(_) | ReplyBody::Piecewise(_) => return Err(io::ErrorKind::Unsupported.into()),
            ReplyBody::Events(stream) => {
                write_head(&mut self.outgoing, &answer, None, closes);
                self.write_events(*stream).await?;
            }
        }
        self.stream.flush().await?;
        if self.outgoing.capacity() > KEPT {
            self.outgoing = Vec::new();
        }
        Ok(if closes { After::Closes } else { After::Stays })
    }

    /// Writes a stream to its end, behind the head that stands in `outgoing`. Events that are ready together are written
    /// together.
    async fn write_events(&mut self, mut stream: EventStream) -> io::Result<()> {
        let mut goes_on = true;
        while goes_on {
            let mut large = None;
            goes_on = poll_fn(|cx| {
                while self.outgoing.len() < KEPT {
                    match stream.poll_next(cx) {
                        Poll::Ready(Some(events)) if events.len() > COPIED => {
                            write_chunk_head(&mut self.outgoing, events.len());
                            large = Some(events);
                            break;
                        }
                        Poll::Ready(Some(events)) => write_chunk(&mut self.outgoing, &events),
                        Poll::Ready(None) => {
                            self.outgoing.extend_from_slice(LAST_CHUNK);
                            return Poll::Ready(Ok(false));
                        }
                        Poll::Pending if self.outgoing.is_empty() => return self.poll_gone(cx).map(Err),
                        Poll::Pending => break,
                    }
                }
                Poll::Ready(Ok(true))
            })
            .await?;
            self.stream.write_all(&self.outgoing).await?;
            self.outgoing.clear();
            if let Some(mut events) = large {
                self.stream.write_all_buf(&mut events).await?;
                self.outgoing.extend_from_slice(CHUNK_END);
            }
        }
        Ok(())
    }
}
