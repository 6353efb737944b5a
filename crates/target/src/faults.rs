//! What a target does wrong on purpose, as data: `kind=size` or `kind@method=size`.
//!
//! A delay is written `10ms`, `250us`, `1.5s` or `2m`; bytes `64KiB`, `1MiB` or `500B`; a count is a
//! plain number; a switch stands alone. Deliberately absent: a delay in the TCP connect. The kernel
//! completes that handshake by itself, so a peer could not see it; over TLS, `tls-handshake` can.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::nearest::{nearest, shown};

/// The methods that a fault may be limited to.
pub(crate) const METHODS: [&str; 5] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
];

/// A way to misbehave. [`FaultKind::help`] says what each does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "`help` documents each kind once, for people and for rustdoc alike"
)]
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
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 19] = [
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

    fn form(self) -> Form {
        self.row().1
    }

    /// Whether the fault can be limited to one method.
    fn is_per_request(self) -> bool {
        !matches!(
            self,
            Self::TlsHandshake
                | Self::GetHeaders
                | Self::SessionLost
                | Self::ConsentRefused
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
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One fault with its size, and the one method that it is limited to, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    size: Size,
    method: Option<&'static str>,
}

impl Fault {
    /// What goes wrong.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        self.kind
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, size) = match text.split_once('=') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let (name, method) = match name.split_once('@') {
            Some((name, method)) => (name, Some(method)),
            None => (name, None),
        };
        let kind = kind_of(name)?;
        let method = method.map(|method| method_of(kind, method)).transpose()?;
        let size = kind.form().read(size).ok_or_else(|| FaultError::Size {
            kind,
            given: shown(text),
        })?;
        Ok(Self { kind, size, method })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.kind)?;
        if let Some(method) = self.method {
            write!(formatter, "@{method}")?;
        }
        match self.size {
            Size::Delay(delay) => write!(formatter, "={delay:?}"),
            Size::Count(count) => write!(formatter, "={count}"),
            Size::Bytes(bytes) => write!(formatter, "={bytes}B"),
            Size::None => Ok(()),
        }
    }
}

fn kind_of(name: &str) -> Result<FaultKind, FaultError> {
    FaultKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == name)
        .ok_or_else(|| FaultError::UnknownKind {
            name: shown(name),
            nearest: nearest(name, FaultKind::ALL.map(FaultKind::as_str)).and_then(|name| {
                FaultKind::ALL
                    .into_iter()
                    .find(|kind| kind.as_str() == name)
            }),
        })
}

fn method_of(kind: FaultKind, name: &str) -> Result<&'static str, FaultError> {
    if !kind.is_per_request() {
        return Err(FaultError::NotPerMethod { kind });
    }
    METHODS
        .into_iter()
        .find(|method| *method == name)
        .ok_or_else(|| FaultError::UnknownMethod {
            kind,
            name: shown(name),
            nearest: nearest(name, METHODS),
        })
}

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// No kind has this name.
    #[error("unknown fault `{name}`{}", unknown_kind_hint(*nearest))]
    UnknownKind {
        /// What was given, shortened.
        name: String,
        /// The kind that was probably meant.
        nearest: Option<FaultKind>,
    },

    /// The size is missing, malformed, too large, or one too many.
    #[error("fault `{given}` is not of the form `{}`: {}", kind.example(), kind.form().rule())]
    Size {
        /// The kind, which says what its size must look like.
        kind: FaultKind,
        /// What was given, shortened.
        given: String,
    },

    /// The fault does not act on single requests.
    #[error("fault `{kind}` cannot be limited to a method; write `{}`", kind.example())]
    NotPerMethod {
        /// The kind.
        kind: FaultKind,
    },

    /// A target does not serve the method.
    #[error(
        "fault `{kind}` is limited to an unknown method `{name}`{} (methods: {})",
        nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default(),
        METHODS.join(", ")
    )]
    UnknownMethod {
        /// The kind.
        kind: FaultKind,
        /// What was given, shortened.
        name: String,
        /// The method that was probably meant.
        nearest: Option<&'static str>,
    },

    /// The same fault was given twice for the same requests.
    #[error("fault `{kind}` is given twice for the same requests")]
    Repeated {
        /// The kind.
        kind: FaultKind,
    },
}

