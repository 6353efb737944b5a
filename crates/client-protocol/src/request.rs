//! A request as one buffer of JSON, and the headers that repeat parts of it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use mcpace_wire::Revision;
use mcpace_wire::http::{ParamHeader, encode_value, name};
use mcpace_wire::mcp::{ClientCapabilities, Extra, Implementation, LoggingLevel, key};
use serde::Serialize;
use serde_json::Value;

/// Members of `_meta` that carry the caller's trace (SEP-414); headers of HTTP have the same names.
pub const TRACE_MEMBERS: [&str; 3] = [key::TRACEPARENT, key::TRACESTATE, key::BAGGAGE];

/// A message that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Id of a request; `None` for notifications and answers.
    pub id: Option<i64>,
    /// Method of a request or notification; a description of an answer.
    pub method: &'static str,
    /// Headers that repeat parts of the body, in revisions that want them.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON text.
    pub body: Bytes,
    /// Whether the message may be sent twice without harm.
    pub repeatable: bool,
}

impl Outgoing {
    /// A request without further headers.
    #[must_use]
    pub fn request(id: i64, method: &'static str, body: Bytes, repeatable: bool) -> Self {
        Self { id: Some(id), method, headers: Vec::new(), body, repeatable }
    }

    /// A notification, or an answer to a request of the server.
    #[must_use]
    pub fn notification(method: &'static str, body: impl Into<Bytes>) -> Self {
        Self { id: None, method, headers: Vec::new(), body: body.into(), repeatable: true }
    }

    /// `notifications/initialized`.
    #[must_use]
    pub fn initialized() -> Self {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        Self::notification("notifications/initialized", body)
    }

    /// `notifications/cancelled` for the request `id`.
    #[must_use]
    pub fn cancelled(id: i64) -> Self {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
        Self::notification("notifications/cancelled", body)
    }

    /// Adds the headers of 2026-07-28 that name the request's target (`Mcp-Name`) and repeat the arguments that the
    /// tool's schema annotates (`Mcp-Param-*`). `arguments` is JSON text.
    pub fn add_target_headers(&mut self, target: &str, arguments: Option<&str>, annotations: &[ParamHeader]) {
        self.add_header(name::NAME, target);
        let Some(arguments) = arguments.filter(|_| !annotations.is_empty()) else { return };
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        for annotation in annotations {
            if let Some(text) = annotation.text(&arguments) {
                self.add_header(&format!("{}{}", name::PARAM_PREFIX, annotation.name.to_ascii_lowercase()), &text);
            }
        }
    }

    /// Adds the headers of W3C Trace Context and Baggage that repeat members of the request's `_meta`, where it has them.
    pub fn add_trace_headers(&mut self, meta: &Extra) {
        for name in TRACE_MEMBERS {
            let value = meta.get(name).and_then(Value::as_str).and_then(|text| HeaderValue::try_from(text).ok());
            self.headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        }
    }

    fn add_header(&mut self, name: &str, text: &str) {
        let value = HeaderValue::try_from(encode_value(text).as_ref());
        // An encoded value is plain ASCII and an annotation is a token, so both conversions succeed.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value) {
            self.headers.push((name, value));
        }
    }
}

/// A client's words about itself: name, capabilities and wishes.
#[derive(Clone, Debug)]
pub struct ClientProfile {
    /// Name and version.
    pub info: Implementation,
    /// Declared capabilities.
    pub capabilities: ClientCapabilities,
    /// 2026-07-28: least level of the log messages that the client wants.
    pub log_level: Option<LoggingLevel>,
    /// Further members of each request's `_meta`, `initialize` excepted.
    pub request_meta: Extra,
}

