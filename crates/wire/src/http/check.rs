//! The server's checks of a request, in the order that the protocol sets: `_meta`, headers, version; then, by whoever knows
//! the methods and tools, method and argument headers.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Field, ParamHeader, Rejection, RequestHeaders, SessionId, decode_value, name};
use crate::Revision;
use crate::jsonrpc::Message;
use crate::mcp::ParamsOutline;

/// Checks a message of the modern era (2026-07-28, basic, "_meta" and basic/transports/streamable-http). Gives the
/// revision that it speaks, one of `supported`.
///
/// # Errors
/// The first [`Rejection`] in the protocol's order. An unknown method comes after all of these.
pub fn check_modern(
    headers: &RequestHeaders<'_>,
    message: &Message<'_>,
    outline: &ParamsOutline<'_>,
    supported: &[Revision],
) -> Result<Revision, Rejection> {
    let method = match message {
        Message::Request(request) => &request.method,
        // Which metadata and headers a notification has is left open; what is there must still agree.
        Message::Notification(notification) => {
            return check_notification(headers, &notification.method, outline, supported);
        }
        Message::Response(_) => {
            return Err(Rejection::NotAllowed("a client sends no responses in this revision"));
        }
    };
    let version = required_meta(outline)?;
    require_agreement(name::PROTOCOL_VERSION, plain_value(headers.protocol_version, name::PROTOCOL_VERSION)?, version)?;
    require_agreement(name::METHOD, plain_value(headers.method, name::METHOD)?, method)?;
    if let Some(target) = outline.header_name(method) {
        require_agreement(name::NAME, decoded_value(headers.name, name::NAME)?, target)?;
    }
    supported_version(version, supported)
}

/// Checks a request of the modern era where there are no headers: over stdio (2026-07-28, basic/transports/stdio, "Request
/// Metadata"). Gives the revision that it speaks, one of `supported`.
///
/// # Errors
/// [`Rejection::InvalidParams`] or [`Rejection::UnsupportedVersion`].
pub fn check_meta(outline: &ParamsOutline<'_>, supported: &[Revision]) -> Result<Revision, Rejection> {
    supported_version(required_meta(outline)?, supported)
}

/// Checks the `Mcp-Param-*` headers of a call against its arguments, for a tool with these annotations.
///
/// # Errors
/// A header is missing, malformed, says something else than the body, or is there without an argument to mirror.
pub fn check_params(
    headers: &RequestHeaders<'_>,
    annotations: &[ParamHeader],
    arguments: Option<&RawValue>,
) -> Result<(), Rejection> {
    if annotations.is_empty() {
        return Ok(());
    }
    let arguments: Value = match arguments {
        Some(raw) => serde_json::from_str(raw.get())
            .map_err(|error| Rejection::InvalidParams(Cow::Owned(format!("arguments: {error}"))))?,
        None => Value::Null,
    };
    for annotation in annotations {
        let header = headers.param(&annotation.name);
        let full_name = || Cow::Owned(format!("{}{}", name::PARAM_PREFIX, annotation.name));
        match (header, annotation.text(&arguments)) {
            (Field::Absent, None) => {}
            (Field::Absent, Some(_)) => return Err(Rejection::HeaderMissing(full_name())),
            (Field::Repeated, _) => return Err(Rejection::HeaderMalformed(full_name())),
            (Field::Value(value), expected) => {
                let said = decode_value(value).map_err(|_| Rejection::HeaderMalformed(full_name()))?;
                if !expected.is_some_and(|body| annotation.agrees(&said, &body)) {
                    return Err(Rejection::HeaderMismatch(full_name()));
                }
            }
        }
    }
    Ok(())
}

