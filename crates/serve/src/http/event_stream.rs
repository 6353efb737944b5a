//! A body that is a stream of events: those of a log, with comments where it is silent for long.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::event_log::LogReader;
use super::in_flight::Calls;

/// A comment, which clients pass over.
const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Body that sends the events of one log. Dropping it, as a disconnect does, cancels the calls that it drives.
pub(super) struct EventStream {
    reader: LogReader,
    /// The calls that this stream drives itself, until all are answered.
    calls: Option<Calls>,
    silence: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// When it ends whatever there is to say.
    until: Option<Pin<Box<Sleep>>>,
    ended: bool,
    /// Kept for as long as the stream lasts.
    _held: Option<Arc<dyn Send + Sync>>,
}

impl EventStream {
    pub(super) fn new(reader: LogReader, silence: Duration) -> Self {
        Self { reader, calls: None, silence, timer: None, until: None, ended: false, _held: None }
    }

    /// With calls to be driven; their replies end the stream.
    pub(super) fn with_calls(mut self, calls: Calls) -> Self {
        self.calls = Some(calls);
        self
    }

    /// With something that has to live as long.
    pub(super) fn with_owner(mut self, held: Arc<dyn Send + Sync>) -> Self {
        self._held = Some(held);
        self
    }

    /// For so long only, where that is said: whoever reads comes back with another token.
    pub(super) fn with_lifetime(mut self, time: Option<Duration>) -> Self {
        self.until = time.map(|time| Box::pin(tokio::time::sleep(time)));
        self
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.drive_calls(cx);
        if self.until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_ready()) {
            self.ended = true;
            return Poll::Ready(None);
        }
        if let Poll::Ready(events) = self.reader.poll(cx) {
            // So that the last event and the end of the body go out together.
            self.ended = self.reader.is_at_end();
            self.restart_silence();
            return Poll::Ready(events);
        }
        let silence = self.silence;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(silence)));
        std::task::ready!(timer.as_mut().poll(cx));
        self.restart_silence();
        // The comment is followed by another poll, which waits on the timer again.
        Poll::Ready(Some(KEEP_ALIVE))
    }

    fn drive_calls(&mut self, cx: &mut Context<'_>) {
        let Some(calls) = &mut self.calls else { return };
        let all = calls.poll_all(cx);
        calls.take_done().for_each(|finished| self.reader.log().push_finished(finished));
        if all.is_ready() {
            self.reader.log().end_stream();
            self.calls = None;
        }
    }

    /// The silence begins anew.
    fn restart_silence(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(Instant::now() + self.silence);
        }
    }
}
