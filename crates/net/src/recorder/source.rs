//! Where a passing body comes from: its own connection, chunk by chunk, or memory.

use std::sync::Arc;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use hyper::body::Incoming;

use super::meter::Meter;

/// Source of a passing body: its own connection, chunk by chunk, or memory.
pub(super) enum BodySource {
    /// Read as it comes; the meter is its connection's.
    Streamed { body: Incoming, meter: Arc<Meter> },
    /// Read, or made, before; `None` once it was taken.
    Whole(Option<Bytes>),
}

impl BodySource {
    pub(super) fn from_bytes(bytes: Bytes) -> Self {
        BodySource::Whole((!bytes.is_empty()).then_some(bytes))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            BodySource::Streamed { body, .. } => body.is_end_stream(),
            BodySource::Whole(bytes) => bytes.is_none(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            BodySource::Streamed { body, .. } => body.size_hint(),
            BodySource::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}
