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
use super::shared::Shared;
use super::verify;

/// See the module.
pub(super) struct Job {
    pub(super) callable: Arc<Callable>,
    pub(super) shared: Arc<Shared>,
    pub(super) arguments: Bytes,
    /// What the function may ask of its request, and where its questions are waited for.
    pub(super) context: Option<(Context, Handle)>,
    pub(super) pace: Option<Arc<Pace>>,
    pub(super) end: End,
}

/// Where a result goes. Dropped without one, whoever waits is told that something went wrong.
pub(super) enum End {
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
) -> PyResult<Bound<'py, PyAny>> {
    let Prepared { keywords, variables } = prepare(py, callable, shared, arguments, context)?;
    variables.call_method(intern!(py, "run"), (callable.function(),), Some(&keywords))
}

/// All but the call itself.
pub(super) fn prepare<'py>(
    py: Python<'py>,
    callable: &Callable,
    shared: &Shared,
    arguments: &[u8],
    context: Option<(Context, Handle)>,
) -> PyResult<Prepared<'py>> {
    let keywords = callable.keywords(py, arguments)?;
    let variables = shared.variables(py)?;
    if let Some((context, runtime)) = context {
        let made = context::Context::new(context, runtime);
        callable.put_context(&keywords, &variables, Bound::new(py, made)?.into_any())?;
    }
    Ok(Prepared { keywords, variables })
}

impl End {
    /// Whether nobody waits any more.
    pub(super) fn is_given_up(&self) -> bool {
        match self {
            End::Tool(_, sender) => sender.is_closed(),
            End::Token(sender) => sender.is_closed(),
            End::Text(sender) => sender.is_closed(),
        }
    }

    /// Hands the outcome over. Whoever waited may be gone by now, which is fine.
    pub(super) fn give(self, py: Python<'_>, callable: &Callable, returned: PyResult<Bound<'_, PyAny>>) {
        match self {
            End::Tool(mut reply, sender) => {
                let outcome = match returned {
                    Ok(value) => callable.write(&value, &mut reply),
                    Err(error) => Err(callable.failed(py, error)),
                };
                let _ = sender.send(reply.done(outcome));
            }
            End::Token(sender) => {
                let _ = sender.send(verify::verdict(py, returned));
            }
            End::Text(sender) => {
                let outcome = returned.and_then(|value| callable.text(&value));
                let _ = sender.send(outcome.map_err(|error| callable.failed(py, error)));
            }
        }
    }

    /// Fails without a word from Python.
    pub(super) fn refuse(self, error: HandlerError) {
        match self {
            End::Tool(reply, sender) => {
                let _ = sender.send(reply.done(Err(error)));
            }
            End::Token(sender) => {
                let _ = sender.send(Err(TokenError::Unavailable));
            }
            End::Text(sender) => {
                let _ = sender.send(Err(error));
            }
        }
    }
}
