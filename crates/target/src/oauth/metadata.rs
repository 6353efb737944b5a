//! The metadata documents. All URLs come from the target's own origin, so that a proxy in front can
//! recognise and rewrite them.

use serde_json::{Value, json};

use super::AuthorizationServer;

impl AuthorizationServer {
    /// RFC 9728 §2, what `/.well-known/oauth-protected-resource` holds.
    pub(crate) fn resource_metadata(&self) -> Value {
        json!({
            "resource": self.resource.url(),
            "resource_name": "mcpace target",
            "authorization_servers": [self.origin],
            "bearer_methods_supported": ["header"],
        })
    }

    /// RFC 8414 §2, what `/.well-known/oauth-authorization-server` holds.
    pub(crate) fn authorization_metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.origin);
        json!({
            "issuer": self.origin,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported":
                ["none", "client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        })
    }
}
