//! Which `resource` values (RFC 8707) mean the resource that the target guards.

use http::Uri;

/// The guarded resource: a path under an origin that may be known by several names.
#[derive(Debug)]
pub(super) struct Resource {
    origins: Vec<String>,
    path: String,
}

impl Resource {
    pub(super) fn new(origin: &str, path: &str, public_origins: &[String]) -> Self {
        let mut origins = vec![origin.to_owned()];
        // The socket's other usual name.
        for (address, name) in [("://127.0.0.1:", "://localhost:"), ("://[::1]:", "://localhost:")] {
            if origin.contains(address) {
                origins.push(origin.replacen(address, name, 1));
            }
        }
        origins.extend(public_origins.iter().map(|origin| origin.trim_end_matches('/').to_owned()));
        Self { origins, path: path.to_owned() }
    }

    /// The canonical name.
    pub(super) fn url(&self) -> String {
        format!("{}{}", self.origins[0], self.path)
    }

    /// Whether `given` names this resource, or the whole origin that it lives under. Clients write
    /// it with and without a slash at the end; both mean the same.
    pub(super) fn is_named_by(&self, given: &str) -> bool {
        let Ok(given) = given.parse::<Uri>() else {
            return false;
        };
        let (Some(scheme), Some(authority)) = (given.scheme_str(), given.authority()) else {
            return false;
        };
        let origin = format!("{scheme}://{}", authority.as_str().to_ascii_lowercase());
        let path = given.path().trim_end_matches('/');
        given.query().is_none() && self.origins.contains(&origin) && (path.is_empty() || path == self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_case_and_local_names_make_no_difference_but_another_server_does() {
        let resource = Resource::new("http://127.0.0.1:81", "/mcp", &["https://proxy:9/".to_owned()]);
        for same in [
            "http://127.0.0.1:81/mcp",
            "http://127.0.0.1:81/mcp/",
            "http://127.0.0.1:81",
            "http://127.0.0.1:81/",
            "http://LOCALHOST:81/mcp",
            "https://proxy:9/mcp",
        ] {
            assert!(resource.is_named_by(same), "{same}");
        }
        for other in [
            "http://127.0.0.1:82/mcp",
            "https://127.0.0.1:81/mcp",
            "http://127.0.0.1:81/other",
            "http://127.0.0.1:81/mcp?x=1",
            "http://user@127.0.0.1:81/mcp",
            "/mcp",
            "not a url",
            "",
        ] {
            assert!(!resource.is_named_by(other), "{other}");
        }
    }
}
