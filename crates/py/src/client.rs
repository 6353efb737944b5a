//! `Client`: our instrumented MCP client.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use mcpace_net::client::{
    Auth, BrowserConsent, ClientError, ClientOptions, Consent, OAuthOptions, Secret, ServerEndpoint,
};
use mcpace_net::{Sink, SinkOptions};
use mcpace_record::Instrument;
use mcpace_wire::revision::UnknownRevision;
use pyo3::prelude::*;
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;

use crate::json;
use crate::problem::{ClientProblem, OrRaise, UsageProblem};
use crate::recorder::{parse_url, recording_head};
use crate::recording::Recording;
use crate::runtime::{run_as_task, shared_runtime, wait_detached};
use crate::seconds::parse_seconds;

/// How long a person may take to consent in the browser; the operation's own limit applies too.
const CONSENT_LIMIT: Duration = Duration::from_secs(300);

/// Our instrumented client. One operation at a time; each is stamped by the client itself.
#[pyclass(module = "mcpace._core", frozen)]
pub(crate) struct Client {
    inner: Arc<Mutex<mcpace_net::client::Client>>,
    sink: Arc<Sink>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (endpoint, *, environment=Vec::new(), revision=None, auth="none", token=None, consent="browser",
                        limit_s=60.0, server_timing=false, standalone_get=false, extra_root=None,
                        headers=Vec::new(), traceparent=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        endpoint: &Bound<'_, PyAny>,
        environment: Vec<(String, String)>,
        revision: Option<&str>,
        auth: &str,
        token: Option<String>,
        consent: &str,
        limit_s: f64,
        server_timing: bool,
        standalone_get: bool,
        extra_root: Option<String>,
        headers: Vec<(String, String)>,
        traceparent: bool,
    ) -> PyResult<Self> {
        let limit = parse_seconds("limit_s", limit_s)?;
        let (endpoint, upstream) = parse_endpoint(endpoint, environment)?;
        let revision = revision
            .map(str::parse)
            .transpose()
            .map_err(|error: UnknownRevision| UsageProblem::new_err(format!("there is no revision {:?}", error.0)))?;
        let auth = parse_auth(auth, token, consent)?;
        let options = ClientOptions {
            revision,
            auth,
            headers: parse_headers(&headers)?,
            limit,
            server_timing,
            traceparent,
            standalone_get,
            extra_root,
            ..ClientOptions::default()
        };
        // The client spawns tasks as it is made and used: both happen inside the runtime.
        let _inside = shared_runtime()?.enter();
        let sink = Sink::new(recording_head(Instrument::Client, &upstream), SinkOptions::default()).or_raise()?;
        let client = mcpace_net::client::Client::new(endpoint, options, Arc::clone(&sink)).map_err(into_problem)?;
        Ok(Self { inner: Arc::new(Mutex::new(client)), sink })
    }

    /// Connects; tells the revision, the transport and the server's name.
    fn connect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = Arc::clone(&self.inner);
        let info = run_as_task(py, async move { client.lock().await.connect().await })?.map_err(into_problem)?;
        let server = info.server.as_ref();
        let told = json!({
            "revision": info.revision.as_str(),
            "transport": info.transport.as_str(),
            "server": server.map(|server| &server.name),
            "version": server.map(|server| &server.version),
        });
        json::to_python(py, &told)
    }

    /// All tools, as the server describes them.
    fn list_tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = Arc::clone(&self.inner);
        let tools = run_as_task(py, async move { client.lock().await.list_tools().await })?.map_err(into_problem)?;
        json::to_python(py, &tools)
    }

    /// A call's whole result. A tool's own failure is in it (`isError`), not raised.
    fn call_tool<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        arguments: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let text = json::from_python(arguments)?;
        let arguments = serde_json::value::RawValue::from_string(text)
            .map_err(|error| UsageProblem::new_err(format!("the arguments are no JSON: {error}")))?;
        let (client, name) = (Arc::clone(&self.inner), name.to_owned());
        let called = run_as_task(py, async move { client.lock().await.call_tool(&name, &arguments).await })?;
        let result = called.map_err(into_problem)?;
        json::to_python(py, &result.result)
    }

    /// The access token that requests carry now; `None` where there is none.
    fn token(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let token = wait_detached(py, async { self.inner.lock().await.token().await })?.map_err(into_problem)?;
        Ok(token.map(|token| token.reveal().to_owned()))
    }

    /// Ends the session; bounded in time. Does nothing where there is none.
    fn disconnect(&self, py: Python<'_>) -> PyResult<()> {
        wait_detached(py, async { self.inner.lock().await.disconnect().await })
    }

    /// The recording so far. It is complete once the client is disconnected: no event can follow.
    fn recording(&self, py: Python<'_>) -> PyResult<Recording> {
        let is_idle = wait_detached(py, async { self.inner.lock().await.server().is_none() })?;
        let mut recording = py.detach(|| self.sink.recording());
        recording.partial &= !is_idle;
        Ok(Recording::new(recording))
    }
}

