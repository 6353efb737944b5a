//! Plain requests beside MCP: the documents and endpoints of OAuth, recorded like everything else.

use http::Method;
use mcpace_oauth::{Fetch, Fetched, HttpExchange};

use super::HttpInner;
use crate::client::ClientError;

impl HttpExchange for HttpInner {
    type Error = ClientError;

    async fn fetch(&self, fetch: Fetch<'_>) -> Result<Fetched, ClientError> {
        let repeatable = fetch.method == Method::GET;
        let open =
            self.exchange_once(&fetch.method, fetch.url, fetch.headers, fetch.body, fetch.what, repeatable).await?;
        let status = open.status.as_u16();
        let location = open.header("location").map(str::to_owned);
        if open.is_event_stream() {
            self.read_other(open, fetch.what).await?;
            return Ok(Fetched { status, location, nonce: None, text: Vec::new() });
        }
        let text = self.read_text(open, fetch.what).await?;
        Ok(Fetched { status, location, nonce: None, text })
    }
}
