//! Consent: from the authorization URL to the redirect that brings the code, by following it or through a browser.

use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use super::browser::Callback;
use super::metadata::{self, ServerMetadata};
use super::request::{self, Pending};
use super::{BrowserConsent, Consent, Fetch, HttpExchange, OAuthError};

/// Where the redirect goes when the client follows it itself: nothing listens there.
const FOLLOWED_REDIRECT: &str = "http://localhost:33418/callback";
/// Redirects between the authorization endpoint and our redirect URI.
const MOST_REDIRECTS: usize = 5;

/// Consent under way: the redirect's address must stand before the client is registered.
pub(crate) enum Consenting<'a> {
    Followed,
    Browser(&'a BrowserConsent, Callback),
}

impl<'a> Consenting<'a> {
    pub(crate) async fn prepare_consent(consent: &'a Consent) -> Result<Self, OAuthError> {
        match consent {
            Consent::Follow => Ok(Consenting::Followed),
            Consent::Browser(browser) => Ok(Consenting::Browser(browser, Callback::listen_local(browser.port).await?)),
        }
    }

    pub(crate) fn redirect_uri(&self) -> Result<Url, OAuthError> {
        match self {
            Consenting::Followed => {
                Url::parse(FOLLOWED_REDIRECT).map_err(|error| OAuthError::Callback(error.to_string()))
            }
            Consenting::Browser(_, callback) => Ok(callback.redirect_uri.clone()),
        }
    }

    /// The URL that the authorization server redirects to.
    pub(crate) async fn obtain_redirect<X: HttpExchange>(
        &self,
        url: &Url,
        pending: &Pending,
        metadata: &ServerMetadata,
        server: &Url,
        http: &X,
    ) -> Result<Url, X::Error> {
        match self {
            Consenting::Followed => follow_redirects(url, pending, metadata, server, http).await,
            Consenting::Browser(browser, callback) => {
                (browser.open)(url);
                Ok(callback.wait_redirect(&pending.state, browser.limit).await?)
            }
        }
    }
}

async fn follow_redirects<X: HttpExchange>(
    url: &Url,
    pending: &Pending,
    metadata: &ServerMetadata,
    server: &Url,
    http: &X,
) -> Result<Url, X::Error> {
    let mut url = url.clone();
    for _ in 0..MOST_REDIRECTS {
        let headers = HeaderMap::new();
        let what = "the authorization";
        let fetched = http.fetch(Fetch { method: Method::GET, url: &url, headers, body: Bytes::new(), what }).await?;
        let next = fetched.location.as_deref().and_then(|location| url.join(location).ok());
        let Some(next) = next.filter(|_| (300..400).contains(&fetched.status)) else {
            return Err(match fetched.status {
                200..400 => OAuthError::NeedsPerson(fetched.status),
                status => OAuthError::Refused { what, status, reason: request::refusal_of(&fetched.text) },
            }
            .into());
        };
        let ours = &pending.redirect_uri;
        if next.origin() == ours.origin() && next.path() == ours.path() {
            return Ok(next);
        }
        metadata::check_address(&next, &metadata.issuer, server).map_err(OAuthError::Astray)?;
        url = next;
    }
    Err(OAuthError::BadRedirect("it leads on and on").into())
}
