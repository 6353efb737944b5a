//! How deep a JSON text nests, found without parsing it.

/// Whether arrays and objects nest more than `limit` deep in `text`. Linear, without recursion or memory; of a text that is
/// no JSON it may say either.
///
/// For whoever hands raw parts of a message to parsers that recurse.
#[must_use]
pub fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    // Most texts have fewer brackets than the limit allows levels, and looking for those is much quicker than following
    // what is between them.
    text.len() > limit && memchr::memchr2_iter(b'[', b'{', text).nth(limit).is_some() && deepest_level(text) > limit
}

fn deepest_level(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
