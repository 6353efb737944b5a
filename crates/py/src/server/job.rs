//! A call on its way to one of Python's threads, and the way of its result back.

use std::sync::Arc;

use bytes::Bytes;
use mcpace_serve::http::TokenError;
use mcpace_serve::{Context, HandlerError, Principal, RawDone, RawReply};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::context;
use super::handler::Callable;
use super::pace::Pace;
use super::queue::Client;
use super::shared::Shared;
use super::telemetry::{self, Observed};
use super::verify;

/// See the module.
pub(super) struct Job {
    pub(super) callable: Arc<Callable>,
    pub(super) shared: Arc<Shared>,
    pub(super) arguments: Bytes,
    /// What the function may ask of its request, and where its questions are waited for.
    pub(super) context: Option<(Context, Handle)>,
    pub(super) pace: Option<Arc<Pace>>,
    /// Whose turn it takes among those that wait for a thread.
    pub(super) client: Client,
    pub(super) end: End,
}

/// Where a result goes. Dropped without one, whoever waits is told that something went wrong.
pub(super) struct End {
    way: Way,
    /// The request that it is of, where that is observed.
    observed: Option<Arc<Observed>>,
}

/// Who waits, and for what.
enum Way {
    /// A tool's.
    Tool(RawReply, oneshot::Sender<RawDone>),
    /// A verifier's.
    Token(oneshot::Sender<Result<Principal, TokenError>>),
    /// Any other's: JSON text.
    Text(oneshot::Sender<Result<String, HandlerError>>),
}

/// A call that is ready to be made.
pub(super) struct Prepared<'py> {
    pub(super) keywords: Bound<'py, PyDict>,
    pub(super) variables: Bound<'py, PyAny>,
}

/// Arguments to value, in context variables of the call's own.
pub(super) fn call<'py>(
    py: Python<'py>,
    callable: &Callable,
    shared: &Shared,
    arguments: &[u8],
    context: Option<(Context, Handle)>,
    observed: Option<&Observed>,
) -> PyResult<Bound<'py, PyAny>> {
    let Prepared { keywords, variables } = prepare(py, callable, shared, arguments, context, observed)?;
    let returned = variables.call_method(intern!(py, "run"), (callable.function(),), Some(&keywords));
    if let Some(observed) = observed {
        observed.served();
    }
    returned
}

/// All but the call itself.
pub(super) fn prepare<'py>(
    py: Python<'py>,
    callable: &Callable,
    shared: &Shared,
    arguments: &[u8],
    context: Option<(Context, Handle)>,
    observed: Option<&Observed>,
) -> PyResult<Prepared<'py>> {
    let keywords = callable.keywords(py, arguments)?;
    let variables = shared.variables(py)?;
    if let Some(observed) = observed {
        observed.call(py, &variables);
    }
    if let Some((context, runtime)) = context {
        let made = context::Context::new(context, runtime);
        callable.put_context(&keywords, &variables, Bound::new(py, made)?.into_any())?;
    }
    Ok(Prepared { keywords, variables })
}

impl End {
    pub(super) fn tool(reply: RawReply, sender: oneshot::Sender<RawDone>) -> Self {
        Self { way: Way::Tool(reply, sender), observed: telemetry::current() }
    }

    /// No request's own: one token may be asked about for many.
    pub(super) fn token(sender: oneshot::Sender<Result<Principal, TokenError>>) -> Self {
        Self { way: Way::Token(sender), observed: None }
    }

    /// `answers`: whether it is the request's answer, and not what somebody has to say about the request.
    pub(super) fn text(sender: oneshot::Sender<Result<String, HandlerError>>, answers: bool) -> Self {
        Self { way: Way::Text(sender), observed: telemetry::current().filter(|_| answers) }
    }

    /// The request that it is of, where that is observed.
    pub(super) fn observed(&self) -> Option<&Observed> {
        self.observed.as_deref()
    }

    /// Whether nobody waits any more.
    pub(super) fn is_given_up(&self) -> bool {
        match &self.way {
            Way::Tool(_, sender) => sender.is_closed(),
            Way::Token(sender) => sender.is_closed(),
            Way::Text(sender) => sender.is_closed(),
        }
    }

    /// Hands the outcome over. Whoever waited may be gone by now, which is fine.
    pub(super) fn give(self, py: Python<'_>, callable: &Callable, returned: PyResult<Bound<'_, PyAny>>) {
        if let Some(observed) = &self.observed {
            observed.served();
        }
        match self.way {
            Way::Tool(mut reply, sender) => {
                let outcome = match returned {
                    Ok(value) => callable.write(&value, &mut reply),
                    Err(error) => Err(callable.failed(py, error)),
                };
                let _ = sender.send(reply.done(outcome));
            }
            Way::Token(sender) => {
                let _ = sender.send(verify::verdict(py, returned));
            }
            Way::Text(sender) => {
                let outcome = returned.and_then(|value| callable.text(&value));
                let _ = sender.send(outcome.map_err(|error| callable.failed(py, error)));
            }
        }
    }

    /// Fails without a word from Python.
    pub(super) fn refuse(self, error: HandlerError) {
        match self.way {
            Way::Tool(reply, sender) => {
                let _ = sender.send(reply.done(Err(error)));
            }
            Way::Token(sender) => {
                let _ = sender.send(Err(TokenError::Unavailable));
            }
            Way::Text(sender) => {
                let _ = sender.send(Err(error));
            }
        }
    }
}
