//! Where the metadata documents of OAuth are, what they hold, and when to believe them. Pure.
//!
//! RFC 9728 (protected resource), RFC 8414 and OpenID Connect Discovery (authorization server), as the MCP specification
//! of each revision orders them.

use mcpace_wire::revision::Revision;
use serde::Deserialize;
use url::Url;

use super::urls::HostKind;
use super::{OAuthError, is_loopback};

/// Document at `/.well-known/oauth-protected-resource` (RFC 9728 §2): the members that a client needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Option<Vec<String>>,
}

/// Document at `/.well-known/oauth-authorization-server` (RFC 8414 §2): the members that a client needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Url,
    pub(crate) token_endpoint: Url,
    #[serde(default)]
    pub(crate) registration_endpoint: Option<Url>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) scopes_supported: Option<Vec<String>>,
    /// OAuth Client ID Metadata Document §5.
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    /// RFC 9449 §5.1.
    #[serde(default)]
    pub(crate) dpop_signing_alg_values_supported: Vec<String>,
    /// RFC 9207 §3.
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Where a resource's metadata may be, best first: where the challenge says, beside the path, at the root.
pub(crate) fn resource_candidates(server: &Url, named: Option<&Url>) -> Vec<Url> {
    let mut candidates: Vec<Url> = named.into_iter().cloned().collect();
    candidates.push(well_known(server, "oauth-protected-resource", server.path()));
    candidates.push(well_known(server, "oauth-protected-resource", ""));
    distinct_urls(candidates)
}

/// Where an authorization server's metadata may be (2025-11-25, "Authorization Server Metadata Discovery").
pub(crate) fn server_candidates(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut candidates =
        vec![well_known(issuer, "oauth-authorization-server", path), well_known(issuer, "openid-configuration", path)];
    if !path.is_empty() {
        let mut appended = bare_url(issuer);
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        candidates.push(appended);
    }
    distinct_urls(candidates)
}

/// 2025-03-26, "Fallbacks for Servers without Metadata Discovery": the endpoints at the origin's root.
pub(crate) fn without_metadata(server: &Url) -> ServerMetadata {
    let at = |path: &str| {
        let mut url = bare_url(server);
        url.set_path(path);
        url
    };
    ServerMetadata {
        issuer: server.origin().ascii_serialization(),
        authorization_endpoint: at("/authorize"),
        token_endpoint: at("/token"),
        registration_endpoint: Some(at("/register")),
        token_endpoint_auth_methods_supported: None,
        code_challenge_methods_supported: None,
        scopes_supported: None,
        client_id_metadata_document_supported: false,
        dpop_signing_alg_values_supported: Vec::new(),
        authorization_response_iss_parameter_supported: false,
    }
}

/// Whether a document of the resource speaks for the server that we talk to (RFC 9728 §3.3): the same origin, and the
/// server's path at or below the resource's.
pub(crate) fn check_resource(metadata: &ResourceMetadata, server: &Url) -> Result<(), OAuthError> {
    let bad = |reason: &str| {
        OAuthError::BadMetadata(format!("{reason} ({})", mcpace_wire::quote_printable(&metadata.resource)))
    };
    let resource = Url::parse(&metadata.resource).map_err(|_| bad("its resource is no URL"))?;
    let (wide, narrow) = (resource.path().trim_end_matches('/'), server.path().trim_end_matches('/'));
    let below = narrow.strip_prefix(wide).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if resource.origin() != server.origin() || !below {
        return Err(bad("its resource is another server"));
    }
    Ok(())
}

/// Whether a document speaks for the issuer that it was asked of (RFC 8414 §3.3), names no address that the MCP `server`
/// may not name, and can be used by `revision` (`None`: not known yet, so the newest rules hold).
pub(crate) fn check_server(
    metadata: &ServerMetadata,
    issuer: &str,
    server: &Url,
    revision: Option<Revision>,
) -> Result<(), OAuthError> {
    let revision = revision.unwrap_or(Revision::LATEST);
    // Before 2026-07-28 many servers write a slash at one place and none at the other.
    let exact = metadata.issuer == issuer;
    let alike = metadata.issuer.trim_end_matches('/') == issuer.trim_end_matches('/');
    if !(exact || (alike && (revision.is_legacy() || is_root(issuer)))) {
        return Err(OAuthError::BadMetadata(format!(
            "its issuer is {}",
            mcpace_wire::quote_printable(&metadata.issuer)
        )));
    }
    for endpoint in [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        metadata.registration_endpoint.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        check_address(endpoint, issuer, server)
            .map_err(|reason| OAuthError::BadMetadata(format!("an endpoint is {reason}")))?;
    }
    let methods = metadata.code_challenge_methods_supported.as_deref();
    let has_s256 = methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"));
    match methods {
        Some(_) if !has_s256 => Err(OAuthError::NoPkce),
        None if revision >= Revision::V2025_11_25 => Err(OAuthError::NoPkce),
        _ => Ok(()),
    }
}

/// Whether a client of `server` may send something to `url`, which `issuer` or something that it names is at.
///
/// Credentials need TLS, this machine, or an issuer that itself has no TLS and was named by a server without TLS: there is
/// nothing left to protect then, and private test networks are like that. Addresses of this machine and of private networks
/// are for servers that are there themselves: another could reach what is hidden from it.
///
/// # Errors
/// Why not.
pub(crate) fn check_address(url: &Url, issuer: &str, server: &Url) -> Result<(), &'static str> {
    let protected = match url.scheme() {
        "https" => true,
        "http" => is_loopback(url) || Url::parse(issuer).is_ok_and(|issuer| issuer.origin() == url.origin()),
        _ => false,
    };
    if !protected {
        return Err("neither https nor on this machine");
    }
    if !HostKind::of(server).may_name(HostKind::of(url)) {
        return Err("on this machine or in a private network, where the MCP server is not");
    }
    Ok(())
}