fn unknown_kind_hint(nearest: Option<FaultKind>) -> String {
    match nearest {
        Some(kind) => format!("; did you mean `{}`?", kind.example()),
        None => format!(
            " (faults: {})",
            FaultKind::ALL.map(FaultKind::as_str).join(", ")
        ),
    }
}

/// All faults of one target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// A target that behaves.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads each text as one fault.
    ///
    /// # Errors
    ///
    /// The first text that is no fault, or that repeats an earlier one.
    pub fn parse<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<Self, FaultError> {
        let mut faults = Self::none();
        for text in texts {
            let fault: Fault = text.as_ref().parse()?;
            let repeated =
                |earlier: &Fault| (earlier.kind, earlier.method) == (fault.kind, fault.method);
            if faults.0.iter().any(repeated) {
                return Err(FaultError::Repeated { kind: fault.kind });
            }
            faults.0.push(fault);
        }
        Ok(faults)
    }

    /// The faults as given.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }

    /// Whether the fault is there at all, for whatever requests.
    #[must_use]
    pub fn contains(&self, kind: FaultKind) -> bool {
        self.0.iter().any(|fault| fault.kind == kind)
    }

    /// Whether the fault is on for a request of this method.
    pub(crate) fn is_on(&self, kind: FaultKind, method: &str) -> bool {
        self.find(kind, method).is_some()
    }

    /// The fault's delay for a request of this method; zero where it is off.
    pub(crate) fn delay(&self, kind: FaultKind, method: &str) -> Duration {
        match self.find(kind, method) {
            Some(Size::Delay(delay)) => delay,
            _ => Duration::ZERO,
        }
    }

    /// The fault's count or bytes for a request of this method.
    pub(crate) fn amount(&self, kind: FaultKind, method: &str) -> Option<u64> {
        match self.find(kind, method) {
            Some(Size::Count(amount) | Size::Bytes(amount)) => Some(amount),
            _ => None,
        }
    }

    /// A fault that is limited to the method wins over one that is not.
    fn find(&self, kind: FaultKind, method: &str) -> Option<Size> {
        let of_kind = || self.0.iter().filter(|fault| fault.kind == kind);
        of_kind()
            .find(|fault| fault.method == Some(method))
            .or_else(|| of_kind().find(|fault| fault.method.is_none()))
            .map(|fault| fault.size)
    }
}

/// A fault's size, as its form read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Delay(Duration),
    Count(u64),
    Bytes(u64),
    None,
}

/// What a kind's size looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Delay,
    Count,
    Bytes,
    Switch,
}

/// No fault waits longer.
const LONGEST_DELAY: Duration = Duration::from_secs(600);
/// No fault adds more bytes to a reply.
const MOST_BYTES: u64 = 64 << 20;

impl Form {
    fn read(self, size: Option<&str>) -> Option<Size> {
        match (self, size) {
            (Self::Switch, None) => Some(Size::None),
            (Self::Delay, Some(size)) => delay(size).map(Size::Delay),
            (Self::Count, Some(size)) => {
                let count = size.parse().ok()?;
                (count > 0).then_some(Size::Count(count))
            }
            (Self::Bytes, Some(size)) => bytes(size).map(Size::Bytes),
            _ => None,
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Self::Delay => "a number and `us`, `ms`, `s` or `m`, more than nothing, at most 10m",
            Self::Count => "a whole number from 1",
            Self::Bytes => "a whole number and `B`, `KiB` or `MiB`, at most 64MiB",
            Self::Switch => "it is on when named and has no size",
        }
    }
}

