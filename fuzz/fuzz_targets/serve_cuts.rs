//! HTTP/1.1: the division of a connection's bytes into pieces has no effect on the statuses of its requests. Otherwise
//! two readers of one connection could see different requests. Only the end of a connection may differ: invalid bytes
//! are either answered or end the connection, and so does a refused request whose body has not arrived yet.
#![no_main]

mod serving;
#[path = "serving/http.rs"]
mod talking;

use libfuzzer_sys::fuzz_target;
use mcpace_serve::http::{Endpoint, Limits, Options};
use serving::{runtime, server};
use talking::exchange;

const STATUS_LINE: &[u8] = b"HTTP/1.1 ";

fuzz_target!(|input: &[u8]| {
    let Some((&pieces, bytes)) = input.split_first() else { return };
    // An invalid head in one piece is refused at once, and one in several pieces at its end, so it needs an end.
    let bytes = [bytes, b"\r\n\r\n"].concat();
    if bytes.starts_with(b"PRI") {
        // HTTP/2's frames have no status lines.
        return;
    }
    let answered = |cut: usize| {
        let limits = Limits { body: 4096, head: 8192, sessions: 4, ..Limits::default() };
        let options = Options { limits, stateless: pieces & 1 == 1, ..Options::default() };
        runtime(async {
            let endpoint = Endpoint::new(server(), options).expect("the options are good");
            exchange(&endpoint, &bytes, cut, false).await
        })
    };
    let (whole, cut) = (answered(bytes.len()), answered(usize::from(pieces) + 1));
    let (one, other) = (statuses(&whole), statuses(&cut));
    let agree = one.starts_with(&other) || other.starts_with(&one);
    assert!(agree, "{}\n---\n{}", whole.escape_ascii(), cut.escape_ascii());
});

fn statuses(replies: &[u8]) -> Vec<&[u8]> {
    let lines = replies.windows(STATUS_LINE.len() + 3).filter(|line| line.starts_with(STATUS_LINE));
    lines.map(|line| &line[STATUS_LINE.len()..]).collect()
}
