//! Queue of the messages that wait to be written. One queue keeps all messages in order.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcpace_wire::lines;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::{Gone, Outlet};

/// Messages are gathered into writes of about this many bytes.
const WRITE: usize = 64 * 1024;

/// Memory of a queued message besides its bytes.
const OVERHEAD: usize = 64;

/// The queue towards the client.
#[derive(Clone)]
pub(super) struct Outbox {
    shared: Arc<OutboxShared>,
}

struct OutboxShared {
    limit: usize,
    queue: Mutex<MessageQueue>,
    filled: Notify,
    emptied: Notify,
}

#[derive(Default)]
struct MessageQueue {
    messages: VecDeque<Bytes>,
    /// Bytes of the queued messages and of the messages that are being written.
    bytes: usize,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        let (filled, emptied) = (Notify::new(), Notify::new());
        Self { shared: Arc::new(OutboxShared { limit, queue: Mutex::default(), filled, emptied }) }
    }

    /// Takes a reply, whether there is room or not: its number is bounded by that of the requests in flight.
    pub(super) fn add_reply(&self, message: Bytes) {
        self.with_queue(|queue| queue.push(message));
        self.shared.filled.notify_one();
    }

    /// No more messages will come; [`Outbox::write_to`] ends when all are written.
    pub(super) fn close(&self) {
        self.with_queue(|queue| queue.closed = true);
        self.shared.filled.notify_one();
    }

    /// Waits until less waits to be written than the limit. For one caller at a time.
    pub(super) async fn wait_for_room(&self) {
        while self.with_queue(|queue| queue.bytes >= self.shared.limit) {
            self.shared.emptied.notified().await;
        }
    }

    /// Writes messages as they come, until [`Outbox::close`] or an error. For one caller at a time.
    pub(super) async fn write_to<W: AsyncWrite>(&self, output: &mut Pin<&mut W>) -> io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            let (cost, closed) = self.with_queue(|queue| (queue.take_messages(&mut buffer), queue.closed));
            if cost > 0 {
                output.write_all(&buffer).await?;
                output.flush().await?;
                buffer.clear();
                buffer.shrink_to(WRITE);
                self.with_queue(|queue| queue.bytes -= cost);
                self.shared.emptied.notify_one();
            } else if closed {
                return Ok(());
            } else {
                self.shared.filled.notified().await;
            }
        }
    }

    fn with_queue<T>(&self, f: impl FnOnce(&mut MessageQueue) -> T) -> T {
        // Nothing in a critical section panics half-way through a change.
        f(&mut self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Outlet for Outbox {
    fn send(&self, message: Bytes) -> Result<(), Gone> {
        let taken = self.with_queue(|queue| {
            let fits = !queue.closed && queue.bytes < self.shared.limit;
            if fits {
                queue.push(message);
            }
            fits
        });
        if !taken {
            return Err(Gone);
        }
        self.shared.filled.notify_one();
        Ok(())
    }
}

impl MessageQueue {
    fn push(&mut self, message: Bytes) {
        self.bytes += message.len() + OVERHEAD;
        self.messages.push_back(message);
    }

    /// Moves messages into one write; gives what they count for.
    fn take_messages(&mut self, buffer: &mut Vec<u8>) -> usize {
        let mut cost = 0;
        while buffer.len() < WRITE {
            let Some(message) = self.messages.pop_front() else { break };
            lines::encode_line(&message, buffer);
            cost += message.len() + OVERHEAD;
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_handler_that_speaks_to_a_client_that_does_not_read_is_told_so_and_replies_are_kept() {
        let outbox = Outbox::new(1_000);
        let send = || outbox.send(Bytes::from_static(b"[]"));
        let taken = (0..100).take_while(|_| send().is_ok()).count();
        assert!((1..=1_000 / OVERHEAD + 1).contains(&taken), "{taken}");
        outbox.add_reply(Bytes::from_static(b"{}"));
        outbox.close();
        assert_eq!(outbox.send(Bytes::new()), Err(Gone), "closed");
        let mut written = Vec::new();
        let output = std::pin::pin!(&mut written);
        outbox.write_to(&mut { output }).await.unwrap();
        assert_eq!(written, ["[]\n".repeat(taken), "{}\n".to_owned()].concat().into_bytes());
    }
}
