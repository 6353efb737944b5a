//! Which redirects of an MCP endpoint are followed. Pure.
//!
//! Only within the origin, so that a token never goes elsewhere; only those that keep method and body (307, 308; RFC 9110
//! §15.4), since a GET is another request to an MCP server.

use http::{Method, StatusCode};
use url::Url;

use crate::ClientError;

/// Redirects that one request follows at most.
const MOST: usize = 3;

/// Where to ask again, after `followed` redirects so far.
pub(super) fn target(
    from: &Url,
    status: StatusCode,
    method: &Method,
    location: Option<&str>,
    followed: usize,
) -> Result<Url, ClientError> {
    let to = location.and_then(|location| from.join(location).ok());
    let keeps_method = matches!(status.as_u16(), 307 | 308) || *method == Method::GET;
    let reason = match &to {
        None => "its Location header is missing or no URL",
        Some(to) if to.origin() != from.origin() => "it is another origin; use that URL itself if you trust it",
        Some(_) if !keeps_method => "the status does not keep the request's method; use that URL itself",
        Some(_) if followed >= MOST => "there were three redirects before it",
        Some(to) => return Ok(to.clone()),
    };
    let to = to.map_or_else(|| "nowhere".to_owned(), |to| super::shown(&to));
    Err(ClientError::BadRedirect { from: super::shown(from), to, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(status: u16, method: Method, location: Option<&str>, followed: usize) -> Result<Url, ClientError> {
        let from = Url::parse("http://a:1/mcp").unwrap();
        target(&from, StatusCode::from_u16(status).unwrap(), &method, location, followed)
    }

    #[test]
    fn a_redirect_within_the_origin_is_followed_three_times() {
        assert_eq!(follow(307, Method::POST, Some("/mcp/"), 0).unwrap().as_str(), "http://a:1/mcp/");
        assert_eq!(follow(302, Method::GET, Some("http://a:1/x"), 2).unwrap().as_str(), "http://a:1/x");
        assert!(follow(307, Method::POST, Some("/mcp/"), 3).is_err());
    }

    #[test]
    fn other_origins_methods_and_places_are_refused_without_their_secrets() {
        for (status, location) in
            [(307, Some("http://b:1/mcp")), (307, Some("https://a:1/mcp")), (302, Some("/mcp/")), (307, None)]
        {
            assert_eq!(follow(status, Method::POST, location, 0).unwrap_err().code(), "bad-redirect", "{location:?}");
        }
        let error = follow(307, Method::POST, Some("http://u:SECRET@b/?code=SECRET"), 0).unwrap_err();
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
}
