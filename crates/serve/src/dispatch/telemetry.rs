//! One request under an observer's eyes: told when it begins, carried along while it is worked on, told how it ended.
//!
//! Constraint: runs only where there is an observer. How a request ended is read off its reply: whoever refuses, here or in a
//! delegate, need not know of observers.

use std::borrow::Cow;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{MetaOutline, Method};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Call;
use crate::exchange::{Handled, Reply};
use crate::telemetry::{Begun, EndedRequest, Failure, Observer, Operation, Trace, within_operation};

/// Answers a request, observed.
pub(super) fn observe_request(call: &Call<'_>, observer: &dyn Observer, answered: impl FnOnce() -> Handled) -> Handled {
    let end = ObservedEnd {
        id: call.request.id.clone().into_owned(),
        wants_timing: call.incoming.timed || call.meta().is_some_and(MetaOutline::wants_timing),
        operation: observer.begin(&call.describe_request()),
    };
    let (handled, has_failed) = end.run_within(answered);
    match handled {
        Handled::Now(reply) => Handled::Now(end.observe_reply(reply, has_failed)),
        Handled::Later(later) => Handled::Later(Box::pin(ObservedReply { later, end: Some(end), has_failed })),
        Handled::Nothing => Handled::Nothing,
    }
}

/// The current request's tool says that it failed.
pub(super) fn tool_failed() {
    HAS_FAILED.set(true);
}

thread_local! {
    /// Whether the tool of the request that the thread works on has failed.
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
}

impl Call<'_> {
    fn describe_request(&self) -> Begun<'_> {
        let received = self.incoming.received;
        Begun {
            method: self.method,
            target: self.outline.name.as_deref().filter(|name| self.is_known(name)),
            uri: self.outline.uri.as_deref(),
            id: &self.request.id,
            revision: self.revision,
            session: self.incoming.channel.session_id(),
            trace: self.request.params.and_then(read_trace).unwrap_or_default(),
            headers: self.incoming.channel.headers(),
            received,
            entered: Instant::now(),
        }
    }

    fn is_known(&self, name: &str) -> bool {
        let catalogue = self.server.catalogue.load();
        match self.method {
            Method::ToolsCall => catalogue.tools.contains_key(name),
            Method::PromptsGet => catalogue.prompts.contains_key(name),
            _ => false,
        }
    }
}

/// Trace context of the client. An unreadable one counts as absent: a broken tracer must not break calls.
fn read_trace(params: &RawValue) -> Option<Trace<'_>> {
    #[derive(Deserialize)]
    struct MetaParams<'a> {
        #[serde(rename = "_meta", borrow)]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        traceparent: Option<Cow<'a, str>>,
        #[serde(borrow)]
        tracestate: Option<Cow<'a, str>>,
        #[serde(borrow)]
        baggage: Option<Cow<'a, str>>,
    }
    let Meta { traceparent, tracestate, baggage } = serde_json::from_str::<MetaParams<'_>>(params.get()).ok()?.meta?;
    Some(Trace { parent: traceparent, state: tracestate, baggage }.bounded())
}

/// State for the end of a request.
struct ObservedEnd {
    id: Id<'static>,
    /// Whether the layers' times were asked for, and not only read for the observer.
    wants_timing: bool,
    operation: Option<Arc<dyn Operation>>,
}

impl ObservedEnd {
    /// Runs a part of the work; also, whether a tool said meanwhile that it failed.
    fn run_within<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        HAS_FAILED.set(false);
        let done = match &self.operation {
            Some(operation) => within_operation(operation, work),
            None => work(),
        };
        (done, HAS_FAILED.take())
    }

    fn observe_reply(&self, mut reply: Reply, has_failed: bool) -> Reply {
        if let Some(operation) = &self.operation {
            let failure = match (reply.cancelled, has_failed) {
                (true, _) => Some(Failure::Cancelled),
                (_, true) => Some(Failure::Tool),
                _ => reply_error(&reply.message, &self.id),
            };
            let service = reply.timing.map_or(Duration::ZERO, |timing| timing.service);
            Arc::clone(operation).end(&EndedRequest { at: Instant::now(), failure, service });
        }
        reply.timing = reply.timing.filter(|_| self.wants_timing);
        reply
    }
}

