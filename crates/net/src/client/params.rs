//! The parameters that the client sends, per revision. Pure.

use mcpace_wire::mcp::key;
use mcpace_wire::revision::Revision;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// What all requests of a session say about themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) revision: Revision,
    /// Whether to ask for the server's own timing.
    pub(super) server_timing: bool,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Value>,
}

impl Dialect {
    /// Parameters of `initialize`.
    pub(super) fn initialize(self) -> Option<Box<RawValue>> {
        raw(&json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": {},
            "clientInfo": client_info(),
        }))
    }

    /// Parameters of `server/discover`.
    pub(super) fn discover(self) -> Option<Box<RawValue>> {
        raw(&json!({ "_meta": self.meta() }))
    }

    /// Parameters of `tools/list`: the first page has none but `_meta`.
    pub(super) fn list(self, cursor: Option<&str>) -> Option<Box<RawValue>> {
        let mut params = Map::new();
        let meta = self.meta();
        if !meta.is_empty() {
            params.insert("_meta".to_owned(), meta.into());
        }
        if let Some(cursor) = cursor {
            params.insert("cursor".to_owned(), cursor.into());
        }
        if params.is_empty() { None } else { raw(&params) }
    }

    /// Parameters of `tools/call`; the arguments go out as they are.
    pub(super) fn call(self, name: &str, arguments: &RawValue) -> Option<Box<RawValue>> {
        raw(&Call { name, arguments, meta: self.meta() })
    }

    fn meta(self) -> Map<String, Value> {
        let mut meta = Map::new();
        if self.revision.is_modern() {
            meta.insert(key::PROTOCOL_VERSION.to_owned(), self.revision.as_str().into());
            meta.insert(key::CLIENT_CAPABILITIES.to_owned(), json!({}));
            meta.insert(key::CLIENT_INFO.to_owned(), client_info());
        }
        if self.server_timing {
            meta.insert(key::TIMING.to_owned(), true.into());
        }
        meta
    }
}

fn client_info() -> Value {
    json!({ "name": "mcpace", "version": env!("CARGO_PKG_VERSION") })
}

/// `None` can't happen: all of these are maps with string keys.
fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(revision: Revision, server_timing: bool) -> Dialect {
        Dialect { revision, server_timing }
    }

    #[test]
    fn the_arguments_go_out_to_the_letter() {
        let arguments = RawValue::from_string(r#"{"b": 1.0,  "a":1e2}"#.to_owned()).unwrap();
        let params = of(Revision::V2025_06_18, false).call("t", &arguments).unwrap();
        assert_eq!(params.get(), r#"{"name":"t","arguments":{"b": 1.0,  "a":1e2}}"#);
    }

    #[test]
    fn a_modern_request_says_who_asks_and_a_legacy_one_only_what() {
        assert!(of(Revision::V2025_11_25, false).list(None).is_none());
        let page = of(Revision::V2025_11_25, true).list(Some("c")).unwrap();
        assert_eq!(page.get(), r#"{"_meta":{"dev.mcpace/timing":true},"cursor":"c"}"#);
        let modern: Value = serde_json::from_str(of(Revision::V2026_07_28, false).list(None).unwrap().get()).unwrap();
        assert_eq!(modern["_meta"][key::PROTOCOL_VERSION], "2026-07-28");
        assert!(modern["_meta"][key::CLIENT_CAPABILITIES].is_object());
    }
}
