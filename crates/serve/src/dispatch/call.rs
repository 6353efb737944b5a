//! `tools/call`.

use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, code};
use mcpace_wire::mcp::CallToolResult;

use super::clocks::Clocks;
use super::reply::{End, head};
use super::running::InFlight;
use super::{Call, Refusal, missing};
use crate::catalogue::ToolEntry;
use crate::exchange::{Handled, Reply};
use crate::server::Inner;
use crate::service::{AsyncCall, CallFailure, HandlerError, Kind, Plain, PlainCall, ToolHandler, ToolWriter, Written};

impl Call<'_> {
    pub(super) fn call_tool(mut self) -> Result<Handled, Refusal> {
        let catalogue = self.server.catalogue.load();
        let name = &*self.outline.name.as_ref().ok_or_else(|| missing("name"))?.0;
        let Some(tool) = catalogue.tools.get(name) else {
            // A peer's string: only as much of it as a name could be long.
            let name: String = name.chars().take(128).collect();
            return Err(Refusal::error(code::INVALID_PARAMS, format!("unknown tool: {name}")));
        };
        match &tool.handler {
            ToolHandler::Plain(handler) => self.call_plain(handler),
            ToolHandler::Async(handler) => self.call_async(tool, handler),
        }
    }

    /// Message to handler to buffer, on this thread.
    fn call_plain(&mut self, handler: &PlainCall) -> Result<Handled, Refusal> {
        let mut out = head(self.id());
        let members = out.len();
        let writer = ToolWriter::new(&mut out, self.revision);
        let mut plain = Plain { writer, timed: self.clocks.is_some(), service: Duration::ZERO };
        let outcome = handler(self.outline.arguments, &mut plain);
        let Plain { writer: ToolWriter { meta, is_error, .. }, service, .. } = plain;
        let finish = Finish { server: self.server, revision: self.revision, clocks: self.clocks, members };
        finish.reply(self.id(), out, outcome.map(|()| Written { meta, is_error }), service).map(Handled::Now)
    }

    fn call_async(&mut self, _tool: &Arc<ToolEntry>, handler: &AsyncCall) -> Result<Handled, Refusal> {
        let in_flight = InFlight::begin(self)?;
        let context = self.context(&in_flight);
        let out = head(self.id());
        let members = out.len();
        let work = match handler(self.outline.arguments, context, out) {
            Ok(work) => work,
            Err(malformed) => {
                let finish = Finish { server: self.server, revision: self.revision, clocks: self.clocks, members };
                let failed = Err(CallFailure::Malformed(malformed));
                return finish.reply(self.id(), head(self.id()), failed, Duration::ZERO).map(Handled::Now);
            }
        };
        let (server, revision, clocks) = (Arc::clone(self.server), self.revision, self.clocks);
        let id = self.id().clone().into_owned();
        Ok(Handled::Later(Box::pin(async move {
            let Some(done) = in_flight.run(work).await else { return Refusal::Cancelled.reply(&id, revision) };
            let finish = Finish { server: &server, revision, clocks, members };
            finish
                .reply(&id, done.out, done.outcome, done.service)
                .unwrap_or_else(|refusal| refusal.reply(&id, revision))
        })))
    }
}

/// From what a handler left behind to a reply.
struct Finish<'a> {
    server: &'a Arc<Inner>,
    revision: Revision,
    clocks: Option<Clocks>,
    /// Where the result's members begin.
    members: usize,
}

impl Finish<'_> {
    fn reply(
        mut self,
        _id: &Id<'_>,
        mut out: Vec<u8>,
        outcome: Result<Written, CallFailure>,
        service: Duration,
    ) -> Result<Reply, Refusal> {
        if let Some(clocks) = &mut self.clocks {
            clocks.service = service;
        }
        let written = match outcome {
            Ok(written) => written,
            Err(failure) => {
                out.truncate(self.members);
                self.tell(failure, &mut out)?
            }
        };
        if written.is_error {
            out.extend_from_slice(b",\"isError\":true");
        }
        let mut end = End::new(self.server, self.revision, self.clocks.as_ref());
        end.meta = written.meta.as_ref();
        Ok(end.complete(out))
    }

    /// Writes what the model is told of a failure.
    fn tell(&self, failure: CallFailure, out: &mut Vec<u8>) -> Result<Written, Refusal> {
        let result = match failure {
            // 2025-11-25, server/tools, "Error Handling": the model can mend its arguments, so it must read what is wrong.
            CallFailure::Malformed(malformed) => CallToolResult::error(malformed.to_string()),
            CallFailure::Panicked => {
                tracing::error!("a tool panicked");
                CallToolResult::error("internal error")
            }
            CallFailure::Unwritable(error) => {
                tracing::error!(%error, "a tool's result can't be written as JSON");
                CallToolResult::error("internal error")
            }
            CallFailure::Failed(error) => self.failed(error)?,
        };
        let mut writer = ToolWriter::new(out, self.revision);
        writer.result(result).map_err(|_| Refusal::internal())?;
        Ok(Written { meta: writer.meta, is_error: true })
    }

    fn failed(&self, error: HandlerError) -> Result<CallToolResult, Refusal> {
        match error.into_kind() {
            Kind::Told(result) => Ok(result),
            Kind::Protocol { code, message, data } => Err(Refusal::Error { code, message, data }),
            Kind::NotFound => Ok(CallToolResult::error("not found")),
            Kind::Internal(error) => {
                tracing::warn!(%error, "a tool failed");
                let told = if self.server.tell_failures { error.to_string() } else { "internal error".to_owned() };
                Ok(CallToolResult::error(told))
            }
        }
    }
}
