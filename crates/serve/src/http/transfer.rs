//! One reply on its way to the client, over hyper: in progress until its last byte has left hyper's and h2's buffers.
//!
//! A full socket says nothing of an HTTP/2 stream: a client with a closed flow-control window leaves the socket empty and the reply
//! in memory. So the body is handed over in pieces, each piece reports its bytes as they are written, and the next piece waits for the
//! one before. A transfer that has bytes to send and sends none is blocked; [`super::connection_state::IdleCheck`] decides for how long.
//!
//! Constraint: no timer for a transfer. HTTP/1.1 has one reply at a time and a socket that fills up, so its bodies pass unchanged.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;

use super::connection_state::{ConnectionState, TransferProgress, WatchedTransfer};
use super::reply_body::ReplyBody;

/// Bytes of one HTTP/2 reply that h2 holds at a time. Four of the frames that most clients take.
const PIECE: usize = 64 << 10;
/// The end of a stream travels with a last piece of up to this size. The end of a longer one waits until the piece is written, so that
/// the stream can still be reset.
const ENDING: usize = 16 << 10;

/// A reply on its way to the client. It counts as a request in progress of its connection until it is dropped. Its last piece drops it.
#[derive(Debug)]
pub(super) struct Transfer {
    connection_state: Arc<ConnectionState>,
    /// Bytes were written; counts up.
    moves: AtomicU32,
    /// There is something to send. False while the body itself has nothing to give.
    blocked: AtomicBool,
    /// Bytes that were handed over and are not written.
    unwritten: AtomicUsize,
    /// The body waits until they are written.
    awaits: AtomicBool,
    /// The stream's task ended; all that is left lies in h2's queue, where nothing can reset it.
    is_queued: AtomicBool,
    expired: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// State of the worker's look alone: the moves that it saw, and for how many looks they stayed the same.
    seen: AtomicU32,
    looks: AtomicU32,
}

impl Transfer {
    pub(super) fn new(connection_state: &Arc<ConnectionState>) -> Arc<Self> {
        connection_state.add_request();
        Arc::new(Self {
            connection_state: Arc::clone(connection_state),
            moves: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            unwritten: AtomicUsize::new(0),
            awaits: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            expired: AtomicBool::new(false),
            waker: Mutex::default(),
            seen: AtomicU32::new(0),
            looks: AtomicU32::new(0),
        })
    }

    fn is_expired(&self) -> bool {
        self.expired.load(SeqCst)
    }

    fn wake_task(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }

    fn hand_over(self: &Arc<Self>, bytes: Bytes) -> Piece {
        self.moves.fetch_add(1, Relaxed);
        self.blocked.store(true, Relaxed);
        self.unwritten.fetch_add(bytes.len(), SeqCst);
        Piece { left: bytes.len(), bytes, transfer: Arc::clone(self) }
    }

    fn record_written(&self, count: usize) {
        self.moves.fetch_add(1, Relaxed);
        let left = self.unwritten.fetch_sub(count, SeqCst) - count;
        if left == 0 && self.awaits.swap(false, SeqCst) {
            self.wake_task();
        }
    }

    /// Ready once all that was handed over is written.
    fn poll_written(&self) -> Poll<()> {
        self.awaits.store(true, SeqCst);
        if self.unwritten.load(SeqCst) > 0 {
            return Poll::Pending;
        }
        self.awaits.store(false, SeqCst);
        Poll::Ready(())
    }
}

impl WatchedTransfer for Transfer {
    fn check_progress(&self) -> TransferProgress {
        let moves = self.moves.load(Relaxed);
        let stays = self.seen.swap(moves, Relaxed) == moves && self.blocked.load(Relaxed);
        let looks = if stays { self.looks.load(Relaxed) + 1 } else { 0 };
        self.looks.store(looks, Relaxed);
        match looks {
            0 => TransferProgress::Moves,
            looks => TransferProgress::Blocked { looks, is_queued: self.is_queued.load(Relaxed) },
        }
    }

