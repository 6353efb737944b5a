//! A reply's body, read one step ahead: an end that the server sent with its last bytes goes on with them.
//!
//! hyper hands a body on as soon as a piece of it is there, and its end one turn of the runtime later. Passed on like that, a
//! client that leaves with its result (mcp-go, of chunked JSON) finds the end missing and gives its connection up, where it
//! would have kept it without the recorder. So a piece waits for one turn, in which whatever was read with it comes too,
//! and never for the server.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;
use mcpace_record::Nanos;
use tokio::task::JoinHandle;

use super::meter::Meter;

/// Result of reading a body once, and the time of the read.
pub(super) enum BodyRead {
    Frame(Nanos, Frame<Bytes>),
    End(Nanos),
    Broke(hyper::Error),
}

/// The steps that were read ahead, two at most.
#[derive(Default)]
pub(super) struct Ahead {
    steps: VecDeque<BodyRead>,
    /// Task of the turn that the first step waits for, and whether it has ended.
    turn: Option<JoinHandle<()>>,
    waited: bool,
}

impl Ahead {
    /// Reads what is there already. Before the head is handed on, so that all of it goes together.
    pub(super) async fn read_available(&mut self, body: &mut Incoming, meter: &Meter) {
        poll_fn(|cx| self.poll_look(body, meter, cx)).await;
    }

    /// The next step.
    pub(super) fn poll_step(&mut self, body: &mut Incoming, meter: &Meter, cx: &mut Context<'_>) -> Poll<BodyRead> {
        ready!(self.poll_look(body, meter, cx));
        (self.turn, self.waited) = (None, false);
        self.steps.pop_front().map_or(Poll::Pending, Poll::Ready)
    }

    /// When the end was read, where nothing is left before it.
    pub(super) fn end_time(&self) -> Option<Nanos> {
        match self.steps.front() {
            Some(BodyRead::End(at)) => Some(*at),
            _ => None,
        }
    }

    /// Data that was read and is not handed on.
    pub(super) fn take_unsent(&mut self) -> impl Iterator<Item = (Nanos, Bytes)> {
        self.steps.drain(..).filter_map(|step| match step {
            BodyRead::Frame(at, frame) => Some((at, frame.into_data().ok()?)),
            BodyRead::End(_) | BodyRead::Broke(_) => None,
        })
    }

    /// Bytes that were read and are not handed on.
    pub(super) fn unsent_bytes(&self) -> u64 {
        let frames = self.steps.iter().filter_map(|step| match step {
            BodyRead::Frame(_, frame) => frame.data_ref(),
            BodyRead::End(_) | BodyRead::Broke(_) => None,
        });
        frames.map(|bytes| bytes.len() as u64).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Ready when the first step is there and what was read with it, and where nothing is there.
    fn poll_look(&mut self, body: &mut Incoming, meter: &Meter, cx: &mut Context<'_>) -> Poll<()> {
        if self.steps.is_empty() {
            match poll_body(body, meter, cx) {
                Poll::Ready(step) => self.steps.push_back(step),
                Poll::Pending => return Poll::Ready(()),
            }
        }
        // A body of known size says itself that a frame is its last one.
        let known = body.is_end_stream() || body.size_hint().exact().is_some();
        if known || self.steps.len() > 1 || !matches!(self.steps.front(), Some(BodyRead::Frame(..))) {
            return Poll::Ready(());
        }
        match poll_body(body, meter, cx) {
            Poll::Ready(step) => self.steps.push_back(step),
            Poll::Pending if !self.waited => {
                // It runs behind whatever is to run already, the connection's own task among it, which has the rest of its
                // bytes. Waking ourselves wouldn't do: hyper may poll a body again within one turn.
                let turn = self.turn.get_or_insert_with(|| tokio::spawn(async {}));
                self.waited = Pin::new(turn).poll(cx).is_ready();
                if !self.waited {
                    return Poll::Pending;
                }
                // That turn may have brought more bytes, so the body is polled once more.
                return self.poll_look(body, meter, cx);
            }
            Poll::Pending => {}
        }
        Poll::Ready(())
    }
}

fn poll_body(body: &mut Incoming, meter: &Meter, cx: &mut Context<'_>) -> Poll<BodyRead> {
    let step = ready!(Pin::new(body).poll_frame(cx));
    let at = meter.last_read();
    Poll::Ready(match step {
        Some(Ok(frame)) => BodyRead::Frame(at, frame),
        Some(Err(error)) => BodyRead::Broke(error),
        None => BodyRead::End(at),
    })
}
