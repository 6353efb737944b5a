//! HTTP, as this crate needs it: somebody else has the sockets.

use std::future::Future;

use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use super::OAuthError;

/// Carries out requests to any server, without the MCP server's token.
pub trait HttpExchange: Sync {
    /// Error of a request. It includes OAuth's own errors.
    type Error: From<OAuthError> + Send;

    /// One request and its whole reply; redirects are not followed.
    fn fetch(&self, fetch: Fetch<'_>) -> impl Future<Output = Result<Fetched, Self::Error>> + Send;
}

/// A request for [`HttpExchange::fetch`].
#[derive(Debug)]
pub struct Fetch<'a> {
    /// GET or POST.
    pub method: Method,
    /// Where to.
    pub url: &'a Url,
    /// All but `Host`.
    pub headers: HeaderMap,
    /// May be empty.
    pub body: Bytes,
    /// Purpose of the request, in messages.
    pub what: &'static str,
}

/// Its reply.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The status.
    pub status: u16,
    /// The header `Location`, where there is one.
    pub location: Option<String>,
    /// The header `DPoP-Nonce`, where there is one.
    pub nonce: Option<String>,
    /// The body; whoever fetches it sets a limit.
    pub text: Vec<u8>,
}
