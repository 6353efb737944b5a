//! Observers of requests: the seam for traces and metrics beyond the `tracing` span that each request has.
//!
//! Constraint: without an observer a request pays one branch. An observer is told of a request before its handler runs, so
//! that what the handler does can be part of it ([`current_operation`]), and once more at its end; both on the thread that reads
//! requests, where nobody may wait.
//!
//! Deliberately absent: requests that dispatch refused before it knew their method. Their names would be the peer's.

use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::Method;

use crate::headers::Headers;

/// Is told of requests.
pub trait Observer: Send + Sync + 'static {
    /// A request goes to its handler. `None`: nobody wants to know more of this one.
    fn begin(&self, begun: &Begun<'_>) -> Option<Arc<dyn Operation>>;
}

/// One request that an observer wants to know more of. Handlers find it by [`current_operation`] and know their maker's by its type.
pub trait Operation: Any + Send + Sync {
    /// Its reply is ready, or nobody waits for it any more. Called once.
    fn end(self: Arc<Self>, ended: &EndedRequest<'_>);
}

/// Data known about a request before its handler runs. All text except the target comes from the peer.
#[derive(Debug)]
pub struct Begun<'a> {
    /// Requested method.
    pub method: Method,
    /// The tool or the prompt, where there is one of that name: others would be without number.
    pub target: Option<&'a str>,
    /// The resource.
    pub uri: Option<&'a str>,
    /// The request's id.
    pub id: &'a Id<'a>,
    /// The revision that it is read by.
    pub revision: Revision,
    /// The session's id, where HTTP has one.
    pub session: Option<&'a str>,
    /// The client's context, out of `_meta` (SEP-414).
    pub trace: Trace<'a>,
    /// The headers that it came with, where it came over HTTP.
    pub headers: Option<Headers>,
    /// When the transport had read the whole message, and when dispatch took it over.
    pub received: Instant,
    /// See `received`.
    pub entered: Instant,
}

/// W3C Trace Context and Baggage, as they came: not checked, but not long either.
#[derive(Debug, Default)]
pub struct Trace<'a> {
    /// `traceparent`.
    pub parent: Option<Cow<'a, str>>,
    /// `tracestate`.
    pub state: Option<Cow<'a, str>>,
    /// `baggage`.
    pub baggage: Option<Cow<'a, str>>,
}

impl Trace<'_> {
    /// Without what is longer than anybody would propagate: W3C Trace Context §3.2.2 and §3.3.1.5 (55 bytes, and 512), W3C
    /// Baggage §3.3.2.
    #[must_use]
    pub fn bounded(self) -> Self {
        let Self { parent, state, baggage } = self;
        Self {
            parent: parent.filter(|value| value.len() <= 64),
            state: state.filter(|value| value.len() <= 512),
            baggage: baggage.filter(|value| value.len() <= 8_192),
        }
    }
}

/// How a request ended.
#[derive(Debug)]
pub struct EndedRequest<'a> {
    /// When.
    pub at: Instant,
    /// Cause of the failure, if the request failed.
    pub failure: Option<Failure<'a>>,
    /// How long its handler took, as far as that is known.
    pub service: Duration,
}

/// Cause of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<'a> {
    /// The tool's result says so.
    Tool,
    /// A JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its words, which the client was told.
        message: Cow<'a, str>,
    },
    /// The client took it back, or left.
    Cancelled,
}

/// The operation that the current thread works on, where anybody observes: within a handler, or within a poll of its future.
#[must_use]
pub fn current_operation() -> Option<Arc<dyn Operation>> {
    CURRENT.with_borrow(|current| current.clone())
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Operation>>> = const { RefCell::new(None) };
}

/// Makes an operation the thread's own while `work` runs.
pub(crate) fn within_operation<T>(operation: &Arc<dyn Operation>, work: impl FnOnce() -> T) -> T {
    struct Before(Option<Arc<dyn Operation>>);

    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }

    let _before = Before(CURRENT.replace(Some(Arc::clone(operation))));
    work()
}
