//! `tools/call`.

use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::CallToolResult;

use super::bounds::{in_time, too_long};
use super::clocks::Clocks;
use super::failing::{self, Failing};
use super::guarding::Used;
use super::reply::{End, head};
use super::running::InFlight;
use super::{Call, Refusal, missing, tasking, tracing};
use crate::catalogue::{Catalogue, Listed as _, ToolEntry};
use crate::exchange::{Handled, Reply};
use crate::guard::{BoxFuture, Kind};
use crate::server::Inner;
use crate::service::{
    AsyncCall, CallFailure, Context, Done, Plain, PlainCall, Request, TaskUse, ToolHandler, ToolWriter, Written,
};

impl Call<'_> {
    pub(super) fn call_tool(&self, catalogue: &Arc<Catalogue>) -> Result<Handled, Refusal> {
        let name = self.outline.name.as_deref().ok_or_else(|| missing("name"))?;
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
            let used = Used { kind: Kind::Tool, name: tool.key(), uri: None, guard, counts: true };
            if let Some(answer) = self.pass(catalogue, used)? {
                return Ok(answer);
            }
        }
        match &tool.handler {
            ToolHandler::Plain(handler) => {
                if self.outline.request_state.is_some() {
                    // No plain tool gave it out.
                    self.inputs()?;
                }
                self.call_plain(tool, handler)
            }
            ToolHandler::Async(handler) => self.call_async(tool, handler),
            ToolHandler::Raw(handler) => self.call_raw(tool, handler),
        }
    }

    /// Message to handler to buffer, on this thread.
    fn call_plain(&self, tool: &ToolEntry, handler: &PlainCall) -> Result<Handled, Refusal> {
        let mut out = head(self.id());
        let members = out.len();
        let writer = ToolWriter::new(&mut out, self.revision);
        let mut plain = Plain { writer, timed: self.clocks.is_some(), service: Duration::ZERO };
        let outcome = handler(self.outline.arguments, &mut plain);
        let Plain { writer: ToolWriter { meta, is_error, .. }, service, .. } = plain;
        self.finish(tool, members, None)
            .reply(out, outcome.map(|()| Written { meta, is_error }), service)
            .map(Handled::Now)
    }

    fn call_async(&self, tool: &Arc<ToolEntry>, handler: &AsyncCall) -> Result<Handled, Refusal> {
        let inputs = self.inputs()?;
        let runtime = match tool.task {
            TaskUse::Never => None,
            TaskUse::AtOnce | TaskUse::OnDemand => {
                tokio::runtime::Handle::try_current().ok().filter(|_| self.takes_tasks())
            }
        };
        if tool.task == TaskUse::AtOnce
            && let Some(runtime) = &runtime
        {
            return self.call_task(tool, runtime, handler);
        }
        let in_flight = InFlight::begin(self)?;
        let context = match &runtime {
            Some(_) => self.detachable_context(&in_flight, inputs),
            None => self.context(&in_flight, inputs),
        };
        let out = head(self.id());
        let members = out.len();
        let work = match handler(self.outline.arguments, context.clone(), out) {
            Ok(work) => work,
            Err(malformed) => {
                let failed = Err(CallFailure::Malformed(malformed));
                return self
                    .finish(tool, members, None)
                    .reply(head(self.id()), failed, Duration::ZERO)
                    .map(Handled::Now);
            }
        };
        let work = self.in_time(tool, work);
        let end = self.finish_later(tool, members);
        if let Some(runtime) = runtime {
            return Ok(Handled::Later(Box::pin(on_demand(runtime, end, in_flight, context, work))));
        }
        Ok(Handled::Later(Box::pin(async move {
            let (request, revision) = (context.request(), end.revision);
            let Some(done) = in_flight.run(work).await else { return Refusal::Cancelled.reply(&request.id, revision) };
            end.finish(Some(request))
                .reply(done.out, done.outcome, done.service)
                .unwrap_or_else(|refusal| refusal.reply(&request.id, revision))
        })))
    }

    /// The same, with the task for an answer.
    fn call_task(
        &self,
        tool: &ToolEntry,
        runtime: &tokio::runtime::Handle,
        handler: &AsyncCall,
    ) -> Result<Handled, Refusal> {
        let task = self.begin_task()?;
        let context = self.task_context(&task);
        let out = head(self.id());
        let members = out.len();
        let work = match handler(self.outline.arguments, context.clone(), out) {
            Ok(work) => work,
            Err(malformed) => {
                // Nothing to wait for.
                self.server.tasks.forget(&task.id);
                let failed = Err(CallFailure::Malformed(malformed));
                return self
                    .finish(tool, members, None)
                    .reply(head(self.id()), failed, Duration::ZERO)
                    .map(Handled::Now);
            }
        };
        let work = self.in_time(tool, work);
        let end = FinishLater { clocks: None, ..self.finish_later(tool, members) };
        self.run_task(runtime, task, async move {
            let done = work.await;
            let (id, revision) = (context.request_id(), end.revision);
            let reply = end.finish(None).reply(done.out, done.outcome, done.service);
            reply.unwrap_or_else(|refusal| refusal.reply(id, revision))
        })
    }

    pub(super) fn finish<'f>(&'f self, tool: &ToolEntry, members: usize, request: Option<&'f Request>) -> Finish<'f> {
        let most = most(tool);
        Finish { server: self.server, revision: self.revision, clocks: self.clocks, members, most, request }
    }

    /// The same, for when the message is gone.
    pub(super) fn finish_later(&self, tool: &ToolEntry, members: usize) -> FinishLater {
        let (server, most) = (Arc::clone(self.server), most(tool));
        FinishLater { server, revision: self.revision, clocks: self.clocks, members, most }
    }

    /// Ends the tool's work where it takes too long.
    fn in_time(&self, tool: &ToolEntry, work: BoxFuture<Done>) -> BoxFuture<Done> {
        let Some(guard) = tool.guard.as_deref() else { return work };
        // The buffer is the work's.
        let id = self.id().clone().into_owned();
        let late = move |error, service| Done { out: head(&id), outcome: Err(CallFailure::Failed(error)), service };
        in_time(Some(guard), work, late)
    }
}