/// The error in a reply. Only that is read of it: a result may be long.
pub(super) fn reply_error<'a>(message: &'a [u8], id: &Id<'_>) -> Option<Failure<'a>> {
    #[derive(Deserialize)]
    struct ErrorReply<'a> {
        #[serde(borrow)]
        error: Details<'a>,
    }
    #[derive(Deserialize)]
    struct Details<'a> {
        code: i64,
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let mut head = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    id.write(&mut head);
    head.extend_from_slice(b",\"error\":");
    if !message.starts_with(&head) {
        return None;
    }
    let ErrorReply { error: Details { code, message } } = serde_json::from_slice(message).ok()?;
    Some(Failure::Error { code, message })
}

/// A reply to come, with its operation the thread's own whenever it is worked on.
struct ObservedReply {
    later: Pin<Box<dyn Future<Output = Reply> + Send>>,
    end: Option<ObservedEnd>,
    has_failed: bool,
}

impl Future for ObservedReply {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let ObservedReply { later, end, has_failed } = &mut *self;
        let Some(own) = &end else { return later.as_mut().poll(context) };
        let (polled, failed) = own.run_within(|| later.as_mut().poll(context));
        *has_failed |= failed;
        let Poll::Ready(reply) = polled else { return Poll::Pending };
        Poll::Ready(match end.take() {
            Some(end) => end.observe_reply(reply, *has_failed),
            None => reply,
        })
    }
}

impl Drop for ObservedReply {
    /// Nobody waits for the reply any more.
    fn drop(&mut self) {
        if let Some(operation) = self.end.take().and_then(|end| end.operation) {
            operation.end(&EndedRequest {
                at: Instant::now(),
                failure: Some(Failure::Cancelled),
                service: Duration::ZERO,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpace_wire::jsonrpc::{Id, write_error};
    use serde_json::value::RawValue;

    use super::{Failure, read_trace, reply_error};

    #[test]
    fn an_error_is_read_off_its_reply_and_a_result_is_none() {
        for id in [Id::Integer(7), Id::String("a\"b".into())] {
            let mut reply = Vec::new();
            write_error(&mut reply, Some(&id), -32602, "no \"such\"", None::<&()>).unwrap();
            let found = Failure::Error { code: -32602, message: "no \"such\"".into() };
            assert_eq!(reply_error(&reply, &id), Some(found), "{id}");
        }
        assert_eq!(reply_error(br#"{"jsonrpc":"2.0","id":7,"result":{"error":{}}}"#, &Id::Integer(7)), None);
    }

    #[test]
    fn a_context_that_cant_be_read_is_none() {
        let of = |params: &str| RawValue::from_string(params.to_owned()).unwrap();
        let params = of(r#"{"_meta":{"traceparent":"00-1","tracestate":"a=b","baggage":"c=d","x":1}}"#);
        let found = read_trace(&params).unwrap();
        assert_eq!(
            (found.parent.as_deref(), found.state.as_deref(), found.baggage.as_deref()),
            (Some("00-1"), Some("a=b"), Some("c=d"))
        );
        for params in ["{}", "[]", r#"{"_meta":{"traceparent":5}}"#, r#"{"_meta":null}"#] {
            assert!(read_trace(&of(params)).is_none_or(|trace| trace.parent.is_none()), "{params}");
        }
        let long = |name: &str, length: usize| of(&format!(r#"{{"_meta":{{"{name}":"{}"}}}}"#, "x".repeat(length)));
        for (name, most) in [("traceparent", 64), ("tracestate", 512), ("baggage", 8_192)] {
            let kept = |length: usize| {
                let params = long(name, length);
                let trace = read_trace(&params).unwrap();
                [trace.parent, trace.state, trace.baggage].iter().flatten().count()
            };
            assert_eq!((kept(most), kept(most + 1)), (1, 0), "{name}");
        }
    }
}