/// Checks the headers of a legacy request after `initialize` (basic/transports of 2025-03-26 to 2025-11-25). Gives the
/// revision that it speaks, as the header or else the session says, and the session that it names. Whether that session
/// exists, and whether one is needed ([`Rejection::SessionMissing`], [`Rejection::SessionNotFound`]), the caller knows.
///
/// # Errors
/// The version is none of `supported`, or the session id can't be one.
pub fn check_legacy(
    headers: &RequestHeaders<'_>,
    negotiated: Option<Revision>,
    supported: &[Revision],
) -> Result<(Revision, Option<SessionId>), Rejection> {
    let revision = match headers.protocol_version {
        Field::Absent => negotiated.unwrap_or(Revision::ASSUMED),
        field => field.ascii().and_then(|text| text.parse().ok()).ok_or(Rejection::InvalidVersionHeader)?,
    };
    if revision.is_modern() || !supported.contains(&revision) {
        return Err(Rejection::InvalidVersionHeader);
    }
    let session = match headers.session_id {
        Field::Absent => None,
        Field::Value(value) => Some(SessionId::from_bytes(value).map_err(|_| Rejection::SessionMissing)?),
        Field::Repeated => return Err(Rejection::SessionMissing),
    };
    Ok((revision, session))
}

fn check_notification(
    headers: &RequestHeaders<'_>,
    method: &str,
    outline: &ParamsOutline<'_>,
    supported: &[Revision],
) -> Result<Revision, Rejection> {
    let in_body = outline.meta.as_ref().and_then(|meta| meta.protocol_version.as_deref());
    let in_header = match headers.protocol_version {
        Field::Absent => None,
        field => Some(plain_value(field, name::PROTOCOL_VERSION)?),
    };
    if let (Some(header), Some(body)) = (&in_header, in_body) {
        require_agreement(name::PROTOCOL_VERSION, Cow::Borrowed(header), body)?;
    }
    if !headers.method.is_absent() {
        require_agreement(name::METHOD, plain_value(headers.method, name::METHOD)?, method)?;
    }
    match in_body.or(in_header.as_deref()) {
        Some(version) => supported_version(version, supported),
        None => Err(Rejection::HeaderMissing(Cow::Borrowed(name::PROTOCOL_VERSION))),
    }
}

/// The version, where all that `_meta` must have is there.
fn required_meta<'o>(outline: &'o ParamsOutline<'_>) -> Result<&'o str, Rejection> {
    let missing = |key: &str| Rejection::InvalidParams(Cow::Owned(format!("_meta[{key:?}] is required")));
    let meta = outline.meta.as_ref();
    let version = meta
        .and_then(|meta| meta.protocol_version.as_deref())
        .ok_or_else(|| missing(crate::mcp::key::PROTOCOL_VERSION))?;
    let capabilities =
        meta.and_then(|meta| meta.client_capabilities).ok_or_else(|| missing(crate::mcp::key::CLIENT_CAPABILITIES))?;
    if !capabilities.get().starts_with('{') {
        return Err(Rejection::InvalidParams(Cow::Borrowed("client capabilities are an object")));
    }
    Ok(version)
}

fn supported_version(version: &str, supported: &[Revision]) -> Result<Revision, Rejection> {
    let known = version.parse().ok().filter(|revision: &Revision| revision.is_modern() && supported.contains(revision));
    known.ok_or_else(|| Rejection::UnsupportedVersion {
        // A peer's string: only as much of it as a version could be long.
        requested: version.chars().take(64).collect(),
        supported: supported.to_vec(),
    })
}

fn require_agreement(header: &'static str, said: Cow<'_, str>, body: &str) -> Result<(), Rejection> {
    if said == body { Ok(()) } else { Err(Rejection::HeaderMismatch(Cow::Borrowed(header))) }
}

/// The value of a header that stands for itself.
fn plain_value<'a>(field: Field<'a>, name: &'static str) -> Result<Cow<'a, str>, Rejection> {
    single_value(field, name)?;
    field.ascii().map(Cow::Borrowed).ok_or(Rejection::HeaderMalformed(Cow::Borrowed(name)))
}

/// The text of a header that may be in base64.
fn decoded_value<'a>(field: Field<'a>, name: &'static str) -> Result<Cow<'a, str>, Rejection> {
    let value = single_value(field, name)?;
    decode_value(value).map_err(|_| Rejection::HeaderMalformed(Cow::Borrowed(name)))
}

fn single_value<'a>(field: Field<'a>, name: &'static str) -> Result<&'a [u8], Rejection> {
    match field {
        Field::Absent => Err(Rejection::HeaderMissing(Cow::Borrowed(name))),
        Field::Repeated => Err(Rejection::HeaderMalformed(Cow::Borrowed(name))),
        Field::Value(value) => Ok(value),
    }
}
