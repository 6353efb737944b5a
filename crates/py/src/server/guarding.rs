//! `Guard`, `RateLimit`, `Limiter`: what must hold before a function of Python's is used, as Python puts it together.
//!
//! Constraint: scopes, limits and bounds are the runtime's and run no Python. A permission runs as a tool does: inline where
//! it has shown itself to be quick, else on the threads or the loop, within a limit. What it raises, unless it is `Denied`, is
//! for the log alone, and refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_serve::guard::{
    self, Algorithm, BoxFuture, By, Denial, KeyOf, Keyed, MemoryLimiter, OnLimiterDown, Permission, Verdict,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};

use super::asked::Asked;
use super::failing;
use super::handler::{Callable, Kind};
use super::held::Watch;
use super::pace::{Pace, now_ms};
use super::shared::Shared;
use super::waiting::Target;
use crate::problem::UsageProblem;

/// How long a permission may take, where nobody says otherwise.
const PATIENCE_S: f64 = 10.0;

/// All that guards one tool, resource or prompt.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Guard {
    scopes: Vec<String>,
    permissions: Vec<Asking>,
    limits: Vec<Limit>,
    max_result_bytes: Option<usize>,
    timeout: Option<Duration>,
    patience: Duration,
}

/// How often something may be used.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct RateLimit {
    limit: Limit,
}

#[derive(Clone)]
struct Limit {
    rule: guard::RateLimit,
    /// Where a function says whose uses count together.
    key: Option<Asking>,
}

/// A function of Python's that answers what is asked by a text: see `ANSWERS`.
#[derive(Clone)]
struct Asking {
    function: Arc<Py<PyAny>>,
    kind: Kind,
}

#[pymethods]
impl Guard {
    #[new]
    #[pyo3(signature = (*, scopes=Vec::new(), permissions=Vec::new(), limits=Vec::new(), max_result_bytes=None,
                        timeout_s=None, permission_timeout_s=PATIENCE_S))]
    fn new(
        py: Python<'_>,
        scopes: Vec<String>,
        permissions: Vec<Bound<'_, PyAny>>,
        limits: Vec<Py<RateLimit>>,
        max_result_bytes: Option<usize>,
        timeout_s: Option<f64>,
        permission_timeout_s: f64,
    ) -> PyResult<Self> {
        Ok(Self {
            scopes,
            permissions: permissions.iter().map(Asking::permission).collect::<PyResult<_>>()?,
            limits: limits.iter().map(|limit| limit.bind(py).get().limit.clone()).collect(),
            max_result_bytes,
            timeout: timeout_s.map(|seconds| time("timeout_s", seconds)).transpose()?,
            patience: time("permission_timeout_s", permission_timeout_s)?,
        })
    }
}

#[pymethods]
impl RateLimit {
    #[new]
    #[pyo3(signature = (name, calls, per_s, *, by=None, algorithm="sliding-window", burst=None))]
    fn new(
        name: String,
        calls: u32,
        per_s: f64,
        by: Option<&Bound<'_, PyAny>>,
        algorithm: &str,
        burst: Option<u32>,
    ) -> PyResult<Self> {
        let algorithm = match algorithm {
            "fixed-window" => Algorithm::FixedWindow,
            "sliding-window" => Algorithm::SlidingWindow,
            "token-bucket" => Algorithm::TokenBucket { burst: burst.unwrap_or(calls) },
            other => return Err(UsageProblem::new_err(format!("there is no algorithm {other:?}"))),
        };
        let word = by.map(|by| by.cast::<PyString>().map(|word| word.to_string()));
        let (by, key) = match (word, by) {
            (None, _) | (_, None) => (By::Principal, None),
            (Some(Ok(word)), _) => match word.as_str() {
                "principal" => (By::Principal, None),
                "session" => (By::Session, None),
                "everyone" => (By::Everyone, None),
                other => return Err(UsageProblem::new_err(format!("nobody is counted by {other:?}"))),
            },
            // Replaced once it is known where functions run.
            (Some(Err(_)), Some(function)) => (By::Everyone, Some(Asking::key(function)?)),
        };
        let rule = guard::RateLimit::new(name, calls, time("per_s", per_s)?).algorithm(algorithm).by(by);
        Ok(Self { limit: Limit { rule, key } })
    }
}

impl Guard {
    /// For the runtime; its functions run where those of `shared` do.
    pub(super) fn resolve(&self, py: Python<'_>, shared: &Arc<Shared>) -> PyResult<guard::Guard> {
        let mut resolved = guard::Guard {
            scopes: self.scopes.iter().map(|scope| scope.as_str().into()).collect(),
            permissions: Vec::new(),
            limits: Vec::new(),
            max_result_bytes: self.max_result_bytes,
            timeout: self.timeout,
        };
        for asking in &self.permissions {
            resolved.permissions.push(Arc::new(self.asker(py, asking, shared)?));
        }
        for Limit { rule, key } in &self.limits {
            let by = match key {
                Some(key) => By::Key(Arc::new(self.asker(py, key, shared)?)),
                None => rule.by.clone(),
            };
            resolved.limits.push(rule.clone().by(by));
        }
        Ok(resolved)
    }

