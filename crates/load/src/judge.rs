//! Whether a reply is what the request was to get.
//!
//! Constraint: pure. Every reply is read and every id compared; what is wrong with one is a closed enum.

use std::borrow::Cow;

use mcpace_wire::quote_printable;
use memchr::memmem::Finder;

use crate::events::Scan;
use crate::message::{Seen, agreed_version, classify_message};
use crate::outcome::ErrorKind;
use crate::program::RequestPurpose;
use crate::reader::{Content, Fed, Wrong};
use crate::tally::Form;

/// The end of a request.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) failure: Option<ReplyFailure>,
    pub(crate) form: Option<Form>,
    /// Whether the reply is over, too: a stream may go on after its result.
    pub(crate) ended: bool,
    /// Whether the connection may be used again.
    pub(crate) keep: bool,
    /// The version that `initialize` agreed on.
    pub(crate) agreed: Option<String>,
}

/// Kind of a failure, and its details.
pub(crate) type ReplyFailure = (ErrorKind, Cow<'static, str>);

impl Verdict {
    /// Something that leaves the connection useless.
    pub(crate) fn broken_connection(kind: ErrorKind, words: impl Into<Cow<'static, str>>) -> Self {
        Self { failure: Some((kind, words.into())), form: None, ended: false, keep: false, agreed: None }
    }

    /// The target's bytes were no reply.
    pub(crate) fn malformed_reply(wrong: &Wrong, limit: usize) -> Self {
        match wrong {
            Wrong::Rubbish(what) => Self::broken_connection(ErrorKind::NotMcp, *what),
            Wrong::TooLarge => Self::broken_connection(
                ErrorKind::TooLarge,
                format!("a reply of more than {limit} bytes, or too long a head"),
            ),
        }
    }
}

/// Reply that a user waits for.
#[derive(Debug)]
pub(crate) struct Awaited<'a> {
    pub(crate) what: RequestPurpose,
    pub(crate) id: u64,
    /// Whether it was sent in a session.
    pub(crate) in_session: bool,
    pub(crate) expect: Option<&'a Finder<'static>>,
}

impl Awaited<'_> {
    /// Judges an HTTP reply as far as it is there. `None`: more is needed.
    pub(crate) fn judge_reply(&self, fed: &Fed<'_>, scan: &mut Scan, joined: &mut Vec<u8>) -> Option<Verdict> {
        let verdict = |failure, form| Verdict { failure, form, ended: fed.ended, keep: !fed.excess, agreed: None };
        let is_expected = match self.what {
            RequestPurpose::Operation(_) | RequestPurpose::Initialize => fed.status == 200,
            RequestPurpose::Initialized => (200..300).contains(&fed.status),
            RequestPurpose::Delete => (200..300).contains(&fed.status) || matches!(fed.status, 404 | 405),
        };
        if !is_expected {
            return fed.ended.then(|| verdict(Some(self.status_failure(fed)), None));
        }
        if matches!(self.what, RequestPurpose::Initialized | RequestPurpose::Delete) {
            return fed.ended.then(|| verdict(None, None));
        }
        match fed.content {
            Content::Json => fed.ended.then(|| {
                let failure = match self.judge_message(fed.body) {
                    Some(failure) => failure,
                    None => Some((ErrorKind::NotMcp, "the reply is a notification or a request".into())),
                };
                let agreed = self.agreed_revision(fed.body, failure.is_none());
                Verdict { agreed, ..verdict(failure, Some(Form::Json)) }
            }),
            Content::Events => {
                while let Some(data) = scan.next_event(fed.body, joined) {
                    if let Some(failure) = self.judge_message(data) {
                        let agreed = self.agreed_revision(data, failure.is_none());
                        return Some(Verdict { agreed, ..verdict(failure, Some(Form::Events)) });
                    }
                }
                let early = || Some((ErrorKind::NotMcp, "the stream ended before the result".into()));
                fed.ended.then(|| verdict(early(), Some(Form::Events)))
            }
            Content::Other => fed.ended.then(|| {
                verdict(Some((ErrorKind::NotMcp, "the reply is neither JSON nor an event stream".into())), None)
            }),
        }
    }

    /// Judges a line over stdio. `None`: it wasn't the reply.
    pub(crate) fn judge_line(&self, line: &[u8]) -> Option<Verdict> {
        let failure = self.judge_message(line)?;
        let agreed = self.agreed_revision(line, failure.is_none());
        Some(Verdict { failure, form: Some(Form::Json), ended: true, keep: true, agreed })
    }

    /// Judges a message: `None` where it is no reply at all, then what is wrong with it.
    #[expect(clippy::option_option, reason = "no reply, a good one, a bad one: three things")]
    fn judge_message(&self, text: &[u8]) -> Option<Option<ReplyFailure>> {
        Some(match classify_message(text, self.id) {
            Seen::NoReply => return None,
            Seen::Result => match self.expect {
                Some(finder) if finder.find(text).is_none() => {
                    Some((ErrorKind::Assertion, "the reply lacks what was asserted".into()))
                }
                _ => None,
            },
            Seen::ToolError(words) => Some((ErrorKind::ToolError, words.into())),
            Seen::Error(words) => Some((ErrorKind::JsonrpcError, words.into())),
            Seen::OtherId => Some((ErrorKind::WrongId, "a reply to another id".into())),
            Seen::Rubbish(words) => Some((ErrorKind::NotMcp, words.into())),
        })
    }

    fn agreed_revision(&self, text: &[u8], is_good: bool) -> Option<String> {
        if is_good && self.what == RequestPurpose::Initialize { agreed_version(text) } else { None }
    }

    /// Failure that an unexpected status stands for.
    fn status_failure(&self, fed: &Fed<'_>) -> ReplyFailure {
        if fed.status == 404 && self.in_session && self.what != RequestPurpose::Initialize {
            return (ErrorKind::SessionLost, "HTTP 404: the session is not known any more".into());
        }
        if let Seen::Error(words) = classify_message(fed.body, self.id) {
            return (ErrorKind::JsonrpcError, words.into());
        }
        if let (300..400, Some(location)) = (fed.status, fed.location) {
            let words = format!("HTTP {}: the target is at {location}; redirects are not followed", fed.status);
            return (ErrorKind::Redirect, quote_printable(&words).into());
        }
        let said = String::from_utf8_lossy(&fed.body[..fed.body.len().min(2000)]);
        let status = match fed.status {
            401 => "HTTP 401 (the load has one token, from before it began)".to_owned(),
            status => format!("HTTP {status}"),
        };
        let words = if said.trim().is_empty() { status } else { format!("{status}: {said}") };
        (ErrorKind::HttpStatus, quote_printable(&words).into())
    }
}
