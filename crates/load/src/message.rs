//! Classification of a message from the target with respect to one call. The message is read whole, and nothing of it
//! is kept.

use std::borrow::Cow;
use std::fmt;

use mcpace_wire::quote_printable;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Relation of a message to the call with a certain id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its result.
    Result,
    /// Its result, which says that the tool failed or that it didn't finish.
    ToolError(String),
    /// A JSON-RPC error in answer to it.
    Error(String),
    /// A reply to another id.
    OtherId,
    /// A notification, or a request of the server's.
    NoReply,
    /// Nothing that the protocol knows.
    Rubbish(String),
}

/// Reads a message.
pub(crate) fn classify_message(text: &[u8], id: u64) -> Seen {
    let message = match read_message(text) {
        Ok(message) => message,
        Err(error) => return Seen::Rubbish(quote_printable(&format!("no JSON-RPC message: {error}"))),
    };
    if message.jsonrpc != "2.0" {
        return Seen::Rubbish("no JSON-RPC 2.0".to_owned());
    }
    if message.method.is_some() {
        return Seen::NoReply;
    }
    if message.result.is_some() == message.error.is_some() {
        return Seen::Rubbish("a reply needs a result or an error, and not both".to_owned());
    }
    if message.id != Some(Id::Number(id)) {
        return Seen::OtherId;
    }
    match (message.result, message.error) {
        (Some(ResultOutline { is_error: Some(true), .. }), _) => {
            Seen::ToolError("the tool's result has isError".to_owned())
        }
        (Some(ResultOutline { result_type: Some(kind), .. }), _) if kind != "complete" => {
            Seen::ToolError(quote_printable(&format!("the result is not complete: {kind}")))
        }
        (_, Some(error)) => Seen::Error(quote_printable(&format!("{}: {}", error.code, error.message))),
        _ => Seen::Result,
    }
}

/// Protocol version in the reply to `initialize`.
pub(crate) fn agreed_version(text: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct InitializeReply {
        result: Agreed,
    }
    #[derive(Deserialize)]
    struct Agreed {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let version = serde_json::from_slice::<InitializeReply>(text).ok()?.result.version;
    // It goes into a header of each request. The protocol's are dates; a little longer may be somebody's draft.
    let is_fit = version.len() <= 64 && version.bytes().all(|byte| byte.is_ascii_graphic());
    is_fit.then_some(version)
}

fn read_message(text: &[u8]) -> Result<ReplyMessage<'_>, Box<dyn std::error::Error>> {
    Ok(serde_json::from_str(std::str::from_utf8(text)?)?)
}

#[derive(Deserialize)]
struct ReplyMessage<'a> {
    #[serde(borrow, default)]
    jsonrpc: Cow<'a, str>,
    #[serde(default)]
    id: Option<Id>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<ResultOutline<'a>>,
    #[serde(borrow, default)]
    error: Option<ErrorObject<'a>>,
}

#[derive(Deserialize)]
struct ResultOutline<'a> {
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    #[serde(borrow, default, rename = "resultType")]
    result_type: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
}

/// The engine's own ids are whole numbers; all others are another's.
#[derive(Debug, PartialEq, Eq)]
enum Id {
    Number(u64),
    Other,
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a string")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        Ok(Id::Number(number))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Id, E> {
        Ok(Id::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Id, E> {
        Ok(Id::Other)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Id, E> {
        Ok(Id::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::{Seen, agreed_version, classify_message};

    #[test]
    fn every_kind_is_told_apart() {
        let seen = |text: &str| classify_message(text.as_bytes(), 5);
        assert_eq!(seen(r#"{"jsonrpc":"2.0","id":5,"result":{"content":[]}}"#), Seen::Result);
        assert_eq!(
            seen(r#"{"id":5,"result":{"isError":false,"resultType":"complete"},"jsonrpc":"2.0"}"#),
            Seen::Result
        );
        assert!(matches!(seen(r#"{"jsonrpc":"2.0","id":5,"result":{"isError":true}}"#), Seen::ToolError(_)));
        let asks = r#"{"jsonrpc":"2.0","id":5,"result":{"resultType":"input_required"}}"#;
        assert!(matches!(seen(asks), Seen::ToolError(why) if why.contains("input_required")));
        let error = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"no\nsuch"}}"#;
        assert_eq!(seen(error), Seen::Error("-32602: no such".to_owned()));
        for other in ["6", "\"5\"", "5.5", "-5", "null"] {
            assert_eq!(seen(&format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#)), Seen::OtherId, "{other}");
        }
        assert_eq!(seen(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#), Seen::NoReply);
        assert_eq!(seen(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#), Seen::NoReply);
    }

    #[test]
    fn rubbish_is_rubbish() {
        let both = br#"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}"#;
        let texts: [&[u8]; 8] = [
            b"",
            b"[]",
            b"{}",
            b"{\"jsonrpc\":\"2.0\",\"id\":5}",
            both,
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":3}",
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}",
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"a\":\"\xff\"}}",
        ];
        for text in texts {
            assert!(matches!(classify_message(text, 5), Seen::Rubbish(_)), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn the_agreed_version_is_read() {
        let reply = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
        assert_eq!(agreed_version(reply).as_deref(), Some("2025-03-26"));
        for unfit in [r"a\r\nb".to_owned(), "9".repeat(65)] {
            let reply = format!(r#"{{"result":{{"protocolVersion":"{unfit}"}}}}"#);
            assert_eq!(agreed_version(reply.as_bytes()), None, "{unfit}");
        }
    }
}
