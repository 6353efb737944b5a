//! Which era a POST belongs to, and whether a modern one is in order.
//!
//! 2026-07-28 asks for `_meta` and headers that agree with the body; the order of the checks and the
//! codes are the specification's (basic/transports, "Request headers"): `_meta`, headers, version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, StatusCode};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::{Id, Message, Payload, Request, code};
use serde_json::{Map, Value, json};

use crate::dispatch::Failure;
use crate::site::text;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a request's revision means for how it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// With `initialize` and perhaps sessions.
    Legacy(Revision),
    /// Each request stands alone.
    Modern,
}

/// Why a POST is refused: the HTTP status, the JSON-RPC error, and the id where one is known.
pub(crate) type Refusal = (StatusCode, Failure, Option<Id<'static>>);

/// Tells the era, or why the POST is out of order.
pub(crate) fn of(headers: &HeaderMap, payload: &Payload<'_>) -> Result<Era, Refusal> {
    let id = match payload {
        Payload::Single(Message::Request(request)) => Some(request.id.clone().into_owned()),
        _ => None,
    };
    match payload {
        Payload::Single(Message::Request(request)) => request_era(headers, request),
        Payload::Single(_) if header_is_modern(headers) => Ok(Era::Modern),
        Payload::Single(_) => legacy(headers),
        Payload::Batch(messages) => legacy(headers).and_then(|era| {
            let begins = messages
                .iter()
                .any(|message| message.method() == Some("initialize"));
            match era {
                Era::Legacy(revision) if revision.has_batches() && !begins => Ok(era),
                _ => Err(Failure::new(
                    code::INVALID_REQUEST,
                    "no batch is allowed here",
                )),
            }
        }),
    }
    .map_err(|failure| (StatusCode::BAD_REQUEST, failure, id))
}

/// Whether the header alone says 2026-07-28.
pub(crate) fn header_is_modern(headers: &HeaderMap) -> bool {
    text(headers, &PROTOCOL_VERSION)
        .and_then(|version| version.parse::<Revision>().ok())
        .is_some_and(Revision::is_modern)
}

fn request_era(headers: &HeaderMap, request: &Request<'_>) -> Result<Era, Failure> {
    let params: Map<String, Value> = request
        .params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let meta = params.get("_meta").and_then(Value::as_object);
    let Some(version) = meta.and_then(|meta| meta.get(META_VERSION)) else {
        return match header_is_modern(headers) {
            true => Err(missing_meta(META_VERSION)),
            false => legacy(headers),
        };
    };
    let version = version.as_str().ok_or_else(|| missing_meta(META_VERSION))?;
    if !meta.is_some_and(|meta| meta.get(META_CAPABILITIES).is_some_and(Value::is_object)) {
        return Err(missing_meta(META_CAPABILITIES));
    }
    must_say(headers, &PROTOCOL_VERSION, version)?;
    must_say(headers, &METHOD, &request.method)?;
    if let ("tools/call", Some(name)) = (request.method.as_ref(), params.get("name")) {
        must_say(headers, &NAME, name.as_str().unwrap_or_default())?;
    }
    match version.parse::<Revision>() {
        Ok(revision) if revision.is_modern() => Ok(Era::Modern),
        _ => Err(Failure {
            data: Some(json!({"supported": [Revision::LATEST], "requested": version})),
            ..Failure::new(
                code::UNSUPPORTED_PROTOCOL_VERSION,
                "this version is not supported",
            )
        }),
    }
}

fn legacy(headers: &HeaderMap) -> Result<Era, Failure> {
    match headers
        .get(PROTOCOL_VERSION)
        .map(|version| version.to_str())
    {
        None => Ok(Era::Legacy(Revision::ASSUMED)),
        Some(Ok(version)) => match version.parse::<Revision>() {
            Ok(revision) if revision.is_legacy() => Ok(Era::Legacy(revision)),
            _ => Err(unknown_version()),
        },
        Some(Err(_)) => Err(unknown_version()),
    }
}

fn unknown_version() -> Failure {
    let known = Revision::ALL.map(Revision::as_str).join(", ");
    Failure::new(
        code::INVALID_REQUEST,
        format!("unsupported MCP-Protocol-Version (supported: {known})"),
    )
}

fn missing_meta(key: &str) -> Failure {
    Failure::new(code::INVALID_PARAMS, format!("_meta must have {key}"))
}

fn must_say(headers: &HeaderMap, name: &HeaderName, expected: &str) -> Result<(), Failure> {
    let mut values = headers.get_all(name).iter();
    let said = values
        .next()
        .and_then(|value| value.to_str().ok())
        .and_then(decoded);
    match (said, values.next()) {
        (Some(said), None) if said == expected => Ok(()),
        _ => Err(Failure::new(
            code::HEADER_MISMATCH,
            format!("the header {name} must be there once and say what the body says"),
        )),
    }
}

/// A header's value: plain, or `=?base64?…?=` around UTF-8.
fn decoded(value: &str) -> Option<String> {
    match value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
