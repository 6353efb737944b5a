//! The few members of `params` and `_meta` that decide where a request goes, read in one pass, all others skipped.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{LoggingLevel, Method, key};
use crate::jsonrpc::Id;

/// Parts of a method's parameters that routing, era, header checks and the frequent methods need.
#[derive(Clone, Debug, Default)]
pub struct ParamsOutline<'a> {
    /// The tool or prompt.
    pub name: Option<Cow<'a, str>>,
    /// The resource.
    pub uri: Option<Cow<'a, str>>,
    /// The task.
    pub task_id: Option<Cow<'a, str>>,
    /// The page of a list.
    pub cursor: Option<Cow<'a, str>>,
    /// A tool's arguments, not looked into.
    pub arguments: Option<&'a RawValue>,
    /// Answers to an earlier round's questions, not looked into. Since 2026-07-28.
    pub input_responses: Option<&'a RawValue>,
    /// State that an earlier round gave to the client. Since 2026-07-28.
    pub request_state: Option<Cow<'a, str>>,
    /// Metadata of the request.
    pub meta: Option<MetaOutline<'a>>,
}

/// The members of a request's `_meta` that a server looks at on each call.
#[derive(Clone, Debug, Default)]
pub struct MetaOutline<'a> {
    /// The revision spoken; a string, since a server must be able to name one that it doesn't know.
    pub protocol_version: Option<Cow<'a, str>>,
    /// Capabilities of the client: [`super::ClientCapabilities`].
    pub client_capabilities: Option<&'a RawValue>,
    /// From which level on log messages are wanted.
    pub log_level: Option<LoggingLevel>,
    /// Where progress goes.
    pub progress_token: Option<Id<'static>>,
    /// W3C Trace Context.
    pub traceparent: Option<Cow<'a, str>>,
    /// Ours: whether the layers' times are wanted.
    pub timing: Option<&'a RawValue>,
}

impl<'a> ParamsOutline<'a> {
    /// Reads the outline; of no parameters, the empty one.
    ///
    /// # Errors
    /// When one of the members is there twice or has another type than in every revision (`-32602`), or when the
    /// parameters are an array, which no MCP method takes.
    pub fn parse(params: Option<&'a RawValue>) -> serde_json::Result<Self> {
        match params {
            Some(params) => serde_json::from_str(params.get()),
            None => Ok(Self::default()),
        }
    }

    /// Reads only what headers repeat and what says which rules a request follows. For requests whose other members are
    /// malformed: those are the method's business.
    ///
    /// # Errors
    /// As [`ParamsOutline::parse`], for these members.
    pub fn parse_routing(params: Option<&'a RawValue>) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Routing<'a> {
            #[serde(borrow)]
            name: Option<Text<'a>>,
            #[serde(borrow)]
            uri: Option<Text<'a>>,
            #[serde(borrow)]
            task_id: Option<Text<'a>>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
            #[serde(rename = "_meta", borrow)]
            meta: Option<MetaOutline<'a>>,
        }
        // A derived struct would also read an array, by position.
        let Some(params) = params.filter(|params| params.get().starts_with('{')) else { return Self::parse(params) };
        let Routing { name, uri, task_id, arguments, meta } = serde_json::from_str(params.get())?;
        let plain = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        let (name, uri, task_id) = (plain(name), plain(uri), plain(task_id));
        Ok(Self { name, uri, task_id, arguments, meta, ..Self::default() })
    }

    /// Value of `Mcp-Name` for this method (2026-07-28, basic/transports/streamable-http, "Standard Request Headers"; the
    /// tasks extension, "Routing Headers"). `None` where the method has no such header or the member is missing.
    #[must_use]
    pub fn header_name(&self, method: &str) -> Option<&str> {
        match Method::parse(method)? {
            Method::ToolsCall | Method::PromptsGet => self.name.as_deref(),
            Method::ResourcesRead => self.uri.as_deref(),
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => self.task_id.as_deref(),
            _ => None,
        }
    }
}

impl MetaOutline<'_> {
    /// Whether the client asks how long the layers took.
    #[must_use]
    pub fn wants_timing(&self) -> bool {
        self.timing.is_some_and(|timing| !matches!(timing.get(), "false" | "null"))
    }
}

// By hand, since a derived struct would also read an array, by position, and copy each optional string.
impl<'de: 'a, 'a> Deserialize<'de> for ParamsOutline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = ParamsOutline<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut outline = ParamsOutline::default();
        while let Some(Text(member)) = map.next_key()? {
            match &*member {
                "name" => read_text(&mut map, &mut outline.name, "name")?,
                "uri" => read_text(&mut map, &mut outline.uri, "uri")?,
                "taskId" => read_text(&mut map, &mut outline.task_id, "taskId")?,
                "cursor" => read_text(&mut map, &mut outline.cursor, "cursor")?,
                "arguments" => read_once(&mut map, &mut outline.arguments, "arguments")?,
                "inputResponses" => read_once(&mut map, &mut outline.input_responses, "inputResponses")?,
                "requestState" => read_text(&mut map, &mut outline.request_state, "requestState")?,
                "_meta" => read_once(&mut map, &mut outline.meta, "_meta")?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(outline)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MetaOutline<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaVisitor)
    }
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = MetaOutline<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut outline = MetaOutline::default();
        while let Some(Text(member)) = map.next_key()? {
            match &*member {
                key::PROTOCOL_VERSION => read_text(&mut map, &mut outline.protocol_version, key::PROTOCOL_VERSION)?,
                key::CLIENT_CAPABILITIES => {
                    read_once(&mut map, &mut outline.client_capabilities, key::CLIENT_CAPABILITIES)?
                }
                key::LOG_LEVEL => read_once(&mut map, &mut outline.log_level, key::LOG_LEVEL)?,
                key::PROGRESS_TOKEN => read_once(&mut map, &mut outline.progress_token, key::PROGRESS_TOKEN)?,
                key::TRACEPARENT => read_text(&mut map, &mut outline.traceparent, key::TRACEPARENT)?,
                key::TIMING => read_once(&mut map, &mut outline.timing, key::TIMING)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(outline)
    }
}

/// Reads a member that may be there once; `null` is as if it were not.
fn read_once<'de, A, T>(map: &mut A, slot: &mut Option<T>, name: &'static str) -> Result<(), A::Error>
where
    A: MapAccess<'de>,
    T: Deserialize<'de>,
{
    if slot.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *slot = map.next_value()?;
    Ok(())
}

fn read_text<'de, A: MapAccess<'de>>(
    map: &mut A,
    slot: &mut Option<Cow<'de, str>>,
    name: &'static str,
) -> Result<(), A::Error> {
    let mut found = slot.take().map(Text);
    read_once(map, &mut found, name)?;
    *slot = found.map(|Text(text)| text);
    Ok(())
}

/// A string, borrowed unless it has escapes: serde copies an `Option<Cow<str>>` always.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
