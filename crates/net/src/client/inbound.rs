//! Messages of the server, as far as the instrumented client acts on them.

use bytes::Bytes;
use mcpace_client_protocol::inbound::{Incoming, PendingRequests, read_messages};
use mcpace_client_protocol::{Answer, Outgoing};
use mcpace_wire::jsonrpc::{ErrorObject, Id, Response, code};
use serde_json::value::RawValue;

/// Content of a text of the server.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Answer to the request that the text replies to.
    pub(super) answer: Option<Answer>,
    /// Ready answers to the server's own requests.
    pub(super) replies: Vec<Outgoing>,
}

impl Received {
    /// Sorts the messages of a text. The answer to `expected` is kept, others go to the requests in `pending`. `None` if the
    /// text is no JSON-RPC.
    pub(super) fn from_text(text: &Bytes, expected: Option<i64>, pending: Option<&PendingRequests>) -> Option<Self> {
        let mut received = Self::default();
        for message in read_messages(text).ok()? {
            let is_expected = expected.is_some_and(|id| message.is_answer_to(id));
            match message {
                Incoming::Answer(_, answer) if is_expected => received.answer = Some(answer),
                Incoming::Answer(id, answer) => {
                    if let Some(pending) = pending {
                        pending.deliver(id.as_ref(), answer);
                    }
                }
                Incoming::Request(request) => received.replies.push(reply_to(&request.id, &request.method)),
                Incoming::Notification(_) => {}
            }
        }
        Some(received)
    }
}

/// The client's answer to a request of the server. The client is alive, has no roots, and has no model and no user to ask.
/// It declares none of these capabilities, so a server that asks all the same gets an error.
fn reply_to(id: &Id<'_>, method: &str) -> Outgoing {
    let text = match method {
        "ping" => Some("{}"),
        "roots/list" => Some(r#"{"roots":[]}"#),
        _ => None,
    };
    // Both texts are JSON.
    let body = match text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()) {
        Some(result) => Response::result(id.clone(), result).to_vec(),
        None => {
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, "this client has no such capability");
            Response::error(Some(id.clone()), error).to_vec()
        }
    };
    Outgoing::notification("the answer to the server's request", body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(request: String) -> String {
        let received = Received::from_text(&Bytes::from(request), Some(1), None).unwrap();
        assert!(received.answer.is_none());
        String::from_utf8(received.replies[0].body.to_vec()).unwrap()
    }

    #[test]
    fn requests_of_the_server_are_answered_with_their_own_id() {
        for (request, answer) in [
            (r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#),
            (r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#, r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#),
        ] {
            assert_eq!(reply(request.to_owned()), answer);
        }
        for method in ["sampling/createMessage", "elicitation/create", "made/up"] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
            assert!(reply(request).contains("-32601"), "{method}");
        }
    }

    #[test]
    fn the_expected_answer_of_a_batch_is_kept_and_others_reach_their_requests() {
        let pending = PendingRequests::default();
        let other = pending.expect_answer(2);
        let batch = Bytes::from_static(
            br#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","id":2,"result":{"b":2}}]"#,
        );
        let received = Received::from_text(&batch, Some(1), Some(&pending)).unwrap();
        assert!(matches!(received.answer, Some(Answer::Result(raw)) if raw.as_bytes() == br#"{"a":1}"#));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::pin::pin!(other).poll(&mut cx).is_ready());
        assert!(Received::from_text(&Bytes::from_static(b"<html>"), Some(1), None).is_none());
    }
}
