//! The kinds of message, borrowed from the text that they came in.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::Id;

/// Members that JSON-RPC does not define, in the order they came. Kept so that a message can be passed on unchanged.
pub type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// Everything that one JSON text holds.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// One message.
    Single(Message<'a>),
    /// A batch of at least one (2024-11-05 and 2025-03-26 only).
    Batch(Vec<Message<'a>>),
}

impl<'a> Payload<'a> {
    /// The messages, whether batched or not.
    #[must_use]
    pub fn messages(&self) -> &[Message<'a>] {
        match self {
            Payload::Single(message) => std::slice::from_ref(message),
            Payload::Batch(messages) => messages,
        }
    }

    /// Whether the messages came in an array.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        matches!(self, Payload::Batch(_))
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// Has a method and an id: wants an answer.
    Request(Request<'a>),
    /// Has a method and no id.
    Notification(Notification<'a>),
    /// Answers a request.
    Response(Response<'a>),
}

impl<'a> Message<'a> {
    /// The method of a request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Message::Request(request) => Some(&request.method),
            Message::Notification(notification) => Some(&notification.method),
            Message::Response(_) => None,
        }
    }

    /// The parameters of a request or notification.
    #[must_use]
    pub fn params(&self) -> Option<&'a RawValue> {
        match self {
            Message::Request(request) => request.params,
            Message::Notification(notification) => notification.params,
            Message::Response(_) => None,
        }
    }

    /// The id of a request or response.
    #[must_use]
    pub fn id(&self) -> Option<&Id<'a>> {
        match self {
            Message::Request(request) => Some(&request.id),
            Message::Notification(_) => None,
            Message::Response(response) => response.id.as_ref(),
        }
    }
}

/// Wants an answer.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Id of the request, which its response repeats.
    pub id: Id<'a>,
    /// Such as `tools/call`.
    pub method: Cow<'a, str>,
    /// An object or array, not looked into.
    pub params: Option<&'a RawValue>,
    /// Unknown members.
    pub extra: Members<'a>,
}

impl<'a> Request<'a> {
    /// A request with nothing unknown in it.
    #[must_use]
    pub fn new(id: Id<'a>, method: impl Into<Cow<'a, str>>, params: Option<&'a RawValue>) -> Self {
        Self { id, method: method.into(), params, extra: Vec::new() }
    }
}

/// Wants no answer.
#[derive(Clone, Debug)]
pub struct Notification<'a> {
    /// Such as `notifications/progress`.
    pub method: Cow<'a, str>,
    /// An object or array, not looked into.
    pub params: Option<&'a RawValue>,
    /// Unknown members.
    pub extra: Members<'a>,
}

impl<'a> Notification<'a> {
    /// A notification with nothing unknown in it.
    #[must_use]
    pub fn new(method: impl Into<Cow<'a, str>>, params: Option<&'a RawValue>) -> Self {
        Self { method: method.into(), params, extra: Vec::new() }
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// The request's id. `None` only for an error about a message whose id could not be read.
    pub id: Option<Id<'a>>,
    /// How it went.
    pub outcome: Outcome<'a>,
    /// Unknown members.
    pub extra: Members<'a>,
}

impl<'a> Response<'a> {
    /// The answer `result` to `id`.
    #[must_use]
    pub fn result(id: Id<'a>, result: &'a RawValue) -> Self {
        Self { id: Some(id), outcome: Outcome::Result(result), extra: Vec::new() }
    }

    /// The answer `error` to `id`, or to a message whose id could not be read.
    #[must_use]
    pub fn error(id: Option<Id<'a>>, error: ErrorObject<'a>) -> Self {
        Self { id, outcome: Outcome::Error(error), extra: Vec::new() }
    }
}

/// How a request went.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// Well. Not looked into.
    Result(&'a RawValue),
    /// Badly.
    Error(ErrorObject<'a>),
}

/// Error of a request.
#[derive(Clone, Debug)]
pub struct ErrorObject<'a> {
    /// See [`super::code`].
    pub code: i64,
    /// One sentence.
    pub message: Cow<'a, str>,
    /// Details that the error code defines. Not parsed.
    pub data: Option<&'a RawValue>,
    /// Unknown members.
    pub extra: Members<'a>,
}

impl<'a> ErrorObject<'a> {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<Cow<'a, str>>) -> Self {
        Self { code, message: message.into(), data: None, extra: Vec::new() }
    }
}
