//! Other paths than MCP's: a service of somebody else's beside the endpoint, on the same port.
//!
//! Constraint: bounded by the transport's limits on bodies and silence; whoever asks has passed the check of `Host`. Which
//! pages may call, and who may see what, is the service's own to say. Upgrades are not passed on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Answers requests for paths that are not MCP's.
pub trait Fallback: Send + Sync + 'static {
    /// Takes one request; its extensions have the [`crate::Ends`] of its connection. Dropped when the client goes away before the response has begun; later it is the body that finds
    /// nobody there.
    fn call_service(&self, request: Request<Upload>) -> Responding;
}

/// A response on its way. Its body ends when the sender goes; it may hold back a sender for as long as the client reads
/// slowly.
pub type Responding = Pin<Box<dyn Future<Output = Response<mpsc::Receiver<Bytes>>> + Send>>;

/// A [`Fallback`], among the options.
#[derive(Clone)]
pub struct MountedService(pub(super) Arc<dyn Fallback>);

impl MountedService {
    /// Wraps a service.
    #[must_use]
    pub fn new(service: impl Fallback) -> Self {
        Self(Arc::new(service))
    }
}

impl std::fmt::Debug for MountedService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MountedService")
    }
}

/// A request's body, piece by piece.
#[derive(Debug)]
pub struct Upload {
    body: Incoming,
    left: usize,
    /// How much longer the client may let itself be waited for, in all.
    patience: Duration,
    /// Start of the current wait for the client. A wait that is dropped and begun again keeps its start.
    waiting: Option<Instant>,
}

impl Upload {
    /// `left` bytes at most, for which the client may let itself be awaited `patience` in all.
    pub(super) fn new(body: Incoming, left: usize, patience: Duration) -> Self {
        Self { body, left, patience, waiting: None }
    }
}

/// A body that will not be whole: it broke off, is too long, or came too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body broke off, is too long, or came too slowly")]
pub struct BrokenOff;

impl Upload {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// [`BrokenOff`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, BrokenOff> {
        loop {
            let since = *self.waiting.get_or_insert_with(Instant::now);
            let frame = tokio::time::timeout_at(since + self.patience, self.body.frame()).await;
            let frame = frame.map_err(|_| BrokenOff)?;
            self.waiting = None;
            // The time that the service takes between two pieces is not charged to the client.
            self.patience = self.patience.saturating_sub(since.elapsed());
            let Some(frame) = frame else { return Ok(None) };
            // Trailers are passed over.
            let Ok(data) = frame.map_err(|_| BrokenOff)?.into_data() else { continue };
            self.left = self.left.checked_sub(data.len()).ok_or(BrokenOff)?;
            return Ok(Some(data));
        }
    }
}