    fn asker(&self, py: Python<'_>, asking: &Asking, shared: &Arc<Shared>) -> PyResult<Asker> {
        if asking.kind == Kind::Async {
            shared.want_loop(py)?;
        }
        let pace = (asking.kind == Kind::Sync).then(|| Arc::new(Pace::default()));
        Ok(Asker { asking: asking.clone(), shared: Arc::clone(shared), pace, limit: self.patience })
    }
}

/// Makes of a function one that answers by a text, never raises, and logs what it must: nothing for yes, `=` and a key, or
/// `!` and JSON of a refusal's words and scopes.
const ANSWERS: &std::ffi::CStr = c"
import inspect
import json
import logging


def answering(function, denied, is_key):
    what = 'the key of a rate limit' if is_key else 'the permission'
    name = getattr(function, '__qualname__', None) or type(function).__qualname__

    def answered(value):
        if is_key:
            if isinstance(value, str):
                return '=' + value
            raise TypeError(f'{name} returned {type(value).__name__}, not str')
        if value is None or value is True:
            return ''
        if value is False:
            return '!'
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError(f'{name} returned {type(value).__name__}: True, False or None is an answer')

    def refused(error):
        try:
            if isinstance(error, denied):
                return '!' + json.dumps([str(error.message), [str(scope) for scope in error.scopes]])
        except Exception as second:
            error = second
        logging.getLogger('mcpace.server').error('%s %s failed, which refuses', what, name, exc_info=error)
        return '!'

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, '__call__', None)):

        async def ask(asked):
            try:
                return answered(await function(asked))
            except Exception as error:
                return refused(error)

        return ask, True

    def ask(asked):
        try:
            return answered(function(asked))
        except Exception as error:
            return refused(error)

    return ask, False
";

impl Asking {
    fn permission(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, false)
    }

    fn key(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, true)
    }

    fn new(function: &Bound<'_, PyAny>, is_key: bool) -> PyResult<Self> {
        static ANSWERING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = function.py();
        if !function.is_callable() {
            return Err(UsageProblem::new_err(format!("{} can't be called", function.repr()?)));
        }
        let answering = ANSWERING.get_or_try_init(py, || {
            let module = PyModule::from_code(py, ANSWERS, c"<mcpace>", c"mcpace_answers")?;
            module.getattr("answering").map(Bound::unbind)
        })?;
        let denied = py.import("mcpace.server.guards")?.getattr("Denied")?;
        let made = answering.bind(py).call1((function, denied, is_key))?.cast_into::<PyTuple>()?;
        let (ask, is_async): (Py<PyAny>, bool) = made.extract()?;
        let kind = if is_async { Kind::Async } else { Kind::Sync };
        Ok(Self { function: Arc::new(ask), kind })
    }
}

/// A function that is asked, and where it runs.
struct Asker {
    asking: Asking,
    shared: Arc<Shared>,
    pace: Option<Arc<Pace>>,
    limit: Duration,
}

/// An answer, now or later.
enum Answer {
    Now(Result<Option<String>, Denial>),
    Later(BoxFuture<Result<Option<String>, Denial>>),
}

impl Asker {
    fn ask(&self, asked: &guard::Asked<'_>) -> Answer {
        let asked = Asked::of(asked);
        match &self.pace {
            Some(pace) if pace.is_inline() => Answer::Now(self.inline(asked, pace)),
            _ => Answer::Later(self.later(asked)),
        }
    }

    /// On this thread, under one attachment.
    fn inline(&self, asked: Asked, pace: &Pace) -> Result<Option<String>, Denial> {
        let (answer, took, held) = Python::attach(|py| {
            let watch = pace.is_watched().then(Watch::start);
            let started = Instant::now();
            let answered = || -> PyResult<String> {
                let variables = self.shared.variables(py)?;
                let arguments = (self.asking.function.bind(py), Bound::new(py, asked)?);
                variables.call_method1(pyo3::intern!(py, "run"), arguments)?.extract()
            };
            let answer = answered().map_err(|error| failing::log(py, "what is asked by a guard", &error));
            (answer, started.elapsed(), watch.map(|watch| watch.read().held))
        });
        pace.ran_inline(took, held, now_ms);
        answer.map_or_else(|()| Err(Denial::default()), |answer| read(&answer))
    }

