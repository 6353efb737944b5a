//! From a call to a task, at the moment that the handler chooses.

use std::sync::Arc;

use mcpace_wire::mcp::{Extra, key};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{AskError, Context};
use crate::tasks::Running;

/// Between a handler that wants to become a task and the call that it runs as.
#[derive(Debug, Default)]
pub(crate) struct Detach {
    pub(crate) wanted: CancellationToken,
    pub(crate) begun: CancellationToken,
}

impl Context {
    /// Makes the call a task, in a tool with [`crate::Tool::task_on_demand`]: its request is answered with the task now,
    /// the handler's result becomes the task's, and so do the questions that it asks from here on. Questions asked before
    /// belong to rounds of the call. Does nothing in a call that is already a task.
    ///
    /// # Errors
    /// [`AskError::Undeclared`]: the client takes no tasks. Passed on by `?`, it is told that it has to; a handler that can
    /// do without goes on as a call.
    pub async fn begin_task(&self) -> Result<(), AskError> {
        if self.task().is_some() {
            return Ok(());
        }
        let Some(detach) = &self.request().detach else {
            return Err(AskError::Undeclared { required: tasks_extension() });
        };
        detach.wanted.cancel();
        // Where no task can begin, the call is refused and this future dropped.
        detach.begun.cancelled().await;
        Ok(())
    }

    /// The id of the task that the handler runs as.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        self.task().map(|task| &*task.id)
    }

    /// The task that the handler runs as.
    pub(crate) fn task(&self) -> Option<&Arc<Running>> {
        self.request().task.get()
    }
}

/// Capability that a client with support for tasks declares.
pub(crate) fn tasks_extension() -> Extra {
    Extra::from_iter([("extensions".to_owned(), json!({key::TASKS_EXTENSION: {}}))])
}
