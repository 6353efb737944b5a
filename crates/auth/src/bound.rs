//! Tokens of another verifier, held to this server's own address as their audience (RFC 8707 §2; MCP: "servers MUST
//! validate that access tokens were issued specifically for them").

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mcpace_serve::Principal;
use mcpace_serve::http::{Development, TokenError, TokenVerifier};
use url::Url;

use crate::error::report_failure;
use crate::{Access, Failure, Report, TokenRefusal};

/// Verifier that accepts a token of the inner verifier only if this server is its audience. Only verifiers of this
/// crate can be wrapped: others report no audience, so all their tokens are refused.
pub struct Bound {
    inner: Arc<dyn TokenVerifier>,
    resource: String,
    report: Option<Report>,
}

impl Bound {
    /// `resource`: the endpoint's URL as clients see it.
    #[must_use]
    pub fn new(inner: Arc<dyn TokenVerifier>, resource: &str, report: Option<Report>) -> Self {
        Self { inner, resource: comparable_url(resource), report }
    }

    fn is_meant(&self, principal: &Principal) -> bool {
        let access = principal.details.as_ref().and_then(|details| details.downcast_ref::<Access>());
        access.is_some_and(|access| access.grant.audiences.iter().any(|named| comparable_url(named) == self.resource))
    }
}

impl TokenVerifier for Bound {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Principal, TokenError>> + Send + 'a>> {
        Box::pin(async move {
            let principal = self.inner.verify(token).await?;
            if self.is_meant(&principal) {
                return Ok(principal);
            }
            let failure = Failure::Refused(TokenRefusal::Audience);
            report_failure(self.report.as_ref(), &failure);
            Err(failure.into())
        })
    }

    fn development(&self) -> Option<Development> {
        self.inner.development()
    }
}

/// A URL as it compares: host in lower case, no default port, no slash at the end.
fn comparable_url(url: &str) -> String {
    let read = Url::parse(url);
    let text = read.as_ref().map_or(url, |read| read.as_str());
    text.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_one_however_they_are_spelled() {
        assert_eq!(comparable_url("HTTPS://MCP.example:443/mcp/"), comparable_url("https://mcp.example/mcp"));
        for other in ["https://mcp.example/mcp2", "https://mcp.example/", "http://mcp.example/mcp", "mcp.example/mcp"] {
            assert_ne!(comparable_url(other), comparable_url("https://mcp.example/mcp"), "{other}");
        }
        assert_eq!(comparable_url("no url"), "no url");
    }
}
