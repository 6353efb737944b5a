//! The way of messages to the client, ahead of a reply or without one.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

/// Takes JSON-RPC messages to the client.
pub trait Outlet: Send + Sync {
    /// Hands a message over; never blocks, bounded inside.
    ///
    /// # Errors
    /// The client is gone, too slow, or this way carries nothing (a stateless JSON reply).
    fn send(&self, message: Bytes) -> Result<(), Gone>;

    /// Sends a message that accompanies the result of a call. May wait briefly until the client reads it.
    ///
    /// # Errors
    /// As [`Outlet::send`].
    fn tell(&self, message: Bytes) -> Result<(), Gone> {
        self.send(message)
    }

    /// For a way that carries nothing yet, but may soon: ends once it carries more than it did. `None` where it never will.
    fn opens(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }

    /// Lets the client's connection go, not the call: the client takes the stream up again when it wants to know how the
    /// call went on (2025-11-25, polling). Where streams can't be taken up again nothing happens.
    fn release(&self) {}
}

/// Nobody is there to take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client can't be reached")]
pub struct Gone;
