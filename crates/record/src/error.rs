//! Errors of recordings, told apart by whose fault they are.

use thiserror::Error;

/// Why a recording could not be read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The environment's fault: reading or writing failed (disk full, permission, …).
    #[error("could not read or write the recording: {0}")]
    Io(#[from] std::io::Error),
    /// The input's fault: this is no recording at all.
    #[error("not a recording: {0}")]
    NotARecording(String),
    /// The input's fault: written by a later release.
    #[error("this recording has format {found}; this mcpace reads {supported}: update mcpace to read it")]
    NewerFormat {
        /// The format that the file claims.
        found: String,
        /// The newest format that this release reads.
        supported: &'static str,
    },
    /// The input's fault: one line inside the file is not an event.
    #[error("line {line} of the recording is not an event: {reason}")]
    BadLine {
        /// Line number in the decompressed text, the head is line 1.
        line: usize,
        /// Message of the JSON reader.
        reason: String,
    },
    /// The input's fault: it holds more than can be meant, such as a small file that unfolds to terabytes.
    #[error("this recording holds more than {what}, and is not read to its end: record shorter, or in parts")]
    TooLarge {
        /// Quantity that exceeds its limit.
        what: String,
    },
    /// Nobody's fault: the events can't be read one by one, since a late one stands too far behind its place.
    #[error("the recording's events are far out of order")]
    OutOfOrder,
}

impl RecordError {
    /// Stable code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            RecordError::Io(_) => "io",
            RecordError::NotARecording(_) => "not-a-recording",
            RecordError::NewerFormat { .. } => "newer-format",
            RecordError::BadLine { .. } => "bad-line",
            RecordError::TooLarge { .. } => "too-large",
            RecordError::OutOfOrder => "out-of-order",
        }
    }
}
