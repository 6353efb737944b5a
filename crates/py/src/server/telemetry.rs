//! Requests as Python's OpenTelemetry is told of them.
//!
//! Constraint: an I/O thread writes down what it knows and never waits for the interpreter. Before a function is
//! called, `begin` prepares its spans, which are made at their first use. All other observations are delivered
//! afterwards, many requests at a time, to a Python thread that takes them ([`Observations::take`]). If no thread takes
//! them, the oldest stay and the others are counted. The queue is bounded in number and in bytes, because most of its
//! content is text of the peer.

use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpace_serve::Headers;
use mcpace_serve::telemetry::{self, Begun, EndedRequest, Failure, Observer, Operation, Trace};
use mcpace_wire::jsonrpc::Id;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::server::call::exceptions;

/// Requests that wait to be told, and what they take.
const MOST: usize = 65_536;
const MOST_BYTES: usize = 16 << 20;
/// Largest number of observations that are reported at once, and that wait.
const AT_ONCE: usize = 512;
/// How long the first of them waits for more.
const GATHERING: Duration = Duration::from_millis(50);

/// Observations of requests, for Python.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Observations {
    inner: Arc<ObservationsInner>,
}

struct ObservationsInner {
    /// `begin(facts, started_ns, variables, live)`: see [`Observations::new`].
    begin: Py<PyAny>,
    /// Whether `begin` has failed: said once, not with each call.
    has_failed: AtomicBool,
    ended: Mutex<ObservationQueue>,
    ready: Condvar,
}

#[derive(Default)]
struct ObservationQueue {
    ended: VecDeque<Observation>,
    /// Bytes of the waiting observations.
    bytes: usize,
    lost: u64,
    over: bool,
}

/// A request that has ended.
struct Observation {
    observed: Arc<Observed>,
    at: Instant,
    failure: Option<(&'static str, i64, String)>,
}

#[pymethods]
impl Observations {
    /// `begin` is called where a function of Python's is about to be, with the facts, the time in nanoseconds since 1970, the
    /// `contextvars.Context` that the function will run in, and what `begin` returned for the same request before (or `None`).
    /// Its return value is passed to the end of the request.
    #[new]
    fn new(begin: Py<PyAny>) -> Self {
        Self {
            inner: Arc::new(ObservationsInner {
                begin,
                has_failed: AtomicBool::new(false),
                ended: Mutex::default(),
                ready: Condvar::new(),
            }),
        }
    }

    /// Some of the requests that have ended, and how many were lost since; `None` after the end. Waits for the first.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<(Vec<Bound<'py, PyTuple>>, u64)>> {
        let Some((ended, lost)) = py.detach(|| self.inner.wait_observations()) else { return Ok(None) };
        Ok(Some((observation_tuples(py, ended)?, lost)))
    }

    /// As `take`, without waiting, and all of them.
    fn take_now<'py>(&self, py: Python<'py>) -> PyResult<(Vec<Bound<'py, PyTuple>>, u64)> {
        let (ended, lost) = {
            let mut queue = self.inner.lock_queue();
            let all = queue.ended.len();
            (queue.take_first(all), std::mem::take(&mut queue.lost))
        };
        Ok((observation_tuples(py, ended)?, lost))
    }

    /// Tells the waiting thread that no more observations follow.
    fn close(&self) {
        self.inner.lock_queue().over = true;
        self.inner.ready.notify_all();
    }
}

impl Observations {
    pub(crate) fn observer(&self) -> impl Observer + use<> {
        OutcomeWatcher(Arc::clone(&self.inner))
    }
}

