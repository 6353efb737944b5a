//! Tasks of 2026-07-28 (the extension `io.modelcontextprotocol/tasks`): a request whose work goes on, followed to its end.

use std::time::Duration;

use mcpace_wire::mcp::{InputResponses, Json, Task, TaskStatus};

use crate::client::{Client, ClientInner, RequestOutcome, UnsentRequest};
use crate::rounds::answer_all;
use crate::{CallOptions, ClientError, Raw, RpcError};
use mcpace_client_protocol::{Outgoing, ParamsWriter};

/// How long to wait between two looks where the server doesn't say, and at least and at most.
const POLL: Duration = Duration::from_millis(500);
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

impl Client {
    /// How a task is.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn task(&self, id: &str) -> Result<Task, ClientError> {
        self.inner.get_task(id).await
    }

    /// Gives a task the input that it waits for.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn update_task(&self, id: &str, responses: &InputResponses) -> Result<(), ClientError> {
        self.inner.update_task(id, responses).await
    }

    /// Asks that a task be given up.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn cancel_task(&self, id: &str) -> Result<(), ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("taskId", id);
        self.inner.task_request("tasks/cancel", id, &fill, false).await.map(drop)
    }
}

impl ClientInner {
    async fn get_task(&self, id: &str) -> Result<Task, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.value("taskId", id);
        self.task_request("tasks/get", id, &fill, true).await?.read("tasks/get")
    }

    async fn update_task(&self, id: &str, responses: &InputResponses) -> Result<(), ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("taskId", id);
            params.value("inputResponses", responses);
        };
        self.task_request("tasks/update", id, &fill, false).await.map(drop)
    }

    async fn task_request(
        &self,
        method: &'static str,
        id: &str,
        fill: &(dyn Fn(&mut ParamsWriter<'_>) + Sync),
        repeatable: bool,
    ) -> Result<Raw, ClientError> {
        let revision = self.current_session()?.info.revision;
        if !revision.is_modern() {
            return Err(ClientError::NotInRevision { method, revision });
        }
        let options = &CallOptions::default();
        let ask = UnsentRequest { method, name: Some(id), arguments: None, fill, repeatable, options };
        match self.send_request(&ask).await? {
            RequestOutcome::Complete(raw, _) => Ok(raw),
            _ => Err(ClientError::bad_reply(method, "its result is not complete")),
        }
    }

    /// Follows a task that `method` became to its end, giving it the input that it asks for. Given up, it is cancelled.
    pub(crate) async fn follow_task(&self, method: &'static str, mut task: Task) -> Result<Raw, ClientError> {
        let mut given_up = GivenUp { inner: self, id: Some(task.task_id.clone()) };
        loop {
            match task.status {
                TaskStatus::Completed => {
                    given_up.id = None;
                    let result = task.result.ok_or_else(|| ClientError::bad_reply(method, "its task has no result"))?;
                    return Ok(Raw::new(result.get().as_bytes().to_vec()));
                }
                TaskStatus::Failed => {
                    given_up.id = None;
                    let error = task.error.as_ref().and_then(|error: &Json| error.parse::<RpcError>().ok());
                    let error = error.ok_or_else(|| ClientError::bad_reply(method, "its failed task has no error"))?;
                    return Err(ClientError::Rpc { method, error });
                }
                TaskStatus::Cancelled => {
                    given_up.id = None;
                    let reason = task.status_message.as_deref().map(mcpace_wire::quote_printable);
                    return Err(ClientError::TaskCancelled { method, reason });
                }
                TaskStatus::InputRequired => {
                    let requests = task.input_requests.take().unwrap_or_default();
                    if !requests.is_empty() {
                        let responses = answer_all(&self.options.callbacks, method, requests).await?;
                        self.update_task(&task.task_id, &responses).await?;
                    }
                }
                TaskStatus::Working => {}
            }
            let wait = task.poll_interval_ms.map_or(POLL, Duration::from_millis);
            tokio::time::sleep(wait.clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)).await;
            task = self.get_task(&task.task_id).await?;
        }
    }
}

/// Cancels a task that nobody waits for any more.
struct GivenUp<'a> {
    inner: &'a ClientInner,
    id: Option<String>,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(session)) = (self.id.take(), self.inner.current_session()) else { return };
        let request = self.inner.next_id();
        let fill = |params: &mut ParamsWriter<'_>| params.value("taskId", &id);
        let body = session.dialect.request(request, "tasks/cancel", &fill, None, false);
        let mut message = Outgoing::request(request, "tasks/cancel", body, false);
        message.add_target_headers(&id, None, &[]);
        let limit = self.inner.options.limits.close_time;
        drop(self.inner.inbound.runtime.spawn(async move {
            drop(tokio::time::timeout(limit, session.link.request(&message)).await);
        }));
    }
}
