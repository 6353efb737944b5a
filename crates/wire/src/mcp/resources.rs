//! Resources: listing, reading, being told of changes.

use super::{Annotations, CacheScope, Icon, ResourceContents, ResultType, shapes::shapes};

shapes! {
    /// A resource, as a list or a link tells it.
    #[derive(Default)]
    pub struct Resource with _meta {
        /// URI of the resource, which `resources/read` takes.
        uri: String,
        /// For programs.
        name: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// For a model.
        description?: String,
        /// Its type.
        mime_type?: String,
        /// In bytes, before any base64.
        size?: u64,
        /// Hints.
        annotations?: Annotations,
        /// Since 2025-11-25.
        icons?: Vec<Icon>,
    }

    /// A family of resources.
    #[derive(Default)]
    pub struct ResourceTemplate with _meta {
        /// RFC 6570.
        uri_template: String,
        /// For programs.
        name: String,
        /// For people. Since 2025-06-18.
        title?: String,
        /// For a model.
        description?: String,
        /// The type of all of them.
        mime_type?: String,
        /// Hints.
        annotations?: Annotations,
        /// Since 2025-11-25.
        icons?: Vec<Icon>,
    }

    /// The result of `resources/list`.
    #[derive(Default)]
    pub struct ListResourcesResult with _meta {
        /// This page.
        resources: Vec<Resource>,
        /// Where the next page begins; none after the last.
        next_cursor?: String,
        /// Since 2026-07-28.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds. Since 2026-07-28.
        ttl_ms?: u64,
        /// Caches that may keep the result. Since 2026-07-28.
        cache_scope?: CacheScope,
    }

    /// The result of `resources/templates/list`.
    #[derive(Default)]
    pub struct ListResourceTemplatesResult with _meta {
        /// This page.
        resource_templates: Vec<ResourceTemplate>,
        /// Where the next page begins; none after the last.
        next_cursor?: String,
        /// Since 2026-07-28.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds. Since 2026-07-28.
        ttl_ms?: u64,
        /// Caches that may keep the result. Since 2026-07-28.
        cache_scope?: CacheScope,
    }

    /// The complete result of `resources/read`.
    #[derive(Default)]
    pub struct ReadResourceResult with _meta {
        /// The resource, or those in it.
        contents: Vec<ResourceContents>,
        /// Since 2026-07-28.
        result_type?: ResultType,
        /// How long the result may be kept, in milliseconds. Since 2026-07-28.
        ttl_ms?: u64,
        /// Caches that may keep the result. Since 2026-07-28.
        cache_scope?: CacheScope,
    }

    /// The parameters of `resources/subscribe`, `resources/unsubscribe` (legacy revisions) and
    /// `notifications/resources/updated`.
    #[derive(Default)]
    pub struct ResourceUriParams with _meta {
        /// The resource.
        uri: String,
    }
}
