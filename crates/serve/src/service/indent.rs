//! JSON as text for readers: indented by two spaces, and escaped to stand within a JSON string, in one pass.

use memchr::memchr2;

/// Appends compact or spaced JSON as a quoted JSON string whose text is that JSON in the layout of `serde_json`'s
/// `PrettyFormatter` (which is pydantic's `indent=2`, too). The caller vouches that it is JSON.
pub(super) fn append_indented(out: &mut Vec<u8>, json: &str) {
    let bytes = json.as_bytes();
    out.reserve(bytes.len() * 5 / 2);
    out.push(b'"');
    let (mut at, mut depth) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                out.extend_from_slice(b"\\\"");
                at = copy_string(out, bytes, at);
            }
            b'{' | b'[' => {
                out.push(byte);
                let next = bytes[at..].iter().position(|byte| !is_space(*byte)).map_or(bytes.len(), |skip| at + skip);
                match bytes.get(next) {
                    Some(closing @ (b'}' | b']')) => {
                        out.push(*closing);
                        at = next + 1;
                    }
                    _ => {
                        depth += 1;
                        begin_line(out, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                begin_line(out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(b',');
                begin_line(out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            byte if is_space(byte) => {}
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

/// A string's inside and its end; where it ends.
fn copy_string(out: &mut Vec<u8>, bytes: &[u8], mut at: usize) -> usize {
    while let Some(skip) = memchr2(b'"', b'\\', &bytes[at..]) {
        out.extend_from_slice(&bytes[at..at + skip]);
        at += skip + 1;
        if bytes[at - 1] == b'"' {
            out.extend_from_slice(b"\\\"");
            return at;
        }
        out.extend_from_slice(b"\\\\");
        // The escaped character belongs to the escape: a quote doesn't end the string, a backslash begins nothing.
        match bytes.get(at) {
            Some(b'"') => out.extend_from_slice(b"\\\""),
            Some(b'\\') => out.extend_from_slice(b"\\\\"),
            Some(other) => out.push(*other),
            None => {}
        }
        at = bytes.len().min(at + 1);
    }
    out.extend_from_slice(&bytes[at..]);
    bytes.len()
}

fn begin_line(out: &mut Vec<u8>, depth: usize) {
    out.extend_from_slice(b"\\n");
    out.resize(out.len() + 2 * depth, b' ');
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn indented(json: &str) -> String {
        let mut out = Vec::new();
        append_indented(&mut out, json);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn strings_with_quotes_and_backslashes_at_their_ends() {
        for text in ["", "\"", "\\", "a\\\"", "\"\"", "\\\\", "é\u{1f600}\n\u{1}", "a: [1, 2], {}"] {
            let value = json!({text: [text, {}, [], [[]], {text: null}]});
            assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
        assert_eq!(indented("{ \"a\" : [ ] ,\n\"b\":[1 , 2]}"), "{\n  \"a\": [],\n  \"b\": [\n    1,\n    2\n  ]\n}");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..6).prop_map(|pairs| pairs.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_layout_is_serde_jsons(value in any_value()) {
            prop_assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }

        #[test]
        fn rubbish_is_no_panic(text in ".*") {
            append_indented(&mut Vec::new(), &text);
        }
    }
}