    fn reset_stream(&self) {
        self.expired.store(true, SeqCst);
        self.wake_task();
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.connection_state.end_request();
    }
}

/// Bytes on their way, which report how far they are.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    /// Bytes that count as unwritten yet.
    left: usize,
    transfer: Arc<Transfer>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        // The last bytes count as written when the piece goes: some buffers advance as they copy, and keep the piece until it is sent.
        let written = count.min(self.left.saturating_sub(1));
        self.left -= written;
        if written > 0 {
            self.transfer.record_written(written);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.transfer.record_written(self.left);
    }
}

/// A reply's body that keeps its transfer up to date.
pub(super) struct TransferBody {
    body: ReplyBody,
    transfer: Arc<Transfer>,
    is_http2: bool,
    /// Bytes of the body that are not handed over yet.
    rest: Bytes,
    /// The last piece was short enough for the stream to end with it.
    ends_with_piece: bool,
}

/// The client took nothing of a reply for as long as it may.
#[derive(Debug)]
pub(super) struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client takes nothing of the reply")
    }
}

impl std::error::Error for Stalled {}

impl TransferBody {
    pub(super) fn new(body: ReplyBody, transfer: Arc<Transfer>, is_http2: bool) -> Self {
        transfer.blocked.store(true, Relaxed);
        Self { body, transfer, is_http2, rest: Bytes::new(), ends_with_piece: true }
    }
}

impl Body for TransferBody {
    type Data = Piece;
    type Error = Stalled;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Stalled>>> {
        if self.transfer.is_expired() {
            return Poll::Ready(Some(Err(Stalled)));
        }
        if self.is_http2 {
            // The stream's task is woken.
            ready!(self.transfer.poll_written());
        }
        if self.rest.is_empty() {
            self.transfer.blocked.store(false, Relaxed);
            match ready!(self.body.poll_next(cx)) {
                Some(data) => self.rest = data,
                None => return Poll::Ready(None),
            }
        }
        let length = if self.is_http2 { self.rest.len().min(PIECE) } else { self.rest.len() };
        let bytes = self.rest.split_to(length);
        self.ends_with_piece = bytes.len() <= ENDING;
        Poll::Ready(Some(Ok(Frame::data(self.transfer.hand_over(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream() && (self.ends_with_piece || !self.is_http2)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        hint.exact().map_or(hint, |left| SizeHint::with_exact(left + self.rest.len() as u64))
    }
}

tokio::task_local! {
    static STREAM: Arc<Transfer>;
}

/// The transfer of the HTTP/2 stream whose task this is.
pub(super) fn of_stream() -> Option<Arc<Transfer>> {
    STREAM.try_with(Arc::clone).ok()
}

/// Runs the streams of one HTTP/2 connection, each as a task with a [`Transfer`] that its worker looks at.
#[derive(Clone)]
pub(super) struct StreamExecutor(pub(super) Arc<ConnectionState>);

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let transfer = Transfer::new(&self.0);
        let watched: Weak<dyn WatchedTransfer> = Arc::<Transfer>::downgrade(&transfer);
        self.0.watch_transfer(watched);
        tokio::spawn(STREAM.scope(Arc::clone(&transfer), run_stream(stream, transfer)));
    }
}

/// Drives a stream to its end, or until its transfer expires. The body then ends with an error, by which hyper resets the stream. Where
/// hyper waits for the window and asks the body for nothing, h2 has no bytes of the stream, and dropping it resets it.
async fn run_stream(stream: impl Future, transfer: Arc<Transfer>) {
    let mut stream = pin!(stream);
    poll_fn(|cx| {
        {
            let mut waker = transfer.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        if stream.as_mut().poll(cx).is_ready() || transfer.is_expired() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    transfer.is_queued.store(true, Relaxed);
}
