//! A socket with a stamp on every read and write.
//!
//! hyper reads ahead and writes when it likes; the stamps that count are the socket's, so they are taken below it.
//! Deliberately absent: buffering, and what the stamps are for. A [`Watch`] knows that.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcpace_record::Nanos;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::{Stream, monotonic_now};

/// Hears of everything that happens to a connection, at once and in order.
pub(crate) trait Watch {
    /// The connection stands.
    fn on_open(&self, _: &TcpStream) {}
    /// These bytes were read at `at`.
    fn on_read(&self, socket: &TcpStream, at: Nanos, bytes: &[u8]);
    /// Bytes were handed to the socket at `at`.
    fn on_write(&self, at: Nanos);
    /// All that was written is with the socket.
    fn on_flush(&self) {}
    /// The peer ended the connection at `at`: in order, or as the error says.
    fn peer_ended(&self, at: Nanos, error: Option<&io::Error>);
    /// Our own end is about to be closed.
    fn on_close(&self, socket: &TcpStream);
}

/// A stream that has a TCP socket at its bottom.
pub(crate) trait OverTcp: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The socket.
    fn tcp_stream(&self) -> &TcpStream;
}

impl OverTcp for TcpStream {
    fn tcp_stream(&self) -> &TcpStream {
        self
    }
}

impl OverTcp for Stream {
    fn tcp_stream(&self) -> &TcpStream {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }
}

/// The stream itself, watched.
pub(crate) struct Tap<S: OverTcp, W: Watch> {
    stream: S,
    watch: Arc<W>,
}

impl<S: OverTcp, W: Watch> Tap<S, W> {
    pub(crate) fn new(stream: S, watch: Arc<W>) -> Self {
        watch.on_open(stream.tcp_stream());
        Self { stream, watch }
    }

    fn after_write(&self, at: Nanos, outcome: &io::Result<usize>) {
        match outcome {
            Ok(_) => self.watch.on_write(at),
            Err(error) => self.watch.peer_ended(monotonic_now(), Some(error)),
        }
    }
}

impl<S: OverTcp, W: Watch> AsyncRead for Tap<S, W> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_read(cx, buffer));
        let at = monotonic_now();
        match &outcome {
            Ok(()) if buffer.filled().len() > before => {
                tap.watch.on_read(tap.stream.tcp_stream(), at, &buffer.filled()[before..]);
            }
            Ok(()) if buffer.remaining() > 0 => tap.watch.peer_ended(at, None),
            Ok(()) => {}
            Err(error) => tap.watch.peer_ended(at, Some(error)),
        }
        Poll::Ready(outcome)
    }
}

impl<S: OverTcp, W: Watch> AsyncWrite for Tap<S, W> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        // Stamped before the call: on loopback the peer may already be running when it returns.
        let at = monotonic_now();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_write(cx, bytes));
        tap.after_write(at, &outcome);
        Poll::Ready(outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        let at = monotonic_now();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_write_vectored(cx, slices));
        tap.after_write(at, &outcome);
        Poll::Ready(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let outcome = ready!(Pin::new(&mut tap.stream).poll_flush(cx));
        if outcome.is_ok() {
            tap.watch.on_flush();
        }
        Poll::Ready(outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl<S: OverTcp, W: Watch> Drop for Tap<S, W> {
    fn drop(&mut self) {
        self.watch.on_close(self.stream.tcp_stream());
    }
}
