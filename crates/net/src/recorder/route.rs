//! Where a front request leads, and what is changed on the way there and back. No I/O.

use http::header::{CONTENT_LOCATION, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN, REFERER, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode, Uri, request};
use mcpace_wire::http::MediaType;

use super::known_origins::{KnownOrigins, OriginRole};
use super::oauth;
use super::url_map::{UpstreamPlace, UrlMap, is_ours};
use crate::Origin;
use crate::headers::header_text;

/// A request's way.
pub(super) struct Route {
    /// The recorder's origin as this client names it.
    front: String,
    port: u16,
    upstream: Origin,
    pub(super) place: UpstreamPlace,
    pub(super) role: Option<OriginRole>,
}

/// Why a request is not passed on; answered by the recorder itself.
pub(super) struct RouteRefusal {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

const REBOUND: RouteRefusal = RouteRefusal {
    status: StatusCode::FORBIDDEN,
    text: "mcpace recorder: the Host header does not name this recorder",
};
const UNKNOWN_SERVER: RouteRefusal = RouteRefusal {
    status: StatusCode::NOT_FOUND,
    text: "mcpace recorder: the upstream's metadata names no such server",
};
const TUNNEL: RouteRefusal =
    RouteRefusal { status: StatusCode::NOT_IMPLEMENTED, text: "mcpace recorder: it is no forward proxy" };

impl Route {
    /// The way of a request with this head.
    pub(super) fn from_head(
        head: &request::Parts,
        upstream: &Origin,
        port: u16,
        known: &KnownOrigins,
    ) -> Result<Self, RouteRefusal> {
        if head.method == Method::CONNECT {
            return Err(TUNNEL);
        }
        let host = header_text(&head.headers, HOST);
        // An absolute target overrides `Host` (RFC 9112 §3.2.2), so it has to be ours as well.
        let elsewhere = head.uri.authority().is_some_and(|authority| !is_ours(authority.as_str(), port));
        if head.headers.get_all(HOST).iter().count() != 1 || !is_ours(host, port) || elsewhere {
            return Err(REBOUND);
        }
        let front = format!("http://{host}");
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        let place = UrlMap { front: &front, port, upstream }.target_place(target).ok_or(UNKNOWN_SERVER)?;
        if place.origin != *upstream && !known.allows(&place.origin) {
            return Err(UNKNOWN_SERVER);
        }
        let path = path_of(&place.rest);
        let role = oauth::is_metadata_path(path)
            .then_some(OriginRole::Metadata)
            .or_else(|| known.path_role(&place.origin, path));
        Ok(Self { front, port, upstream: upstream.clone(), place, role })
    }

    fn url_map(&self) -> UrlMap<'_> {
        UrlMap { front: &self.front, port: self.port, upstream: &self.upstream }
    }

    /// The server's own URL for one that the client knows.
    pub(super) fn to_server(&self, url: &str) -> Option<String> {
        self.url_map().unmap_url(url)
    }

    /// The URL that the client should use for one of the server's.
    pub(super) fn to_client(&self, url: &str, known: &KnownOrigins) -> Option<String> {
        self.url_map().map_url(url, |origin| known.allows(origin))
    }

    /// The request target at the server, with `resource` (RFC 8707) naming the server.
    pub(super) fn upstream_target(&self) -> String {
        let target = self.place.request_target();
        oauth::change_query(&target, "resource", &|url| self.to_server(url)).unwrap_or(target)
    }

    /// Whether this is a person's browser on its way to the consent page: those pages work at their own place only.
    pub(super) fn is_browser_to_consent(&self, headers: &HeaderMap) -> bool {
        self.role == Some(OriginRole::Authorization)
            && header_text(headers, HeaderName::from_static("sec-fetch-mode")).eq_ignore_ascii_case("navigate")
    }

    /// Whether the request goes to the server that is recorded, and not to one of its OAuth servers.
    pub(super) fn is_to_upstream(&self) -> bool {
        self.place.origin == self.upstream
    }