impl ClientProfile {
    /// Members that all requests of a session in `revision` have in common.
    #[must_use]
    pub fn dialect(&self, revision: Revision) -> Dialect {
        let mut members = Extra::new();
        if revision.is_modern() {
            members.insert(key::PROTOCOL_VERSION.to_owned(), revision.as_str().into());
            members.insert(key::CLIENT_CAPABILITIES.to_owned(), to_value(&self.capabilities));
            members.insert(key::CLIENT_INFO.to_owned(), to_value(&self.info));
            if let Some(level) = self.log_level {
                members.insert(key::LOG_LEVEL.to_owned(), to_value(&level));
            }
        }
        members.extend(self.request_meta.iter().map(|(name, value)| (name.clone(), value.clone())));
        Dialect::new(members)
    }

    /// `server/discover` in `revision`.
    #[must_use]
    pub fn discover(&self, id: i64, revision: Revision) -> Outgoing {
        let body = self.dialect(revision).request(id, "server/discover", &|_| {}, None, false);
        Outgoing::request(id, "server/discover", body, true)
    }

    /// `initialize`, which offers the revision `offer`.
    #[must_use]
    pub fn initialize(&self, id: i64, offer: Revision) -> Outgoing {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("protocolVersion", offer.as_str());
            params.value("capabilities", &self.capabilities);
            params.value("clientInfo", &self.info);
        };
        let body = Dialect::new(Extra::new()).request(id, "initialize", &fill, None, false);
        Outgoing::request(id, "initialize", body, true)
    }
}

/// Members of `_meta` that all requests of a session have in common.
#[derive(Debug)]
pub struct Dialect {
    /// The members as JSON text with commas between them, without braces.
    text: Vec<u8>,
    /// The members as values, for requests that change some of them.
    members: Extra,
}

impl Dialect {
    fn new(members: Extra) -> Self {
        let text = serde_json::to_vec(&members).unwrap_or_default();
        let text = text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_vec();
        Self { text, members }
    }

    /// Body of a request. `fill` writes the members of `params`; members of `meta` win over the session's. `wants_progress`
    /// asks for progress, with the request's id as token.
    pub fn request(
        &self,
        id: i64,
        method: &str,
        fill: &dyn Fn(&mut ParamsWriter<'_>),
        meta: Option<&Extra>,
        wants_progress: bool,
    ) -> Bytes {
        let mut out = Vec::with_capacity(256 + self.text.len());
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        write_json(&mut out, &id);
        out.extend_from_slice(b",\"method\":");
        write_json(&mut out, &method);
        out.extend_from_slice(b",\"params\":{");
        let mut params = ParamsWriter { out: &mut out, first: true };
        fill(&mut params);
        self.write_meta(&mut params, meta, wants_progress.then_some(id));
        out.extend_from_slice(b"}}");
        out.into()
    }

    fn write_meta(&self, params: &mut ParamsWriter<'_>, meta: Option<&Extra>, token: Option<i64>) {
        if let Some(meta) = meta.filter(|meta| !meta.is_empty()) {
            let mut members = self.members.clone();
            if let Some(token) = token {
                members.insert(key::PROGRESS_TOKEN.to_owned(), token.into());
            }
            members.extend(meta.iter().map(|(name, value)| (name.clone(), value.clone())));
            return params.value("_meta", &members);
        }
        if self.text.is_empty() && token.is_none() {
            return;
        }
        params.write_name("_meta");
        params.out.push(b'{');
        params.out.extend_from_slice(&self.text);
        if let Some(token) = token {
            let mut inner = ParamsWriter { first: self.text.is_empty(), out: params.out };
            inner.value(key::PROGRESS_TOKEN, &token);
        }
        params.out.push(b'}');
    }
}

/// Writer of the members of `params`.
#[derive(Debug)]
pub struct ParamsWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl ParamsWriter<'_> {
    fn write_name(&mut self, name: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write_json(self.out, &name);
        self.out.push(b':');
    }

