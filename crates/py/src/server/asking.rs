//! What a guard asks a function of Python's, a permission or a rate limit's key, and how its answer comes.
//!
//! Constraint: it runs as a tool does: inline where it has shown itself to be quick, else on the threads or the loop, within a
//! limit. Its answer is a text, as a tool's is, so that it takes the same way: `mcpace.server.guard_answers` writes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_serve::guard::{self, BoxFuture, Denial, KeyOf, Keyed, Permission, Verdict};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::asked::Asked;
use super::failing;
use super::handler::{Callable, Kind};
use super::held::Watch;
use super::pace::{Pace, now_ms};
use super::shared::Shared;
use super::waiting::Target;
use crate::attaching::attached;
use crate::problem::UsageProblem;

/// A function of Python's that answers what is asked by a text: see the module.
#[derive(Clone)]
pub(super) struct Asking {
    function: Arc<Py<PyAny>>,
    kind: Kind,
}

impl Asking {
    /// The function where those of `shared` run, within `limit`.
    pub(super) fn asker(&self, py: Python<'_>, shared: &Arc<Shared>, limit: Duration) -> PyResult<Asker> {
        if self.kind == Kind::Async {
            shared.want_loop(py)?;
        }
        let pace = (self.kind == Kind::Sync).then(|| Arc::new(Pace::default()));
        Ok(Asker { asking: self.clone(), shared: Arc::clone(shared), pace, limit })
    }

    pub(super) fn permission(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, false)
    }

    pub(super) fn key(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, true)
    }

    fn new(function: &Bound<'_, PyAny>, is_key: bool) -> PyResult<Self> {
        let py = function.py();
        if !function.is_callable() {
            return Err(UsageProblem::new_err(format!("{} can't be called", function.repr()?)));
        }
        let answering = py.import("mcpace.server.guard_answers")?.getattr("answering")?;
        let made = answering.call1((function, is_key))?.cast_into::<PyTuple>()?;
        let (ask, is_async): (Py<PyAny>, bool) = made.extract()?;
        let kind = if is_async { Kind::Async } else { Kind::Sync };
        Ok(Self { function: Arc::new(ask), kind })
    }
}

/// A function that is asked, and where it runs.
pub(super) struct Asker {
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
    let _ = attached(|py| {
        let error = pyo3::exceptions::PyTimeoutError::new_err(words);
        failing::log(py, "what is asked by a guard", &error);
    });
}

/// Nothing for yes, `=` and a key, or `!` and JSON of a refusal's words and scopes.
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
