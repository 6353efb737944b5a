//! The few members of `params` that decide where a request goes, read before its method's own type is.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Method, RequestMeta};

/// What routing, era and header checks need, of any method's parameters. Other members are passed over.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ParamsOutline<'a> {
    /// The tool or prompt.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// The resource.
    #[serde(borrow, default)]
    pub uri: Option<Cow<'a, str>>,
    /// The task.
    #[serde(rename = "taskId", borrow, default)]
    pub task_id: Option<Cow<'a, str>>,
    /// A tool's arguments, not looked into.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// What the request says about itself.
    #[serde(rename = "_meta", borrow, default)]
    pub meta: Option<RequestMeta<'a>>,
}

impl<'a> ParamsOutline<'a> {
    /// Reads the outline; of no parameters, the empty one.
    ///
    /// # Errors
    /// When one of the members is there twice or has another type than in every revision (`-32602`), or when the
    /// parameters are an array, which no MCP method takes.
    pub fn parse(params: Option<&'a RawValue>) -> serde_json::Result<Self> {
        match params {
            // A derived struct would also read an array, by position.
            Some(params) if params.get().starts_with('[') => {
                Err(serde::de::Error::custom("MCP's parameters are an object"))
            }
            Some(params) => serde_json::from_str(params.get()),
            None => Ok(Self::default()),
        }
    }

    /// What `Mcp-Name` says for this method (2026-07-28, basic/transports/streamable-http, "Standard Request Headers"; the
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
