//! Plain requests beside MCP: the documents and endpoints of OAuth, recorded like everything else.

use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use super::Inner;
use crate::client::ClientError;

/// A request for [`Inner::fetch`].
pub(crate) struct Fetch<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What it is for, in messages.
    pub(crate) what: &'static str,
}

/// Its reply; redirects are not followed.
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    /// At most 1 MiB.
    pub(crate) text: Vec<u8>,
}

impl Inner {
    /// Asks any server, without the MCP server's token.
    pub(crate) async fn fetch(&self, fetch: Fetch<'_>) -> Result<Fetched, ClientError> {
        let repeatable = fetch.method == Method::GET;
        let open = self.exchange(&fetch.method, fetch.url, fetch.headers, fetch.body, fetch.what, repeatable).await?;
        let status = open.status.as_u16();
        let location = open.header("location").map(str::to_owned);
        if open.is_event_stream() {
            self.read_other(open, fetch.what).await?;
            return Ok(Fetched { status, location, text: Vec::new() });
        }
        let text = self.read_text(open, fetch.what).await?;
        Ok(Fetched { status, location, text })
    }
}