fn parse_endpoint(
    endpoint: &Bound<'_, PyAny>,
    environment: Vec<(String, String)>,
) -> PyResult<(ServerEndpoint, String)> {
    if let Ok(url) = endpoint.extract::<String>() {
        return Ok((ServerEndpoint::Http(parse_url(&url)?), url));
    }
    let command: Vec<String> = endpoint.extract()?;
    let mut words = command.into_iter();
    let program = words.next().ok_or_else(|| UsageProblem::new_err("there is no command to run"))?;
    let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let endpoint =
        ServerEndpoint::Stdio { program: program.clone().into(), args: words.map(Into::into).collect(), environment };
    Ok((endpoint, program))
}

pub(crate) fn parse_headers(headers: &[(String, String)]) -> PyResult<HeaderMap> {
    headers
        .iter()
        .map(|(name, value)| {
            let header = HeaderName::try_from(name)
                .map_err(|_| UsageProblem::new_err(format!("{name:?} is no name of a header")))?;
            // Never shown: it may be a secret.
            let mut value = HeaderValue::try_from(value)
                .map_err(|_| UsageProblem::new_err(format!("the header {name} has a value that no header may have")))?;
            value.set_sensitive(true);
            Ok((header, value))
        })
        .collect()
}

fn parse_auth(auth: &str, token: Option<String>, consent: &str) -> PyResult<Auth> {
    match (auth, token) {
        ("none", _) => Ok(Auth::None),
        ("bearer", Some(token)) => Ok(Auth::Bearer(Secret::new(token))),
        ("bearer", None) => Err(UsageProblem::new_err("bearer authentication needs a token")),
        ("oauth", _) => {
            let consent = match consent {
                "follow" => Consent::Follow,
                "browser" => {
                    Consent::Browser(BrowserConsent { open: Arc::new(open_browser), limit: CONSENT_LIMIT, port: 0 })
                }
                other => return Err(UsageProblem::new_err(format!("no consent is called {other:?}"))),
            };
            Ok(Auth::OAuth(Box::new(OAuthOptions { consent, ..OAuthOptions::default() })))
        }
        (other, _) => Err(UsageProblem::new_err(format!("no authentication is called {other:?}"))),
    }
}

/// Opens the authorization page with Python's `webbrowser`, on a thread of its own: a browser may take its time to start.
fn open_browser(url: &Url) {
    let url = url.to_string();
    eprintln!("mcpace: give your consent in the browser: {url}");
    std::thread::spawn(move || {
        // Without a browser the address is on stderr; there is nothing else to do.
        let _ = Python::attach(|py| py.import("webbrowser")?.call_method1("open", (url,)).map(|_| ()));
    });
}

/// A failure of the instrumented client as Python's exception.
fn into_problem(error: ClientError) -> PyErr {
    match error {
        ClientError::Transport { code: "bad-url", .. } | ClientError::BadArguments { .. } => {
            UsageProblem::new_err(error.to_string())
        }
        _ => ClientProblem::new_err(error.to_string()),
    }
}
