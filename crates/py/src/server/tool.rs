//! A tool whose handler is Python's: where its calls run.

use std::time::Instant;

use mcpace_serve::{HandlerError, RawAnswer, RawCall, RawDone, RawHandler};
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::handler::Kind;
use super::held::Watch;
use super::job::{self, End};
use super::pace::now_ms;
use super::telemetry;
use super::waiting::Target;

/// See the module.
pub(super) struct PythonTool {
    pub(super) target: Target,
}

impl RawHandler for PythonTool {
    fn call(&self, call: RawCall<'_>) -> RawAnswer {
        let Target { callable, pace, limit, .. } = &self.target;
        // Inline nothing could end it, and the client of a task does not wait for it.
        let is_inline = callable.kind == Kind::Sync && limit.is_none() && !call.is_task();
        if is_inline && pace.as_ref().is_some_and(|pace| pace.is_inline()) {
            return RawAnswer::Now(self.inline(call).unwrap_or_else(RawDone::failed));
        }
        self.later(call).unwrap_or_else(|error| RawAnswer::Now(RawDone::failed(error)))
    }
}

impl PythonTool {
    /// On this thread, under one attachment.
    fn inline(&self, call: RawCall<'_>) -> Result<RawDone, HandlerError> {
        let Target { callable, shared, pace, .. } = &self.target;
        let context = match callable.wants_context() {
            true => Some((call.context()?, Handle::current())),
            false => None,
        };
        let arguments = call.arguments();
        let mut reply = call.reply();
        let observed = telemetry::current();
        // From when it has the interpreter: what others make it wait before isn't its doing.
        let (outcome, took, held) = Python::attach(|py| {
            let watch = pace.as_ref().filter(|pace| pace.is_watched()).map(|_| Watch::start());
            let started = Instant::now();
            let outcome = match job::call(py, callable, shared, arguments.as_bytes(), context, observed.as_deref()) {
                Ok(value) => callable.write(&value, &mut reply),
                Err(error) => Err(callable.failed(py, error)),
            };
            (outcome, started.elapsed(), watch.map(|watch| watch.read().held))
        });
        if let Some(pace) = pace {
            pace.ran_inline(took, held, now_ms);
        }
        Ok(reply.done(outcome))
    }

    /// On a thread of the pool, or on the loop.
    fn later(&self, call: RawCall<'_>) -> Result<RawAnswer, HandlerError> {
        let context = match self.target.callable.wants_context() {
            true => Some(call.context()?),
            false => None,
        };
        let (arguments, client) = (call.keep_arguments(), call.client_key());
        let (sender, receiver) = oneshot::channel();
        let guard = self.target.hand_over(arguments, context, End::tool(call.reply(), sender), client);
        let target = self.target.clone();
        Ok(RawAnswer::Later(Box::pin(
            async move { target.wait(receiver, guard).await.unwrap_or_else(RawDone::failed) },
        )))
    }
}
