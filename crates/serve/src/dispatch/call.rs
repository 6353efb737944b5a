//! `tools/call`.

use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::CallToolResult;
use tokio::runtime::Handle;

use super::clocks::Clocks;
use super::failure::{self, Failing};
use super::guard_check::Used;
use super::in_flight::InFlight;
use super::reply::{ResultEnd, reply_head};
use super::result_limits::too_long;
use super::tasks::in_time_of;
use super::{Call, Refusal, missing_member, tasks, tracing};
use crate::catalogue::{Catalogue, Listed as _, ToolEntry};
use crate::exchange::{Handled, Reply};
use crate::guard::{BoxFuture, ComponentKind};
use crate::server_state::ServerState;
use crate::service::{
    AsyncCall, CallFailure, Context, Done, OwnedRequest, Plain, PlainCall, TaskUse, ToolHandler, ToolWriter, Written,
};

impl Call<'_> {
    pub(super) fn call_tool(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let name = self.outline.name.as_deref().ok_or_else(|| missing_member("name"))?;
        let Some(tool) = catalogue.tools.get(name) else {
            // A peer's string: only as much of it as a name could be long.
            let name: String = name.chars().take(128).collect();
            return Err(Refusal::error(code::INVALID_PARAMS, format!("unknown tool: {name}")));
        };
        // A malformed request, not arguments that a model could mend (2025-11-25, server/tools, "Error Handling").
        if self.outline.arguments.is_some_and(|arguments| !arguments.get().starts_with('{')) {
            return Err(Refusal::error(code::INVALID_PARAMS, "params.arguments: expected an object"));
        }
        if let Some(guard) = &tool.guard {
            let used = Used { kind: ComponentKind::Tool, name: tool.lookup_key(), uri: None, guard, counts: true };
            if let Some(answer) = self.authorize_use(catalogue, used)? {
                return Ok(answer);
            }
        }
        match &tool.handler {
            ToolHandler::Plain(handler) => {
                if self.outline.request_state.is_some() {
                    // No plain tool gave it out.
                    self.read_inputs()?;
                }
                self.call_plain(tool, handler)
            }
            handler => {
                let runtime = self.task_runtime(tool);
                match (tool.task, &runtime) {
                    (TaskUse::AtOnce | TaskUse::Required, Some(runtime)) => return self.call_task(tool, runtime),
                    (TaskUse::Required, None) => return self.refuse_without_tasks(tool),
                    _ => {}
                }
                match handler {
                    ToolHandler::Async(handler) => self.call_async(tool, handler, runtime),
                    ToolHandler::Raw(handler) => self.call_raw(tool, handler, runtime),
                    ToolHandler::Plain(handler) => self.call_plain(tool, handler),
                }
            }
        }
    }

    /// Message to handler to buffer, on this thread.
    fn call_plain(&self, tool: &ToolEntry, handler: &PlainCall) -> Result<Handled, Refusal> {
        let mut out = reply_head(self.id());
        let members = out.len();
        let writer = ToolWriter::new(&mut out, self.revision);
        let mut plain = Plain { writer, timed: self.clocks.is_some(), service: Duration::ZERO };
        let outcome = handler(self.outline.arguments, &mut plain);
        let Plain { writer: ToolWriter { meta, is_error, .. }, service, .. } = plain;
        self.finish_tool(tool, members, None)
            .write_reply(out, outcome.map(|()| Written { meta, is_error }), service)
            .map(Handled::Now)
    }

    /// `runtime`: where the call goes on once its handler makes it a task.
    fn call_async(
        &self,
        tool: &Arc<ToolEntry>,
        handler: &AsyncCall,
        runtime: Option<Handle>,
    ) -> Result<Handled, Refusal> {
        let inputs = self.read_inputs()?;
        let in_flight = InFlight::begin_request(self)?;
        let context = self.make_context(&in_flight, inputs, runtime.is_some());
        let out = reply_head(self.id());
        let members = out.len();
        let work = match handler(self.outline.arguments, context.clone(), out) {
            Ok(work) => work,
            Err(malformed) => {
                let failed = Err(CallFailure::Malformed(malformed));
                return self
                    .finish_tool(tool, members, None)
                    .write_reply(reply_head(self.id()), failed, Duration::ZERO)
                    .map(Handled::Now);
            }
        };
        let work = in_time_of(tool, self.id(), work);
        let end = self.finish_later(tool, members);
        if let Some(runtime) = runtime {
            return Ok(Handled::Later(Box::pin(on_demand(runtime, Arc::clone(tool), end, in_flight, context, work))));
        }
        Ok(Handled::Later(Box::pin(async move {
            let (request, revision) = (context.request(), end.revision);
            let Some(done) = in_flight.run_cancellable(work).await else {
                return Refusal::Cancelled.into_reply(&request.id, revision);
            };
            end.finish_tool(Some(request))
                .write_reply(done.out, done.outcome, done.service)
                .unwrap_or_else(|refusal| refusal.into_reply(&request.id, revision))
        })))
    }

    pub(super) fn finish_tool<'f>(
        &'f self,
        tool: &ToolEntry,
        members: usize,
        request: Option<&'f OwnedRequest>,
    ) -> ToolFinish<'f> {
        let most = max_result_bytes(tool);
        ToolFinish { server: self.server, revision: self.revision, clocks: self.clocks, members, most, request }
    }

    /// Returns a [`ToolFinish`] that outlives the message.
    pub(super) fn finish_later(&self, tool: &ToolEntry, members: usize) -> FinishLater {
        let (server, most) = (Arc::clone(self.server), max_result_bytes(tool));
        FinishLater { server, revision: self.revision, clocks: self.clocks, members, most }
    }
}

