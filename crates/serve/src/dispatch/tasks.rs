//! Tool calls as tasks, and the methods of the tasks extension (SEP-2663).
//!
//! Constraint: a task's handler runs in rounds, as a call's does. A round that ends with questions puts them to the client
//! through the task, and the handler runs again with the answers.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::{Id, Message, Outcome as Answered, code};
use mcpace_wire::mcp::{ClientCapabilities, TaskIdParams, TaskStatus, UpdateTaskParams, key};
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::FinishLater;
use super::lifecycle::write_members;
use super::raw_call;
use super::reply::{ResultEnd, reply_head};
use super::result_limits::in_time;
use super::{Call, Refusal};
use crate::catalogue::ToolEntry;
use crate::exchange::{Handled, Reply};
use crate::guard::BoxFuture;
use crate::outlet::{Gone, Outlet};
use crate::principal::Principal;
use crate::server_state::ServerState;
use crate::service::{
    AskError, Backing, CallFailure, Context, Done, HandlerError, HandlerFailure, InputRequired, Inputs, OwnedRequest,
    RawAnswer, RawCall, TaskUse, ToolHandler, catch_panic, caught_future, tasks_extension,
};
use crate::tasks::{Running, TaskOutcome};

impl Call<'_> {
    /// Where a task of this call could run. `None` where the tool has no tasks or the client takes none.
    pub(super) fn task_runtime(&self, tool: &ToolEntry) -> Option<Handle> {
        match tool.task {
            TaskUse::Never => None,
            _ => Handle::try_current().ok().filter(|_| self.takes_tasks()),
        }
    }

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

    /// Runs a tool as a task, and answers with the task. A handler that answers at once needs none.
    pub(super) fn call_task(&self, tool: &Arc<ToolEntry>, runtime: &Handle) -> Result<Handled, Refusal> {
        let inputs = self.read_inputs()?;
        let task = begin_task(self.server, tool, self.task_subject())?;
        let context = self.task_context(&task, inputs);
        let members = reply_head(self.id()).len();
        match start_tool(tool, self.outline.arguments, &context) {
            Started::Now(done) => {
                self.server.tasks.forget_task(&task.id);
                let Done { out, outcome, service } = done;
                self.finish_tool(tool, members, Some(context.request()))
                    .write_reply(out, outcome, service)
                    .map(Handled::Now)
            }
            Started::Later(work) => {
                let mut out = reply_head(self.id());
                write_members(&task.current_task(), &mut out)?;
                let end = self.finish_later(tool, members).without_timing();
                let (server, closed) = (Arc::clone(self.server), self.incoming.channel.connection_closed());
                runtime.spawn(run_task(server, closed, task, run_rounds(Arc::clone(tool), context, work, end)));
                Ok(Handled::Now(self.reply_end().close_as(out, "task")))
            }
        }
    }

    /// The answer to a client that takes no tasks, of a tool that needs them.
    pub(super) fn refuse_without_tasks(&self, tool: &ToolEntry) -> Result<Handled, Refusal> {
        let out = reply_head(self.id());
        let undeclared = HandlerError::from(AskError::Undeclared { required: tasks_extension() });
        let failed = Err(CallFailure::Failed(undeclared));
        self.finish_tool(tool, out.len(), None).write_reply(out, failed, <_>::default()).map(Handled::Now)
    }

    pub(super) fn task_get(&self) -> Result<Handled, Refusal> {
        let params: TaskIdParams = self.task_params()?;
        let task = self.find_task(&params.task_id)?.current_task();
        let mut out = reply_head(self.id());
        write_members(&task, &mut out)?;
        Ok(Handled::Now(self.reply_end().close_complete(out)))
    }

    pub(super) fn task_update(&self) -> Result<Handled, Refusal> {
        let params: UpdateTaskParams = self.task_params()?;
        let task = self.find_task(&params.task_id)?;
        if task.take_answers(params.input_responses) {
            self.server.subscriptions.notify_task_subscribers(&task);
        }
        Ok(self.empty_reply())
    }

    pub(super) fn task_cancel(&self) -> Result<Handled, Refusal> {
        let params: TaskIdParams = self.task_params()?;
        let task = self.find_task(&params.task_id)?;
        if task.end_task(TaskStatus::Cancelled, None) {
            self.server.subscriptions.notify_task_subscribers(&task);
        }
        task.cancellation.cancel();
        Ok(self.empty_reply())
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
        self.read_params()
    }

    fn find_task(&self, id: &str) -> Result<Arc<Running>, Refusal> {
        let found = self.server.tasks.find_task(id, self.task_subject().as_ref());
        found.ok_or_else(|| Refusal::error(code::INVALID_PARAMS, "unknown task"))
    }

    pub(super) fn task_subject(&self) -> Option<Arc<str>> {
        task_subject(self.incoming.peer.principal.as_ref())
    }
}

