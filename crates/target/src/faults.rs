//! Faults of a target, on purpose and as data: `kind=size` or `kind@method=size`.
//!
//! A delay is written `10ms`, `250us`, `1.5s` or `2m`; bytes `64KiB`, `1MiB` or `500B`; a count is a
//! plain number; a switch stands alone. Deliberately absent: a delay in the TCP connect. The kernel
//! completes that handshake by itself, so a peer could not see it; over TLS, `tls-handshake` can.

mod kind;
mod size;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::nearest::{nearest_name, printable_name};
use size::Size;

pub use kind::FaultKind;

/// The methods that a fault may be limited to.
pub(crate) const METHODS: [&str; 5] = ["initialize", "ping", "server/discover", "tools/list", "tools/call"];

/// One fault with its size, and the one method that it is limited to, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    size: Size,
    method: Option<&'static str>,
}

impl Fault {
    /// Kind of the fault.
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
        let size = kind.form().read_size(size).ok_or_else(|| FaultError::Size { kind, given: printable_name(text) })?;
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
    FaultKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| FaultError::UnknownKind {
        name: printable_name(name),
        nearest: nearest_name(name, FaultKind::ALL.map(FaultKind::as_str))
            .and_then(|name| FaultKind::ALL.into_iter().find(|kind| kind.as_str() == name)),
    })
}

fn method_of(kind: FaultKind, name: &str) -> Result<&'static str, FaultError> {
    if !kind.is_per_request() {
        return Err(FaultError::NotPerMethod { kind });
    }
    METHODS.into_iter().find(|method| *method == name).ok_or_else(|| FaultError::UnknownMethod {
        kind,
        name: printable_name(name),
        nearest: nearest_name(name, METHODS),
    })
}

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// No kind has this name.
    #[error("unknown fault `{name}`{}", unknown_kind_hint(*nearest))]
    UnknownKind {
        /// The given name, shortened.
        name: String,
        /// The kind that was probably meant.
        nearest: Option<FaultKind>,
    },

    /// The size is missing, malformed, too large, or one too many.
    #[error("fault `{given}` is not of the form `{}`: {}", kind.example(), kind.form().form_rule())]
    Size {
        /// The kind, which says what its size must look like.
        kind: FaultKind,
        /// The given text, shortened.
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
        /// The given name, shortened.
        name: String,
        /// The method that was probably meant.
        nearest: Option<&'static str>,
    },

    /// A fault was given twice for one set of requests.
    #[error("fault `{kind}` is given twice for the same requests")]
    Repeated {
        /// The kind.
        kind: FaultKind,
    },
}

fn unknown_kind_hint(nearest: Option<FaultKind>) -> String {
    match nearest {
        Some(kind) => format!("; did you mean `{}`?", kind.example()),
        None => format!(" (faults: {})", FaultKind::ALL.map(FaultKind::as_str).join(", ")),
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
            let repeated = |earlier: &Fault| (earlier.kind, earlier.method) == (fault.kind, fault.method);
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
        self.fault_for(kind, method).is_some()
    }

    /// The fault's delay for a request of this method; zero where it is off.
    pub(crate) fn delay_for(&self, kind: FaultKind, method: &str) -> Duration {
        match self.fault_for(kind, method) {
            Some(Size::Delay(delay)) => delay,
            _ => Duration::ZERO,
        }
    }

    /// The fault's count or bytes for a request of this method.
    pub(crate) fn amount_for(&self, kind: FaultKind, method: &str) -> Option<u64> {
        match self.fault_for(kind, method) {
            Some(Size::Count(amount) | Size::Bytes(amount)) => Some(amount),
            _ => None,
        }
    }

    /// A fault that is limited to the method wins over one that is not.
    fn fault_for(&self, kind: FaultKind, method: &str) -> Option<Size> {
        let of_kind = || self.0.iter().filter(|fault| fault.kind == kind);
        of_kind()
            .find(|fault| fault.method == Some(method))
            .or_else(|| of_kind().find(|fault| fault.method.is_none()))
            .map(|fault| fault.size)
    }
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
        let faults = Faults::parse(["headers=1.5s", "tool=250us", "oversized-reply=2KiB", "session-lost=4"]).unwrap();
        assert_eq!(faults.delay_for(FaultKind::Headers, "ping"), Duration::from_millis(1500));
        assert_eq!(faults.delay_for(FaultKind::Tool, "tools/call"), Duration::from_micros(250));
        assert_eq!(faults.amount_for(FaultKind::OversizedReply, "ping"), Some(2048));
        assert_eq!(faults.amount_for(FaultKind::SessionLost, "ping"), Some(4));
        assert_eq!(faults.delay_for(FaultKind::Dispatch, "ping"), Duration::ZERO);
    }

    #[test]
    fn a_fault_for_one_method_spares_the_others_and_wins_over_the_general_one() {
        let faults = Faults::parse(["headers=1ms", "headers@tools/call=9ms", "wrong-id@ping"]).unwrap();
        assert_eq!(faults.delay_for(FaultKind::Headers, "tools/list"), Duration::from_millis(1));
        assert_eq!(faults.delay_for(FaultKind::Headers, "tools/call"), Duration::from_millis(9));
        assert!(faults.is_on(FaultKind::WrongId, "ping"));
        assert!(!faults.is_on(FaultKind::WrongId, "tools/call"));
    }

    #[test]
    fn malformed_faults_name_the_form_and_the_nearest_kind() {
        let message = |text: &str| Faults::parse([text]).unwrap_err().to_string();
        assert_eq!(message("haeders=10ms"), "unknown fault `haeders`; did you mean `headers=10ms`?");
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
        assert_eq!(message("tool@ping=1ms"), "fault `tool` cannot be limited to a method; write `tool=10ms`");
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
            assert!(matches!(Faults::parse([text]), Err(FaultError::Size { .. })), "{text}");
        }
        assert_eq!(
            Faults::parse(["headers=1ms", "headers=2ms"]),
            Err(FaultError::Repeated { kind: FaultKind::Headers })
        );
    }
}
