//! The I/O thread's side of a call that runs elsewhere: waits for it, within a limit, and cancels it when it is dropped.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpace_serve::{Context, HandlerError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::handler::{Callable, Kind};
use super::job::{End, Job};
use super::looping::Looping;
use super::pace::Pace;
use super::queue::Client;
use super::shared::Shared;
use super::step::Flight;

/// Cancels a call on the loop when dropped before its end.
pub(super) struct Guard {
    on_loop: Option<(Arc<Looping>, Arc<Flight>)>,
}

impl Guard {
    fn disarm(mut self) {
        self.on_loop = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((looping, flight)) = &self.on_loop {
            flight.cancel(looping);
        }
    }
}

/// Everything that a call needs but its arguments.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) callable: Arc<Callable>,
    pub(super) shared: Arc<Shared>,
    pub(super) pace: Option<Arc<Pace>>,
    pub(super) limit: Option<Duration>,
}

impl Target {
    /// Hands a call of `client` to the threads or to the loop.
    pub(super) fn hand_over(&self, arguments: Bytes, context: Option<Context>, end: End, client: Client) -> Guard {
        let Self { callable, shared, pace, .. } = self;
        let job = Job {
            callable: Arc::clone(callable),
            shared: Arc::clone(shared),
            arguments,
            context: context.map(|context| (context, Handle::current())),
            pace: pace.clone(),
            client,
            end,
        };
        match callable.kind {
            Kind::Sync => {
                shared.pool.submit(job);
                Guard { on_loop: None }
            }
            Kind::Async => {
                let Some(looping) = shared.looping() else {
                    job.end.refuse(HandlerError::internal("there is no event loop"));
                    return Guard { on_loop: None };
                };
                let flight = Arc::new(Flight::default());
                looping.submit(job, Arc::clone(&flight));
                Guard { on_loop: Some((Arc::clone(looping), flight)) }
            }
        }
    }

    /// Waits for the outcome.
    pub(super) async fn wait<T>(&self, outcome: oneshot::Receiver<T>, guard: Guard) -> Result<T, HandlerError> {
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
    pub(super) async fn ask(&self, arguments: Bytes, context: Option<Context>) -> Result<String, HandlerError> {
        let (sender, receiver) = oneshot::channel();
        // Permissions are asked about a request, and have no context of it.
        let answers = context.is_some();
        let client = context.as_ref().map_or(0, Context::client_key);
        let context = context.filter(|_| self.callable.wants_context());
        let guard = self.hand_over(arguments, context, End::text(sender, answers), client);
        self.wait(receiver, guard).await?
    }
}
