//! OAuth of rmcp since 3.

use rmcp::transport::auth::{AuthError, AuthorizationRequest, OAuthState};
use url::Url;

pub async fn start(state: &mut OAuthState, scopes: &[&str], redirect: &str, name: &str) -> Result<(), AuthError> {
    let request = AuthorizationRequest::new(redirect).with_scopes(scopes.iter().copied()).with_client_name(name);
    state.start_authorization(request).await
}

pub async fn finish(state: &mut OAuthState, answer: &Url) -> Result<(), AuthError> {
    state.handle_callback_url(answer.as_str()).await
}
