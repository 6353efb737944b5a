//! The response body that hyper sends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;
use tokio::sync::mpsc;

use super::event_stream::EventStream;
use super::held_results::COUNTED;

/// A reply's body. One that is known whole goes out in one write with its head.
pub(super) enum ReplyBody {
    Empty,
    Full(Bytes),
    /// Known whole, too: large parts stay where they are.
    Parts(VecDeque<Bytes>),
    Events(Box<EventStream>),
    /// As somebody else makes it.
    Piecewise(mpsc::Receiver<Bytes>),
    /// Another process answers.
    Passed(Box<Incoming>),
}

impl ReplyBody {
    /// A body of all parts, one after the other. Short ones are put together.
    pub(super) fn of_parts(parts: impl IntoIterator<Item = Bytes>) -> Self {
        let (mut whole, mut short) = (VecDeque::new(), Vec::new());
        for part in parts {
            if part.len() < COUNTED {
                short.extend_from_slice(&part);
                continue;
            }
            if !short.is_empty() {
                whole.push_back(std::mem::take(&mut short).into());
            }
            whole.push_back(part);
        }
        if whole.is_empty() {
            return ReplyBody::Full(short.into());
        }
        if !short.is_empty() {
            whole.push_back(short.into());
        }
        match whole.pop_front() {
            Some(only) if whole.is_empty() => ReplyBody::Full(only),
            first => {
                first.into_iter().for_each(|first| whole.push_front(first));
                ReplyBody::Parts(whole)
            }
        }
    }

    /// The next bytes; `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(match self {
            ReplyBody::Empty => None,
            ReplyBody::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = ReplyBody::Empty;
                Some(bytes)
            }
            ReplyBody::Parts(parts) => parts.pop_front(),
            ReplyBody::Events(stream) => std::task::ready!(stream.poll_next(cx)),
            ReplyBody::Piecewise(pieces) => std::task::ready!(pieces.poll_recv(cx)),
            // One that breaks off ends early: shorter than was announced, or a stream without its result.
            ReplyBody::Passed(body) => match std::task::ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data().ok(),
                Some(Err(_)) | None => None,
            },
        })
    }

    /// Whether [`ReplyBody::poll_next`] is known to give nothing more.
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Empty => true,
            ReplyBody::Full(bytes) => bytes.is_empty(),
            ReplyBody::Parts(parts) => parts.is_empty(),
            ReplyBody::Events(stream) => stream.has_ended(),
            ReplyBody::Piecewise(pieces) => pieces.is_closed() && pieces.is_empty(),
            ReplyBody::Passed(body) => body.is_end_stream(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Empty => SizeHint::with_exact(0),
            ReplyBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ReplyBody::Parts(parts) => SizeHint::with_exact(parts.iter().map(|part| part.len() as u64).sum()),
            ReplyBody::Events(_) | ReplyBody::Piecewise(_) => SizeHint::default(),
            ReplyBody::Passed(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn parts(lengths: &[usize]) -> Vec<usize> {
        let mut body = ReplyBody::of_parts(lengths.iter().map(|&length| Bytes::from(vec![b'x'; length])));
        let whole = body.size_hint().exact();
        assert_eq!(whole, Some(lengths.iter().map(|&length| length as u64).sum()));
        let mut parts = Vec::new();
        while !body.is_end_stream() {
            match body.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(part)) => parts.push(part.len()),
                _ => panic!("known whole"),
            }
        }
        parts
    }

    #[test]
    fn short_parts_are_put_together_and_large_ones_stay() {
        assert!(parts(&[]).is_empty());
        assert_eq!(parts(&[1, 2, 3]), [6]);
        assert_eq!(parts(&[COUNTED]), [COUNTED]);
        assert_eq!(parts(&[1, COUNTED, 2, 3]), [1, COUNTED, 5]);
        assert_eq!(parts(&[COUNTED, COUNTED + 1]), [COUNTED, COUNTED + 1]);
    }
}
