//! Which redirects of an MCP endpoint are followed, by both clients. Pure.
//!
//! Only within the origin, so that a token never goes elsewhere; only those that keep method and body (307, 308; RFC 9110
//! §15.4), since a GET is another request to an MCP server.

use http::{Method, StatusCode};
use url::Url;

use crate::printable_url;

/// Redirects that one request follows at most.
const MOST: usize = 3;

/// A redirect that isn't followed. The URLs shown in it hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from} redirects to {to}, which is not followed: {reason}")]
pub struct RefusedRedirect {
    /// URL asked for.
    pub from: String,
    /// Where it points.
    pub to: String,
    /// Why not.
    pub reason: &'static str,
}

/// Where to ask again, after `followed` redirects so far.
///
/// # Errors
/// [`RefusedRedirect`].
pub fn redirect_target(
    from: &Url,
    status: StatusCode,
    method: &Method,
    location: Option<&str>,
    followed: usize,
) -> Result<Url, RefusedRedirect> {
    let to = location.and_then(|location| from.join(location).ok());
    let keeps_method = matches!(status.as_u16(), 307 | 308) || *method == Method::GET;
    let reason = match &to {
        None => "its Location header is missing or no URL",
        Some(to) if to.origin() != from.origin() => "it is another origin; use that URL itself if you trust it",
        Some(_) if !keeps_method => "the status does not keep the request's method; use that URL itself",
        Some(_) if followed >= MOST => "there were three redirects before it",
        Some(to) => return Ok(to.clone()),
    };
    let to = to.map_or_else(|| "nowhere".to_owned(), |to| mcpace_wire::quote_printable(&printable_url(&to)));
    Err(RefusedRedirect { from: printable_url(from), to, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(status: u16, method: Method, location: Option<&str>, followed: usize) -> Result<Url, RefusedRedirect> {
        let from = Url::parse("http://u:SECRET@a:1/mcp?key=SECRET").unwrap();
        redirect_target(&from, StatusCode::from_u16(status).unwrap(), &method, location, followed)
    }

    #[test]
    fn a_redirect_within_the_origin_is_followed_three_times() {
        assert_eq!(follow(307, Method::POST, Some("/mcp/"), 0).unwrap().path(), "/mcp/");
        assert_eq!(follow(302, Method::GET, Some("http://a:1/x"), 2).unwrap().as_str(), "http://a:1/x");
        assert!(follow(307, Method::POST, Some("/mcp/"), 3).is_err());
    }

    #[test]
    fn other_origins_methods_and_places_are_refused_without_their_secrets() {
        for (status, location, reason) in [
            (307, Some("http://b:1/mcp"), "another origin"),
            (307, Some("http://a:2/mcp"), "another origin"),
            (307, Some("https://a:1/mcp"), "another origin"),
            (307, Some("//b/mcp"), "another origin"),
            (308, Some("file:///etc/passwd"), "another origin"),
            (302, Some("/mcp/"), "does not keep"),
            (303, Some("/mcp/"), "does not keep"),
            (307, None, "missing"),
            (307, Some("http://["), "no URL"),
            (307, Some("http://u:SECRET@b/?code=SECRET#SECRET"), "another origin"),
        ] {
            let error = follow(status, Method::POST, location, 0).unwrap_err();
            assert!(error.reason.contains(reason), "{location:?}: {error}");
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
    }
}
