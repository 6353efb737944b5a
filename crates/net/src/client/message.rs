//! JSON-RPC messages as the client sends and understands them. Pure.

use std::borrow::Cow;

use bytes::Bytes;
use mcpace_wire::jsonrpc::{ErrorObject, Id, Message, Notification, Outcome, Payload, Request, Response, code};
use mcpace_wire::quoted;
use serde_json::value::RawValue;

/// A message that is ready to be sent, with what the transport must know of it.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// Absent for notifications and for answers.
    pub(crate) id: Option<Id<'static>>,
    /// The method; of an answer, what it answers to.
    pub(crate) method: &'static str,
    /// What headers repeat of the body, in revisions that want it.
    pub(crate) headers: Vec<(Cow<'static, str>, String)>,
    /// The JSON text.
    pub(crate) body: Bytes,
}

impl Outgoing {
    pub(crate) fn request(id: i64, method: &'static str, params: Option<&RawValue>) -> Self {
        let id = Id::Integer(id);
        let body = Request::new(id.clone(), method, params).to_vec();
        Self { id: Some(id), method, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn notification(method: &'static str, params: Option<&RawValue>) -> Self {
        let body = Notification::new(method, params).to_vec();
        Self { id: None, method, headers: Vec::new(), body: body.into() }
    }

    fn answer(body: Vec<u8>) -> Self {
        Self { id: None, method: "the answer to the server's request", headers: Vec::new(), body: body.into() }
    }

    /// Whether sending it twice does no harm, should a kept connection turn out to be dead.
    pub(crate) fn may_be_repeated(&self) -> bool {
        self.method != "tools/call"
    }
}

/// What answered a request of ours.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Result(Box<RawValue>),
    Error { code: i64, message: String, data: Option<Box<RawValue>> },
}

/// What a text from the server holds, as far as the client acts on it.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// Answers with the id of their request; without one for an error that the server could not attribute.
    pub(crate) answers: Vec<(Option<Id<'static>>, Answer)>,
    /// Ready answers to the server's own requests.
    pub(crate) replies: Vec<Outgoing>,
    /// Whether the text was JSON-RPC at all.
    pub(crate) is_json_rpc: bool,
}

impl Received {
    /// Sorts the messages of one JSON text.
    pub(crate) fn of(text: &[u8]) -> Self {
        let Ok(payload) = Payload::parse(text) else { return Self::default() };
        let mut received = Self { is_json_rpc: true, ..Self::default() };
        for message in payload.messages() {
            match message {
                Message::Request(request) => received.replies.push(reply_to(&request.id, &request.method)),
                Message::Notification(_) => {}
                Message::Response(response) => received.answers.push(answer_of(response)),
            }
        }
        received
    }

    /// The answer to `id`, or an error without any id.
    pub(crate) fn answer_to(&mut self, id: &Id<'static>) -> Option<Answer> {
        let ours = self.answers.iter().position(|(of, _)| of.as_ref() == Some(id));
        let nobodys =
            || self.answers.iter().position(|(of, answer)| of.is_none() && matches!(answer, Answer::Error { .. }));
        let at = ours.or_else(nobodys)?;
        Some(self.answers.swap_remove(at).1)
    }
}

fn answer_of(response: &Response<'_>) -> (Option<Id<'static>>, Answer) {
    let answer = match &response.outcome {
        Outcome::Result(result) => Answer::Result((*result).to_owned()),
        Outcome::Error(error) => {
            Answer::Error { code: error.code, message: quoted(&error.message), data: error.data.map(ToOwned::to_owned) }
        }
    };
    (response.id.clone().map(Id::into_owned), answer)
}

/// How the client answers requests of the server: it is alive, has no roots, and has no model and no user to ask.
/// It declares none of these capabilities, so a server that asks all the same is told so.
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
    Outgoing::answer(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &Outgoing) -> &str {
        std::str::from_utf8(&message.body).unwrap()
    }

    #[test]
    fn requests_of_the_server_are_answered_with_their_own_id() {
        for (request, reply) in [
            (r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#),
            (r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#, r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#),
        ] {
            let received = Received::of(request.as_bytes());
            assert_eq!(received.replies.len(), 1);
            assert_eq!(text(&received.replies[0]), reply);
        }
        for method in ["sampling/createMessage", "elicitation/create", "made/up"] {
            let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
            let received = Received::of(request.as_bytes());
            assert!(text(&received.replies[0]).contains("-32601"), "{method}");
        }
    }

    #[test]
    fn the_answer_is_found_by_its_id_and_in_a_batch() {
        let batch = br#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","method":"notifications/x"},
                         {"jsonrpc":"2.0","id":"1","result":{"b":2}}]"#;
        let mut received = Received::of(batch);
        assert!(received.is_json_rpc);
        let Some(Answer::Result(result)) = received.answer_to(&Id::Integer(1)) else { panic!("no answer") };
        assert_eq!(result.get(), r#"{"a":1}"#);
        assert!(received.answer_to(&Id::Integer(1)).is_none());
    }

    #[test]
    fn an_error_without_id_answers_but_a_result_of_another_does_not() {
        let mut received = Received::of(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#);
        assert!(matches!(received.answer_to(&Id::Integer(1)), Some(Answer::Error { code: -32700, .. })));
        let mut other = Received::of(br#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        assert!(other.answer_to(&Id::Integer(1)).is_none());
        assert!(!Received::of(b"<html>").is_json_rpc);
    }
}
