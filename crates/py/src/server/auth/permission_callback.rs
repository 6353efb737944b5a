//! Calls a Python function for a guard: a permission, or the key of a rate limit.
//!
//! Constraint: the function runs as a tool does: inline where its recent calls were short, else on the threads or the event loop,
//! within a time limit. `mcpace.server.auth.guard_answers` turns the function's result or exception into a [`GuardAnswer`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpace_serve::HandlerError;
use mcpace_serve::guard::{self, BoxFuture, Denial, KeyOf, Keyed, Permission, Verdict};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::sync::oneshot;

use crate::attaching::with_interpreter;
use crate::problem::UsageProblem;
use crate::server::auth::access_request::AccessRequest;
use crate::server::call::exceptions;
use crate::server::call::handler::{Callable, FunctionKind};
use crate::server::call::job::{CallCompletion, InternalRecipient};
use crate::server::call::submission::CallTarget;
use crate::server::threads::function_host::FunctionHost;
use crate::server::threads::inline_policy::{InlinePolicy, now_ms};
use crate::server::threads::thread_time::ThreadTimer;

/// The answer of a function that a guard asks.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct GuardAnswer {
    /// The key where a rate limit asked for one, or the refusal.
    outcome: Result<Option<String>, Denial>,
}

#[pymethods]
impl GuardAnswer {
    /// The permission is given.
    #[staticmethod]
    fn allowed() -> Self {
        Self { outcome: Ok(None) }
    }

    /// The permission is refused, with a message for the client and the scopes that would be enough.
    #[staticmethod]
    #[pyo3(signature = (message=None, scopes=None))]
    fn denied(message: Option<String>, scopes: Option<Vec<String>>) -> Self {
        let denial = message.map_or_else(Denial::default, Denial::new);
        Self { outcome: Err(denial.scopes(scopes.unwrap_or_default())) }
    }

    /// The request counts under this key of a rate limit.
    #[staticmethod]
    fn keyed_by(key: String) -> Self {
        Self { outcome: Ok(Some(key)) }
    }
}

impl GuardAnswer {
    pub(crate) fn read_outcome(value: &Bound<'_, PyAny>) -> PyResult<Result<Option<String>, Denial>> {
        Ok(value.cast::<Self>()?.get().outcome.clone())
    }
}

/// Recipient of a [`GuardAnswer`]. A function that fails or is not called refuses.
struct AnswerRecipient(oneshot::Sender<Result<Option<String>, Denial>>);

impl InternalRecipient for AnswerRecipient {
    fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }

    fn deliver(self: Box<Self>, py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) {
        let answer = returned.and_then(|value| GuardAnswer::read_outcome(&value)).unwrap_or_else(|error| {
            exceptions::log_failure(py, "what is asked by a guard", &error);
            Err(Denial::default())
        });
        let _ = self.0.send(answer);
    }

    fn fail_unsent(self: Box<Self>, _: HandlerError) {
        let _ = self.0.send(Err(Denial::default()));
    }
}

/// A Python function that answers an access request by a [`GuardAnswer`].
#[derive(Clone)]
pub(crate) struct PermissionFunction {
    function: Arc<Py<PyAny>>,
    kind: FunctionKind,
}

impl PermissionFunction {
    /// Binds the function to the threads of `shared` and to a time limit.
    pub(crate) fn bind_to(
        &self,
        py: Python<'_>,
        shared: &Arc<FunctionHost>,
        limit: Duration,
    ) -> PyResult<PermissionCallback> {
        if self.kind == FunctionKind::Async {
            shared.want_loop(py)?;
        }
        let inline_policy = (self.kind == FunctionKind::Sync).then(|| Arc::new(InlinePolicy::default()));
        Ok(PermissionCallback { asking: self.clone(), shared: Arc::clone(shared), inline_policy, limit })
    }

    pub(crate) fn for_permission(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, false)
    }

    pub(crate) fn for_key(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(function, true)
    }

    fn new(function: &Bound<'_, PyAny>, is_key: bool) -> PyResult<Self> {
        let py = function.py();
        if !function.is_callable() {
            return Err(UsageProblem::new_err(format!("{} can't be called", function.repr()?)));
        }
        let answering = py.import("mcpace.server.auth.guard_answers")?.getattr("answering")?;
        let made = answering.call1((function, is_key))?.cast_into::<PyTuple>()?;
        let (ask, is_async): (Py<PyAny>, bool) = made.extract()?;
        let kind = if is_async { FunctionKind::Async } else { FunctionKind::Sync };
        Ok(Self { function: Arc::new(ask), kind })
    }
}

