//! A reply's head: its status, what its body is, and how long.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use super::{Fed, Wrong};

/// Fields of a reply's head that the engine uses.
#[derive(Debug, Default)]
pub(super) struct ReplyFields {
    pub(super) status: u16,
    pub(super) content: Content,
    pub(super) framing: Framing,
    /// Whether the server closes the connection after the reply.
    pub(super) closes: bool,
    /// The value of `Mcp-Session-Id`.
    pub(super) session: Option<Box<str>>,
    /// Value of `Location`, if the reply is a redirect.
    location: Option<Box<str>>,
}

/// Kind of a reply's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Events,
    #[default]
    Other,
}

/// How the body's end is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    #[default]
    Nothing,
    Length(u64),
    Chunks,
    UntilClose,
}

const MOST_HEADERS: usize = 100;
pub(super) const LONGEST_HEAD: usize = 64 * 1024;
/// It is kept, and sent with each call.
const LONGEST_SESSION_ID: usize = 1024;

impl ReplyFields {
    /// Reads a head, and says how long it is; `None` while it isn't whole.
    pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<(Self, usize)>, Wrong> {
        let mut skipped = 0;
        loop {
            let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
            let mut response = Response::new(&mut []);
            let rest = &bytes[skipped..];
            let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, rest, &mut headers);
            match parsed {
                Err(httparse::Error::TooManyHeaders) => return Err(Wrong::TooLarge),
                Err(_) => return Err(Wrong::Rubbish("no HTTP reply")),
                Ok(Status::Partial) if bytes.len() > LONGEST_HEAD => return Err(Wrong::TooLarge),
                Ok(Status::Partial) => return Ok(None),
                Ok(Status::Complete(length)) => {
                    skipped += length;
                    if skipped > LONGEST_HEAD {
                        return Err(Wrong::TooLarge);
                    }
                    let status = response.code.unwrap_or_default();
                    // Interim replies (100, 103) come before the one that counts.
                    if (100..200).contains(&status) {
                        continue;
                    }
                    let head = Self { status, closes: response.version == Some(0), ..Self::default() };
                    return Ok(Some((head.take_headers(response.headers)?, skipped)));
                }
            }
        }
    }

    /// The reply with this much of its body.
    pub(super) fn fed_reply<'a>(&'a self, body: &'a [u8], ended: bool, excess: bool) -> Fed<'a> {
        let Self { status, content, .. } = *self;
        Fed { status, content, location: self.location.as_deref(), body, ended, excess }
    }

    fn take_headers(mut self, headers: &[Header<'_>]) -> Result<Self, Wrong> {
        let (mut length, mut chunked) = (None, false);
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            // By length first: a comparison with each name for each header of each reply would show.
            match header.name.len() {
                14 if is("content-length") => match parse_decimal(header.value) {
                    Some(value) if length.is_none_or(|before| before == value) => length = Some(value),
                    _ => return Err(Wrong::Rubbish("a content-length that is none")),
                },
                12 if is("content-type") => self.content = content_kind(header.value),
                17 if is("transfer-encoding") => {
                    chunked = header.value.eq_ignore_ascii_case(b"chunked");
                    if !chunked {
                        return Err(Wrong::Rubbish("a transfer-encoding other than chunked"));
                    }
                }
                10 if is("connection") => {
                    let options = header.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                    for option in options {
                        self.closes |= option.eq_ignore_ascii_case(b"close");
                    }
                }
                14 if is("mcp-session-id") => {
                    if header.value.is_empty() || !header.value.iter().all(u8::is_ascii_graphic) {
                        return Err(Wrong::Rubbish("a session id with characters that none may have"));
                    }
                    if header.value.len() > LONGEST_SESSION_ID {
                        return Err(Wrong::TooLarge);
                    }
                    self.session = std::str::from_utf8(header.value).ok().map(Box::from);
                }
                8 if (300..400).contains(&self.status) && is("location") => {
                    self.location = std::str::from_utf8(header.value).ok().map(Box::from);
                }
                _ => {}
            }
        }
        self.framing = match (self.status, chunked, length) {
            (204 | 304, ..) | (_, false, Some(0)) => Framing::Nothing,
            (_, true, _) => Framing::Chunks,
            (_, false, Some(length)) => Framing::Length(length),
            (_, false, None) => Framing::UntilClose,
        };
        Ok(self)
    }
}

fn parse_decimal(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.len() < 19 && value.iter().all(u8::is_ascii_digit);
    digits.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn content_kind(value: &[u8]) -> Content {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let essence = value[..end].trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Content::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}
