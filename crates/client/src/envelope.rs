//! A request's text, written once into one buffer. Pure.

use bytes::Bytes;
use mcpace_wire::Revision;
use mcpace_wire::mcp::{ClientCapabilities, Extra, Implementation, LoggingLevel, key};
use serde::Serialize;
use serde_json::Value;

/// What all requests of a session say about themselves.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The members of `_meta`, as text with commas between them, and as values for those who change some.
    meta: Vec<u8>,
    members: Extra,
}

impl Dialect {
    pub(crate) fn new(
        revision: Revision,
        info: &Implementation,
        capabilities: &ClientCapabilities,
        level: Option<LoggingLevel>,
    ) -> Self {
        let mut members = Extra::new();
        if revision.is_modern() {
            members.insert(key::PROTOCOL_VERSION.to_owned(), revision.as_str().into());
            members.insert(key::CLIENT_CAPABILITIES.to_owned(), value(capabilities));
            members.insert(key::CLIENT_INFO.to_owned(), value(info));
            if let Some(level) = level {
                members.insert(key::LOG_LEVEL.to_owned(), value(&level));
            }
        }
        let text = serde_json::to_vec(&members).unwrap_or_default();
        // Without the braces: more members may follow.
        let meta = text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_vec();
        Self { meta, members }
    }

    /// A request. `progress` asks for progress, by a token that is the request's id.
    pub(crate) fn request(
        &self,
        id: i64,
        method: &str,
        fill: &dyn Fn(&mut Members<'_>),
        meta: Option<&Extra>,
        progress: bool,
    ) -> Bytes {
        let mut out = Vec::with_capacity(256 + self.meta.len());
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        write(&mut out, &id);
        out.extend_from_slice(b",\"method\":");
        write(&mut out, &method);
        out.extend_from_slice(b",\"params\":{");
        let mut members = Members { out: &mut out, first: true };
        fill(&mut members);
        self.write_meta(&mut members, meta, progress.then_some(id));
        out.extend_from_slice(b"}}");
        out.into()
    }

    fn write_meta(&self, params: &mut Members<'_>, meta: Option<&Extra>, token: Option<i64>) {
        if let Some(meta) = meta.filter(|meta| !meta.is_empty()) {
            let mut members = self.members.clone();
            if let Some(token) = token {
                members.insert(key::PROGRESS_TOKEN.to_owned(), token.into());
            }
            members.extend(meta.iter().map(|(name, value)| (name.clone(), value.clone())));
            return params.value("_meta", &members);
        }
        if self.meta.is_empty() && token.is_none() {
            return;
        }
        params.name("_meta");
        params.out.push(b'{');
        params.out.extend_from_slice(&self.meta);
        if let Some(token) = token {
            let mut inner = Members { first: self.meta.is_empty(), out: params.out };
            inner.value(key::PROGRESS_TOKEN, &token);
        }
        params.out.push(b'}');
    }
}

/// Writes the members of `params`.
pub(crate) struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Members<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write(self.out, &name);
        self.out.push(b':');
    }

    /// JSON text, to the letter.
    pub(crate) fn text(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn value(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        write(self.out, value);
    }

    pub(crate) fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }
}

/// Whatever is written here (strings, integers, our own types) can be written as JSON.
fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(revision: Revision) -> Dialect {
        Dialect::new(revision, &Implementation::new("n", "1"), &ClientCapabilities::default(), None)
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_legacy_request_has_nothing_beside_its_parameters() {
        let fill = |params: &mut Members<'_>| {
            params.value("name", "a\"b");
            params.text("arguments", r#"{"x": 1e2}"#);
        };
        let plain = dialect(Revision::V2025_11_25).request(7, "tools/call", &fill, None, false);
        assert_eq!(
            text(&plain),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{"x": 1e2}}}"#
        );
        let progress = dialect(Revision::V2025_11_25).request(7, "ping", &|_| {}, None, true);
        assert_eq!(
            text(&progress),
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"progressToken":7}}}"#
        );
    }

    #[test]
    fn a_modern_request_says_who_asks_and_the_callers_own_meta_wins() {
        let mut meta = Extra::new();
        meta.insert(key::PROTOCOL_VERSION.to_owned(), "mine".into());
        meta.insert("traceparent".to_owned(), "00-1".into());
        for meta in [None, Some(&meta)] {
            let body = dialect(Revision::V2026_07_28).request(7, "tools/list", &|_| {}, meta, true);
            let body: Value = serde_json::from_slice(&body).unwrap();
            let told = &body["params"]["_meta"];
            assert_eq!(told[key::PROTOCOL_VERSION], if meta.is_some() { "mine" } else { "2026-07-28" });
            assert_eq!((&told[key::CLIENT_INFO]["name"], &told[key::PROGRESS_TOKEN]), (&"n".into(), &7.into()));
            assert_eq!(told.get("traceparent").is_some(), meta.is_some());
        }
    }
}
