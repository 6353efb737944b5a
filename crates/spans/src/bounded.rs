//! Readers with a limit: compressed input may unfold to any size.

use std::cell::Cell;
use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BUFFER: usize = 128 * 1024;

/// Unfolds a body in gzip; `None` where it is no gzip or has more than `limit` bytes.
#[must_use]
pub fn unzip(body: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(body).take(limit.saturating_add(1)).read_to_end(&mut text).ok()?;
    (read as u64 <= limit).then_some(text)
}

/// The text of a file, which may be compressed with gzip or zstd.
pub(crate) fn unfold<'r>(mut source: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut magic = Vec::with_capacity(ZSTD.len());
    source.by_ref().take(ZSTD.len() as u64).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&GZIP);
    let is_zstd = magic.starts_with(&ZSTD);
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(magic).chain(source));
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    })
}

/// A limit that a reader ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// That of all bytes.
    Whole,
    /// That of one part.
    Part,
}

/// Counts of the bytes that a [`BoundedReader`] handed out, and the limits.
pub(crate) struct Meter {
    pub(crate) most: u64,
    pub(crate) most_of_part: u64,
    read: Cell<u64>,
    part_from: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
}

impl Meter {
    pub(crate) fn new(most: u64, most_of_part: u64) -> Self {
        Self { most, most_of_part, read: Cell::new(0), part_from: Cell::new(0), exceeded: Cell::new(None) }
    }

    /// Begins the next part.
    pub(crate) fn begin_part(&self) {
        self.part_from.set(self.read.get());
    }

    /// The limit that ended the reading.
    pub(crate) fn exceeded(&self) -> Option<Limit> {
        self.exceeded.get()
    }
}

/// Reads a source up to the limits of a meter, and fails there.
pub(crate) struct BoundedReader<'m, R> {
    source: BufReader<R>,
    meter: &'m Meter,
}

impl<'m, R: Read> BoundedReader<'m, R> {
    pub(crate) fn new(source: R, meter: &'m Meter) -> Self {
        Self { source: BufReader::with_capacity(BUFFER, source), meter }
    }
}

impl<R: Read> Read for BoundedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let meter = self.meter;
        let read = meter.read.get();
        let limit = if read >= meter.most {
            Some(Limit::Whole)
        } else if read - meter.part_from.get() >= meter.most_of_part {
            Some(Limit::Part)
        } else {
            None
        };
        if let Some(limit) = limit {
            meter.exceeded.set(Some(limit));
            return Err(io::Error::other("a limit was exceeded"));
        }
        let count = self.source.read(buffer)?;
        meter.read.set(read + count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn zip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_unfolded_up_to_a_limit() {
        assert_eq!(unzip(&zip(b"spans"), 5).as_deref(), Some(&b"spans"[..]));
        assert_eq!(unzip(&zip(b"spans"), 4), None);
        assert_eq!(unzip(&zip(&vec![0; 1 << 20]), 1 << 10), None);
        assert_eq!(unzip(b"spans", 100), None);
        assert_eq!(unzip(&zip(b"spans")[..12], 100), None);
    }

    #[test]
    fn a_file_is_unfolded_by_its_first_bytes() {
        let zstd = zstd::encode_all(&b"spans"[..], 1).unwrap();
        for file in [b"spans".to_vec(), zip(b"spans"), zstd] {
            let mut text = String::new();
            unfold(file.as_slice()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "spans");
        }
        let mut nothing = Vec::new();
        unfold(&b""[..]).unwrap().read_to_end(&mut nothing).unwrap();
        assert!(nothing.is_empty());
    }

    #[test]
    fn a_part_may_be_as_long_as_its_limit() {
        let meter = Meter::new(10, 4);
        let mut reader = BoundedReader::new(&b"0123456789abc"[..], &meter);
        let mut byte = [0];
        for _ in 0..2 {
            meter.begin_part();
            for _ in 0..4 {
                reader.read_exact(&mut byte).unwrap();
            }
            assert_eq!(meter.exceeded(), None);
        }
        assert!(reader.read_exact(&mut byte).is_err());
        assert_eq!(meter.exceeded(), Some(Limit::Part));
        meter.begin_part();
        reader.read_exact(&mut byte).unwrap();
        reader.read_exact(&mut byte).unwrap();
        assert!(reader.read_exact(&mut byte).is_err());
        assert_eq!(meter.exceeded(), Some(Limit::Whole));
    }
}