    /// Changes a request's headers to what a direct client would have sent. `added` are for the upstream alone: an
    /// authorization server must not see them.
    pub(super) fn change_request(&self, headers: &mut HeaderMap, added: &HeaderMap) {
        if self.is_to_upstream() {
            for (name, value) in added {
                headers.insert(name.clone(), value.clone());
            }
        }
        set_header(headers, HOST, &self.place.origin.authority());
        for name in [ORIGIN, REFERER] {
            if let Some(url) = self.to_server(header_text(headers, name.clone())) {
                set_header(headers, name, &url);
            }
        }
        if self.role == Some(OriginRole::Metadata) {
            // The metadata document is rewritten, so it must come uncompressed.
            headers.remove(http::header::ACCEPT_ENCODING);
        }
    }

    /// Changes a reply's headers so that what they point at leads through the recorder.
    pub(super) fn change_reply(&self, headers: &mut HeaderMap, known: &KnownOrigins) {
        if headers.contains_key(WWW_AUTHENTICATE) {
            self.change_challenges(headers, known);
        }
        for name in [LOCATION, CONTENT_LOCATION] {
            let value = header_text(headers, name.clone());
            if let Some(changed) = (!value.is_empty()).then(|| self.map_location(value, known)).flatten() {
                set_header(headers, name, &changed);
            }
        }
    }

    fn change_challenges(&self, headers: &mut HeaderMap, known: &KnownOrigins) {
        let mut changed = Vec::new();
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let mapped = value.to_str().ok().and_then(|challenge| {
                let url = oauth::metadata_of_challenge(challenge)?;
                learn_origin(known, &self.upstream, &url, Some(OriginRole::Metadata));
                let mapped = self.to_client(&url, known)?;
                HeaderValue::from_str(&challenge.replacen(&url, &mapped, 1)).ok()
            });
            changed.push(mapped.unwrap_or_else(|| value.clone()));
        }
        headers.remove(WWW_AUTHENTICATE);
        changed.into_iter().for_each(|value| {
            headers.append(WWW_AUTHENTICATE, value);
        });
    }

    fn map_location(&self, value: &str, known: &KnownOrigins) -> Option<String> {
        let is_rooted = value.starts_with('/') && !value.starts_with("//");
        if is_rooted {
            let elsewhere = self.place.origin != self.upstream;
            return elsewhere
                .then(|| self.to_client(&format!("{}{value}", self.place.origin.to_url()), known))
                .flatten();
        }
        // A redirect to the client's own address names the issuer, which the client compares with the one it knows.
        self.to_client(value, known).or_else(|| oauth::change_query(value, "iss", &|url| self.to_client(url, known)))
    }
}

/// Remembers a server that the upstream's own documents name.
pub(super) fn learn_origin(known: &KnownOrigins, upstream: &Origin, url: &str, role: Option<OriginRole>) {
    let Ok(parsed) = url::Url::parse(url) else {
        return;
    };
    let Ok(origin) = Origin::from_url(&parsed) else {
        return;
    };
    if let Some(role) = role {
        known.learn_endpoint(origin.clone(), parsed.path(), role);
    }
    if origin != *upstream {
        known.learn_origin(origin);
    }
}

/// A target as a URI.
pub(super) fn parse_uri(target: &str) -> Option<Uri> {
    target.parse().ok()
}

/// Whether a request carries a form (RFC 6749 §4.1.3, and every other OAuth endpoint).
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    MediaType::of(header_text(headers, http::header::CONTENT_TYPE)) == MediaType::Form
}

/// Whether a reply is a JSON document that isn't compressed.
pub(super) fn is_plain_json(headers: &HeaderMap) -> bool {
    let kind = MediaType::of(header_text(headers, http::header::CONTENT_TYPE));
    matches!(kind, MediaType::Json | MediaType::SpecialJson) && !headers.contains_key(http::header::CONTENT_ENCODING)
}

fn path_of(target: &str) -> &str {
    target.split(['?', '#']).next().unwrap_or_default()
}

fn set_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Made of URLs that were parsed before; what still is no header value is left as it came.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
