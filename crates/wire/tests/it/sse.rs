use mcpace_wire::sse::{Decoder, Event, Item, SseError, encode_comment, encode_message, encode_retry};
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
struct Seen {
    items: Vec<Item>,
    failure: Option<SseError>,
    mid_event: bool,
    last_event_id: Option<String>,
    retry: Option<u64>,
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Seen {
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
    Seen {
        items,
        failure,
        mid_event: decoder.is_mid_event(),
        last_event_id: decoder.last_event_id().map(str::to_owned),
        retry: decoder.retry(),
    }
}

fn events(text: &str) -> Vec<Event> {
    let items = decode([text.as_bytes()], 10_000).items.into_iter();
    items.filter_map(|item| if let Item::Event { event, .. } = item { Some(event) } else { None }).collect()
}

fn data(texts: &[&str]) -> Vec<Event> {
    texts.iter().map(|text| Event::data(*text)).collect()
}

// The examples of the standard, §9.2.6.

#[test]
fn the_standards_first_example() {
    assert_eq!(events("data: YHOO\ndata: +2\ndata: 10\n\n"), data(&["YHOO\n+2\n10"]));
}

#[test]
fn the_standards_second_example() {
    let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
    let seen = decode([text.as_bytes()], 1000);
    assert_eq!(
        seen.items,
        [
            Item::Comment { text: "test stream".to_owned(), bytes: 14 },
            Item::Event { event: Event { id: Some("1".to_owned()), ..Event::data("first event") }, bytes: 25 },
            Item::Event { event: Event { id: Some(String::new()), ..Event::data("second event") }, bytes: 22 },
        ]
    );
    // The empty id took the first one back; the third event never ended.
    assert_eq!((seen.last_event_id, seen.mid_event), (None, true));
}

#[test]
fn the_standards_third_and_fourth_examples() {
    assert_eq!(events("data\n\ndata\ndata\n\ndata:"), data(&["", "\n"]));
    assert_eq!(events("data:test\n\ndata: test\n\n"), data(&["test", "test"]));
}

#[test]
fn all_line_endings_and_a_byte_order_mark() {
    assert_eq!(events("\u{feff}data: a\r\rdata: b\r\n\r\ndata: c\n\n\n\r\n"), data(&["a", "b", "c"]));
    assert_eq!(events("data: a\n\n\u{feff}data: b\n\n"), data(&["a"]));
}

#[test]
fn fields_are_as_the_standard_says() {
    let event = |text: &str| events(text).pop().unwrap();
    assert_eq!(event("event: x\nevent:\ndata\n\n").event, None);
    assert_eq!(event("event: x\ndata\n\n").kind(), "x");
    assert_eq!(event("id: 1\nid: a\0b\ndata\n\n").id.as_deref(), Some("1"));
    assert_eq!(event("retry: 12\nretry: 1x\nretry:\nretry: 99999999999999999999\ndata\n\n").retry, Some(12));
    assert_eq!(event("DATA: x\nunknown: y\ndata\n\n"), Event::default());
    assert_eq!(event("data: \u{e9}\n\n").data, "\u{e9}");
    let broken = decode([b"data: \xff\xc3\n\n".as_slice()], 100).items;
    assert!(matches!(&broken[0], Item::Event { event, .. } if event.data == "\u{fffd}\u{fffd}"));
}

#[test]
fn a_block_without_data_is_silent_but_counts() {
    let seen = decode([b"id: 7\nretry: 5\n\n".as_slice()], 100);
    let fields = Event { id: Some("7".to_owned()), retry: Some(5), ..Event::default() };
    assert_eq!(seen.items, [Item::Silent { fields, bytes: 16 }]);
    assert_eq!((seen.last_event_id.as_deref(), seen.retry), (Some("7"), Some(5)));
}

#[test]
fn an_id_counts_only_once_its_event_ended() {
    let mut decoder = Decoder::new(100);
    decoder.feed(b"id: 1\ndata: a\n");
    assert_eq!(decoder.last_event_id(), None);
    decoder.feed(b"\n");
    assert_eq!(decoder.last_event_id(), Some("1"));
}

#[test]
fn the_middle_of_an_event_is_told_and_comments_are_none() {
    let mut decoder = Decoder::new(100);
    for (bytes, mid) in
        [(": ping", false), ("\n", false), ("d", true), ("ata: x\r", true), ("\n\r", false), ("\n", false)]
    {
        decoder.feed(bytes.as_bytes());
        assert_eq!(decoder.is_mid_event(), mid, "{bytes:?}");
    }
    assert_eq!(decoder.next_event(), Ok(Some(Event::data("x"))));
    assert_eq!(decoder.last_event_bytes(), "data: x\r\n\r".len());
    assert_eq!(decoder.next_event(), Ok(None));
}

#[test]
fn past_the_limit_nothing_follows() {
    let seen = decode([b"data: a\n\ndata: 0123456789\n\ndata: b\n\n".as_slice()], 12);
    assert_eq!(seen.items.len(), 1);
    assert_eq!(seen.failure, Some(SseError::TooLong { limit: 12 }));
    // Many short lines of one event are as long as one long line.
    assert!(decode("data:\n".repeat(100).as_bytes().chunks(7), 100).failure.is_some());
    assert!(decode(":\n".repeat(100).as_bytes().chunks(7), 100).failure.is_none());
}

#[test]
fn the_encoders_write_what_decoders_read() {
    let mut out = Vec::new();
    encode_comment("ping\nevent: forged", &mut out);
    encode_retry(500, &mut out);
    encode_message(b"{\n}", Some("4\n2"), &mut out);
    Event { event: Some("a\rb".to_owned()), retry: Some(1), ..Event::data("x\r\ny\rz\n") }.encode(&mut out);
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    : ping event: forged

    retry: 500

    event: message
    id: 4 2
    data: {
    data: }

    event: a b
    retry: 1
    data: x
    data: y
    data: z
    data: 
    ");
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"id: 1".to_vec()),
        Just(b"id: \0".to_vec()),
        Just(b"event: e".to_vec()),
        Just(b"retry: 3".to_vec()),
        Just(b": c".to_vec()),
        Just("é".as_bytes().to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same(bytes in stream(), cuts in proptest::collection::vec(1_usize..9, 1..10), limit in 0_usize..120) {
        let whole = decode([bytes.as_slice()], limit);
        prop_assert_eq!(&whole, &decode(bytes.chunks(1), limit));
        let mut rest = bytes.as_slice();
        let mut chunks = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (chunk, after) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(&whole, &decode(chunks, limit));
    }

    #[test]
    fn events_survive_a_round_trip(
        event in proptest::option::of("[^\r\n]{1,10}"),
        data in "[^\r]{0,30}",
        id in proptest::option::of("[^\r\n\0]{0,10}"),
        retry: Option<u64>,
    ) {
        let event = Event { event, data, id, retry };
        let mut out = Vec::new();
        event.encode(&mut out);
        let seen = decode([out.as_slice()], 10_000);
        prop_assert_eq!(seen.items, vec![Item::Event { event, bytes: out.len() }]);
    }
}