fn observation_tuples(py: Python<'_>, ended: Vec<Observation>) -> PyResult<Vec<Bound<'_, PyTuple>>> {
    ended.into_iter().map(|told| told.into_tuple(py)).collect()
}

impl ObservationsInner {
    fn lock_queue(&self) -> MutexGuard<'_, ObservationQueue> {
        // Nothing under the lock can panic half way.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_observations(&self) -> Option<(Vec<Observation>, u64)> {
        let none = |queue: &mut ObservationQueue| queue.ended.is_empty() && !queue.over;
        let queue = self.ready.wait_while(self.lock_queue(), none).unwrap_or_else(PoisonError::into_inner);
        let few = |queue: &mut ObservationQueue| queue.ended.len() < AT_ONCE && !queue.over;
        let waited = self.ready.wait_timeout_while(queue, GATHERING, few);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        if queue.over {
            return None;
        }
        Some((queue.take_first(AT_ONCE), std::mem::take(&mut queue.lost)))
    }

    fn push_observation(&self, told: Observation) {
        let mut queue = self.lock_queue();
        if !queue.push_bounded(told) {
            return;
        }
        let wakes = matches!(queue.ended.len(), 1 | AT_ONCE);
        drop(queue);
        if wakes {
            self.ready.notify_one();
        }
    }
}

impl ObservationQueue {
    /// Whether there is room for it.
    fn push_bounded(&mut self, told: Observation) -> bool {
        let bytes = told.size_bytes();
        if self.over || self.ended.len() >= MOST || self.bytes + bytes > MOST_BYTES {
            self.lost += 1;
            return false;
        }
        self.bytes += bytes;
        self.ended.push_back(told);
        true
    }

    /// Takes the first of them out.
    fn take_first(&mut self, most: usize) -> Vec<Observation> {
        let some = most.min(self.ended.len());
        let taken: Vec<_> = self.ended.drain(..some).collect();
        self.bytes -= taken.iter().map(Observation::size_bytes).sum::<usize>();
        taken
    }
}

struct OutcomeWatcher(Arc<ObservationsInner>);

impl Observer for OutcomeWatcher {
    fn begin(&self, begun: &Begun<'_>) -> Option<Arc<dyn Operation>> {
        let age = begun.received.elapsed();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(Arc::new(Observed {
            inner: Arc::clone(&self.0),
            facts: RequestFacts::from_begun(begun),
            received: begun.received,
            received_ns: whole_nanos(since_1970.saturating_sub(age)),
            entered: begun.entered,
            live: OnceLock::new(),
            served_ns: AtomicU64::new(0),
        }))
    }
}

/// A request that is observed.
pub(crate) struct Observed {
    inner: Arc<ObservationsInner>,
    facts: RequestFacts,
    received: Instant,
    received_ns: u64,
    entered: Instant,
    /// When its function was called, and what `begin` returned then.
    live: OnceLock<(Instant, Py<PyAny>)>,
    /// When its function returned, in nanoseconds since 1970; 0 before.
    served_ns: AtomicU64,
}

impl Operation for Observed {
    fn end(self: Arc<Self>, ended: &EndedRequest<'_>) {
        let failure = ended.failure.as_ref().map(|failure| match failure {
            Failure::Tool => ("tool", 0, String::new()),
            Failure::Error { code, message } => ("error", *code, shorten_text(message)),
            Failure::Cancelled => ("cancelled", 0, String::new()),
        });
        let inner = Arc::clone(&self.inner);
        inner.push_observation(Observation { observed: self, at: ended.at, failure });
    }
}

/// The current request, where it is observed for Python.
pub(crate) fn current_request() -> Option<Arc<Observed>> {
    let operation: Arc<dyn Any + Send + Sync> = telemetry::current_operation()?;
    operation.downcast().ok()
}

impl Observed {
    /// A function of the request's is about to be called with these context variables.
    pub(crate) fn enter_function(&self, py: Python<'_>, variables: &Bound<'_, PyAny>) {
        let now = Instant::now();
        // There may be several, one after the other: all are part of what began with the first.
        let before = self.live.get().map(|(_, live)| live.bind(py));
        let begun = self
            .facts
            .to_tuple(py, self.received_ns)
            .and_then(|facts| self.inner.begin.bind(py).call1((facts, self.unix_nanos(now), variables, before)));
        match begun {
            Ok(live) => drop(self.live.set((now, live.unbind()))),
            Err(_) if self.inner.has_failed.swap(true, Ordering::Relaxed) => {}
            Err(error) => exceptions::log_failure(py, "preparing the spans of a request", &error),
        }
    }