fn delay(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let seconds_per_unit = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    let delay = Duration::try_from_secs_f64(number * seconds_per_unit).ok()?;
    (delay > Duration::ZERO && delay <= LONGEST_DELAY).then_some(delay)
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let bytes_per_unit: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(bytes_per_unit)?;
    (bytes > 0 && bytes <= MOST_BYTES).then_some(bytes)
}

fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.')?;
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_own_example() {
        for kind in FaultKind::ALL {
            let fault: Fault = kind.example().parse().unwrap();
            assert_eq!(fault.kind(), kind);
            assert_eq!(fault.to_string().parse(), Ok(fault), "shown and read again");
        }
    }

    #[test]
    fn sizes_mean_what_they_say() {
        let faults = Faults::parse([
            "headers=1.5s",
            "tool=250us",
            "oversized-reply=2KiB",
            "session-lost=4",
        ])
        .unwrap();
        assert_eq!(
            faults.delay(FaultKind::Headers, "ping"),
            Duration::from_millis(1500)
        );
        assert_eq!(
            faults.delay(FaultKind::Tool, "tools/call"),
            Duration::from_micros(250)
        );
        assert_eq!(faults.amount(FaultKind::OversizedReply, "ping"), Some(2048));
        assert_eq!(faults.amount(FaultKind::SessionLost, "ping"), Some(4));
        assert_eq!(faults.delay(FaultKind::Dispatch, "ping"), Duration::ZERO);
    }

    #[test]
    fn a_fault_for_one_method_spares_the_others_and_wins_over_the_general_one() {
        let faults =
            Faults::parse(["headers=1ms", "headers@tools/call=9ms", "wrong-id@ping"]).unwrap();
        assert_eq!(
            faults.delay(FaultKind::Headers, "tools/list"),
            Duration::from_millis(1)
        );
        assert_eq!(
            faults.delay(FaultKind::Headers, "tools/call"),
            Duration::from_millis(9)
        );
        assert!(faults.is_on(FaultKind::WrongId, "ping"));
        assert!(!faults.is_on(FaultKind::WrongId, "tools/call"));
    }

    #[test]
    fn malformed_faults_name_the_form_and_the_nearest_kind() {
        let message = |text: &str| Faults::parse([text]).unwrap_err().to_string();
        assert_eq!(
            message("haeders=10ms"),
            "unknown fault `haeders`; did you mean `headers=10ms`?"
        );
        assert_eq!(
            message("headers=10"),
            "fault `headers=10` is not of the form `headers=10ms`: a number and `us`, `ms`, `s` or `m`, more than nothing, at most 10m"
        );
        assert_eq!(
            message("wrong-id=3"),
            "fault `wrong-id=3` is not of the form `wrong-id`: it is on when named and has no size"
        );
        assert_eq!(
            message("headers@tools/cal=1ms"),
            "fault `headers` is limited to an unknown method `tools/cal`; did you mean `tools/call`? \
             (methods: initialize, ping, server/discover, tools/list, tools/call)"
        );
        assert_eq!(
            message("tool@ping=1ms"),
            "fault `tool` cannot be limited to a method; write `tool=10ms`"
        );
        assert!(message("quantum-entanglement").contains("(faults: tls-handshake, headers,"));
        for text in [
            "headers",
            "headers=",
            "headers=-1ms",
            "headers=11m",
            "headers=0ms",
            "headers=nanms",
            "headers=1..2ms",
            "session-lost=0",
            "session-lost=x",
            "oversized-reply=65MiB",
            "oversized-reply=18446744073709551615MiB",
            "tool=1e3ms",
        ] {
            assert!(
                matches!(Faults::parse([text]), Err(FaultError::Size { .. })),
                "{text}"
            );
        }
        assert_eq!(
            Faults::parse(["headers=1ms", "headers=2ms"]),
            Err(FaultError::Repeated {
                kind: FaultKind::Headers
            })
        );
    }
}