fn task_subject(principal: Option<&Principal>) -> Option<Arc<str>> {
    principal.map(|principal| Arc::clone(&principal.subject))
}

fn begin_task(server: &ServerState, tool: &ToolEntry, subject: Option<Arc<str>>) -> Result<Arc<Running>, Refusal> {
    let begun = server.tasks.begin_task(subject, tool.terms, &server.limits);
    begun.ok_or_else(|| Refusal::error(code::INTERNAL_ERROR, "the server has too many tasks"))
}

/// Answers a call with the task that its handler goes on as.
pub(super) fn detach_task(
    runtime: &Handle,
    server: &Arc<ServerState>,
    tool: &ToolEntry,
    request: &OwnedRequest,
    end: ResultEnd<'_>,
    work: impl Future<Output = Reply> + Send + 'static,
) -> Result<Reply, Refusal> {
    let task = begin_task(server, tool, task_subject(request.principal.as_ref()))?;
    let mut out = reply_head(&request.id);
    write_members(&task.current_task(), &mut out)?;
    // Set once: a handler wants to become a task once, and learns of it after that.
    request.task.get_or_init(|| Arc::clone(&task));
    if let Some(detach) = &request.detach {
        detach.begun.cancel();
    }
    runtime.spawn(run_task(Arc::clone(server), request.closed.clone(), task, work));
    Ok(end.close_as(out, "task"))
}

/// How far a round of a task's handler came at once.
enum Started {
    Now(Done),
    Later(BoxFuture<Done>),
}

/// Starts a round of a task's handler.
fn start_tool(tool: &ToolEntry, arguments: Option<&RawValue>, context: &Context) -> Started {
    let id = context.request_id();
    let failed = |failure| Started::Now(Done { out: reply_head(id), outcome: Err(failure), service: <_>::default() });
    let work = match &tool.handler {
        ToolHandler::Plain(_) => {
            return failed(CallFailure::Failed(HandlerError::internal("a plain handler runs as no task")));
        }
        ToolHandler::Async(handler) => match handler(arguments, context.clone(), reply_head(id)) {
            Ok(work) => work,
            Err(malformed) => return failed(CallFailure::Malformed(malformed)),
        },
        ToolHandler::Raw(handler) => {
            let answer = catch_panic(|| {
                handler.call(RawCall {
                    arguments: arguments.map_or("{}", RawValue::get),
                    out: reply_head(id),
                    revision: context.revision(),
                    timed: false,
                    backing: &TaskBacking { context },
                })
            });
            match answer {
                Ok(RawAnswer::Now(done)) => return Started::Now(raw_call::finish_raw(done, id)),
                Ok(RawAnswer::Later(work)) => {
                    let id = id.clone();
                    Box::pin(async move {
                        raw_call::finish_raw(caught_future(work).await.unwrap_or_else(raw_call::done_after_panic), &id)
                    })
                }
                Err(panicked) => return Started::Now(raw_call::finish_raw(raw_call::done_after_panic(panicked), id)),
            }
        }
    };
    Started::Later(in_time_of(tool, id, work))
}

/// Ends a tool's work where it takes too long.
pub(super) fn in_time_of(tool: &ToolEntry, id: &Id<'_>, work: BoxFuture<Done>) -> BoxFuture<Done> {
    let Some(guard) = tool.guard.as_deref() else { return work };
    // The buffer is the work's.
    let id = id.clone().into_owned();
    let late = move |error, service| Done { out: reply_head(&id), outcome: Err(CallFailure::Failed(error)), service };
    in_time(Some(guard), work, late)
}

/// Runs a handler round by round to its end; `work` is the round that has begun.
pub(super) async fn run_rounds(
    tool: Arc<ToolEntry>,
    mut context: Context,
    mut work: BoxFuture<Done>,
    end: FinishLater,
) -> Reply {
    let reply = loop {
        let Done { out, outcome, service } = work.await;
        let outcome = match outcome {
            Err(CallFailure::Failed(error)) => match error.into_kind() {
                HandlerFailure::Input(input) if context.task().is_some() => match ask_client(&context, input).await {
                    Ok(inputs) => {
                        context = context.next_round(inputs);
                        work = match start_tool(&tool, call_arguments(context.params().map(Bytes::as_ref)), &context) {
                            Started::Now(done) => Box::pin(std::future::ready(done)),
                            Started::Later(work) => work,
                        };
                        continue;
                    }
                    Err(refusal) => break Err(refusal),
                },
                kind => Err(CallFailure::Failed(kind.into())),
            },
            outcome => outcome,
        };
        break end.finish_tool(Some(context.request())).write_reply(out, outcome, service);
    };
    reply.unwrap_or_else(|refusal| refusal.into_reply(context.request_id(), end.revision()))
}

