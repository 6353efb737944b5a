//! Header values and annotations: no panic, and encoding is lossless.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpace_wire::http::{ParamHeader, decode_value, encode_value};

fuzz_target!(|input: &[u8]| {
    let _ = decode_value(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let encoded = encode_value(text);
    assert!(encoded.is_ascii() && encoded.trim() == encoded);
    assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(text));
    if let Ok(annotations) = ParamHeader::of_schema(text) {
        for annotation in annotations {
            assert!(!annotation.path.is_empty());
        }
    }
});