    /// The function has returned.
    pub(crate) fn mark_served(&self) {
        self.served_ns.store(self.unix_nanos(Instant::now()), Ordering::Relaxed);
    }

    /// Nanoseconds since 1970, by the clock that never jumps.
    fn unix_nanos(&self, instant: Instant) -> u64 {
        self.received_ns + whole_nanos(instant.saturating_duration_since(self.received))
    }
}

impl Observation {
    /// Approximate size in bytes; constant over the life of the observation.
    fn size_bytes(&self) -> usize {
        let words = self.failure.as_ref().map_or(0, |(_, _, words)| words.len());
        size_of::<Self>() + size_of::<Observed>() + self.observed.facts.size_bytes() + words
    }

    /// `(facts, live, entered_ns, service, ended_ns, failure)`
    fn into_tuple(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let Observation { observed, at, failure } = self;
        let facts = observed.facts.to_tuple(py, observed.received_ns)?;
        let live = observed.live.get();
        let service = live.map(|(called, _)| {
            let end = observed.unix_nanos(at);
            let returned = match observed.served_ns.load(Ordering::Relaxed) {
                0 => end,
                returned => returned.min(end),
            };
            (observed.unix_nanos(*called), returned)
        });
        let live = live.map(|(_, live)| live.clone_ref(py));
        (facts, live, observed.unix_nanos(observed.entered), service, observed.unix_nanos(at), failure)
            .into_pyobject(py)
    }
}

/// Observation of one request.
struct RequestFacts {
    method: &'static str,
    target: Option<String>,
    uri: Option<String>,
    id: String,
    revision: &'static str,
    /// `traceparent`, `tracestate`, `baggage`: out of `_meta`, and out of the HTTP headers.
    meta: Carrier,
    headers: Option<Carrier>,
}

type Carrier = (Option<String>, Option<String>, Option<String>);

impl RequestFacts {
    fn from_begun(begun: &Begun<'_>) -> Self {
        let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_ref().map(|text| text.clone().into_owned());
        Self {
            method: begun.method.as_str(),
            target: begun.target.map(shorten_text),
            uri: begun.uri.map(shorten_text),
            id: match begun.id {
                Id::Integer(value) => value.to_string(),
                Id::Number(text) | Id::String(text) => shorten_text(text),
            },
            revision: begun.revision.as_str(),
            meta: (owned(&begun.trace.parent), owned(&begun.trace.state), owned(&begun.trace.baggage)),
            headers: begun.headers.as_ref().map(trace_carrier),
        }
    }

    fn size_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let carried = |(parent, state, baggage): &Carrier| length(parent) + length(state) + length(baggage);
        let carried = carried(&self.meta) + self.headers.as_ref().map_or(0, carried);
        length(&self.target) + length(&self.uri) + self.id.len() + carried
    }

    /// `(method, target, uri, id, revision, meta, headers, received_ns)`
    fn to_tuple<'py>(&self, py: Python<'py>, received_ns: u64) -> PyResult<Bound<'py, PyTuple>> {
        let Self { method, target, uri, id, revision, meta, headers } = self;
        (*method, target, uri, id, *revision, meta.clone(), headers.clone(), received_ns).into_pyobject(py)
    }
}

fn trace_carrier(headers: &Headers) -> Carrier {
    let text = |name| headers.get(name).and_then(|value| std::str::from_utf8(value).ok()).map(Cow::Borrowed);
    let carried = Trace { parent: text("traceparent"), state: text("tracestate"), baggage: text("baggage") }.bounded();
    let owned = |value: Option<Cow<'_, str>>| value.map(Cow::into_owned);
    (owned(carried.parent), owned(carried.state), owned(carried.baggage))
}

/// A peer's text, as much of it as anybody would read.
fn shorten_text(text: &str) -> String {
    const LONGEST: usize = 1_024;
    text.chars().take(LONGEST).collect()
}

fn whole_nanos(duration: Duration) -> u64 {
    // Good until the year 2554.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
