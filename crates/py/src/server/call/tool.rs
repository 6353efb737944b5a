//! A tool whose handler is a Python function, and the choice of the thread for each call.

use std::time::Instant;

use mcpace_serve::{HandlerError, RawAnswer, RawCall, RawDone, RawHandler};
use pyo3::prelude::*;
use tokio::runtime::Handle;

use crate::server::call::handler::FunctionKind;
use crate::server::call::job::{self, CallCompletion};
use crate::server::call::result_queue::result_channel;
use crate::server::call::submission::CallTarget;
use crate::server::telemetry;
use crate::server::threads::inline_policy::now_ms;
use crate::server::threads::thread_time::ThreadTimer;

/// Tool whose handler is a Python function.
pub(crate) struct PythonTool {
    pub(crate) target: CallTarget,
}

impl RawHandler for PythonTool {
    fn call(&self, call: RawCall<'_>) -> RawAnswer {
        let CallTarget { callable, inline_policy, limit, .. } = &self.target;
        // No time limit can end an inline call. The client of a task does not wait for its call.
        let is_inline = callable.kind == FunctionKind::Sync && limit.is_none() && !call.is_task();
        if is_inline && inline_policy.as_ref().is_some_and(|inline_policy| inline_policy.is_inline()) {
            return RawAnswer::Now(self.run_inline(call).unwrap_or_else(RawDone::failed));
        }
        self.run_elsewhere(call).unwrap_or_else(|error| RawAnswer::Now(RawDone::failed(error)))
    }
}

impl PythonTool {
    /// Runs the call on this thread, under one attachment to the interpreter.
    fn run_inline(&self, call: RawCall<'_>) -> Result<RawDone, HandlerError> {
        let CallTarget { callable, shared, inline_policy, .. } = &self.target;
        let context = match callable.wants_context() {
            true => Some((call.context()?, Handle::current())),
            false => None,
        };
        let arguments = call.arguments();
        let mut reply = call.reply();
        let observed = telemetry::current_request();
        // Measured from the attachment on: the wait for the interpreter is not the function's time.
        let (outcome, took, held) = Python::attach(|py| {
            let watch =
                inline_policy.as_ref().filter(|inline_policy| inline_policy.is_watched()).map(|_| ThreadTimer::start());
            let started = Instant::now();
            let outcome = match job::call_function(
                py,
                callable,
                &shared.variables,
                arguments.as_bytes(),
                context,
                observed.as_deref(),
            ) {
                Ok(value) => callable.write_result(&value, &mut reply),
                Err(error) => Err(callable.failure_result(py, error)),
            };
            (outcome, started.elapsed(), watch.map(|watch| watch.read().held))
        });
        if let Some(inline_policy) = inline_policy {
            inline_policy.record_inline(took, held, now_ms);
        }
        Ok(reply.done(outcome))
    }

    /// Runs the call on a thread of the pool or on the event loop.
    fn run_elsewhere(&self, call: RawCall<'_>) -> Result<RawAnswer, HandlerError> {
        let context = match self.target.callable.wants_context() {
            true => Some(call.context()?),
            false => None,
        };
        let (arguments, client) = (call.keep_arguments(), call.client_key());
        let (sender, receiver) = result_channel();
        let guard = self.target.submit_call(arguments, context, CallCompletion::for_tool(call.reply(), sender), client);
        let target = self.target.clone();
        Ok(RawAnswer::Later(Box::pin(async move {
            target.wait_outcome(receiver, guard).await.unwrap_or_else(RawDone::failed)
        })))
    }
}
