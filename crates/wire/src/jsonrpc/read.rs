//! Bytes to messages: one pass for the envelope's members, then each is decoded from its token.

use serde_json::error::Category;
use serde_json::value::RawValue;

use super::object::{Object, read_array, read_object};
use super::{ErrorObject, Id, Message, Notification, Outcome, ParseError, Payload, Request, Response, token};

/// How many messages of one batch [`Payload::parse`] takes. No known client sends more than a handful; the limit bounds
/// what one POST can make a server do.
pub const DEFAULT_BATCH_LIMIT: usize = 100;

impl<'a> Payload<'a> {
    /// Parses one JSON text: a message, or a batch of at most [`DEFAULT_BATCH_LIMIT`].
    ///
    /// # Errors
    /// See [`ParseError`]; a batch with one wrong message is refused as a whole.
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        Self::parse_with_limit(text, DEFAULT_BATCH_LIMIT)
    }

    /// As [`Payload::parse`], with another limit on the number of messages in a batch.
    ///
    /// # Errors
    /// See [`ParseError`].
    pub fn parse_with_limit(text: &'a [u8], batch_limit: usize) -> Result<Self, ParseError> {
        let text = check_utf8(text)?;
        if is_array(text) {
            read_batch(text, batch_limit).map(Payload::Batch)
        } else {
            read_message(text).map(Payload::Single)
        }
    }
}

impl<'a> Message<'a> {
    /// Parses exactly one message; a batch is [`ParseError::NotAnObject`].
    ///
    /// # Errors
    /// See [`ParseError`].
    pub fn parse(text: &'a [u8]) -> Result<Self, ParseError> {
        read_message(check_utf8(text)?)
    }
}

fn check_utf8(text: &[u8]) -> Result<&str, ParseError> {
    std::str::from_utf8(text).map_err(|error| ParseError::NotUtf8 { at: error.valid_up_to() })
}

fn is_array(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('[')
}

fn read_batch(text: &str, limit: usize) -> Result<Vec<Message<'_>>, ParseError> {
    let members = read_array(text, limit).map_err(from_json)?.ok_or(ParseError::BatchTooLong { limit })?;
    if members.is_empty() {
        return Err(ParseError::EmptyBatch);
    }
    let numbered = members.into_iter().enumerate();
    numbered
        .map(|(index, raw)| {
            read_message(raw.get()).map_err(|error| ParseError::Member { index, error: Box::new(error) })
        })
        .collect()
}

const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

fn read_message(text: &str) -> Result<Message<'_>, ParseError> {
    let Object { known, duplicate, extra } = read_object(text, &MEMBERS).map_err(from_json)?;
    if let Some(name) = duplicate {
        return Err(ParseError::DuplicateMember(name));
    }
    let [jsonrpc, id, method, params, result, error] = known;
    if jsonrpc.and_then(|version| token::decode_string(version.get())).as_deref() != Some("2.0") {
        return Err(ParseError::NotVersion2);
    }
    let error = error.filter(|error| error.get() != "null");
    match (method, result, error) {
        (Some(method), None, None) => {
            let method = token::decode_string(method.get()).ok_or(ParseError::BadMethod)?;
            let params = structured_params(params)?;
            match id {
                Some(id) => {
                    let id = non_null(id)?.ok_or(ParseError::NullId)?;
                    Ok(Message::Request(Request { id, method, params, extra }))
                }
                None => Ok(Message::Notification(Notification { method, params, extra })),
            }
        }
        (None, Some(result), None) => {
            let id = Some(id.map(non_null).transpose()?.flatten().ok_or(ParseError::ResultWithoutId)?);
            Ok(Message::Response(Response { id, outcome: Outcome::Result(result), extra }))
        }
        (None, None, Some(error)) => {
            let id = id.map(non_null).transpose()?.flatten();
            let outcome = Outcome::Error(error_object(error.get())?);
            Ok(Message::Response(Response { id, outcome, extra }))
        }
        _ => Err(ParseError::NoKind),
    }
}

/// `None` for null.
fn non_null(id: &RawValue) -> Result<Option<Id<'_>>, ParseError> {
    match id.get() {
        "null" => Ok(None),
        token => Id::from_token(token).map(Some).ok_or(ParseError::BadId),
    }
}

fn structured_params(params: Option<&RawValue>) -> Result<Option<&RawValue>, ParseError> {
    let Some(params) = params else {
        return Ok(None);
    };
    match params.get().as_bytes().first() {
        Some(b'{' | b'[') => Ok(Some(params)),
        Some(b'n') => Ok(None),
        _ => Err(ParseError::BadParams),
    }
}

fn error_object(text: &str) -> Result<ErrorObject<'_>, ParseError> {
    let Object { known: [code, message, data], duplicate, extra } =
        read_object(text, &["code", "message", "data"]).map_err(|_| ParseError::BadError)?;
    if let Some(name) = duplicate {
        return Err(ParseError::DuplicateMember(name));
    }
    let code = code.and_then(|code| code.get().parse().ok()).ok_or(ParseError::BadError)?;
    let message = message.and_then(|message| token::decode_string(message.get())).ok_or(ParseError::BadError)?;
    Ok(ErrorObject { code, message, data, extra })
}

fn from_json(error: serde_json::Error) -> ParseError {
    match error.classify() {
        Category::Data => ParseError::NotAnObject,
        Category::Syntax | Category::Eof | Category::Io => ParseError::NotJson { reason: error.to_string() },
    }
}
