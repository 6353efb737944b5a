//! The headers that a client must send with a POST.

use std::borrow::Cow;

use serde_json::Value;

use super::{ParamHeader, SessionId, encode_value, name};
use crate::Revision;
use crate::jsonrpc::Message;
use crate::mcp::ParamsOutline;

/// A message about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The message.
    pub message: &'a Message<'a>,
    /// The revision agreed, or in the modern era the one spoken.
    pub revision: Revision,
    /// The session, if the server gave one.
    pub session: Option<&'a SessionId>,
    /// The annotations of the tool that is called, if any.
    pub annotations: &'a [ParamHeader],
}

/// The headers for a message, names in lower case. `initialize` has neither version nor session: it asks for them.
///
/// # Errors
/// When the message's parameters can't be read (our misuse).
pub fn client_headers(outgoing: Outgoing<'_>) -> serde_json::Result<Vec<(Cow<'static, str>, String)>> {
    let Outgoing { message, revision, session, annotations } = outgoing;
    let mut headers = vec![
        (Cow::Borrowed(name::CONTENT_TYPE), "application/json".to_owned()),
        (Cow::Borrowed(name::ACCEPT), "application/json, text/event-stream".to_owned()),
    ];
    if message.method() == Some("initialize") {
        return Ok(headers);
    }
    if revision.has_version_header() {
        headers.push((Cow::Borrowed(name::PROTOCOL_VERSION), revision.as_str().to_owned()));
    }
    if let Some(session) = session.filter(|_| revision.has_http_sessions()) {
        headers.push((Cow::Borrowed(name::SESSION_ID), session.as_str().to_owned()));
    }
    if revision.has_request_headers() {
        headers.extend(mirrored_headers(message, annotations)?);
    }
    Ok(headers)
}

/// Headers that repeat parts of the body, in revisions that require them: method, name, annotated arguments.
///
/// # Errors
/// When the message's parameters can't be read (our misuse).
pub fn mirrored_headers(
    message: &Message<'_>,
    annotations: &[ParamHeader],
) -> serde_json::Result<Vec<(Cow<'static, str>, String)>> {
    let Some(method) = message.method() else { return Ok(Vec::new()) };
    let mut headers = vec![(Cow::Borrowed(name::METHOD), method.to_owned())];
    let outline = ParamsOutline::parse(message.params())?;
    if let Some(target) = outline.header_name(method) {
        headers.push((Cow::Borrowed(name::NAME), encode_value(target).into_owned()));
    }
    let (Some(arguments), false) = (outline.arguments, annotations.is_empty()) else {
        return Ok(headers);
    };
    let arguments: Value = serde_json::from_str(arguments.get())?;
    for annotation in annotations {
        if let Some(text) = annotation.text(&arguments) {
            let header = format!("{}{}", name::PARAM_PREFIX, annotation.name.to_ascii_lowercase());
            headers.push((Cow::Owned(header), encode_value(&text).into_owned()));
        }
    }
    Ok(headers)
}
