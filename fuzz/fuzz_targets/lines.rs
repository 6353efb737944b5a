//! Lines: input in any pieces gives the lines of the whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::lines::{Decoder, LineError, encode_line};

fuzz_target!(|input: &[u8]| {
    let [size, limit, bytes @ ..] = input else { return };
    let limit = usize::from(*limit);
    let whole = decode(std::iter::once(bytes), limit);
    assert_eq!(whole, decode(bytes.chunks(1), limit));
    assert_eq!(whole, decode(bytes.chunks(usize::from(*size).max(1)), limit));
    let mut line = Vec::new();
    encode_line(bytes, &mut line);
    let (lines, rest) = decode(std::iter::once(line.as_slice()), usize::MAX);
    assert!(lines.len() <= 1 && rest.is_none(), "an encoded message is one line");
});

fn decode<'a>(
    chunks: impl Iterator<Item = &'a [u8]>,
    limit: usize,
) -> (Vec<Result<Vec<u8>, LineError>>, Option<Vec<u8>>) {
    let mut decoder = Decoder::new(limit);
    let mut lines = Vec::new();
    for chunk in chunks {
        decoder.feed(chunk);
        while let Some(line) = decoder.next_line().transpose() {
            lines.push(line);
        }
    }
    (lines, decoder.finish())
}