/// `https://host` and `https://host/` are one URL (RFC 3986 §6.2.3), whatever their letters.
fn is_root(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| url.path() == "/" && url.query().is_none())
}

fn well_known(of: &Url, name: &str, path: &str) -> Url {
    let mut url = bare_url(of);
    url.set_path(&format!("/.well-known/{name}{}", path.trim_end_matches('/')));
    url
}

fn bare_url(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn distinct_urls(candidates: Vec<Url>) -> Vec<Url> {
    let mut seen: Vec<Url> = Vec::new();
    for candidate in candidates {
        if !seen.contains(&candidate) {
            seen.push(candidate);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// A server that may name any address.
    fn here() -> Url {
        url("http://localhost/mcp")
    }

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    fn metadata(issuer: &str) -> ServerMetadata {
        ServerMetadata {
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            issuer: issuer.to_owned(),
            ..without_metadata(&url("https://as"))
        }
    }

    #[test]
    fn documents_are_looked_for_as_the_revisions_order_them() {
        let named = url("https://h/meta");
        assert_eq!(
            texts(&resource_candidates(&url("https://h/a/mcp?x=1"), Some(&named))),
            [
                "https://h/meta",
                "https://h/.well-known/oauth-protected-resource/a/mcp",
                "https://h/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(resource_candidates(&url("https://h/"), None).len(), 1);
        assert_eq!(
            texts(&server_candidates(&url("https://as/tenant/"))),
            [
                "https://as/.well-known/oauth-authorization-server/tenant",
                "https://as/.well-known/openid-configuration/tenant",
                "https://as/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(server_candidates(&url("https://as")).len(), 2);
    }

    #[test]
    fn a_document_for_another_resource_is_not_believed() {
        let of = |resource: &str| ResourceMetadata {
            resource: resource.to_owned(),
            authorization_servers: Vec::new(),
            scopes_supported: None,
        };
        let server = url("https://h/a/mcp");
        for good in ["https://h/a/mcp", "https://h/a/mcp/", "https://h/a", "https://h", "https://H:443/"] {
            assert_eq!(check_resource(&of(good), &server), Ok(()), "{good}");
        }
        for bad in ["https://h/a/m", "https://h/a/mcp/x", "http://h/a/mcp", "https://evil/a/mcp", "h"] {
            assert!(check_resource(&of(bad), &server).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_issuer_must_be_the_one_that_was_asked() {
        assert_eq!(check_server(&metadata("https://as"), "https://as", &here(), None), Ok(()));
        assert_eq!(check_server(&metadata("https://as/"), "https://as", &here(), None), Ok(()));
        assert!(check_server(&metadata("https://other"), "https://as", &here(), None).is_err());
        let modern = check_server(&metadata("https://as/t/"), "https://as/t", &here(), Some(Revision::V2026_07_28));
        assert!(modern.is_err());
        let legacy = check_server(&metadata("https://as/t/"), "https://as/t", &here(), Some(Revision::V2025_11_25));
        assert_eq!(legacy, Ok(()));
    }

    #[test]
    fn a_server_that_does_not_announce_s256_is_refused_where_the_revision_says_so() {
        let mut silent = metadata("https://as");
        silent.code_challenge_methods_supported = None;
        let check = |metadata: &ServerMetadata, revision| check_server(metadata, "https://as", &here(), revision);
        assert_eq!(check(&silent, None), Err(OAuthError::NoPkce));
        assert_eq!(check(&silent, Some(Revision::V2025_11_25)), Err(OAuthError::NoPkce));
        assert_eq!(check(&silent, Some(Revision::V2025_06_18)), Ok(()));
        silent.code_challenge_methods_supported = Some(vec!["plain".to_owned()]);
        assert_eq!(check(&silent, Some(Revision::V2025_03_26)), Err(OAuthError::NoPkce));
    }

    #[test]
    fn credentials_go_over_tls_or_stay_on_this_machine() {
        let (here, issuer) = (url("http://127.0.0.1:8000/mcp"), "https://as");
        for safe in ["https://a/t", "http://localhost:1/t", "http://127.0.0.1/t", "http://[::1]:9/t"] {
            assert_eq!(check_address(&url(safe), issuer, &here), Ok(()), "{safe}");
        }
        for unsafe_ in ["http://a/t", "http://localhost.evil/t", "ftp://localhost/t", "file:///t"] {
            assert!(check_address(&url(unsafe_), issuer, &here).is_err(), "{unsafe_}");
        }
        let there = url("http://10.0.0.2/mcp");
        assert_eq!(check_address(&url("http://10.0.0.1/t"), "http://10.0.0.1", &there), Ok(()));
    }

    #[test]
    fn a_remote_server_names_no_address_of_this_machine_or_of_a_private_network() {
        let remote = url("https://mcp.example.org/mcp");
        for near in [
            "http://127.0.0.1:1/x",
            "https://localhost/x",
            "https://[::1]/",
            "https://10.0.0.1/",
            "https://169.254.169.254/",
        ] {
            assert!(check_address(&url(near), "https://as.example.org", &remote).is_err(), "{near}");
            let mut found = metadata("https://as.example.org");
            found.authorization_endpoint = url("https://as.example.org/a");
            found.token_endpoint = url("https://as.example.org/t");
            found.registration_endpoint = Some(url(near));
            assert!(check_server(&found, "https://as.example.org", &remote, None).is_err(), "{near}");
        }
        assert_eq!(check_address(&url("https://as.example.org/t"), "https://as.example.org", &remote), Ok(()));
    }
}