/// A [`ToolFinish`] that borrows nothing.
#[derive(Clone)]
pub(super) struct FinishLater {
    server: Arc<ServerState>,
    revision: Revision,
    clocks: Option<Clocks>,
    members: usize,
    most: Option<usize>,
}

fn max_result_bytes(tool: &ToolEntry) -> Option<usize> {
    tool.guard.as_ref().and_then(|guard| guard.max_result_bytes)
}

impl FinishLater {
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// For a reply that nobody waits for.
    pub(super) fn without_timing(self) -> Self {
        Self { clocks: None, ..self }
    }

    pub(super) fn finish_tool<'f>(&'f self, request: Option<&'f OwnedRequest>) -> ToolFinish<'f> {
        let Self { server, revision, clocks, members, most } = self;
        ToolFinish { server, revision: *revision, clocks: *clocks, members: *members, most: *most, request }
    }
}

/// A call that its handler may turn into a task.
pub(super) async fn on_demand(
    runtime: Handle,
    tool: Arc<ToolEntry>,
    end: FinishLater,
    in_flight: InFlight,
    context: Context,
    mut work: BoxFuture<Done>,
) -> Reply {
    let request = context.request();
    let revision = request.revision;
    let ends = async {
        match &request.detach {
            Some(detach) => tokio::select! {
                biased;
                done = &mut work => Some(done),
                () = detach.wanted.cancelled() => None,
            },
            None => Some((&mut work).await),
        }
    };
    let reply = match in_flight.run_cancellable(ends).await {
        None => return Refusal::Cancelled.into_reply(&request.id, revision),
        Some(Some(done)) => end.finish_tool(Some(request)).write_reply(done.out, done.outcome, done.service),
        Some(None) => {
            let rest = tasks::run_rounds(Arc::clone(&tool), context.clone(), work, end.clone().without_timing());
            let rest = async move {
                let reply = rest.await;
                // Kept until here: when it goes, what the handler spawned learns of the end.
                drop(in_flight);
                reply
            };
            let told = ResultEnd::new(&end.server, revision, end.clocks.as_ref());
            tasks::detach_task(&runtime, &end.server, &tool, request, told, rest)
        }
    };
    reply.unwrap_or_else(|refusal| refusal.into_reply(&request.id, revision))
}

/// From what a handler left behind to a reply.
pub(super) struct ToolFinish<'a> {
    server: &'a Arc<ServerState>,
    revision: Revision,
    clocks: Option<Clocks>,
    /// Where the result's members begin.
    members: usize,
    /// How long they may be.
    most: Option<usize>,
    /// The request, where the handler could ask.
    request: Option<&'a OwnedRequest>,
}

impl ToolFinish<'_> {
    pub(super) fn write_reply(
        mut self,
        mut out: Vec<u8>,
        outcome: Result<Written, CallFailure>,
        service: Duration,
    ) -> Result<Reply, Refusal> {
        if let Some(clocks) = &mut self.clocks {
            clocks.service = service;
        }
        let mut end = ResultEnd::new(self.server, self.revision, self.clocks.as_ref());
        let written = match outcome {
            Ok(written) => match too_long(out.len() - self.members, self.most) {
                None => written,
                Some(words) => {
                    out.truncate(self.members);
                    write_result(CallToolResult::error(words), self.revision, &mut out)?
                }
            },
            Err(failure) => {
                out.truncate(self.members);
                match self.classify_failure(failure) {
                    Failing::Refuse(refusal) => return Err(refusal),
                    Failing::Ask(input) => return failure::input_required_reply(self.request, &input, end, out),
                    Failing::Tell(result) => write_result(result, self.revision, &mut out)?,
                }
            }
        };
        if written.is_error {
            tracing::tool_failed();
            out.extend_from_slice(b",\"isError\":true");
        }
        end.meta = written.meta.as_ref();
        Ok(end.close_complete(out))
    }

    fn classify_failure(&self, failure: CallFailure) -> Failing {
        Failing::Tell(match failure {
            // 2025-11-25, server/tools, "Error Handling": the model can mend its arguments, so it must read what is wrong.
            CallFailure::Malformed(malformed) => CallToolResult::error(malformed.to_string()),
            CallFailure::Panicked => {
                ::tracing::error!("a tool panicked");
                CallToolResult::error("internal error")
            }
            CallFailure::Unwritable(error) => {
                ::tracing::error!(%error, "a tool's result can't be written as JSON");
                CallToolResult::error("internal error")
            }
            CallFailure::Failed(error) => return failure::classify_error(self.server, self.revision, None, error),
        })
    }
}

/// Writes what the model is told of a failure.
fn write_result(result: CallToolResult, revision: Revision, out: &mut Vec<u8>) -> Result<Written, Refusal> {
    let mut writer = ToolWriter::new(out, revision);
    writer.result(result).map_err(|_| Refusal::internal_error())?;
    Ok(Written { meta: writer.meta, is_error: true })
}
