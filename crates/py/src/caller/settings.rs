//! A client's options as Python gives them: one JSON text, read once. `mcpace.client` writes it; users never see it.

use std::sync::Arc;

use mcpace_client::{
    Asserted, Auth, BrowserConsent, Consent, IdentityProvider, Limits, Mode, OAuthOptions, Options, RegisteredClient,
    Secret,
};
use mcpace_wire::mcp::{Implementation, LoggingLevel};
use pyo3::prelude::*;
use serde::Deserialize;

use super::server_requests::CallbackCapabilities;
use crate::problem::UsageProblem;
use crate::seconds::parse_seconds;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClientSettings {
    mode: String,
    client_info: Option<Implementation>,
    log_level: Option<LoggingLevel>,
    tasks: bool,
    cache: bool,
    headers: Vec<(String, String)>,
    extra_root: Option<String>,
    call_time_s: Option<f64>,
    connect_time_s: Option<f64>,
    rounds: Option<usize>,
    connections: Option<usize>,
    bearer: Option<String>,
    oauth: Option<OAuth>,
    pub(super) answered: CallbackCapabilities,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OAuth {
    client_id: Option<String>,
    client_secret: Option<String>,
    client_metadata_url: Option<String>,
    client_credentials: bool,
    private_key: Option<String>,
    assertion: Option<String>,
    idp_id_token: Option<String>,
    idp_token_endpoint: Option<String>,
    idp_client_id: Option<String>,
    scope: Option<String>,
    /// Asks for the page itself, instead of showing it.
    follow: bool,
    consent_time_s: Option<f64>,
    port: u16,
}

impl OAuth {
    /// Whether tokens are given without a user's consent.
    fn has_no_user(&self) -> bool {
        self.client_credentials || self.assertion.is_some() || self.idp_id_token.is_some()
    }

    /// Another party's assertion, or the identity provider that makes one.
    fn asserted_identity(&self) -> PyResult<Option<Asserted>> {
        if let Some(assertion) = &self.assertion {
            return Ok(Some(Asserted::Jwt(Secret::new(assertion.as_str()))));
        }
        let Some(id_token) = &self.idp_id_token else { return Ok(None) };
        let (Some(endpoint), Some(client_id)) = (&self.idp_token_endpoint, &self.idp_client_id) else {
            return Err(UsageProblem::new_err("idp_id_token needs idp_token_endpoint and idp_client_id"));
        };
        let token_endpoint =
            url::Url::parse(endpoint).map_err(|error| UsageProblem::new_err(format!("idp_token_endpoint: {error}")))?;
        let id_token = Secret::new(id_token.as_str());
        Ok(Some(Asserted::ByIdentityProvider(IdentityProvider {
            token_endpoint,
            client_id: client_id.clone(),
            id_token,
        })))
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            mode: "auto".to_owned(),
            client_info: None,
            log_level: None,
            tasks: false,
            cache: true,
            headers: Vec::new(),
            extra_root: None,
            call_time_s: None,
            connect_time_s: None,
            rounds: None,
            connections: None,
            bearer: None,
            oauth: None,
            answered: CallbackCapabilities::default(),
        }
    }
}

impl ClientSettings {
    pub(super) fn parse_settings(text: &[u8]) -> PyResult<Self> {
        serde_json::from_slice(text).map_err(|error| UsageProblem::new_err(format!("the client's options: {error}")))
    }

    /// All but the callbacks; `opens` shows a page to the user.
    pub(super) fn client_options(&self, opens: Option<Py<PyAny>>) -> PyResult<Options> {
        let mut options = Options {
            mode: parse_mode(&self.mode)?,
            log_level: self.log_level,
            tasks: self.tasks,
            cache: self.cache,
            headers: self.headers.clone(),
            extra_root: self.extra_root.clone(),
            auth: self.client_auth(opens)?,
            ..Options::default()
        };
        if let Some(info) = &self.client_info {
            options.client_info = info.clone();
        }
        let limits: &mut Limits = &mut options.limits;
        for (limit, time_s) in
            [(&mut limits.call_time, self.call_time_s), (&mut limits.connect_time, self.connect_time_s)]
        {
            if let Some(time_s) = time_s {
                *limit = parse_seconds("a time limit", time_s)?;
            }
        }
        limits.rounds = self.rounds.unwrap_or(limits.rounds);
        limits.connections = self.connections.unwrap_or(limits.connections);
        Ok(options)
    }

    fn client_auth(&self, opens: Option<Py<PyAny>>) -> PyResult<Auth> {
        if let Some(token) = &self.bearer {
            return Ok(Auth::Bearer(Secret::new(token.as_str())));
        }
        let Some(oauth) = &self.oauth else { return Ok(Auth::None) };
        let consent = match opens {
            // Neither shows a page.
            _ if oauth.follow || oauth.has_no_user() => Consent::Follow,
            None => return Err(UsageProblem::new_err("OAuth needs something that shows a page to the user")),
            Some(opens) => {
                let opens = Arc::new(opens);
                let open = Arc::new(move |url: &url::Url| show_page(&opens, url));
                let limit = parse_seconds("a time limit", oauth.consent_time_s.unwrap_or(300.0))?;
                Consent::Browser(BrowserConsent { open, limit, port: oauth.port })
            }
        };
        let registered = oauth
            .client_id
            .as_ref()
            .map(|id| RegisteredClient { id: id.clone(), secret: oauth.client_secret.as_deref().map(Secret::new) });
        let metadata_url = oauth.client_metadata_url.as_deref().map(url::Url::parse).transpose();
        Ok(Auth::OAuth(Box::new(OAuthOptions {
            consent,
            registered,
            metadata_url: metadata_url
                .map_err(|error| UsageProblem::new_err(format!("client_metadata_url: {error}")))?,
            scope: oauth.scope.clone(),
            client_credentials: oauth.client_credentials,
            private_key: oauth.private_key.as_deref().map(Secret::new),
            asserted: oauth.asserted_identity()?,
        })))
    }
}

/// Shows a page, on a thread of its own: a browser may take its time to start.
fn show_page(opens: &Arc<Py<PyAny>>, url: &url::Url) {
    let (opens, url) = (Arc::clone(opens), url.to_string());
    std::thread::spawn(move || {
        let _ = Python::try_attach(|py| {
            if let Err(error) = opens.call1(py, (url,)) {
                error.write_unraisable(py, None);
            }
        });
    });
}

fn parse_mode(text: &str) -> PyResult<Mode> {
    match text {
        "auto" => Ok(Mode::Auto),
        "legacy" => Ok(Mode::Legacy),
        other => other.parse().map(Mode::Only).map_err(|_| {
            UsageProblem::new_err(format!("mode is 'auto', 'legacy' or a revision such as '2026-07-28', not {other:?}"))
        }),
    }
}
