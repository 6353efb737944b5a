//! An issuer's endpoint, asked over HTTP: the only file here that knows of sockets.
//!
//! Constraints: TLS, or this machine, unless told otherwise; no redirect is followed, since it would carry a secret along;
//! heads, bodies and time have limits; what is shown of a URL holds no credentials.
//!
//! A pool of its own beside those of `client` and `net`, which this crate may not import: theirs are polled by whoever calls, or
//! stamp each step; these connections live on this crate's own thread. Whom to believe and what to show is the same for all.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcpace_oauth::{is_loopback, printable_url, reason_of};
use rustls::ClientConfig;
use url::Url;

use crate::{AuthError, Outage};

/// How an issuer is reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// How long a request may take, everything included. Default: 10 s.
    pub time: Duration,
    /// The most that is read of a reply. Default: 256 KiB.
    pub body: usize,
    /// Certificates (PEM) to trust beside the system's.
    pub extra_root: Option<String>,
    /// Also asks over HTTP without TLS, beyond this machine: tokens and credentials are readable on the way.
    pub without_tls: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), body: 256 << 10, extra_root: None, without_tls: false }
    }
}

/// The way to an issuer's endpoint, looked at once: what can't be used is said when a verifier is made.
#[derive(Clone)]
pub(crate) struct Way {
    uri: Uri,
    tls: ClientConfig,
    what: &'static str,
    time: Duration,
    body: usize,
}

/// HTTP client of one endpoint of an issuer.
pub(crate) struct Provider {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    what: &'static str,
    time: Duration,
    body: usize,
}

/// Connections that are kept open while nobody needs them.
const IDLE_CONNECTIONS: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The most that is read of a reply's head.
const HEAD: usize = 32 << 10;

impl Way {
    /// `what` is its name in messages.
    pub(crate) fn new(what: &'static str, url: &str, reach: &Reach) -> Result<Self, AuthError> {
        let uri = parse_address(what, url, reach.without_tls)?;
        let tls = mcpace_trust::client_config(reach.extra_root.as_deref())?;
        Ok(Self { uri, tls, what, time: reach.time, body: reach.body })
    }

    /// Opens no connection yet.
    pub(crate) fn open_provider(&self) -> Provider {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(http_connector());
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(HEAD)
            .build(connector);
        Provider { client, uri: self.uri.clone(), what: self.what, time: self.time, body: self.body }
    }
}

impl Provider {
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Sends a request and returns the body of an answer with status 200. The whole exchange takes no longer than the
    /// limit.
    pub(crate) async fn ask_provider(
        &self,
        method: Method,
        headers: &[(http::HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Bytes, Outage> {
        let answer = tokio::time::timeout(self.time, self.fetch_answer(method, headers, body)).await;
        answer.unwrap_or(Err(Outage::TimeLimit { what: self.what, limit: self.time }))
    }

    async fn fetch_answer(
        &self,
        method: Method,
        headers: &[(http::HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Bytes, Outage> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(concat!("mcpace/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in headers {
            request.headers_mut().insert(name, value.clone());
        }
        let unreachable =
            |error: &dyn std::error::Error| Outage::Unreachable { what: self.what, reason: reason_of(error) };
        let reply = self.client.request(request).await.map_err(|error| unreachable(&error))?;
        if reply.status() != StatusCode::OK {
            return Err(Outage::Status { what: self.what, status: reply.status().as_u16() });
        }
        match Limited::new(reply.into_body(), self.body).collect().await {
            Ok(whole) => Ok(whole.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Outage::TooLarge { what: self.what, limit: self.body })
            }
            Err(error) => Err(unreachable(&*error)),
        }
    }
}

/// Where a URL leads, if it may be asked.
fn parse_address(what: &'static str, url: &str, without_tls: bool) -> Result<Uri, AuthError> {
    let parsed = Url::parse(url);
    let refused = |reason| {
        let shown = parsed.as_ref().map_or_else(|_| "(unreadable)".to_owned(), printable_url);
        Err(AuthError::Url { what, url: shown, reason })
    };
    let Ok(read) = &parsed else { return refused("an absolute URL") };
    if !read.username().is_empty() || read.password().is_some() {
        return refused("credentials don't belong in a URL: use the client's id and secret");
    }
    match read.scheme() {
        "https" => {}
        "http" if without_tls || is_loopback(read) => {}
        "http" => return refused("beyond this machine it must be https, unless plain HTTP is allowed explicitly"),
        _ => return refused("it must start with https://"),
    }
    let mut read = read.clone();
    read.set_fragment(None);
    read.as_str().parse().map_or_else(|_| refused("an absolute URL"), Ok)
}

fn http_connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_or_stay_on_this_machine() {
        for good in ["https://id.example/jwks?x=1", "http://localhost:1/jwks", "http://127.0.0.1/i", "http://[::1]:9/i"]
        {
            assert!(parse_address("it", good, false).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example/i",
            "http://localhost.evil/i",
            "ftp://localhost/i",
            "file:///etc/passwd",
            "",
            "id.example",
        ] {
            assert!(parse_address("it", bad, false).is_err(), "{bad}");
        }
        assert!(parse_address("it", "http://keycloak:8080/i", true).is_ok());
        let said = parse_address("it", "https://me:hunter2@id.example/i?secret=1", false).unwrap_err().to_string();
        assert!(said.contains("id.example") && !said.contains("hunter2") && !said.contains("secret=1"), "{said}");
    }

    #[test]
    fn an_extra_root_must_be_a_certificate() {
        let reach = Reach { extra_root: Some("no PEM".to_owned()), ..Reach::default() };
        let said = Way::new("it", "https://id.example", &reach).err().map(|error| error.to_string());
        assert!(said.as_deref().is_some_and(|said| said.contains("no certificate")), "{said:?}");
    }
}
