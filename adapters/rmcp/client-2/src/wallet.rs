//! OAuth of rmcp before 3.

use rmcp::transport::auth::{AuthError, OAuthState};
use url::Url;

use crate::consent::value;

pub async fn start(state: &mut OAuthState, scopes: &[&str], redirect: &str, name: &str) -> Result<(), AuthError> {
    state.start_authorization(scopes, redirect, Some(name)).await
}

pub async fn finish(state: &mut OAuthState, answer: &Url) -> Result<(), AuthError> {
    let [code, csrf] = ["code", "state"].map(|name| value(answer, name).unwrap_or_default());
    state.handle_callback(&code, &csrf).await
}
