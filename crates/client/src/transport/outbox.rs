//! Lines on their way out, written by whoever sends them as long as the peer reads, else kept and written later.
//!
//! Constraint: whoever is given up in the middle leaves no half line behind, and a message costs no wake-up of another
//! thread. Hence no lock over an await, and no queue with a task behind it in the ordinary case.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};
use mcpace_wire::lines;
use tokio::io::AsyncWrite;

use crate::lock::lock_mutex;

pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    limit: usize,
}

struct OutboxState {
    /// `None` once it is closed.
    writer: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    backlog: BytesMut,
    /// Waker of the task that writes the backlog.
    flusher: Waker,
    closing: bool,
}

impl Outbox {
    pub(crate) fn new(writer: impl AsyncWrite + Send + 'static, limit: usize) -> Self {
        let state = OutboxState {
            writer: Some(Box::pin(writer)),
            backlog: BytesMut::new(),
            flusher: Waker::noop().clone(),
            closing: false,
        };
        Self { state: Mutex::new(state), limit }
    }

    /// Sends a message as a line.
    pub(crate) fn send_line(&self, json: &[u8]) -> io::Result<()> {
        let mut state = lock_mutex(&self.state);
        if state.writer.is_none() || state.closing {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if state.backlog.len() + json.len() > self.limit {
            return Err(io::Error::other(format!("it has not read {} bytes", state.backlog.len())));
        }
        let idle = state.backlog.is_empty();
        let mut line = Vec::with_capacity(json.len() + 1);
        lines::encode_line(json, &mut line);
        state.backlog.extend_from_slice(&line);
        if !idle {
            return Ok(());
        }
        let flusher = state.flusher.clone();
        match state.poll_write(&mut Context::from_waker(&flusher)) {
            Poll::Ready(Err(error)) => {
                state.writer = None;
                Err(error)
            }
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Writes what is kept, until the stream is closed. Exactly one task does so.
    pub(crate) async fn write_queued(&self) {
        poll_fn(|cx| {
            let mut state = lock_mutex(&self.state);
            state.flusher = cx.waker().clone();
            let written = state.poll_write(cx);
            if matches!(written, Poll::Ready(Err(_))) || (state.closing && written.is_ready()) {
                state.writer = None;
            }
            if state.writer.is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Closes the stream when all is written.
    pub(crate) fn close_input(&self) {
        let mut state = lock_mutex(&self.state);
        state.closing = true;
        if state.backlog.is_empty() {
            state.writer = None;
        }
        state.flusher.wake_by_ref();
    }
}

impl OutboxState {
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writer) = &mut self.writer else { return Poll::Ready(Ok(())) };
        while !self.backlog.is_empty() {
            match writer.as_mut().poll_write(cx, &self.backlog) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.backlog.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        writer.as_mut().poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_reads_late_gets_all_and_one_that_never_reads_is_bounded() {
        let (ours, mut theirs) = duplex(16);
        let outbox = Arc::new(Outbox::new(ours, 64));
        let task = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.write_queued().await }
        });
        for _ in 0..3 {
            outbox.send_line(br#"{"a":"0123456789"}"#).unwrap();
        }
        assert!(outbox.send_line(&[b'x'; 64]).unwrap_err().to_string().contains("not read"));
        outbox.close_input();
        assert!(outbox.send_line(b"{}").is_err());
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "{\"a\":\"0123456789\"}\n".repeat(3));
        task.await.unwrap();
    }
}
