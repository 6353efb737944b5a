//! Lists: a page at a time or all pages; what a list of tools tells about headers is kept.

use std::borrow::Cow;

use mcpace_wire::http::ParamHeader;
use mcpace_wire::mcp::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt, Resource,
    ResourceTemplate, Tool,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::{Client, UnsentRequest};
use crate::lock::lock_exclusive;
use crate::requests::require_complete;
use crate::{CacheMode, CallOptions, ClientError, Raw};
use mcpace_client_protocol::ParamsWriter;

/// Kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl List {
    /// The method.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            List::Tools => "tools/list",
            List::Resources => "resources/list",
            List::ResourceTemplates => "resources/templates/list",
            List::Prompts => "prompts/list",
        }
    }
}

impl Client {
    /// One page of a list, as the server wrote it; but tools whose header annotations are invalid are left out over HTTP in
    /// 2026-07-28, as the protocol demands.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_raw(&self, list: List, cursor: Option<&str>, options: &CallOptions) -> Result<Raw, ClientError> {
        let fill = |params: &mut ParamsWriter<'_>| params.optional("cursor", cursor);
        let method = list.method();
        let ask = UnsentRequest { method, name: None, arguments: None, fill: &fill, repeatable: true, options };
        let outcome = self.inner.ask_kept(&ask, cursor.unwrap_or_default()).await?;
        let raw = require_complete(outcome, method)?;
        if list == List::Tools { self.remember_tools(raw, cursor.is_none()) } else { Ok(raw) }
    }

    async fn list_page<T: DeserializeOwned>(&self, list: List, cursor: Option<&str>) -> Result<T, ClientError> {
        self.list_raw(list, cursor, &CallOptions::default()).await?.read(list.method())
    }

    /// All tools, page by page.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        let part = |page: ListToolsResult| (page.tools, page.next_cursor);
        self.list_all(List::Tools, part).await
    }

    /// All resources, page by page.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        let part = |page: ListResourcesResult| (page.resources, page.next_cursor);
        self.list_all(List::Resources, part).await
    }

    /// All templates of resources, page by page.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        let part = |page: ListResourceTemplatesResult| (page.resource_templates, page.next_cursor);
        self.list_all(List::ResourceTemplates, part).await
    }

    /// All prompts, page by page.
    ///
    /// # Errors
    /// Any [`ClientError`].
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        let part = |page: ListPromptsResult| (page.prompts, page.next_cursor);
        self.list_all(List::Prompts, part).await
    }

    async fn list_all<P: DeserializeOwned, T>(
        &self,
        list: List,
        part: impl Fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let limit = self.inner.options.limits.pages;
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..limit {
            let (page, next) = part(self.list_page(list, cursor.as_deref()).await?);
            all.extend(page);
            if next.is_none() {
                return Ok(all);
            }
            if next == cursor {
                return Err(ClientError::bad_reply(
                    list.method(),
                    "it names the page as the next one that it just gave",
                ));
            }
            cursor = next;
        }
        Err(ClientError::TooLarge { what: "the number of pages of a list", limit })
    }

    /// Lists tools anew until `name` is among them.
    pub(crate) async fn refresh_tool(&self, name: &str) -> Result<(), ClientError> {
        let options = CallOptions { cache: CacheMode::Refresh, ..CallOptions::default() };
        let mut cursor = None::<String>;
        for _ in 0..self.inner.options.limits.pages {
            let page = self.list_raw(List::Tools, cursor.as_deref(), &options).await?;
            let page: ListToolsResult = page.read("tools/list")?;
            if page.tools.iter().any(|tool| tool.name == name) || page.next_cursor.is_none() {
                break;
            }
            cursor = page.next_cursor;
        }
        Ok(())
    }

    /// Remembers what goes into headers and leaves out tools with invalid annotations, which is for HTTP only.
    fn remember_tools(&self, raw: Raw, first: bool) -> Result<Raw, ClientError> {
        let session = self.inner.current_session()?;
        if !session.has_headers() {
            return Ok(raw);
        }
        let page: ToolPage<'_> =
            serde_json::from_slice(raw.as_bytes()).map_err(|e| ClientError::bad_reply("tools/list", e))?;
        let mut invalid = false;
        {
            let mut mirrored = lock_exclusive(&session.mirrored);
            if first {
                mirrored.clear();
            }
            for tool in &page.tools {
                match ParamHeader::of_schema(tool.input_schema.get()) {
                    Ok(annotations) if annotations.is_empty() => {}
                    Ok(annotations) => drop(mirrored.insert(tool.name.to_string(), annotations)),
                    Err(_) => invalid = true,
                }
            }
        }
        if !invalid {
            return Ok(raw);
        }
        let mut page: ListToolsResult = raw.read("tools/list")?;
        page.tools.retain(|tool| ParamHeader::of_schema(tool.input_schema.get()).is_ok());
        let text = serde_json::to_vec(&page).map_err(|e| ClientError::bad_reply("tools/list", e))?;
        Ok(Raw::new(text))
    }
}

/// The members of a page of tools that headers need.
#[derive(Deserialize)]
struct ToolPage<'a> {
    #[serde(borrow)]
    tools: Vec<ListedTool<'a>>,
}

#[derive(Deserialize)]
struct ListedTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: &'a RawValue,
}
