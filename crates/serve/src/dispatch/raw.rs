//! Calls of raw handlers: what they ask for is made here, at the moment that they ask.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::bounds::in_time;
use super::reply::head;
use super::running::InFlight;
use super::{Call, Refusal};
use crate::catalogue::ToolEntry;
use crate::exchange::{Handled, Principal};
use crate::service::{
    Backing, CallFailure, Context, HandlerError, Inputs, RawAnswer, RawCall, RawDone, RawHandler, caught, caught_future,
};

impl Call<'_> {
    /// As plain as [`Call::call_tool`]'s plain way, until the handler wants more.
    pub(super) fn call_raw(&self, tool: &ToolEntry, handler: &Arc<dyn RawHandler>) -> Result<Handled, Refusal> {
        let inputs = match self.outline.request_state {
            None if self.outline.input_responses.is_none() => Inputs::default(),
            _ => self.inputs()?,
        };
        let out = head(self.id());
        let members = out.len();
        let asked = Asked { call: self, inputs, in_flight: OnceCell::new(), context: OnceCell::new() };
        let answer = caught(|| {
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
            Ok(RawAnswer::Now(RawDone { mut out, outcome, service })) => {
                if out.len() < members {
                    out = head(self.id());
                }
                let request = asked.context.get().map(Context::request);
                return self.finish(tool, members, request).reply(out, outcome, service).map(Handled::Now);
            }
            Err(_) => {
                let failed = Err(CallFailure::Panicked);
                return self
                    .finish(tool, members, None)
                    .reply(head(self.id()), failed, Duration::ZERO)
                    .map(Handled::Now);
            }
        };
        let in_flight = match asked.in_flight.into_inner() {
            Some(in_flight) => in_flight,
            None => InFlight::begin(self)?,
        };
        let context = asked.context.into_inner();
        let id = self.id().clone().into_owned();
        let late_id = id.clone();
        let work = in_time(tool.guard.as_deref(), work, move |error, service| RawDone {
            out: head(&late_id),
            outcome: Err(CallFailure::Failed(error)),
            service,
        });
        let end = self.finish_later(tool, members);
        Ok(Handled::Later(Box::pin(async move {
            let revision = end.revision();
            let Some(done) = in_flight.run(caught_future(work)).await else {
                return Refusal::Cancelled.reply(&id, revision);
            };
            let mut done = done.unwrap_or_else(|_| RawDone {
                out: head(&id),
                outcome: Err(CallFailure::Panicked),
                service: Duration::ZERO,
            });
            if done.out.len() < members {
                done.out = head(&id);
            }
            end.finish(context.as_ref().map(Context::request))
                .reply(done.out, done.outcome, done.service)
                .unwrap_or_else(|refusal| refusal.reply(&id, revision))
        })))
    }
}

/// What one call's handler asked for.
struct Asked<'s, 'c> {
    call: &'s Call<'c>,
    inputs: Inputs,
    in_flight: OnceCell<InFlight>,
    context: OnceCell<Context>,
}

impl Backing for Asked<'_, '_> {
    fn context(&self) -> Result<Context, HandlerError> {
        if let Some(context) = self.context.get() {
            return Ok(context.clone());
        }
        let in_flight = InFlight::begin(self.call)?;
        let context = self.call.context(&in_flight, self.inputs.clone());
        let _ = self.in_flight.set(in_flight);
        Ok(self.context.get_or_init(|| context).clone())
    }

    fn principal(&self) -> Option<&Principal> {
        self.call.incoming.peer.principal.as_ref()
    }

    fn keep(&self, part: &str) -> Bytes {
        self.call.keep(part)
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
