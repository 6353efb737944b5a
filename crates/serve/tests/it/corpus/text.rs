//! Entries of the corpus and the escapes in them. `tests/corpus/README.md` describes the format.

use std::path::Path;

/// One entry: lines `name: value`, and for whole requests what stands below `---`.
pub(crate) struct Entry {
    pub(crate) title: String,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) request: String,
}

impl Entry {
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn read(file: &str) -> Vec<Entry> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let entries: Vec<Entry> = text.split("\n=== ").skip(1).map(entry).collect();
    assert!(entries.len() > 10, "{file} was not read");
    entries
}

fn entry(text: &str) -> Entry {
    let (head, request) = text.split_once("\n---\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let title = lines.next().unwrap_or_default().to_owned();
    let settings = lines.filter_map(|line| line.split_once(": "));
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Entry { title, settings, request: request.strip_suffix('\n').unwrap_or(request).to_owned() }
}

/// Replaces `<name>` and `<repeat N text>`, then the escapes.
pub(crate) fn expand(text: &str, names: &[(&str, String)]) -> Vec<u8> {
    let mut text = text.to_owned();
    for (name, value) in names {
        text = text.replace(&format!("<{name}>"), value);
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("<repeat ") {
        out.push_str(&rest[..at]);
        let (inside, after) = rest[at + 8..].split_once('>').expect("a repeat has an end");
        let (count, part) = inside.split_once(' ').expect("a repeat has a count and a text");
        out.push_str(&part.repeat(count.parse().expect("a count is a number")));
        rest = after;
    }
    out.push_str(rest);
    unescape(&out)
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'x') => {
                let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.expect("two digits")));
                let byte = u8::from_str_radix(&String::from_iter(digits), 16);
                out.push(byte.expect("two hexadecimal digits"));
            }
            Some(b'r') => out.push(b'\r'),
            Some(b'n') => out.push(b'\n'),
            Some(b'\\') => out.push(b'\\'),
            other => panic!("no such escape: {other:?}"),
        }
    }
    out
}
