//! Evidence about the inside of a server's programs: the spans of requests that they made, and sampled stacks.

use std::collections::HashMap;

use mcpace_record::{EventKind, EvidenceSource, Nanos, PauseCause, Span, SpanKind, StackId};
use schemars::JsonSchema;
use serde::Serialize;

use super::Stamp;
use super::texts::Keeper;

/// Spans and samples that are kept at most; later ones are counted as left out.
const MOST_SPANS: usize = 2_000_000;
const MOST_SAMPLES: usize = 10_000_000;

/// Reasons of missing sources that are kept at most.
const MOST_MISSING: usize = 16;

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
}

/// One function call in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StackCall<'a> {
    /// The function.
    pub(crate) function: &'a str,
    /// Its file.
    pub(crate) file: &'a str,
    /// The line in it.
    pub(crate) line: u32,
}

/// A stack, the innermost call first.
pub(crate) type SampledStack<'a> = &'a [StackCall<'a>];

/// A thread at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledThread {
    /// When.
    pub(crate) at: Stamp,
    /// Index into [`InsideEvidence::stacks`].
    pub(crate) stack: u32,
    /// Whether it ran, as the system tells.
    pub(crate) running: bool,
}

/// A pause of a program's runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramPause {
    /// When the program went on.
    pub(crate) ended: Stamp,
    /// When it stopped.
    pub(crate) began: Nanos,
    /// The reason.
    pub(crate) cause: PauseCause,
}

/// All evidence about the inside of a server's programs.
#[derive(Debug, Default)]
pub(crate) struct InsideEvidence<'a> {
    /// Requests that the programs made, by their beginning.
    pub(crate) spans: Vec<ProgramSpan<'a>>,
    /// The different stacks.
    pub(crate) stacks: Vec<SampledStack<'a>>,
    /// Sampled threads, earliest first. Threads of one moment have one time.
    pub(crate) samples: Vec<SampledThread>,
    /// Pauses of the programs' runtimes, by their beginning.
    pub(crate) pauses: Vec<ProgramPause>,
    /// Sources that gave nothing, with the reason.
    pub(crate) missing: Vec<(EvidenceSource, &'a str)>,
    /// Spans and samples for which there was no room.
    pub(crate) left_out: u64,
}

#[derive(Default)]
pub(super) struct InsideJoin<'a> {
    evidence: InsideEvidence<'a>,
    numbers: HashMap<StackId, u32>,
}

impl<'a> InsideJoin<'a> {
    pub(super) fn join_event(&mut self, keeper: &mut Keeper<'a>, at: Stamp, kind: &EventKind) {
        let evidence = &mut self.evidence;
        match kind {
            EventKind::Span(span) if span.kind == SpanKind::Client => {
                if evidence.spans.len() < MOST_SPANS {
                    evidence.spans.push(program_span(keeper, at, span));
                } else {
                    evidence.left_out += 1;
                }
            }
            EventKind::StackSeen { stack, frames } => {
                let calls: Vec<StackCall<'a>> = frames
                    .iter()
                    .map(|frame| StackCall {
                        function: keeper.keep_text(&frame.function),
                        file: keeper.keep_text(&frame.file),
                        line: frame.line,
                    })
                    .collect();
                if let Ok(number) = u32::try_from(evidence.stacks.len()) {
                    self.numbers.entry(*stack).or_insert(number);
                    evidence.stacks.push(keeper.keep_list(calls));
                }
            }
            EventKind::StackSample { stack, running, .. } => match self.numbers.get(stack) {
                Some(stack) if evidence.samples.len() < MOST_SAMPLES => {
                    evidence.samples.push(SampledThread { at, stack: *stack, running: *running });
                }
                _ => evidence.left_out += 1,
            },
            EventKind::RuntimePause { cause, began, .. } => {
                if evidence.pauses.len() < MOST_SPANS {
                    evidence.pauses.push(ProgramPause { ended: at, began: (*began).min(at.at), cause: *cause });
                } else {
                    evidence.left_out += 1;
                }
            }
            EventKind::SourceMissing { source, reason, .. } if evidence.missing.len() < MOST_MISSING => {
                evidence.missing.push((*source, keeper.keep_text(reason)));
            }
            _ => {}
        }
    }

    pub(super) fn finish_evidence(mut self) -> InsideEvidence<'a> {
        self.evidence.spans.sort_by_key(|span| span.began);
        self.evidence.pauses.sort_by_key(|pause| pause.began);
        self.evidence
    }
}

/// Names of attributes are those of OpenTelemetry's semantic conventions, the stable ones and those before them.
fn program_span<'a>(keeper: &mut Keeper<'a>, ended: Stamp, span: &Span) -> ProgramSpan<'a> {
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
    ProgramSpan { ended, began, kind, dependency, pattern }
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
