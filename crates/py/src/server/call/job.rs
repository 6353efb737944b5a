//! A call on its recipient to one of Python's threads, and the recipient of its result back.

use std::sync::Arc;

use bytes::Bytes;
use mcpace_serve::{Context, HandlerError, RawDone, RawReply};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::runtime::Handle;

use crate::server::call::context;
use crate::server::call::handler::Callable;
use crate::server::call::result_queue::ResultSender;
use crate::server::telemetry::{self, Observed};
use crate::server::threads::context_variables::ContextVariables;
use crate::server::threads::inline_policy::InlinePolicy;
use crate::server::threads::queue::ClientNumber;

/// A call that waits for its thread.
pub(crate) struct Job {
    pub(crate) callable: Arc<Callable>,
    pub(crate) variables: Arc<ContextVariables>,
    pub(crate) arguments: Bytes,
    /// Context of the request, and the runtime on which questions to the client wait.
    pub(crate) context: Option<(Context, Handle)>,
    pub(crate) inline_policy: Option<Arc<InlinePolicy>>,
    /// Client whose turn the call takes in the queue.
    pub(crate) client: ClientNumber,
    pub(crate) end: CallCompletion,
}

/// Recipient of a result. Dropped without a result, it reports an error to the waiting side.
pub(crate) struct CallCompletion {
    recipient: Recipient,
    /// The request that it is of, where that is observed.
    observed: Option<Arc<Observed>>,
}

/// Kinds of recipients, each with its channel.
enum Recipient {
    /// The reply to a tool call.
    Tool(RawReply, ResultSender<RawDone>),
    /// The JSON text of another result.
    Text(ResultSender<Result<String, HandlerError>>),
    /// A result that stays in this process, such as a guard's answer.
    Internal(Box<dyn InternalRecipient>),
}

/// Recipient of a value that is not part of a reply: a guard or a token verifier that asks a Python function.
pub(crate) trait InternalRecipient: Send {
    /// Whether nobody waits for the value any more.
    fn is_abandoned(&self) -> bool;

    /// Takes the function's result or exception.
    fn deliver(self: Box<Self>, py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>);

    /// The function was not called.
    fn fail_unsent(self: Box<Self>, error: HandlerError);
}

/// A call that is ready to be made.
pub(crate) struct Prepared<'py> {
    pub(crate) keywords: Bound<'py, PyDict>,
    pub(crate) variables: Bound<'py, PyAny>,
}

/// Arguments to value, in context variables of the call's own.
pub(crate) fn call_function<'py>(
    py: Python<'py>,
    callable: &Callable,
    variables: &ContextVariables,
    arguments: &[u8],
    context: Option<(Context, Handle)>,
    observed: Option<&Observed>,
) -> PyResult<Bound<'py, PyAny>> {
    let Prepared { keywords, variables } = prepare_call(py, callable, variables, arguments, context, observed)?;
    let returned = variables.call_method(intern!(py, "run"), (callable.function(),), Some(&keywords));
    if let Some(observed) = observed {
        observed.mark_served();
    }
    returned
}

/// All but the call itself.
pub(crate) fn prepare_call<'py>(
    py: Python<'py>,
    callable: &Callable,
    variables: &ContextVariables,
    arguments: &[u8],
    context: Option<(Context, Handle)>,
    observed: Option<&Observed>,
) -> PyResult<Prepared<'py>> {
    let keywords = callable.keyword_arguments(py, arguments)?;
    let variables = variables.copy_for_call(py)?;
    if let Some(observed) = observed {
        observed.enter_function(py, &variables);
    }
    if let Some((context, runtime)) = context {
        let made = context::Context::new(context, runtime);
        callable.put_context(&keywords, &variables, Bound::new(py, made)?.into_any())?;
    }
    Ok(Prepared { keywords, variables })
}

impl CallCompletion {
    pub(crate) fn for_tool(reply: RawReply, sender: ResultSender<RawDone>) -> Self {
        Self { recipient: Recipient::Tool(reply, sender), observed: telemetry::current_request() }
    }

    /// A value about a request that is not served yet, so the request's observation is not part of it.
    pub(crate) fn for_internal(recipient: impl InternalRecipient + 'static) -> Self {
        Self { recipient: Recipient::Internal(Box::new(recipient)), observed: None }
    }

    pub(crate) fn for_text(sender: ResultSender<Result<String, HandlerError>>) -> Self {
        Self { recipient: Recipient::Text(sender), observed: telemetry::current_request() }
    }

    /// The request that it is of, where that is observed.
    pub(crate) fn observed_request(&self) -> Option<&Observed> {
        self.observed.as_deref()
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_given_up(&self) -> bool {
        match &self.recipient {
            Recipient::Tool(_, sender) => sender.is_closed(),
            Recipient::Text(sender) => sender.is_closed(),
            Recipient::Internal(recipient) => recipient.is_abandoned(),
        }
    }

    /// Hands the outcome over. The receiver may be gone by now, which is fine.
    pub(crate) fn deliver_outcome(self, py: Python<'_>, callable: &Callable, returned: PyResult<Bound<'_, PyAny>>) {
        if let Some(observed) = &self.observed {
            observed.mark_served();
        }
        match self.recipient {
            Recipient::Tool(mut reply, sender) => {
                let outcome = match returned {
                    Ok(value) => callable.write_result(&value, &mut reply),
                    Err(error) => Err(callable.failure_result(py, error)),
                };
                sender.send(reply.done(outcome));
            }
            Recipient::Text(sender) => {
                let outcome = returned.and_then(|value| callable.result_text(&value));
                sender.send(outcome.map_err(|error| callable.failure_result(py, error)));
            }
            Recipient::Internal(recipient) => recipient.deliver(py, returned),
        }
    }

    /// Fails without a word from Python.
    pub(crate) fn refuse_call(self, error: HandlerError) {
        match self.recipient {
            Recipient::Tool(reply, sender) => {
                sender.send(reply.done(Err(error)));
            }
            Recipient::Text(sender) => {
                sender.send(Err(error));
            }
            Recipient::Internal(recipient) => recipient.fail_unsent(error),
        }
    }
}
