//! The recorded handshake and results for a client of another revision than the recorded one.

use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::key;
use serde_json::{Map, Value, json};

use super::answer::{RecordedAnswer, RecordedOutcome};
use super::index::AnswerIndex;
use crate::failure::RequestFailure;

/// Methods whose results tell since 2026-07-28 how long they may be kept.
const CACHED: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];
/// Members that only the results of 2026-07-28 have.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The recorded server's description of itself.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Members of the recorded `initialize` or `server/discover` result that both have.
    common: Map<String, Value>,
    /// Name and version.
    server_info: Value,
}

impl Handshake {
    /// The first recorded handshake. Where there is none, the capabilities are those whose methods were answered.
    pub(super) fn of_recording(index: &AnswerIndex) -> Self {
        let recorded = ["initialize", "server/discover"].into_iter().find_map(|method| {
            let Some(RecordedAnswer { outcome: RecordedOutcome::Result(result), .. }) = index.first_answer(method)
            else {
                return None;
            };
            serde_json::from_str::<Map<String, Value>>(result.get()).ok()
        });
        let Some(mut common) = recorded else {
            let parts = [("tools/", "tools"), ("prompts/", "prompts"), ("resources/", "resources")];
            let answered = parts.into_iter().filter(|(prefix, _)| index.has_methods(prefix));
            let capabilities: Map<String, Value> = answered.map(|(_, part)| (part.to_owned(), json!({}))).collect();
            let common = Map::from_iter([("capabilities".to_owned(), Value::Object(capabilities))]);
            return Self { common, server_info: unknown_server() };
        };
        let of_meta = common.remove("_meta").and_then(|mut meta| meta.get_mut(key::SERVER_INFO).map(Value::take));
        let server_info = common.remove("serverInfo").or(of_meta).unwrap_or_else(unknown_server);
        for member in MODERN_MEMBERS.into_iter().chain(["protocolVersion", "supportedVersions"]) {
            common.remove(member);
        }
        Self { common, server_info }
    }

    /// Legacy: the revision that was asked for, or the latest that has `initialize`.
    pub(super) fn initialize_result(&self, asked: Option<&str>) -> Value {
        let revision = asked.and_then(|asked| asked.parse().ok()).filter(|revision: &Revision| revision.is_legacy());
        let mut result = self.common.clone();
        result.insert("protocolVersion".to_owned(), json!(revision.unwrap_or(Revision::LATEST_LEGACY)));
        result.insert("serverInfo".to_owned(), self.server_info.clone());
        Value::Object(result)
    }

    pub(super) fn discover_result(&self) -> Value {
        let mut result = self.common.clone();
        result.insert("supportedVersions".to_owned(), json!(Revision::MODERN));
        self.add_modern_members(&mut result, true);
        Value::Object(result)
    }

    /// A result of the other era, for a request that is modern or not.
    ///
    /// The error is for a result that the legacy revisions can't carry.
    pub(super) fn adapt_result(&self, method: &str, result: &str, is_modern: bool) -> Result<Value, RequestFailure> {
        let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(result) else {
            return Err(RequestFailure::new(code::INTERNAL_ERROR, "the recorded result is no object"));
        };
        if is_modern {
            self.add_modern_members(&mut members, CACHED.contains(&method));
            return Ok(Value::Object(members));
        }
        if members.get("resultType").and_then(Value::as_str).is_some_and(|kind| kind != "complete") {
            let message = "the recorded server asked its client for input here, which needs a client of 2026-07-28";
            return Err(RequestFailure::new(code::INVALID_PARAMS, message));
        }
        for member in MODERN_MEMBERS {
            members.remove(member);
        }
        if let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove(key::SERVER_INFO);
            if meta.is_empty() {
                members.remove("_meta");
            }
        }
        Ok(Value::Object(members))
    }

    fn add_modern_members(&self, members: &mut Map<String, Value>, is_cached: bool) {
        members.insert("resultType".to_owned(), json!("complete"));
        if is_cached {
            // The recording tells nothing about it, so nothing may be kept.
            members.insert("ttlMs".to_owned(), json!(0));
            members.insert("cacheScope".to_owned(), json!("private"));
        }
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(key::SERVER_INFO.to_owned(), self.server_info.clone());
        }
    }
}

fn unknown_server() -> Value {
    json!({"name": "recorded", "version": "unknown"})
}
