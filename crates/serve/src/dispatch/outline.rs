//! The members of `params` and `_meta` that dispatch looks at, all others skipped, none copied.

use std::borrow::Cow;

use mcpace_wire::Revision;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::{LoggingLevel, key};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Refusal;

/// What the frequent methods take, in one pass. The rare ones read `params` again as their own type.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outline<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uri: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) cursor: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) request_state: Option<Text<'a>>,
    #[serde(rename = "_meta", borrow)]
    pub(crate) meta: Option<&'a RawValue>,
}

/// A string, borrowed unless it has escapes: serde copies an `Option<Cow<str>>` always.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl<'a> Outline<'a> {
    pub(crate) fn parse(params: Option<&'a RawValue>) -> Result<Self, Refusal> {
        let Some(params) = params else { return Ok(Self::default()) };
        if !params.get().starts_with('{') {
            // A derived struct would also read an array, by position.
            return Err(Refusal::error(mcpace_wire::jsonrpc::code::INVALID_PARAMS, "params: expected an object"));
        }
        Ok(serde_json::from_str(params.get())?)
    }
}

/// A request's `_meta`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    pub(crate) version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
    pub(crate) capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<LoggingLevel>,
    #[serde(rename = "progressToken")]
    pub(crate) progress_token: Option<Id<'static>>,
    #[serde(borrow)]
    pub(crate) traceparent: Option<Text<'a>>,
    #[serde(rename = "dev.mcpace/timing", borrow)]
    pub(crate) timing: Option<&'a RawValue>,
}

impl<'a> Meta<'a> {
    pub(crate) fn parse(raw: Option<&'a RawValue>) -> Result<Self, Refusal> {
        let Some(raw) = raw.filter(|raw| raw.get() != "{}") else { return Ok(Self::default()) };
        if !raw.get().starts_with('{') {
            return Err(Refusal::error(mcpace_wire::jsonrpc::code::INVALID_PARAMS, "params._meta: expected an object"));
        }
        Ok(serde_json::from_str(raw.get())?)
    }

    /// What 2026-07-28 demands of every request, and whether the server speaks its version.
    pub(crate) fn check_modern(&self, supported: &[Revision]) -> Result<(), Refusal> {
        let missing = |key: &str| Rejection::InvalidParams(Cow::Owned(format!("_meta[{key:?}] is required")));
        let version = self.version.ok_or_else(|| missing(key::PROTOCOL_VERSION))?;
        let capabilities = self.capabilities.ok_or_else(|| missing(key::CLIENT_CAPABILITIES))?;
        if !capabilities.get().starts_with('{') {
            return Err(Rejection::InvalidParams(Cow::Borrowed("client capabilities are an object")).into());
        }
        let version: Cow<'_, str> = match version.get().as_bytes() {
            // Nearly every request: no escapes, known length.
            [b'"', text @ .., b'"'] if !text.contains(&b'\\') => Cow::Borrowed(&version.get()[1..=text.len()]),
            [b'"', ..] => serde_json::from_str::<String>(version.get())?.into(),
            _ => return Err(Rejection::InvalidParams(Cow::Borrowed("the protocol version is a string")).into()),
        };
        let known = version.parse::<Revision>().is_ok_and(|known| known.is_modern() && supported.contains(&known));
        if known {
            return Ok(());
        }
        // A peer's string: only as much of it as a version could be long.
        Err(Rejection::UnsupportedVersion {
            requested: version.chars().take(64).collect(),
            supported: supported.to_vec(),
        }
        .into())
    }

    /// Whether the client asks how long the layers took.
    pub(crate) fn wants_timing(&self) -> bool {
        self.timing.is_some_and(|timing| !matches!(timing.get(), "false" | "null"))
    }
}
