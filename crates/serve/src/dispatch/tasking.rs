//! Tool calls as tasks, and the methods of the tasks extension (SEP-2663).

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::{Message, Outcome as Answered, code};
use mcpace_wire::mcp::{ClientCapabilities, Json, TaskIdParams, TaskStatus, UpdateTaskParams, key};
use serde::Serialize;
use serde_json::value::RawValue;

use super::lifecycle::write_members;
use super::reply::{End, head};
use super::{Call, Refusal};
use crate::exchange::{Gone, Handled, Outlet, Reply};
use crate::server::Inner;
use crate::service::{Request, tasks_extension};
use crate::tasks::{Outcome, Running};

impl Call<'_> {
    /// Whether the client takes a task for an answer.
    pub(super) fn takes_tasks(&self) -> bool {
        let declared = |raw: &RawValue| {
            // Looking for the word first spares nearly every call the parsing.
            raw.get().contains(key::TASKS_EXTENSION)
                && serde_json::from_str::<ClientCapabilities>(raw.get())
                    .is_ok_and(|client| client.has_extension(key::TASKS_EXTENSION))
        };
        self.revision.is_modern() && self.meta().and_then(|meta| meta.client_capabilities).is_some_and(declared)
    }

    pub(super) fn begin_task(&self) -> Result<Arc<Running>, Refusal> {
        begin(self.server, self.subject())
    }

    /// Lets `work` run on, and answers with the task.
    pub(super) fn run_task(
        &self,
        runtime: &tokio::runtime::Handle,
        task: Arc<Running>,
        work: impl Future<Output = Reply> + Send + 'static,
    ) -> Result<Handled, Refusal> {
        let mut out = head(self.id());
        write_members(&task.task(), &mut out)?;
        runtime.spawn(run(Arc::clone(self.server), task, work));
        Ok(Handled::Now(self.end().close(out, "task")))
    }

    pub(super) fn task_get(&self) -> Result<Handled, Refusal> {
        let params: TaskIdParams = self.task_params()?;
        let task = self.task(&params.task_id)?.task();
        let mut out = head(self.id());
        write_members(&task, &mut out)?;
        Ok(Handled::Now(self.end().complete(out)))
    }

    pub(super) fn task_update(&self) -> Result<Handled, Refusal> {
        let params: UpdateTaskParams = self.task_params()?;
        let task = self.task(&params.task_id)?;
        if task.answer(params.input_responses) {
            self.server.listeners.tell_task(&task);
        }
        Ok(self.empty())
    }

    pub(super) fn task_cancel(&self) -> Result<Handled, Refusal> {
        let params: TaskIdParams = self.task_params()?;
        let task = self.task(&params.task_id)?;
        if task.end(TaskStatus::Cancelled, None) {
            self.server.listeners.tell_task(&task);
        }
        task.cancellation.cancel();
        Ok(self.empty())
    }

    /// The parameters, from a client that declared the extension, of a server that has it.
    fn task_params<T: serde::de::DeserializeOwned>(&self) -> Result<T, Refusal> {
        let catalogue = self.server.catalogue.load();
        let extensions = catalogue.capabilities(self.revision).extensions.as_ref();
        if !extensions.is_some_and(|extensions| extensions.contains_key(key::TASKS_EXTENSION)) {
            return Err(Refusal::UnknownMethod);
        }
        if !self.takes_tasks() {
            return Err(Rejection::MissingCapability { required: tasks_extension() }.into());
        }
        self.params()
    }

    fn task(&self, id: &str) -> Result<Arc<Running>, Refusal> {
        let found = self.server.tasks.find(id, self.subject().as_ref());
        found.ok_or_else(|| Refusal::error(code::INVALID_PARAMS, "unknown task"))
    }

    pub(super) fn subject(&self) -> Option<Arc<str>> {
        self.incoming.peer.principal.as_ref().map(|principal| Arc::clone(&principal.subject))
    }
}

fn begin(server: &Inner, subject: Option<Arc<str>>) -> Result<Arc<Running>, Refusal> {
    server
        .tasks
        .begin(subject, server.limits.task_time, server.limits.tasks)
        .ok_or_else(|| Refusal::error(code::INTERNAL_ERROR, "the server has too many tasks"))
}

/// Answers a call with the task that its handler goes on as.
pub(super) fn detach(
    runtime: &tokio::runtime::Handle,
    server: &Arc<Inner>,
    request: &Request,
    end: End<'_>,
    work: impl Future<Output = Reply> + Send + 'static,
) -> Result<Reply, Refusal> {
    let subject = request.principal.as_ref().map(|principal| Arc::clone(&principal.subject));
    let task = begin(server, subject)?;
    let mut out = head(&request.id);
    write_members(&task.task(), &mut out)?;
    // Set once: a handler wants to become a task once, and is told after that.
    request.task.get_or_init(|| Arc::clone(&task));
    if let Some(detach) = &request.detach {
        detach.begun.cancel();
    }
    runtime.spawn(run(Arc::clone(server), task, work));
    Ok(end.close(out, "task"))
}

/// Runs the work to its end, then keeps the task for as long as was promised.
async fn run(server: Arc<Inner>, task: Arc<Running>, work: impl Future<Output = Reply>) {
    let ended = tokio::select! {
        reply = work => {
            let (status, outcome) = outcome(&reply.message);
            task.end(status, outcome)
        }
        () = task.cancellation.cancelled() => task.end(TaskStatus::Cancelled, None),
        () = tokio::time::sleep_until(task.expires) => task.end(TaskStatus::Cancelled, None),
        () = server.closing.cancelled() => task.end(TaskStatus::Cancelled, None),
    };
    // Whatever the handler spawned learns of the end, too.
    task.cancellation.cancel();
    if ended {
        server.listeners.tell_task(&task);
    }
    tokio::select! {
        () = tokio::time::sleep_until(task.expires) => {}
        () = server.closing.cancelled() => {}
    }
    server.tasks.forget(&task.id);
}

/// What the reply would have said.
fn outcome(reply: &[u8]) -> (TaskStatus, Option<Outcome>) {
    #[derive(Serialize)]
    struct Failed<'a> {
        code: i64,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a RawValue>,
    }
    let outcome = match Message::parse(reply) {
        Ok(Message::Response(response)) => match response.outcome {
            Answered::Result(result) => Some(Outcome::Result(result.into())),
            Answered::Error(error) => Json::of(&Failed { code: error.code, message: &error.message, data: error.data })
                .ok()
                .map(Outcome::Error),
        },
        // Our own reply is a response.
        _ => None,
    };
    let status = if matches!(outcome, Some(Outcome::Result(_))) { TaskStatus::Completed } else { TaskStatus::Failed };
    (status, outcome)
}

/// The outlet of a task's handler: the stream of the request that began it has ended.
pub(super) struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _: Bytes) -> Result<(), Gone> {
        Err(Gone)
    }
}
