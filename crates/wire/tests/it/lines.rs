use mcpace_wire::lines::{Decoder, LineError, encode_line};
use proptest::prelude::*;

type Lines = (Vec<Result<Vec<u8>, LineError>>, Option<Vec<u8>>);

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Lines {
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

#[test]
fn lines_end_with_lf_or_crlf_and_empty_ones_are_passed_over() {
    let (lines, rest) = decode([b"{}\r\n\n\r\n[1]\nrest\r".as_slice()], 100);
    assert_eq!(lines, [Ok(b"{}".to_vec()), Ok(b"[1]".to_vec())]);
    assert_eq!(rest, Some(b"rest".to_vec()));
}

#[test]
fn a_line_past_the_limit_is_told_once_and_the_next_is_read() {
    let (lines, rest) = decode([b"12345\n1234\n123456789".as_slice(), b"123456789\nok\n"], 4);
    let too_long = || Err(LineError::TooLong { limit: 4 });
    assert_eq!(lines, [too_long(), Ok(b"1234".to_vec()), too_long(), Ok(b"ok".to_vec())]);
    assert_eq!(rest, None);
}

#[test]
fn the_middle_of_a_line_is_told() {
    let mut decoder = Decoder::new(3);
    assert!(!decoder.is_mid_line());
    decoder.feed(b"12");
    assert!(decoder.is_mid_line());
    decoder.feed(b"345");
    assert!(decoder.is_mid_line());
    decoder.feed(b"\n");
    assert!(!decoder.is_mid_line());
}

#[test]
fn a_message_of_several_lines_is_sent_as_one() {
    let mut out = Vec::new();
    encode_line(b"{\n  \"a\": \"x\\n\"\r\n}", &mut out);
    assert_eq!(out, b"{   \"a\": \"x\\n\"  }\n");
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..80),
        size in 1_usize..20,
        limit in 0_usize..20,
    ) {
        prop_assert_eq!(decode([bytes.as_slice()], limit), decode(bytes.chunks(size), limit));
    }
}
