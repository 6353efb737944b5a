//! Which redirects of an MCP endpoint are followed. Pure.
//!
//! Only within the origin, so that a token never goes elsewhere; only those that keep method and body (307, 308; RFC 9110
//! §15.4), since a GET is another request to an MCP server.

use http::{Method, StatusCode};
use url::Url;

use super::super::ClientError;

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
    let refused = |reason| {
        let mut shown = from.clone();
        shown.set_query(None);
        let to = location.map_or_else(|| "nowhere".to_owned(), |to| mcpace_wire::quoted(without_query(to)));
        ClientError::BadRedirect { from: shown.to_string(), to, reason }
    };
    let Some(to) = location.and_then(|location| from.join(location).ok()) else {
        return Err(refused("its Location header is missing or no URL"));
    };
    if to.origin() != from.origin() {
        return Err(refused("it is another origin; use that URL itself if you trust it"));
    }
    if !matches!(status.as_u16(), 307 | 308) && *method != Method::GET {
        return Err(refused("the status does not keep the request's method; use that URL itself"));
    }
    if followed >= MOST {
        return Err(refused("there were three redirects before it"));
    }
    Ok(to)
}

fn without_query(location: &str) -> &str {
    location.split(['?', '#']).next().unwrap_or(location)
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
    fn other_origins_methods_and_places_are_refused_in_words() {
        for (status, location) in [
            (307, Some("http://b:1/mcp")),
            (307, Some("https://a:1/mcp")),
            (302, Some("/mcp/")),
            (307, None),
            (308, Some("file:///etc/passwd")),
        ] {
            let error = follow(status, Method::POST, location, 0).unwrap_err();
            assert_eq!(error.code(), "bad-redirect", "{location:?}");
        }
        let error = follow(307, Method::POST, Some("http://b/?code=SECRET"), 0).unwrap_err();
        assert!(!error.to_string().contains("SECRET"));
    }
}
