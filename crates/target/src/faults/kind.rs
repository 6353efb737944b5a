//! The kinds of fault: name, form of the size, and what each does, in one table.

use std::fmt;

use super::size::Form;

/// A way to misbehave. [`FaultKind::help`] says what each does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "`help` documents each kind once, for people and for rustdoc alike")]
pub enum FaultKind {
    TlsHandshake,
    Headers,
    FirstByte,
    BetweenEvents,
    MidResult,
    StreamEnd,
    Dispatch,
    Tool,
    GetHeaders,
    ConnectionClose,
    CloseMidReply,
    NoResult,
    RetryAfter,
    Redirect,
    TwoWrites,
    SessionLost,
    WrongId,
    OversizedReply,
    ConsentRefused,
    TokenLifetime,
    TokenEndpoint,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 21] = [
        Self::TlsHandshake,
        Self::Headers,
        Self::FirstByte,
        Self::BetweenEvents,
        Self::MidResult,
        Self::StreamEnd,
        Self::Dispatch,
        Self::Tool,
        Self::GetHeaders,
        Self::ConnectionClose,
        Self::CloseMidReply,
        Self::NoResult,
        Self::RetryAfter,
        Self::Redirect,
        Self::TwoWrites,
        Self::SessionLost,
        Self::WrongId,
        Self::OversizedReply,
        Self::ConsentRefused,
        Self::TokenLifetime,
        Self::TokenEndpoint,
    ];

    /// The name that users type.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// One sentence: what the target does, and to which requests.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.row().2
    }

    /// How the kind is written, for example `headers=10ms`.
    #[must_use]
    pub fn example(self) -> String {
        match self.form() {
            Form::Delay => format!("{self}=10ms"),
            Form::Count => format!("{self}=3"),
            Form::Bytes => format!("{self}=64KiB"),
            Form::Switch => self.to_string(),
        }
    }

    pub(super) fn form(self) -> Form {
        self.row().1
    }

    /// Whether the fault can be limited to one method.
    pub(super) fn is_per_request(self) -> bool {
        !matches!(
            self,
            Self::TlsHandshake
                | Self::GetHeaders
                | Self::SessionLost
                | Self::ConsentRefused
                | Self::TokenLifetime
                | Self::TokenEndpoint
                | Self::Dispatch
                | Self::Tool
        )
    }

    #[rustfmt::skip]
    fn row(self) -> (&'static str, Form, &'static str) {
        match self {
            Self::TlsHandshake => ("tls-handshake", Form::Delay, "waits before answering the TLS handshake of each connection; needs TLS"),
            Self::Headers => ("headers", Form::Delay, "waits before sending the head of each reply"),
            Self::FirstByte => ("first-byte", Form::Delay, "waits between the head of each reply and the first byte of its body"),
            Self::BetweenEvents => ("between-events", Form::Delay, "sends an opening event (or comment) in each SSE reply, then waits before each further event"),
            Self::MidResult => ("mid-result", Form::Delay, "writes each result's bytes in two halves and waits between them"),
            Self::StreamEnd => ("stream-end", Form::Delay, "waits between each result's last byte and the end of its body"),
            Self::Dispatch => ("dispatch", Form::Delay, "waits in the dispatch of each tools/call"),
            Self::Tool => ("tool", Form::Delay, "waits in the tool of each tools/call"),
            Self::GetHeaders => ("get-headers", Form::Delay, "waits before sending the head of each reply to a GET on the endpoint"),
            Self::ConnectionClose => ("connection-close", Form::Switch, "closes the connection after each reply and says so"),
            Self::CloseMidReply => ("close-mid-reply", Form::Switch, "closes the connection after half of each result"),
            Self::NoResult => ("no-result", Form::Switch, "ends each SSE reply without its result"),
            Self::RetryAfter => ("retry-after", Form::Delay, "answers every other request with 429 and this Retry-After (whole seconds, rounded up)"),
            Self::Redirect => ("redirect", Form::Switch, "answers each request to the endpoint with 307 to the same path with a slash, which serves"),
            Self::TwoWrites => ("two-writes", Form::Switch, "sends each SSE reply in two small writes on a socket without TCP_NODELAY"),
            Self::SessionLost => ("session-lost", Form::Count, "forgets each session after this many requests; needs sessions"),
            Self::WrongId => ("wrong-id", Form::Switch, "answers each request under another JSON-RPC id"),
            Self::OversizedReply => ("oversized-reply", Form::Bytes, "pads each result by this many bytes"),
            Self::ConsentRefused => ("consent-refused", Form::Switch, "refuses consent at the authorization endpoint; needs OAuth"),
            Self::TokenLifetime => ("token-lifetime", Form::Delay, "lets each access token run out after this long, and says so in whole seconds, rounded down; needs OAuth"),
            Self::TokenEndpoint => ("token-endpoint", Form::Delay, "waits before serving each request for a token; needs OAuth"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
