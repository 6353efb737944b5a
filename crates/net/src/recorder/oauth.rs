//! Which texts of OAuth name servers, and how they are changed so that they lead through the recorder. Pure.
//!
//! Protected-resource metadata (RFC 9728), authorization-server metadata (RFC 8414, OpenID Connect Discovery),
//! challenges, redirects with `iss` (RFC 9207), `resource` parameters (RFC 8707). Everything else of a message stays as
//! it came. Deliberately absent: tokens. They are opaque, and their audience is the server's own URL on both sides.

use mcpace_wire::http::Challenge;
use serde_json::Value;

use super::known_origins::OriginRole;

/// A URL that a document names, and what it is for where that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedUrl {
    pub(super) url: String,
    pub(super) role: Option<OriginRole>,
}

/// Whether a path is one of the well-known places of metadata.
pub(super) fn is_metadata_path(path: &str) -> bool {
    path.starts_with("/.well-known/oauth-protected-resource")
        || path.starts_with("/.well-known/oauth-authorization-server")
        || path.contains("/.well-known/openid-configuration")
}

/// The servers that a metadata document or a registration's answer leads to.
pub(super) fn named_servers(document: &Value) -> Vec<NamedUrl> {
    let mut found = Vec::new();
    let mut add = |value: &Value, role| {
        if let Some(url) = value.as_str() {
            found.push(NamedUrl { url: url.to_owned(), role });
        }
    };
    for (name, value) in document.as_object().into_iter().flatten() {
        match name.as_str() {
            "authorization_servers" => value.as_array().into_iter().flatten().for_each(|url| add(url, None)),
            "authorization_endpoint" => add(value, Some(OriginRole::Authorization)),
            "registration_endpoint" => add(value, Some(OriginRole::Registration)),
            name if name.ends_with("_endpoint") => add(value, None),
            _ => {}
        }
    }
    found
}

/// Changes the URLs of a metadata document or a registration's answer. Returns whether anything changed.
pub(super) fn map_document(document: &mut Value, map: &dyn Fn(&str) -> Option<String>) -> bool {
    let mut changed = false;
    let mut change = |value: &mut Value| {
        if let Some(mapped) = value.as_str().and_then(map) {
            *value = Value::String(mapped);
            changed = true;
        }
    };
    for (name, value) in document.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "resource" | "issuer" | "jwks_uri" | "registration_client_uri" => change(value),
            "authorization_servers" => value.as_array_mut().into_iter().flatten().for_each(&mut change),
            "mtls_endpoint_aliases" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, value)| change(value));
            }
            name if name.ends_with("_endpoint") => change(value),
            _ => {}
        }
    }
    changed
}

/// The `resource_metadata` URL of a `WWW-Authenticate` value (RFC 9728 §5.1).
pub(super) fn metadata_of_challenge(value: &str) -> Option<String> {
    let challenges = Challenge::parse_all(value).ok()?;
    challenges.iter().find_map(|challenge| challenge.resource_metadata().map(str::to_owned))
}

/// A query or form whose parameter `name` is changed; `None` where nothing is.
pub(super) fn change_parameter(text: &str, name: &str, change: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut changed = false;
    let pairs = text.split('&').map(|pair| {
        let value = form_urlencoded::parse(pair.as_bytes()).next().filter(|(n, _)| n == name).map(|(_, value)| value);
        match value.and_then(|value| change(&value)) {
            Some(value) => {
                changed = true;
                let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
                format!("{name}={encoded}")
            }
            None => pair.to_owned(),
        }
    });
    let text = pairs.collect::<Vec<_>>().join("&");
    changed.then_some(text)
}

/// A request target or URL whose query parameter `name` is changed; `None` where nothing is.
pub(super) fn change_query(target: &str, name: &str, change: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (path, after) = target.split_once('?')?;
    let (query, fragment) = after.split_once('#').map_or((after, None), |(query, fragment)| (query, Some(fragment)));
    let query = change_parameter(query, name, change)?;
    let fragment = fragment.map(|text| format!("#{text}")).unwrap_or_default();
    Some(format!("{path}?{query}{fragment}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shout(text: &str) -> Option<String> {
        text.starts_with("https://a").then(|| text.to_ascii_uppercase())
    }

    #[test]
    fn every_url_of_metadata_is_changed_and_nothing_else() {
        let mut document = json!({
            "issuer": "https://a", "token_endpoint": "https://a/t", "jwks_uri": "https://b/j", "scopes_supported": ["https://a"],
            "mtls_endpoint_aliases": {"token_endpoint": "https://a/m"}, "authorization_servers": ["https://a/1", "https://b/2"],
            "service_documentation": "https://a/docs",
        });
        assert!(map_document(&mut document, &shout));
        assert_eq!(
            document,
            json!({
                "issuer": "HTTPS://A", "token_endpoint": "HTTPS://A/T", "jwks_uri": "https://b/j", "scopes_supported": ["https://a"],
                "mtls_endpoint_aliases": {"token_endpoint": "HTTPS://A/M"}, "authorization_servers": ["HTTPS://A/1", "https://b/2"],
                "service_documentation": "https://a/docs",
            })
        );
        assert!(!map_document(&mut json!({"resource": "https://b"}), &shout));
        assert!(!map_document(&mut json!("https://a"), &shout));
    }

    #[test]
    fn documents_name_servers_and_what_they_are_for() {
        let urls = named_servers(&json!({
            "authorization_servers": ["https://a", 7], "registration_endpoint": "https://a/r", "logo_uri": "https://c",
        }));
        let named = |url: &str, role| NamedUrl { url: url.to_owned(), role };
        assert_eq!(urls, [named("https://a", None), named("https://a/r", Some(OriginRole::Registration))]);
    }

    #[test]
    fn a_challenge_names_its_metadata_or_not() {
        let named = r#"Basic realm="x", Bearer error="e", resource_metadata="https://a/.well-known/x""#;
        assert_eq!(metadata_of_challenge(named).as_deref(), Some("https://a/.well-known/x"));
        assert_eq!(metadata_of_challenge("Bearer"), None);
    }

    #[test]
    fn one_parameter_changes_and_the_others_keep_their_bytes() {
        let form = "grant_type=x&resource=https%3A%2F%2Fa%2Fmcp&code=%2b+";
        assert_eq!(
            change_parameter(form, "resource", &shout).as_deref(),
            Some("grant_type=x&resource=HTTPS%3A%2F%2FA%2FMCP&code=%2b+")
        );
        assert_eq!(change_parameter(form, "code", &shout), None);
        assert_eq!(change_query("/cb?iss=https://a#f", "iss", &shout).as_deref(), Some("/cb?iss=HTTPS%3A%2F%2FA#f"));
        assert_eq!(change_query("/cb", "iss", &shout), None);
    }
}
