//! Hands a call from the I/O thread to the threads or the event loop, and waits for its result within a time limit. Dropping the wait
//! cancels the call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::{Context, HandlerError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::server::call::handler::{Callable, FunctionKind};
use crate::server::call::job::{CallCompletion, Job};
use crate::server::call::result_queue::result_channel;
use crate::server::threads::coroutine_call::{self, CoroutineCall};
use crate::server::threads::event_loop_thread::EventLoopThread;
use crate::server::threads::function_host::FunctionHost;
use crate::server::threads::inline_policy::InlinePolicy;
use crate::server::threads::queue::ClientNumber;

/// Cancels a call on the loop when dropped before its end.
pub(crate) struct CancelGuard {
    on_loop: Option<(Arc<EventLoopThread>, Arc<CoroutineCall>)>,
}

impl CancelGuard {
    fn disarm_guard(mut self) {
        self.on_loop = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some((event_loop_thread, flight)) = &self.on_loop {
            flight.cancel_call(event_loop_thread);
        }
    }
}

/// A function with everything that its calls need except arguments.
#[derive(Clone)]
pub(crate) struct CallTarget {
    pub(crate) callable: Arc<Callable>,
    pub(crate) shared: Arc<FunctionHost>,
    pub(crate) inline_policy: Option<Arc<InlinePolicy>>,
    pub(crate) limit: Option<Duration>,
}

impl CallTarget {
    /// Submits a call of `client` to the threads or to the event loop.
    pub(crate) fn submit_call(
        &self,
        arguments: Bytes,
        context: Option<Context>,
        end: CallCompletion,
        client: ClientNumber,
    ) -> CancelGuard {
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
            FunctionKind::Sync => {
                shared.pool.submit_job(job);
                CancelGuard { on_loop: None }
            }
            FunctionKind::Async => {
                let Some(event_loop_thread) = shared.event_loop_thread() else {
                    job.end.refuse_call(HandlerError::internal("there is no event loop"));
                    return CancelGuard { on_loop: None };
                };
                let flight = Arc::new(CoroutineCall::default());
                coroutine_call::submit_job(event_loop_thread, job, &flight);
                CancelGuard { on_loop: Some((Arc::clone(event_loop_thread), flight)) }
            }
        }
    }

    /// Waits for the outcome.
    pub(crate) async fn wait_outcome<T>(
        &self,
        outcome: oneshot::Receiver<T>,
        guard: CancelGuard,
    ) -> Result<T, HandlerError> {
        let outcome = match self.limit {
            None => outcome.await,
            Some(limit) => match tokio::time::timeout(limit, outcome).await {
                Ok(outcome) => outcome,
                Err(_) => return Err(HandlerError::new(format!("timed out after {} seconds", limit.as_secs_f64()))),
            },
        };
        guard.disarm_guard();
        outcome.map_err(|_| HandlerError::internal("a Python thread ended before its call"))
    }

    /// Calls the function for what its `finish` makes of its value.
    pub(crate) async fn ask_text(&self, arguments: Bytes, context: Context) -> Result<String, HandlerError> {
        let (sender, receiver) = result_channel();
        let client = context.client_key();
        let context = self.callable.wants_context().then_some(context);
        let guard = self.submit_call(arguments, context, CallCompletion::for_text(sender), client);
        self.wait_outcome(receiver, guard).await?
    }
}
