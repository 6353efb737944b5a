//! The five published revisions of MCP, and what each of them has.
//!
//! A closed enum: a revision that is not here is one that this crate can't speak, and whoever meets one says so on the
//! wire (`-32022`, or the answer to `initialize`). Behaviour is asked by predicate, never by comparing dates elsewhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A published revision of the Model Context Protocol. Ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first: HTTP+SSE with two endpoints, stdio.
    V2024_11_05,
    /// Streamable HTTP, sessions, batches, OAuth 2.1.
    V2025_03_26,
    /// No more batches; version header, structured output, elicitation.
    V2025_06_18,
    /// Priming events, experimental tasks, URL elicitation.
    V2025_11_25,
    /// Stateless: no `initialize`, no sessions; per-request metadata.
    V2026_07_28,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    /// The revisions in which each request tells its own.
    pub const MODERN: &[Revision] = &[Revision::V2026_07_28];

    /// The newest revision.
    pub const LATEST: Revision = Revision::V2026_07_28;

    /// The newest revision that begins with `initialize`.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;

    /// Revision that a server assumes for an HTTP request without `MCP-Protocol-Version` and without other knowledge
    /// (2025-06-18 and 2025-11-25, basic/transports, "Protocol Version Header").
    pub const ASSUMED: Revision = Revision::V2025_03_26;

    /// The date that names the revision on the wire, such as `2025-06-18`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Revision that a server answers to `initialize`: the requested one if the server speaks it, else its newest legacy one
    /// (2025-11-25, basic/lifecycle, "Version Negotiation"). `None` if it speaks no legacy revision.
    #[must_use]
    pub fn negotiate(requested: &str, supported: &[Revision]) -> Option<Revision> {
        let legacy = || supported.iter().copied().filter(|revision| revision.is_legacy());
        legacy().find(|revision| revision.as_str() == requested).or_else(|| legacy().max())
    }

    /// Stateless, with metadata on each request; no `initialize`, no session.
    #[must_use]
    pub const fn is_modern(self) -> bool {
        matches!(self, Revision::V2026_07_28)
    }

    /// Begins with `initialize`.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        !self.is_modern()
    }

    /// Whether a peer may send a JSON-RPC batch. 2024-11-05 inherits them from JSON-RPC without saying a word.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Revision::V2024_11_05 | Revision::V2025_03_26)
    }

    /// One HTTP endpoint for everything, instead of HTTP+SSE with two.
    #[must_use]
    pub const fn has_streamable_http(self) -> bool {
        !matches!(self, Revision::V2024_11_05)
    }

    /// HTTP sessions (`Mcp-Session-Id`), a standalone GET stream and resumption by `Last-Event-ID`.
    #[must_use]
    pub const fn has_http_sessions(self) -> bool {
        matches!(self, Revision::V2025_03_26 | Revision::V2025_06_18 | Revision::V2025_11_25)
    }

    /// Clients send `MCP-Protocol-Version` (in legacy revisions: after `initialize`).
    #[must_use]
    pub const fn has_version_header(self) -> bool {
        matches!(self, Revision::V2025_06_18 | Revision::V2025_11_25 | Revision::V2026_07_28)
    }

    /// A server that offers resumption begins each stream with an event that has an id and empty data.
    #[must_use]
    pub const fn has_priming_events(self) -> bool {
        matches!(self, Revision::V2025_11_25)
    }

    /// Tools may have an `outputSchema`, results `structuredContent`.
    #[must_use]
    pub const fn has_structured_output(self) -> bool {
        !matches!(self, Revision::V2024_11_05 | Revision::V2025_03_26)
    }

    /// Requests name method and target in `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*`.
    #[must_use]
    pub const fn has_request_headers(self) -> bool {
        self.is_modern()
    }

    /// Results have `resultType`, lists have `ttlMs` and `cacheScope`.
    #[must_use]
    pub const fn has_result_type(self) -> bool {
        self.is_modern()
    }
}

/// A string that names no published revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no MCP revision known here")]
pub struct UnknownRevision(pub String);

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Revision::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
            .ok_or_else(|| UnknownRevision(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
