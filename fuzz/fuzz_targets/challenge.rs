//! `WWW-Authenticate`: no panic, and writing and reading again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::http::Challenge;

fuzz_target!(|text: &str| {
    let Ok(challenges) = Challenge::parse_all(text) else { return };
    let written: Vec<String> = challenges.iter().map(ToString::to_string).collect();
    let written = written.join(", ");
    // Quoting makes the text longer, possibly too long.
    if written.len() <= text.len().max(8 * 1024) {
        assert_eq!(Challenge::parse_all(&written).as_ref(), Ok(&challenges));
    }
});
