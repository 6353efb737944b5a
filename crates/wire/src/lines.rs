//! stdio framing: one JSON text a line.
//!
//! Constraints: any split of the bytes gives the same lines; time is linear in the bytes; memory is bounded by the limit
//! plus what the caller feeds before it asks. A line past the limit is reported once and skipped to its end, so that one
//! bad message doesn't end the connection.

use std::collections::VecDeque;

/// Cuts a stream of bytes into lines.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    complete: VecDeque<Result<Vec<u8>, LineError>>,
    partial: Vec<u8>,
    skipping: bool,
}

/// A line that was not taken. The peer's fault; the decoder goes on with the next line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than the limit, in bytes.
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        /// The limit in force, in bytes.
        limit: usize,
    },
}

impl Decoder {
    /// Takes lines of at most `limit` bytes, a carriage return before the newline included.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, complete: VecDeque::new(), partial: Vec::new(), skipping: false }
    }

    /// The next bytes from the peer.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..at]);
            bytes = &bytes[at + 1..];
            if !std::mem::take(&mut self.skipping) {
                let line = trim_return(std::mem::take(&mut self.partial));
                if !line.is_empty() {
                    self.complete.push_back(Ok(line));
                }
            }
        }
        self.extend(bytes);
    }

    /// The next whole line, without its line ending. Empty lines are passed over. `None` until more bytes are fed.
    ///
    /// # Errors
    /// [`LineError::TooLong`], once a line; ask again for the lines after it.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        self.complete.pop_front().transpose()
    }

    /// Returns the last line of the stream, if it has no newline.
    #[must_use]
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let line = trim_return(std::mem::take(&mut self.partial));
        (!line.is_empty()).then_some(line)
    }

    /// Whether the beginning of a line is here, but not its end.
    #[must_use]
    pub fn is_mid_line(&self) -> bool {
        self.skipping || !self.partial.is_empty()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.partial.len() + bytes.len() > self.limit {
            self.partial = Vec::new();
            self.skipping = true;
            self.complete.push_back(Err(LineError::TooLong { limit: self.limit }));
            return;
        }
        self.partial.extend_from_slice(bytes);
    }
}

fn trim_return(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    line
}

/// Appends `json` as one line. Newlines in JSON can only stand between tokens, so they become spaces.
pub fn encode_line(json: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(json);
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    out.push(b'\n');
}