/// A permission function with the threads that it runs on.
pub(crate) struct PermissionCallback {
    asking: PermissionFunction,
    shared: Arc<FunctionHost>,
    inline_policy: Option<Arc<InlinePolicy>>,
    limit: Duration,
}

/// An answer, now or later.
enum PermissionAnswer {
    Now(Result<Option<String>, Denial>),
    Later(BoxFuture<Result<Option<String>, Denial>>),
}

impl PermissionCallback {
    fn ask_function(&self, asked: &guard::AccessRequest<'_>) -> PermissionAnswer {
        let asked = AccessRequest::from_guard(asked);
        match &self.inline_policy {
            Some(inline_policy) if inline_policy.is_inline() => {
                PermissionAnswer::Now(self.run_inline(asked, inline_policy))
            }
            _ => PermissionAnswer::Later(self.run_elsewhere(asked)),
        }
    }

    /// Runs the function on this thread, under one attachment to the interpreter.
    fn run_inline(&self, asked: AccessRequest, inline_policy: &InlinePolicy) -> Result<Option<String>, Denial> {
        let (answer, took, held) = Python::attach(|py| {
            let watch = inline_policy.is_watched().then(ThreadTimer::start);
            let started = Instant::now();
            let answered = || {
                let variables = self.shared.variables.copy_for_call(py)?;
                let arguments = (self.asking.function.bind(py), Bound::new(py, asked)?);
                GuardAnswer::read_outcome(&variables.call_method1(pyo3::intern!(py, "run"), arguments)?)
            };
            let answer = answered().map_err(|error| exceptions::log_failure(py, "what is asked by a guard", &error));
            (answer, started.elapsed(), watch.map(|watch| watch.read().held))
        });
        inline_policy.record_inline(took, held, now_ms);
        answer.unwrap_or_else(|()| Err(Denial::default()))
    }

    /// Runs the function on a thread of the pool or on the event loop.
    fn run_elsewhere(&self, asked: AccessRequest) -> BoxFuture<Result<Option<String>, Denial>> {
        let callable = Callable::permission_question(Arc::clone(&self.asking.function), self.asking.kind, asked);
        let target = CallTarget {
            callable: Arc::new(callable),
            shared: Arc::clone(&self.shared),
            inline_policy: self.inline_policy.clone(),
            limit: Some(self.limit),
        };
        let limit = self.limit;
        Box::pin(async move {
            let begun = Instant::now();
            let (sender, receiver) = oneshot::channel();
            let guard =
                target.submit_call(Bytes::new(), None, CallCompletion::for_internal(AnswerRecipient(sender)), 0);
            target.wait_outcome(receiver, guard).await.unwrap_or_else(|_| {
                log_timeout(limit, begun);
                Err(Denial::default())
            })
        })
    }
}

/// Logs that the time limit passed. Every other failure has been logged already.
fn log_timeout(limit: Duration, begun: Instant) {
    if begun.elapsed() < limit {
        return;
    }
    let words = format!("no answer within {} seconds, which refuses", limit.as_secs_f64());
    let _ = with_interpreter(|py| {
        let error = pyo3::exceptions::PyTimeoutError::new_err(words);
        exceptions::log_failure(py, "what is asked by a guard", &error);
    });
}

impl Permission for PermissionCallback {
    fn check(&self, asked: &guard::AccessRequest<'_>) -> Verdict {
        match self.ask_function(asked) {
            PermissionAnswer::Now(Ok(_)) => Verdict::Allowed,
            PermissionAnswer::Now(Err(denial)) => Verdict::Denied(denial),
            PermissionAnswer::Later(answer) => Verdict::Later(Box::pin(async move { answer.await.map(drop) })),
        }
    }
}

impl KeyOf for PermissionCallback {
    fn key<'a>(&self, asked: &guard::AccessRequest<'a>) -> Keyed<'a> {
        match self.ask_function(asked) {
            PermissionAnswer::Now(Ok(key)) => Keyed::Now(key.unwrap_or_default().into()),
            PermissionAnswer::Now(Err(denial)) => Keyed::Denied(denial),
            PermissionAnswer::Later(answer) => {
                Keyed::Later(Box::pin(async move { answer.await.map(Option::unwrap_or_default) }))
            }
        }
    }
}