    /// Writes JSON text, to the letter.
    pub fn text(&mut self, name: &str, json: &str) {
        self.write_name(name);
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Writes a value.
    pub fn value(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.write_name(name);
        write_json(self.out, value);
    }

    /// Writes a value, if there is one.
    pub fn optional(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }
}

/// Appends a value as JSON. All values written here (strings, integers, our own types) have a JSON form.
fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

fn to_value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> ClientProfile {
        ClientProfile {
            info: Implementation::new("n", "1"),
            capabilities: ClientCapabilities::default(),
            log_level: None,
            request_meta: Extra::new(),
        }
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_legacy_request_has_nothing_beside_its_parameters() {
        let fill = |params: &mut ParamsWriter<'_>| {
            params.value("name", "a\"b");
            params.text("arguments", r#"{"x": 1e2}"#);
        };
        let dialect = profile().dialect(Revision::V2025_11_25);
        assert_eq!(
            text(&dialect.request(7, "tools/call", &fill, None, false)),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a\"b","arguments":{"x": 1e2}}}"#
        );
        assert_eq!(
            text(&dialect.request(7, "ping", &|_| {}, None, true)),
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"progressToken":7}}}"#
        );
    }

    #[test]
    fn a_modern_request_names_the_client_and_the_callers_own_meta_wins() {
        let mut meta = Extra::new();
        meta.insert(key::PROTOCOL_VERSION.to_owned(), "mine".into());
        meta.insert("traceparent".to_owned(), "00-1".into());
        for meta in [None, Some(&meta)] {
            let body = profile().dialect(Revision::V2026_07_28).request(7, "tools/list", &|_| {}, meta, true);
            let body: Value = serde_json::from_slice(&body).unwrap();
            let written = &body["params"]["_meta"];
            assert_eq!(written[key::PROTOCOL_VERSION], if meta.is_some() { "mine" } else { "2026-07-28" });
            assert_eq!((&written[key::CLIENT_INFO]["name"], &written[key::PROGRESS_TOKEN]), (&"n".into(), &7.into()));
            assert!(written[key::CLIENT_CAPABILITIES].is_object());
            assert_eq!(written.get("traceparent").is_some(), meta.is_some());
        }
    }

    #[test]
    fn the_trace_of_a_request_is_repeated_in_headers() {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut meta = Extra::new();
        for (name, value) in [(key::TRACEPARENT, traceparent.into()), (key::TRACESTATE, "a\nb".into()), ("x", 1.into())]
        {
            let _: Option<Value> = meta.insert(name.to_owned(), value);
        }
        let mut message = Outgoing::request(7, "ping", Bytes::new(), true);
        message.add_trace_headers(&meta);
        let [(name, value)] = message.headers.as_slice() else { panic!("{:?}", message.headers) };
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("traceparent", traceparent));
    }

    #[test]
    fn the_profiles_meta_is_in_every_request_but_initialize() {
        let request_meta: Extra = [(key::TIMING.to_owned(), Value::from(true))].into_iter().collect();
        let profile = ClientProfile { request_meta, ..profile() };
        let list = profile.dialect(Revision::V2025_11_25).request(1, "tools/list", &|_| {}, None, false);
        assert!(text(&list).ends_with(r#""params":{"_meta":{"dev.mcpace/timing":true}}}"#), "{list:?}");
        let initialize = profile.initialize(1, Revision::V2025_06_18);
        assert!(!text(&initialize.body).contains("_meta"), "{initialize:?}");
        assert!(text(&initialize.body).contains(r#""protocolVersion":"2025-06-18""#), "{initialize:?}");
        assert!(text(&profile.discover(1, Revision::LATEST).body).contains("dev.mcpace/timing"));
    }

    #[test]
    fn headers_repeat_the_target_and_the_annotated_arguments() {
        let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
        let annotations = ParamHeader::of_schema(schema).unwrap();
        assert_eq!(annotations.len(), 1);
        let mut message = Outgoing::request(1, "tools/call", Bytes::new(), false);
        message.add_target_headers("t", Some(r#"{"region":"eu","x":1}"#), &annotations);
        let headers: Vec<(&str, &str)> =
            message.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("mcp-name", "t"), ("mcp-param-region", "eu")]);
    }
}
