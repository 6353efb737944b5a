//! A byte stream that records its activity in a [`ConnectionState`], and may begin with bytes that were read ahead.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection_state::ConnectionState;

/// A byte stream that records its activity in a [`ConnectionState`].
pub(super) struct TrackedStream<S> {
    stream: S,
    ahead: Bytes,
    connection_state: Arc<ConnectionState>,
}

impl<S> TrackedStream<S> {
    pub(super) fn new(stream: S, ahead: Bytes, connection_state: Arc<ConnectionState>) -> Self {
        if !ahead.is_empty() {
            connection_state.has_read();
        }
        Self { stream, ahead, connection_state }
    }

    fn mark_written<T>(&self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(_) => self.connection_state.has_written(),
            Poll::Pending => self.connection_state.is_blocked(),
        }
        written
    }

    /// TLS takes bytes before the socket does: what it holds is written by a flush, or by the end.
    fn mark_rest(&self, written: &Poll<io::Result<()>>) {
        match written {
            Poll::Ready(_) => self.connection_state.is_flushed(),
            Poll::Pending => self.connection_state.is_blocked(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..length]);
            self.ahead.advance(length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection_state.has_read();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.mark_written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.mark_written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.mark_rest(&flushed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.mark_rest(&closed);
        closed
    }
}
