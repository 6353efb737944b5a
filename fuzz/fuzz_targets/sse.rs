//! Server-sent events: input in any pieces gives the events of the whole, and written events are read unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::sse::{Decoder, Item, SseError};

fuzz_target!(|input: &[u8]| {
    let [seed, limit, bytes @ ..] = input else { return };
    let limit = usize::from(*limit) * 8;
    let whole = decode(std::iter::once(bytes), limit);
    assert_eq!(whole, decode(bytes.chunks(1), limit));
    assert_eq!(whole, decode(split(*seed, bytes), limit));
    for item in whole.0 {
        let Item::Event { event, .. } = item else { continue };
        let mut encoded = Vec::new();
        event.encode(&mut encoded);
        let (items, failure, ..) = decode(std::iter::once(encoded.as_slice()), usize::MAX);
        assert_eq!(failure, None);
        assert_eq!(items, [Item::Event { event, bytes: encoded.len() }]);
    }
});

type Seen = (Vec<Item>, Option<SseError>, bool, Option<String>, Option<u64>);

fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>, limit: usize) -> Seen {
    let mut decoder = Decoder::new(limit);
    let mut items = Vec::new();
    let mut failure = None;
    for chunk in chunks {
        decoder.feed(chunk);
        loop {
            match decoder.next_item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
    }
    let last_id = decoder.last_event_id().map(str::to_owned);
    (items, failure, decoder.is_mid_event(), last_id, decoder.retry())
}

/// Cuts of varying length, driven by a seed.
fn split(seed: u8, mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed) | 1;
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = (1 + (state >> 24) as usize % 7).min(bytes.len());
        let (chunk, rest) = bytes.split_at(length);
        bytes = rest;
        Some(chunk)
    })
}