    /// On a thread of the pool, or on the loop.
    fn later(&self, asked: Asked) -> BoxFuture<Result<Option<String>, Denial>> {
        let callable = Callable::asking(Arc::clone(&self.asking.function), self.asking.kind, asked);
        let target = Target {
            callable: Arc::new(callable),
            shared: Arc::clone(&self.shared),
            pace: self.pace.clone(),
            limit: Some(self.limit),
        };
        let limit = self.limit;
        Box::pin(async move {
            let begun = Instant::now();
            match target.ask(Bytes::new(), None).await {
                Ok(answer) => read(&answer),
                Err(_) => {
                    too_late(limit, begun);
                    Err(Denial::default())
                }
            }
        })
    }
}

/// Whatever else keeps an answer from coming has been logged.
fn too_late(limit: Duration, begun: Instant) {
    if begun.elapsed() < limit {
        return;
    }
    let words = format!("no answer within {} seconds, which refuses", limit.as_secs_f64());
    let _ = Python::try_attach(|py| {
        let error = pyo3::exceptions::PyTimeoutError::new_err(words);
        failing::log(py, "what is asked by a guard", &error);
    });
}

/// See `ANSWERS`.
fn read(answer: &str) -> Result<Option<String>, Denial> {
    if answer.is_empty() {
        return Ok(None);
    }
    if let Some(key) = answer.strip_prefix('=') {
        return Ok(Some(key.to_owned()));
    }
    let refusal = answer.strip_prefix('!').filter(|json| !json.is_empty());
    let refusal = refusal.and_then(|json| serde_json::from_str::<(String, Vec<String>)>(json).ok());
    Err(refusal.map_or_else(Denial::default, |(message, scopes)| Denial::new(message).scopes(scopes)))
}

impl Permission for Asker {
    fn check(&self, asked: &guard::Asked<'_>) -> Verdict {
        match self.ask(asked) {
            Answer::Now(Ok(_)) => Verdict::Allowed,
            Answer::Now(Err(denial)) => Verdict::Denied(denial),
            Answer::Later(answer) => Verdict::Later(Box::pin(async move { answer.await.map(drop) })),
        }
    }
}

impl KeyOf for Asker {
    fn key<'a>(&self, asked: &guard::Asked<'a>) -> Keyed<'a> {
        match self.ask(asked) {
            Answer::Now(Ok(key)) => Keyed::Now(key.unwrap_or_default().into()),
            Answer::Now(Err(denial)) => Keyed::Denied(denial),
            Answer::Later(answer) => Keyed::Later(Box::pin(async move { answer.await.map(Option::unwrap_or_default) })),
        }
    }
}

/// Who counts uses.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Limiter {
    inner: Arc<dyn guard::Limiter>,
    /// Nanoseconds, of a clock that stands still.
    frozen: Option<Arc<AtomicU64>>,
}

#[pymethods]
impl Limiter {
    /// One of this process; bounded in keys. `frozen`: its clock stands still until `advance`, for tests.
    #[staticmethod]
    #[pyo3(signature = (*, keys=100_000, frozen=false))]
    fn memory(keys: usize, frozen: bool) -> Self {
        if !frozen {
            return Self { inner: Arc::new(MemoryLimiter::new(keys)), frozen: None };
        }
        let clock = Arc::new(AtomicU64::new(0));
        let its = Arc::clone(&clock);
        let limiter = MemoryLimiter::with_clock(keys, move || Duration::from_nanos(its.load(Relaxed)));
        Self { inner: Arc::new(limiter), frozen: Some(clock) }
    }

    /// Lets a frozen clock go on.
    fn advance(&self, seconds: f64) -> PyResult<()> {
        let Some(clock) = &self.frozen else {
            return Err(UsageProblem::new_err("only a frozen clock can be moved: Limiter.memory(frozen=True)"));
        };
        let passed = u64::try_from(time("seconds", seconds)?.as_nanos()).unwrap_or(u64::MAX);
        clock.fetch_add(passed, Relaxed);
        Ok(())
    }
}

impl Limiter {
    /// Any limiter.
    pub(crate) fn of(inner: Arc<dyn guard::Limiter>) -> Self {
        Self { inner, frozen: None }
    }

    pub(super) fn inner(&self) -> Arc<dyn guard::Limiter> {
        Arc::clone(&self.inner)
    }
}

/// What `on_limiter_down` says.
pub(super) fn on_limiter_down(word: &str) -> PyResult<OnLimiterDown> {
    match word {
        "refuse" => Ok(OnLimiterDown::Refuse),
        "allow" => Ok(OnLimiterDown::Allow),
        other => Err(UsageProblem::new_err(format!("on_limiter_down takes refuse or allow, not {other:?}"))),
    }
}

fn time(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| UsageProblem::new_err(format!("{name} takes seconds, not {seconds:?}")))
}
