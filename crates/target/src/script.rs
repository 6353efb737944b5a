//! A reply's body as a script: write these bytes, flush, wait, write those, break off.
//!
//! hyper puts into one write what a body yields without a pause. So a pause is the only way to say
//! where one write ends, and [`ScriptStep::Flush`] is the shortest pause there is.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// One thing that a body does.
pub(crate) enum ScriptStep {
    /// Yields bytes.
    Write(Bytes),
    /// Lets everything yielded so far go out.
    Flush,
    /// Yields nothing until the future is done.
    Wait(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Breaks the connection.
    Abort,
}

/// A body that follows a script.
pub(crate) struct Script {
    steps: VecDeque<ScriptStep>,
    /// Value of `Content-Length`; without it the body is chunked.
    length: Option<u64>,
    flushing: bool,
}

impl Script {
    /// A body of unknown length.
    pub(crate) fn chunked(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self { steps: steps.into_iter().collect(), length: None, flushing: false }
    }

    /// A body that promises `length` bytes, which its steps may fail to write.
    pub(crate) fn with_length(length: usize, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        Self { length: Some(length as u64), ..Self::chunked(steps) }
    }

    /// A plain body.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let length = bytes.len();
        Self::with_length(length, (!bytes.is_empty()).then_some(ScriptStep::Write(bytes)))
    }

    /// No body.
    pub(crate) fn empty() -> Self {
        Self::whole(Bytes::new())
    }
}

/// The script broke its reply off on purpose.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the scripted reply breaks off here")
    }
}

impl std::error::Error for BrokenOff {}

impl From<Infallible> for BrokenOff {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        loop {
            match self.steps.front_mut() {
                None => return Poll::Ready(None),
                Some(ScriptStep::Write(bytes)) => {
                    let frame = Frame::data(std::mem::take(bytes));
                    self.steps.pop_front();
                    return Poll::Ready(Some(Ok(frame)));
                }
                Some(ScriptStep::Flush) => {
                    // Pending once: hyper flushes whenever its body has nothing to give.
                    if !self.flushing {
                        self.flushing = true;
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    self.flushing = false;
                }
                Some(ScriptStep::Wait(wait)) => {
                    if wait.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
                Some(ScriptStep::Abort) => return Poll::Ready(Some(Err(BrokenOff))),
            }
            self.steps.pop_front();
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn poll(script: &mut Script) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(script).poll_frame(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_flush_is_one_pause_between_two_writes() {
        let write = |bytes: &'static [u8]| ScriptStep::Write(Bytes::from_static(bytes));
        let mut script = Script::chunked([write(b"a"), ScriptStep::Flush, write(b"b")]);
        assert!(matches!(poll(&mut script), Poll::Ready(Some(Ok(_)))));
        assert!(poll(&mut script).is_pending());
        assert!(matches!(poll(&mut script), Poll::Ready(Some(Ok(_)))));
        assert!(matches!(poll(&mut script), Poll::Ready(None)));
    }

    #[test]
    fn an_abort_is_an_error_and_a_length_is_promised_whatever_comes() {
        let mut script = Script::with_length(5, [ScriptStep::Abort]);
        assert_eq!(script.size_hint().exact(), Some(5));
        assert!(matches!(poll(&mut script), Poll::Ready(Some(Err(BrokenOff)))));
        assert!(Script::empty().is_end_stream());
    }
}
