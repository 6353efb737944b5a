//! Hands a call from the I/O thread to the threads or the event loop, and waits for its result within a time limit. Dropping the wait
//! cancels the call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::{Context, HandlerError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::server::call::handler::{Callable, Kind};
use crate::server::call::job::{Completion, Job};
use crate::server::threads::coroutine_call::{self, CoroutineCall};
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::function_host::FunctionHost;
use crate::server::threads::inline_policy::InlinePolicy;
use crate::server::threads::queue::Client;

/// Cancels a call on the loop when dropped before its end.
pub(crate) struct Guard {
    on_loop: Option<(Arc<EventLoopThread>, Arc<CoroutineCall>)>,
}

impl Guard {
    fn disarm(mut self) {
        self.on_loop = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((event_loop_thread, flight)) = &self.on_loop {
            flight.cancel(event_loop_thread);
        }
    }
}

/// A function with everything that its calls need except arguments.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) callable: Arc<Callable>,
    pub(crate) shared: Arc<FunctionHost>,
    pub(crate) inline_policy: Option<Arc<InlinePolicy>>,
    pub(crate) limit: Option<Duration>,
}

impl Target {
    /// Submits a call of `client` to the threads or to the event loop.
    pub(crate) fn submit_call(
        &self,
        arguments: Bytes,
        context: Option<Context>,
        end: Completion,
        client: Client,
    ) -> Guard {
        let Self { callable, shared, inline_policy, .. } = self;
        let job = Job {
            callable: Arc::clone(callable),
            variables: Arc::clone(&shared.variables),
            arguments,
            context: context.map(|context| (context, Handle::current())),
            inline_policy: inline_policy.clone(),
            client,
            end,
        };
        match callable.kind {
            Kind::Sync => {
                shared.pool.submit(job);
                Guard { on_loop: None }
            }
            Kind::Async => {
                let Some(event_loop_thread) = shared.event_loop_thread() else {
                    job.end.refuse(HandlerError::internal("there is no event loop"));
                    return Guard { on_loop: None };
                };
                let flight = Arc::new(CoroutineCall::default());
                coroutine_call::submit(event_loop_thread, job, &flight);
                Guard { on_loop: Some((Arc::clone(event_loop_thread), flight)) }
            }
        }
    }

    /// Waits for the outcome.
    pub(crate) async fn wait<T>(&self, outcome: oneshot::Receiver<T>, guard: Guard) -> Result<T, HandlerError> {
        let outcome = match self.limit {
            None => outcome.await,
            Some(limit) => match tokio::time::timeout(limit, outcome).await {
                Ok(outcome) => outcome,
                Err(_) => return Err(HandlerError::new(format!("timed out after {} seconds", limit.as_secs_f64()))),
            },
        };
        guard.disarm();
        outcome.map_err(|_| HandlerError::internal("a Python thread ended before its call"))
    }

    /// Calls the function for what its `finish` makes of its value.
    pub(crate) async fn ask(&self, arguments: Bytes, context: Context) -> Result<String, HandlerError> {
        let (sender, receiver) = oneshot::channel();
        let client = context.client_key();
        let context = self.callable.wants_context().then_some(context);
        let guard = self.submit_call(arguments, context, Completion::text(sender), client);
        self.wait(receiver, guard).await?
    }
}
