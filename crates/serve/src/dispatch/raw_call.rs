//! Calls of raw handlers: what they ask for is made here, at the moment that they ask.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpace_wire::jsonrpc::Id;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use super::call::on_demand;
use super::in_flight::InFlight;
use super::reply::reply_head;
use super::result_limits::in_time;
use super::{Call, Refusal};
use crate::catalogue::ToolEntry;
use crate::exchange::Handled;
use crate::principal::Principal;
use crate::service::{
    Backing, CallFailure, Context, Done, HandlerError, Inputs, Panicked, RawAnswer, RawCall, RawDone, RawHandler,
    catch_panic, caught_future,
};

impl Call<'_> {
    /// As plain as [`Call::call_tool`]'s plain way, until the handler wants more.
    /// `runtime`: where the call goes on once its handler makes it a task.
    pub(super) fn call_raw(
        &self,
        tool: &Arc<ToolEntry>,
        handler: &Arc<dyn RawHandler>,
        runtime: Option<Handle>,
    ) -> Result<Handled, Refusal> {
        let inputs = match self.outline.request_state {
            None if self.outline.input_responses.is_none() => Inputs::default(),
            _ => self.read_inputs()?,
        };
        let out = reply_head(self.id());
        let members = out.len();
        let is_detachable = runtime.is_some();
        let asked =
            LazyContext { call: self, inputs, is_detachable, in_flight: OnceCell::new(), context: OnceCell::new() };
        let answer = catch_panic(|| {
            handler.call(RawCall {
                arguments: self.outline.arguments.map_or("{}", RawValue::get),
                out,
                revision: self.revision,
                timed: self.clocks.is_some(),
                backing: &asked,
            })
        });
        let work = match answer {
            Ok(RawAnswer::Later(work)) => work,
            Ok(RawAnswer::Now(now)) => {
                let Done { out, outcome, service } = finish_raw(now, self.id());
                let request = asked.context.get().map(Context::request);
                return self.finish_tool(tool, members, request).write_reply(out, outcome, service).map(Handled::Now);
            }
            Err(panic) => {
                let Done { out, outcome, service } = finish_raw(done_after_panic(panic), self.id());
                return self.finish_tool(tool, members, None).write_reply(out, outcome, service).map(Handled::Now);
            }
        };
        let in_flight = match asked.in_flight.into_inner() {
            Some(in_flight) => in_flight,
            None => InFlight::begin_request(self)?,
        };
        let context = asked.context.into_inner();
        let id = self.id().clone().into_owned();
        let late_id = id.clone();
        let work = in_time(tool.guard.as_deref(), work, move |error, service| RawDone {
            out: reply_head(&late_id),
            outcome: Err(CallFailure::Failed(error)),
            service,
        });
        let end = self.finish_later(tool, members);
        let work = async move { caught_future(work).await.unwrap_or_else(done_after_panic) };
        if let (Some(runtime), Some(context)) = (runtime, &context) {
            let (tool, context) = (Arc::clone(tool), context.clone());
            let work = Box::pin(async move { finish_raw(work.await, &id) });
            return Ok(Handled::Later(Box::pin(on_demand(runtime, tool, end, in_flight, context, work))));
        }
        Ok(Handled::Later(Box::pin(async move {
            let revision = end.revision();
            let Some(raw) = in_flight.run_cancellable(work).await else {
                return Refusal::Cancelled.into_reply(&id, revision);
            };
            let Done { out, outcome, service } = finish_raw(raw, &id);
            end.finish_tool(context.as_ref().map(Context::request))
                .write_reply(out, outcome, service)
                .unwrap_or_else(|refusal| refusal.into_reply(&id, revision))
        })))
    }
}

/// The end of a call to `id`. A reply that was lost begins anew.
pub(super) fn finish_raw(raw: RawDone, id: &Id<'_>) -> Done {
    let RawDone { out, outcome, service } = raw;
    Done { out: if out.is_empty() { reply_head(id) } else { out }, outcome, service }
}

/// The end of a call whose handler panicked.
pub(super) fn done_after_panic(_: Panicked) -> RawDone {
    RawDone { out: Vec::new(), outcome: Err(CallFailure::Panicked), service: Duration::ZERO }
}

/// Parts of one call that are made when its handler first asks for them.
struct LazyContext<'s, 'c> {
    call: &'s Call<'c>,
    inputs: Inputs,
    /// Whether the handler may make the call a task.
    is_detachable: bool,
    in_flight: OnceCell<InFlight>,
    context: OnceCell<Context>,
}

impl Backing for LazyContext<'_, '_> {
    fn context(&self) -> Result<Context, HandlerError> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let in_flight = InFlight::begin_request(self.call)?;
        let context = self.call.make_context(&in_flight, self.inputs.clone(), self.is_detachable);
        let _ = self.in_flight.set(in_flight);
        Ok(self.context.get_or_init(|| context).clone())
    }

    fn principal(&self) -> Option<&Principal> {
        self.call.incoming.peer.principal.as_ref()
    }

    fn client_key(&self) -> u64 {
        self.call.incoming.client_key()
    }

    fn keep(&self, part: &str) -> Bytes {
        self.call.keep_part(part)
    }

    fn is_task(&self) -> bool {
        false
    }
}

impl From<Refusal> for HandlerError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Error { code, message, data } => HandlerError::protocol(code, message, data),
            other => HandlerError::internal(format!("{other:?}")),
        }
    }
}
