//! Requests that a server's programs made, as their spans tell.

use mcpace_record::{ExchangeId, Nanos, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::Stamp;
use super::texts::Keeper;

/// The kind of a dependency that a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyKind {
    /// A server that is asked over HTTP.
    Http,
    /// A database.
    Database,
    /// Another dependency: a message queue, a remote procedure.
    Other,
    /// A dependency of which only the connection to it is known.
    Connection,
    /// Another program that the server started, while it computes.
    Program,
    /// Work that the runtime of the server's language does on threads of its own.
    PoolWork,
    /// A timer that the code of the tool set.
    Timer,
}

/// The call that a program's request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanOwner {
    /// The trace leads to this exchange.
    Exchange(ExchangeId),
    /// Another program sent the request, for a call or for itself.
    OtherProgram,
    /// The trace does not tell; the time may.
    Unknown,
}

/// One request that a program made, as its span tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramSpan<'a> {
    /// When it ended.
    pub(crate) ended: Stamp,
    /// When it began.
    pub(crate) began: Nanos,
    /// The kind of what was asked.
    pub(crate) kind: DependencyKind,
    /// Name of what was asked: `api.example.org:8080`, `redis`, `postgresql shop`.
    pub(crate) dependency: &'a str,
    /// The request, without the parts that differ from one to the next: `GET /users/{}`.
    pub(crate) pattern: &'a str,
    /// The program that made it; empty where that is unknown.
    pub(crate) service: &'a str,
    /// The call that it belongs to, by its trace.
    pub(crate) owner: SpanOwner,
}

/// Names of attributes are those of OpenTelemetry's semantic conventions, the stable ones and those before them.
pub(super) fn program_span<'a>(keeper: &mut Keeper<'a>, ended: Stamp, span: &Span) -> ProgramSpan<'a> {
    let began = span.began.min(ended.at);
    let host = span.attribute(&["server.address", "net.peer.name", "net.peer.ip", "http.host"]);
    let port = span.attribute(&["server.port", "net.peer.port"]);
    let address = match (host, port) {
        (Some(host), Some(port)) => Some(format!("{host}:{port}")),
        (host, _) => host.map(str::to_owned),
    };
    let (kind, dependency, pattern) = if let Some(method) = span.attribute(&["http.request.method", "http.method"]) {
        let url = span.attribute(&["url.full", "http.url", "http.target"]).unwrap_or_default();
        let (authority, path) = split_url(url);
        let dependency = authority.map(str::to_owned).or(address).unwrap_or_else(|| span.name.clone());
        (DependencyKind::Http, dependency, format!("{method} {}", path_pattern(path)))
    } else if let Some(system) = span.attribute(&["db.system.name", "db.system"]) {
        let database = span.attribute(&["db.namespace", "db.name"]);
        let statement = span.attribute(&["db.query.text", "db.statement"]).unwrap_or(&span.name);
        let dependency = database.filter(|name| !name.is_empty() && system != "redis");
        let dependency = dependency.map_or(system.to_owned(), |database| format!("{system} {database}"));
        (DependencyKind::Database, dependency, statement.to_owned())
    } else {
        (DependencyKind::Other, address.unwrap_or_else(|| span.name.clone()), span.name.clone())
    };
    let (dependency, pattern) = (keeper.keep_text(&dependency), keeper.keep_text(&pattern));
    let service = keeper.keep_text(&span.service);
    ProgramSpan { ended, began, kind, dependency, pattern, service, owner: SpanOwner::Unknown }
}

/// The authority and the path of a URL, without its query.
fn split_url(url: &str) -> (Option<&str>, &str) {
    let (authority, rest) = match url.split_once("://") {
        Some((_, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let authority = &rest[..end];
            (Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host)), &rest[end..])
        }
        None => (None, url),
    };
    (authority.filter(|authority| !authority.is_empty()), rest.split(['?', '#']).next().unwrap_or_default())
}

/// A path with `{}` in place of segments that look like ids.
fn path_pattern(path: &str) -> String {
    let is_id = |segment: &str| {
        let hexadecimal = segment.len() >= 8 && segment.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        hexadecimal || (!segment.is_empty() && segment.chars().all(|c| c.is_ascii_digit()))
    };
    let segments = path.split('/').map(|segment| if is_id(segment) { "{}" } else { segment });
    segments.collect::<Vec<&str>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_an_authority_and_a_path_without_ids() {
        let cases = [
            ("http://u:p@host:80/users/12?x=1", (Some("host:80"), "/users/{}")),
            ("https://host", (Some("host"), "")),
            ("/a/0f1e2d3c4b5a/b", (None, "/a/{}/b")),
            ("://", (None, "")),
        ];
        for (url, expected) in cases {
            let (authority, path) = split_url(url);
            assert_eq!((authority, path_pattern(path).as_str()), expected, "{url}");
        }
    }
}