/// A [`Finish`] that borrows nothing.
#[derive(Clone)]
pub(super) struct FinishLater {
    server: Arc<Inner>,
    revision: Revision,
    clocks: Option<Clocks>,
    members: usize,
    most: Option<usize>,
}

fn most(tool: &ToolEntry) -> Option<usize> {
    tool.guard.as_ref().and_then(|guard| guard.max_result_bytes)
}

impl FinishLater {
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn finish<'f>(&'f self, request: Option<&'f Request>) -> Finish<'f> {
        let Self { server, revision, clocks, members, most } = self;
        Finish { server, revision: *revision, clocks: *clocks, members: *members, most: *most, request }
    }
}

/// A call that its handler may turn into a task.
async fn on_demand(
    runtime: tokio::runtime::Handle,
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
    let reply = match in_flight.run(ends).await {
        None => return Refusal::Cancelled.reply(&request.id, revision),
        Some(Some(done)) => end.finish(Some(request)).reply(done.out, done.outcome, done.service),
        Some(None) => {
            let (then, context_then) = (FinishLater { clocks: None, ..end.clone() }, context.clone());
            let rest = async move {
                let done = work.await;
                // Kept until here: when it goes, whatever the handler spawned learns of the end.
                drop(in_flight);
                let reply = then.finish(None).reply(done.out, done.outcome, done.service);
                reply.unwrap_or_else(|refusal| refusal.reply(&context_then.request().id, revision))
            };
            let told = End::new(&end.server, revision, end.clocks.as_ref());
            tasking::detach(&runtime, &end.server, request, told, rest)
        }
    };
    reply.unwrap_or_else(|refusal| refusal.reply(&request.id, revision))
}

/// From what a handler left behind to a reply.
pub(super) struct Finish<'a> {
    server: &'a Arc<Inner>,
    revision: Revision,
    clocks: Option<Clocks>,
    /// Where the result's members begin.
    members: usize,
    /// How long they may be.
    most: Option<usize>,
    /// The request, where the handler could ask.
    request: Option<&'a Request>,
}

impl Finish<'_> {
    pub(super) fn reply(
        mut self,
        mut out: Vec<u8>,
        outcome: Result<Written, CallFailure>,
        service: Duration,
    ) -> Result<Reply, Refusal> {
        if let Some(clocks) = &mut self.clocks {
            clocks.service = service;
        }
        let mut end = End::new(self.server, self.revision, self.clocks.as_ref());
        let written = match outcome {
            Ok(written) => match too_long(out.len() - self.members, self.most) {
                None => written,
                Some(words) => {
                    out.truncate(self.members);
                    told(CallToolResult::error(words), self.revision, &mut out)?
                }
            },
            Err(failure) => {
                out.truncate(self.members);
                match self.sort(failure) {
                    Failing::Refuse(refusal) => return Err(refusal),
                    Failing::Ask(input) => return failing::ask(self.request, &input, end, out),
                    Failing::Tell(result) => told(result, self.revision, &mut out)?,
                }
            }
        };
        if written.is_error {
            tracing::tool_failed();
            out.extend_from_slice(b",\"isError\":true");
        }
        end.meta = written.meta.as_ref();
        Ok(end.complete(out))
    }

    fn sort(&self, failure: CallFailure) -> Failing {
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
            CallFailure::Failed(error) => return failing::sort(self.server, self.revision, None, error),
        })
    }
}

/// Writes what the model is told of a failure.
fn told(result: CallToolResult, revision: Revision, out: &mut Vec<u8>) -> Result<Written, Refusal> {
    let mut writer = ToolWriter::new(out, revision);
    writer.result(result).map_err(|_| Refusal::internal())?;
    Ok(Written { meta: writer.meta, is_error: true })
}
