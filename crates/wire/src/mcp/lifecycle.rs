//! How two sides get to know each other: `initialize` in legacy revisions, `server/discover` since 2026-07-28.

use super::{CacheScope, ClientCapabilities, ResultType, ServerCapabilities, shapes::shapes};

shapes! {
    /// Name and version of a client or server.
    #[derive(Default)]
    pub struct Implementation {
        /// For programs.
        name: String,
        /// Version, in the maker's own format.
        version: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// Since 2025-11-25.
        description?: String,
        /// Since 2025-11-25.
        website_url?: String,
        /// Since 2025-11-25.
        icons?: Vec<Icon>,
    }

    /// A picture. A program that shows it accepts only `https:` and `data:` URIs.
    #[derive(Default)]
    pub struct Icon {
        /// Its URI.
        src: String,
        /// Its type, where the URI doesn't tell.
        mime_type?: String,
        /// Such as `48x48`, or `any`.
        sizes?: Vec<String>,
    }

    /// The parameters of `initialize`.
    pub struct InitializeParams with _meta {
        /// The newest revision that the client speaks; any string.
        protocol_version: String,
        /// Capabilities of the client.
        capabilities: ClientCapabilities,
        /// Name and version of the client.
        client_info: Implementation,
    }

    /// The result of `initialize`.
    pub struct InitializeResult with _meta {
        /// The revision from here on: the one asked for, or the server's newest. A client that can't speak it leaves.
        protocol_version: String,
        /// Capabilities of the server.
        capabilities: ServerCapabilities,
        /// Name and version of the server.
        server_info: Implementation,
        /// How to use the server, for a model.
        instructions?: String,
    }

    /// The result of `server/discover`. Its `_meta` names the server, under [`super::key::SERVER_INFO`].
    #[derive(Default)]
    pub struct DiscoverResult with _meta {
        /// The revisions that the server speaks, as strings.
        supported_versions: Vec<String>,
        /// Capabilities of the server.
        capabilities: ServerCapabilities,
        /// How to use the server, for a model.
        instructions?: String,
        /// Complete, or absent.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds.
        ttl_ms?: u64,
        /// Caches that may keep the result.
        cache_scope?: CacheScope,
    }
}

impl Implementation {
    /// A name and a version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}