/// Puts the questions of a round to the client through the task, and waits for all answers.
async fn ask_client(context: &Context, input: InputRequired) -> Result<Inputs, Refusal> {
    let request = context.request();
    let before = &request.inputs;
    if before.round >= request.server.limits().rounds {
        return Err(Refusal::error(code::INTERNAL_ERROR, "too many rounds"));
    }
    let task = context.task().ok_or_else(Refusal::internal_error)?;
    let InputRequired { requests, state } = input;
    let asked: Vec<_> =
        requests.into_iter().map(|(key, question)| (key.clone(), task.ask_client(key, question))).collect();
    if !asked.is_empty() {
        request.server.publish_task(task);
    }
    let mut answers = before.answers.clone();
    for (key, answer) in asked {
        // Without an answer the task has ended.
        answers.insert(key, answer.await.map_err(|_| Refusal::Cancelled)?);
    }
    Ok(Inputs { answers, state: state.or_else(|| before.state.clone()), round: before.round + 1 })
}

/// The arguments in the parameters of a call.
fn call_arguments(params: Option<&[u8]>) -> Option<&RawValue> {
    #[derive(serde::Deserialize)]
    struct TaskParams<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    // They were read once already.
    serde_json::from_slice::<TaskParams<'_>>(params?).ok()?.arguments
}

/// Backing of a raw handler that runs in a task.
struct TaskBacking<'c> {
    context: &'c Context,
}

impl Backing for TaskBacking<'_> {
    fn context(&self) -> Result<Context, HandlerError> {
        Ok(self.context.clone())
    }

    fn principal(&self) -> Option<&Principal> {
        self.context.principal()
    }

    fn client_key(&self) -> u64 {
        self.context.client_key()
    }

    fn keep(&self, part: &str) -> Bytes {
        Bytes::copy_from_slice(part.as_bytes())
    }

    fn is_task(&self) -> bool {
        true
    }
}

/// Runs the work to its end, then keeps the task for as long as was promised. `closed` fires when the connection ends that
/// alone could ask for the task.
fn run_task(
    server: Arc<ServerState>,
    closed: Option<CancellationToken>,
    task: Arc<Running>,
    work: impl Future<Output = Reply>,
) -> impl Future<Output = ()> {
    // The guard tells the handler's spawned work about the end, even if the runtime is dropped.
    let guard = task.cancellation.clone().drop_guard();
    async move {
        run_to_end(&server, closed, &task, work, guard).await;
        server.tasks.forget_task(&task.id);
    }
}

async fn run_to_end(
    server: &ServerState,
    closed: Option<CancellationToken>,
    task: &Running,
    work: impl Future<Output = Reply>,
    guard: DropGuard,
) {
    let over = async {
        let closed = async {
            match &closed {
                Some(closed) => closed.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(task.expires) => {}
            () = server.closing.cancelled() => {}
            () = closed => {}
        }
    };
    tokio::pin!(over);
    let (has_ended, is_over) = tokio::select! {
        reply = work => (server.tasks.finish_task(task, task_outcome(&reply.message), &server.limits), false),
        () = task.cancellation.cancelled() => (task.end_task(TaskStatus::Cancelled, None), false),
        () = &mut over => (task.end_task(TaskStatus::Cancelled, None), true),
    };
    drop(guard);
    if has_ended {
        server.subscriptions.notify_task_subscribers(task);
    }
    if !is_over {
        over.await;
    }
}

/// The outcome that a reply tells.
fn task_outcome(reply: &[u8]) -> Option<TaskOutcome> {
    match Message::parse(reply) {
        Ok(Message::Response(response)) => match response.outcome {
            Answered::Result(result) => Some(TaskOutcome::Result(result.into())),
            Answered::Error(error) => TaskOutcome::error(error.code, &error.message, error.data),
        },
        // Our own reply is a response.
        _ => None,
    }
}

/// The outlet of a task's handler: the stream of the request that began it has ended.
pub(super) struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _: Bytes) -> Result<(), Gone> {
        Err(Gone)
    }
}
