//! Resources and families of them.

use std::collections::BTreeMap;
use std::future::Future;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpace_wire::mcp::{self, Annotations, ReadResourceResult, ResourceContents};

use super::described::described;
use super::handler::Handler;
use super::{Context, HandlerError};
use crate::guard::Guard;

/// Request to the handler of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRequest {
    /// The resource, as the client named it.
    pub uri: String,
    /// Values of the template's variables, decoded. Empty for a resource without a template.
    pub variables: BTreeMap<String, String>,
    mime_type: Option<String>,
}

impl ResourceRequest {
    pub(crate) fn new(uri: String, variables: BTreeMap<String, String>, mime_type: Option<&str>) -> Self {
        Self { uri, variables, mime_type: mime_type.map(str::to_owned) }
    }

    /// Value of a variable of the template; empty for a variable that the template doesn't have.
    #[must_use]
    pub fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    fn contents(&self) -> ResourceContents {
        ResourceContents { uri: self.uri.clone(), mime_type: self.mime_type.clone(), ..ResourceContents::default() }
    }
}

/// Result type of a resource: text ([`String`], `&'static str`), bytes ([`Vec<u8>`]), contents of any kind
/// ([`ResourceContents`], [`Vec`] of them), or everything at once ([`ReadResourceResult`], cache hints included).
pub trait ResourceOutput: Send + 'static {
    /// The result for `request`.
    fn into_result(self, request: &ResourceRequest) -> ReadResourceResult;
}

impl ResourceOutput for String {
    fn into_result(self, request: &ResourceRequest) -> ReadResourceResult {
        vec![ResourceContents { text: Some(self), ..request.contents() }].into_result(request)
    }
}

impl ResourceOutput for &'static str {
    fn into_result(self, request: &ResourceRequest) -> ReadResourceResult {
        self.to_owned().into_result(request)
    }
}

impl ResourceOutput for Vec<u8> {
    fn into_result(self, request: &ResourceRequest) -> ReadResourceResult {
        vec![ResourceContents { blob: Some(STANDARD.encode(self)), ..request.contents() }].into_result(request)
    }
}

impl ResourceOutput for ResourceContents {
    fn into_result(self, request: &ResourceRequest) -> ReadResourceResult {
        vec![self].into_result(request)
    }
}

impl ResourceOutput for Vec<ResourceContents> {
    fn into_result(self, _: &ResourceRequest) -> ReadResourceResult {
        ReadResourceResult { contents: self, ..ReadResourceResult::default() }
    }
}

impl ResourceOutput for ReadResourceResult {
    fn into_result(self, _: &ResourceRequest) -> ReadResourceResult {
        self
    }
}

pub(crate) type ReadHandler = Handler<ResourceRequest, ReadResourceResult>;

/// A resource to register with [`crate::Builder::resource`].
///
/// ```
/// use mcpace_serve::{HandlerError, Resource, Server};
///
/// let server = Server::builder("notes", "1.0")
///     .resource(Resource::new("note://today", "today").mime_type("text/plain").text("Nothing."))
///     .resource(Resource::new("note://now", "now").handler(|_| Ok::<_, HandlerError>(vec![1, 2, 3])))
///     .build()?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
pub struct Resource {
    pub(crate) listed: mcp::Resource,
    pub(crate) handler: Option<ReadHandler>,
    pub(crate) guard: Option<Guard>,
}

/// A family of resources to register with [`crate::Builder::resource_template`].
///
/// The template is RFC 6570's: `note://{year}/{title}`, `{+path}` for a variable that may hold slashes, `{?q,page}` for what
/// may be missing. A variable may stand for nothing at all; a URI that several templates match is the first one's.
///
/// ```
/// use mcpace_serve::{HandlerError, ResourceRequest, ResourceTemplate, Server};
///
/// let server = Server::builder("notes", "1.0")
///     .resource_template(ResourceTemplate::new("note://{year}/{title}", "note").handler(|note: ResourceRequest| {
///         Ok::<_, HandlerError>(format!("{} of {}", note.variable("title"), note.variable("year")))
///     }))
///     .build()?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
pub struct ResourceTemplate {
    pub(crate) listed: mcp::ResourceTemplate,
    pub(crate) handler: Option<ReadHandler>,
    pub(crate) guard: Option<Guard>,
}

described!(Resource, hints: Annotations);
described!(ResourceTemplate, hints: Annotations);

/// Methods that resources and resource templates share.
macro_rules! readable {
    ($kind:ident) => {
        impl $kind {
            /// Its media type; contents that name none of their own get it.
            #[must_use]
            pub fn mime_type(mut self, text: impl Into<String>) -> Self {
                self.listed.mime_type = Some(text.into());
                self
            }

            /// Reads it on the thread that read the request, at once.
            #[must_use]
            pub fn handler<R, F>(mut self, handler: F) -> Self
            where
                R: ResourceOutput,
                F: Fn(ResourceRequest) -> Result<R, HandlerError> + Send + Sync + 'static,
            {
                self.handler = Some(Handler::plain(move |request: ResourceRequest| {
                    handler(request.clone()).map(|output| output.into_result(&request))
                }));
                self
            }

            /// Reads it in a future, with a [`Context`].
            #[must_use]
            pub fn handler_async<R, F, Fut>(mut self, handler: F) -> Self
            where
                R: ResourceOutput,
                F: Fn(ResourceRequest, Context) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
            {
                let handler = std::sync::Arc::new(handler);
                self.handler = Some(Handler::asynchronous(move |request: ResourceRequest, context| {
                    let handler = std::sync::Arc::clone(&handler);
                    async move { handler(request.clone(), context).await.map(|output| output.into_result(&request)) }
                }));
                self
            }
        }
    };
}

readable!(Resource);
readable!(ResourceTemplate);

impl Resource {
    /// A resource that clients read by `uri`, called `name` by programs.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        let listed = mcp::Resource { uri: uri.into(), name: name.into(), ..mcp::Resource::default() };
        Self { listed, handler: None, guard: None }
    }

    /// A resource by its whole description, as lists tell it.
    #[must_use]
    pub fn listed(listed: mcp::Resource) -> Self {
        Self { listed, handler: None, guard: None }
    }

    /// Always this text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.listed.size.get_or_insert(text.len() as u64);
        self.handler(move |_| Ok(text.clone()))
    }

    /// Always these bytes.
    #[must_use]
    pub fn blob(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        self.listed.size.get_or_insert(bytes.len() as u64);
        self.handler(move |_| Ok(bytes.clone()))
    }

    /// Its size in bytes, as far as known.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.listed.size = Some(bytes);
        self
    }
}

impl ResourceTemplate {
    /// The resources whose URIs `template` matches, called `name` by programs.
    #[must_use]
    pub fn new(template: impl Into<String>, name: impl Into<String>) -> Self {
        let listed = mcp::ResourceTemplate {
            uri_template: template.into(),
            name: name.into(),
            ..mcp::ResourceTemplate::default()
        };
        Self { listed, handler: None, guard: None }
    }

    /// A family by its whole description, as lists tell it.
    #[must_use]
    pub fn listed(listed: mcp::ResourceTemplate) -> Self {
        Self { listed, handler: None, guard: None }
    }
}
