//! Log messages.

use serde::{Deserialize, Serialize};

use super::{Json, shapes::shapes};

/// How grave a log message is (RFC 5424 §6.2.1). Ordered, the gravest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are RFC 5424's and say it all")]
pub enum LoggingLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

shapes! {
    /// The parameters of `logging/setLevel` (legacy revisions).
    pub struct SetLevelParams {
        /// From which level on messages are wanted.
        level: LoggingLevel,
    }

    /// The parameters of `notifications/message`.
    pub struct LogMessageParams with _meta {
        /// How grave.
        level: LoggingLevel,
        /// Name of the logger.
        logger?: String,
        /// Logged value: any JSON.
        data: Json,
    }
}
