//! Heads of requests and replies, with the fields that rules ask for. Requests of one session mostly have equal heads,
//! which are kept once.

use mcpace_record::Header;

use super::texts::{Alike, Keeper};

/// A request's line and headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RequestHead<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) session_sent: Option<&'a str>,
    pub(super) authorization: Option<&'a str>,
    pub(super) last_event_id: Option<&'a str>,
    pub(super) accepts_events: bool,
    pub(super) sends_form: bool,
    pub(super) closes_connection: bool,
}

/// A reply's headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ReplyHead<'a> {
    pub(super) session_given: Option<&'a str>,
    pub(super) content_encoding: Option<&'a str>,
    pub(super) closes_connection: bool,
}

impl RequestHead<'static> {
    /// Head of a request that has none, or none yet.
    pub(super) const NONE: &'static Self = &RequestHead {
        method: "",
        target: "",
        session_sent: None,
        authorization: None,
        last_event_id: None,
        accepts_events: false,
        sends_form: false,
        closes_connection: false,
    };
}

impl ReplyHead<'static> {
    /// Head of a reply that has none, or none yet.
    pub(super) const NONE: &'static Self =
        &ReplyHead { session_given: None, content_encoding: None, closes_connection: false };
}

/// All heads of a recording, each once.
#[derive(Default)]
pub(super) struct Heads<'a> {
    requests: Alike<'a, RequestHead<'a>>,
    replies: Alike<'a, ReplyHead<'a>>,
}

impl<'a> Heads<'a> {
    pub(super) fn add_request(
        &mut self,
        keeper: &mut Keeper<'a>,
        method: &str,
        target: &str,
        headers: &[Header],
    ) -> &'a RequestHead<'a> {
        let head = RequestHead {
            method,
            target,
            session_sent: find_header(headers, "mcp-session-id"),
            authorization: find_header(headers, "authorization"),
            last_event_id: find_header(headers, "last-event-id"),
            accepts_events: find_header(headers, "accept").is_some_and(|value| value.contains("text/event-stream")),
            sends_form: find_header(headers, "content-type")
                .is_some_and(|value| value.starts_with("application/x-www-form-urlencoded")),
            closes_connection: closes_connection(headers),
        };
        self.requests.find_recent(|latest| *latest == head).unwrap_or_else(|| {
            let kept = RequestHead {
                method: keeper.keep_text(method),
                target: keeper.keep_text(target),
                session_sent: keeper.some_text(head.session_sent),
                authorization: keeper.some_text(head.authorization),
                last_event_id: keeper.some_text(head.last_event_id),
                ..head
            };
            self.requests.keep_value(keeper.text_arena(), kept)
        })
    }

    /// Merges `before` with `headers`. The earlier value of a field wins.
    pub(super) fn merge_reply(
        &mut self,
        keeper: &mut Keeper<'a>,
        before: &'a ReplyHead<'a>,
        headers: &[Header],
    ) -> &'a ReplyHead<'a> {
        let head = ReplyHead {
            session_given: before.session_given.or_else(|| find_header(headers, "mcp-session-id")),
            content_encoding: before.content_encoding.or_else(|| find_header(headers, "content-encoding")),
            closes_connection: before.closes_connection || closes_connection(headers),
        };
        if head == *before {
            return before;
        }
        self.replies.find_recent(|latest| *latest == head).unwrap_or_else(|| {
            let kept = ReplyHead {
                session_given: keeper.some_text(head.session_given),
                content_encoding: keeper.some_text(head.content_encoding),
                ..head
            };
            self.replies.keep_value(keeper.text_arena(), kept)
        })
    }
}

/// Whether a reply says that it is a stream of events.
pub(super) fn is_event_stream(headers: &[Header]) -> bool {
    find_header(headers, "content-type").is_some_and(|value| value.starts_with("text/event-stream"))
}

/// Whether a request or a reply says `connection: close`.
fn closes_connection(headers: &[Header]) -> bool {
    find_header(headers, "connection").is_some_and(|value| value.trim().eq_ignore_ascii_case("close"))
}

pub(super) fn find_header<'h>(headers: &'h [Header], name: &str) -> Option<&'h str> {
    headers
        .iter()
        .find(|Header(candidate, _)| candidate.eq_ignore_ascii_case(name))
        .map(|Header(_, value)| value.as_str())
}
