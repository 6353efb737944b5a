//! Chunked framing (RFC 9112 §7.1), a step at a time.

use super::Wrong;

/// Where in the framing a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks(ChunkStep);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkStep {
    /// In the hexadecimal digits of a chunk's size.
    Size {
        size: u64,
        digits: u8,
    },
    /// After them: extensions, and the line's end.
    Extension {
        size: u64,
    },
    /// Reading data; the value is the number of bytes that are missing.
    Data(u64),
    /// The line's end after the data.
    DataEnd,
    /// In a line of the trailer that has so many bytes.
    Trailer(u16),
    Over,
}

impl Default for Chunks {
    fn default() -> Self {
        Self(ChunkStep::Size { size: 0, digits: 0 })
    }
}

impl Chunks {
    /// Whether the last chunk has come, and the trailer after it.
    pub(super) fn is_over(self) -> bool {
        self.0 == ChunkStep::Over
    }

    /// Appends the data among these bytes; how many of them belong to the body, framing included.
    pub(super) fn take_chunk(&mut self, data: &[u8], body: &mut Vec<u8>) -> Result<usize, Wrong> {
        let mut at = 0;
        while at < data.len() && self.0 != ChunkStep::Over {
            let (used, next) = self.0.take_step(&data[at..], body)?;
            at += used;
            self.0 = next;
        }
        Ok(at)
    }
}

impl ChunkStep {
    /// How many bytes it used of some that are there, and what comes next.
    fn take_step(self, data: &[u8], body: &mut Vec<u8>) -> Result<(usize, Self), Wrong> {
        const NO_SIZE: Wrong = Wrong::Rubbish("a chunk's size that is none");
        let byte = data[0];
        Ok(match self {
            Self::Size { size, digits } => match (byte as char).to_digit(16) {
                Some(digit) if digits < 15 => {
                    (1, Self::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
                }
                None if digits > 0 && matches!(byte, b';' | b'\r' | b'\n' | b' ' | b'\t') => {
                    (0, Self::Extension { size })
                }
                _ => return Err(NO_SIZE),
            },
            Self::Extension { size } => match (memchr::memchr(b'\n', data), size) {
                (None, _) => (data.len(), self),
                (Some(end), 0) => (end + 1, Self::Trailer(0)),
                (Some(end), size) => (end + 1, Self::Data(size)),
            },
            Self::Data(missing) => {
                let taken = missing.min(data.len() as u64);
                body.extend_from_slice(&data[..taken as usize]);
                (taken as usize, if taken == missing { Self::DataEnd } else { Self::Data(missing - taken) })
            }
            Self::DataEnd => match byte {
                b'\r' => (1, Self::DataEnd),
                b'\n' => (1, Self::Size { size: 0, digits: 0 }),
                _ => return Err(Wrong::Rubbish("a chunk that is longer than its size")),
            },
            Self::Trailer(length) => match (byte, length) {
                (b'\n', 0) => (1, Self::Over),
                (b'\n', _) => (1, Self::Trailer(0)),
                (b'\r', _) => (1, self),
                (_, 8192..) => return Err(Wrong::TooLarge),
                (_, length) => (1, Self::Trailer(length + 1)),
            },
            Self::Over => (0, self),
        })
    }
}
