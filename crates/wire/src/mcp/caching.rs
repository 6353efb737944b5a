//! How long a result may be kept (2026-07-28, server/utilities/caching).

use serde::{Deserialize, Serialize};

/// Caches that may keep a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Anybody.
    Public,
    /// Only whoever asked with the same authorization.
    Private,
}
