//! The access log: reports method, target and status of each request to a callback. Without a callback it costs one check
//! of an option.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use mcpace_wire::http::name;
use serde::Deserialize;

/// Is told of each request once its answer's head is known; on the thread that serves it.
#[derive(Clone)]
pub struct AccessLog(Arc<dyn Fn(&Access<'_>) + Send + Sync>);

/// One request. All text is the client's.
#[derive(Debug)]
pub struct Access<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The request's path without its query, which may hold secrets.
    pub path: &'a str,
    /// The answer's status code.
    pub status: u16,
    /// From the head of the request, and its body where that is short, to the head of the answer.
    pub elapsed: Duration,
    /// The method of MCP, where the request is a single message that says it early enough.
    pub call: Option<&'a str>,
    /// The tool's or prompt's name, or the resource's URI without its query.
    pub target: Option<&'a str>,
}

impl AccessLog {
    /// `tell` must be quick: nothing else is served on its thread meanwhile.
    pub fn new(tell: impl Fn(&Access<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Reports a request whose body has been read whole.
    pub(super) fn report_whole(&self, path: &str, body: &Bytes, status: StatusCode, begun: Instant) {
        let outline: Outline<'_> = serde_json::from_slice(body).unwrap_or_default();
        let uri = outline.params.uri.as_deref().map(without_query);
        let target = outline.params.name.as_deref().or(uri);
        (self.0)(&Access {
            method: Method::POST.as_str(),
            path,
            status: status.as_u16(),
            elapsed: begun.elapsed(),
            call: outline.method.as_deref(),
            target,
        });
    }
}

/// The parts of a request's head that the log reports, copied before the body is read.
pub(super) struct Seen {
    begun: Instant,
    method: Method,
    path: String,
    call: Option<String>,
    target: Option<String>,
}

impl Seen {
    pub(super) fn from_request<B>(request: &Request<B>) -> Self {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            begun: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            call: header(name::METHOD),
            target: header(name::NAME),
        }
    }

    fn is_uri(&self) -> bool {
        self.call.as_deref().is_none_or(|call| call.starts_with("resources/"))
    }

    pub(super) fn report_to(&self, log: &AccessLog, status: StatusCode) {
        (log.0)(&Access {
            method: self.method.as_str(),
            path: &self.path,
            status: status.as_u16(),
            elapsed: self.begun.elapsed(),
            call: self.call.as_deref(),
            target: self.target.as_deref().map(|target| if self.is_uri() { without_query(target) } else { target }),
        });
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessLog")
    }
}

fn without_query(uri: &str) -> &str {
    uri.split(['?', '#']).next().unwrap_or(uri)
}

/// The parts of a message that the log reports.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Outline<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: LoggedTarget<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LoggedTarget<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
}
