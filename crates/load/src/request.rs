//! Requests as bytes, prepared once; a call fills in its id, its arguments and its session.
//!
//! Constraint: nothing on the way of a call allocates, once the buffers have grown.

use mcpace_wire::Revision;
use mcpace_wire::http::encode_value;
use mcpace_wire::mcp::key;
use serde_json::{Value, json};

use crate::address::TargetAddress;
use crate::plan::error::PlanError;
use crate::plan::{Accept, LoadOperation, LoadTarget, OperationKind, Plan, SessionMode};
use crate::template::{ChoiceLists, Fill, Template, write_number};

/// One JSON-RPC message but for its id.
#[derive(Clone, Debug)]
pub(crate) struct MessageBody {
    method: String,
    /// Value of `Mcp-Name` (2026-07-28).
    name: Option<String>,
    /// Whether it has an id: notifications have none.
    is_request: bool,
    /// From the method's name to the end.
    rest: Template,
}

impl MessageBody {
    /// The message of an operation.
    pub(crate) fn compile_operation(
        operation: &LoadOperation,
        revision: Revision,
        data: &ChoiceLists,
    ) -> Result<Self, PlanError> {
        let mut rest = Template::default();
        let (method, name) = match operation.kind {
            OperationKind::Call => {
                let tool = operation.tool.clone().unwrap_or_default();
                open_params(&mut rest, "tools/call", revision);
                rest.add_verbatim(format!("\"name\":{},\"arguments\":", Value::from(tool.as_str())).as_bytes());
                rest.add_value(operation.arguments.as_ref().unwrap_or(&json!({})), data)?;
                rest.add_verbatim(b"}}");
                ("tools/call".to_owned(), Some(tool))
            }
            OperationKind::List => (plain_message("tools/list", revision, &mut rest), None),
            OperationKind::Ping => (plain_message("ping", revision, &mut rest), None),
            OperationKind::Raw => {
                let method = operation.method.clone().unwrap_or_default();
                let params = with_meta(operation.params.clone(), revision);
                let name = ["name", "uri", "taskId"].iter().find_map(|member| params.as_ref()?.get(member)?.as_str());
                let name = name.map(str::to_owned);
                rest.add_verbatim(format!(",\"method\":{}", Value::from(method.as_str())).as_bytes());
                if let Some(params) = params {
                    rest.add_verbatim(format!(",\"params\":{params}").as_bytes());
                }
                rest.add_verbatim(b"}");
                (method, name)
            }
        };
        Ok(Self { method, name, is_request: true, rest })
    }

    /// `initialize`.
    pub(crate) fn initialize(revision: Revision) -> Self {
        let mut rest = Template::default();
        let params = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": {},
            "clientInfo": client_info(),
        });
        rest.add_verbatim(format!(",\"method\":\"initialize\",\"params\":{params}}}").as_bytes());
        Self { method: "initialize".to_owned(), name: None, is_request: true, rest }
    }

    /// `notifications/initialized`.
    pub(crate) fn initialized() -> Self {
        let mut rest = Template::default();
        rest.add_verbatim(b",\"method\":\"notifications/initialized\"}");
        Self { method: "notifications/initialized".to_owned(), name: None, is_request: false, rest }
    }

    /// Appends the message.
    pub(crate) fn render_message(&self, id: u64, fill: &mut Fill<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
        if self.is_request {
            out.extend_from_slice(b",\"id\":");
            write_number(id, out);
        }
        self.rest.render_json(fill, out);
    }
}

/// A request's head but for its session and its length.
#[derive(Clone, Debug)]
pub(crate) struct RequestHead(Vec<u8>);

impl RequestHead {
    /// The head of a POST with this body.
    pub(crate) fn post_head(plan: &Plan, address: &TargetAddress, body: &MessageBody) -> Self {
        let mut head = start_head("POST", plan, address);
        let accept = match plan.accept {
            Accept::Both => "application/json, text/event-stream",
            Accept::Json => "application/json",
            Accept::Sse => "text/event-stream",
        };
        head.extend_from_slice(b"content-type: application/json\r\n");
        if !has_header(plan, "accept") {
            head.extend_from_slice(format!("accept: {accept}\r\n").as_bytes());
        }
        if plan.revision.is_modern() {
            let method = encode_value(&body.method);
            head.extend_from_slice(format!("mcp-method: {method}\r\n").as_bytes());
            if let Some(name) = &body.name {
                head.extend_from_slice(format!("mcp-name: {}\r\n", encode_value(name)).as_bytes());
            }
        }
        // With sessions the version is what the server agreed to, so that it is part of the session's own lines.
        if plan.session == SessionMode::None && plan.revision.has_version_header() {
            head.extend_from_slice(format!("mcp-protocol-version: {}\r\n", plan.revision.as_str()).as_bytes());
        }
        Self(head)
    }

    /// The head of a session's DELETE.
    pub(crate) fn delete_head(plan: &Plan, address: &TargetAddress) -> Self {
        Self(start_head("DELETE", plan, address))
    }

    /// Appends the whole request. `session` is the session's own header lines.
    pub(crate) fn render_request(&self, session: &[u8], body: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        out.extend_from_slice(session);
        out.extend_from_slice(b"content-length: ");
        write_number(body.len() as u64, out);
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }
}

fn start_head(method: &str, plan: &Plan, address: &TargetAddress) -> Vec<u8> {
    let mut head = format!("{method} {} HTTP/1.1\r\nhost: {}\r\n", address.path, address.authority);
    if !has_header(plan, "user-agent") {
        head.push_str(concat!("user-agent: mcpace/", env!("CARGO_PKG_VERSION"), "\r\n"));
    }
    if let LoadTarget::Http { headers, .. } = &plan.target {
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.into_bytes()
}

/// Whether the plan has this header itself.
fn has_header(plan: &Plan, header: &str) -> bool {
    matches!(&plan.target, LoadTarget::Http { headers, .. } if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header)))
}

/// Opens a message with parameters, and puts the metadata of a stateless revision first.
fn open_params(rest: &mut Template, method: &str, revision: Revision) {
    rest.add_verbatim(format!(",\"method\":\"{method}\",\"params\":{{").as_bytes());
    if revision.is_modern() {
        rest.add_verbatim(format!("\"_meta\":{},", modern_meta(revision)).as_bytes());
    }
}

/// A message without parameters of its own.
fn plain_message(method: &str, revision: Revision, rest: &mut Template) -> String {
    rest.add_verbatim(format!(",\"method\":\"{method}\"").as_bytes());
    if revision.is_modern() {
        rest.add_verbatim(format!(",\"params\":{{\"_meta\":{}}}", modern_meta(revision)).as_bytes());
    }
    rest.add_verbatim(b"}");
    method.to_owned()
}

/// Recorded parameters, with the metadata that a stateless revision demands where they have none.
fn with_meta(params: Option<Value>, revision: Revision) -> Option<Value> {
    if revision.is_legacy() {
        return params;
    }
    let mut params = params.unwrap_or_else(|| json!({}));
    if let Some(members) = params.as_object_mut() {
        let own = members.entry("_meta").or_insert_with(|| json!({}));
        if let (Some(own), Value::Object(needed)) = (own.as_object_mut(), modern_meta(revision)) {
            for (name, value) in needed {
                own.entry(name).or_insert(value);
            }
        }
    }
    Some(params)
}

fn modern_meta(revision: Revision) -> Value {
    json!({
        key::PROTOCOL_VERSION: revision.as_str(),
        key::CLIENT_CAPABILITIES: {},
        key::CLIENT_INFO: client_info(),
    })
}

fn client_info() -> Value {
    json!({"name": "mcpace-load", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use mcpace_wire::Revision;
    use serde_json::{Value, json};

    use super::{MessageBody, RequestHead};
    use crate::address::TargetAddress;
    use crate::plan::Plan;
    use crate::random::Random;
    use crate::template::Fill;

    fn plan(revision: &str, operation: &Value) -> Plan {
        let plan = json!({"target": {"kind": "http", "url": "http://h:1/mcp", "headers": [["x-a", "b"]]}, "revision": revision,
            "session": "none", "model": {"kind": "closed", "vus": 1}, "duration_s": 1, "operations": [operation],
            "timeout_s": 1, "drain_s": 1});
        Plan::parse(&plan.to_string()).unwrap()
    }

    fn message(body: &MessageBody) -> Value {
        let mut out = Vec::new();
        body.render_message(9, &mut Fill { counter: 0, user: 0, random: &mut Random::new(0) }, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_modern_call_has_metadata_and_mirrored_headers() {
        let plan =
            plan("2026-07-28", &json!({"name": "e", "kind": "call", "tool": "écho", "arguments": {"text": "hi"}}));
        let body = MessageBody::compile_operation(&plan.operations[0], plan.revision, &plan.data).unwrap();
        let text = message(&body);
        assert_eq!(text["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(text["params"]["arguments"], json!({"text": "hi"}));
        let mut out = Vec::new();
        RequestHead::post_head(&plan, &TargetAddress::parse("http://h:1/mcp").unwrap(), &body)
            .render_request(b"", b"xyz", &mut out);
        let head = String::from_utf8(out).unwrap();
        assert!(head.starts_with("POST /mcp HTTP/1.1\r\nhost: h:1\r\n"), "{head}");
        for line in
            ["mcp-method: tools/call", "mcp-name: =?base64?w6ljaG8=?=", "mcp-protocol-version: 2026-07-28", "x-a: b"]
        {
            assert!(head.contains(&format!("{line}\r\n")), "{line} is missing in {head}");
        }
        assert!(head.ends_with("content-length: 3\r\n\r\nxyz"));
    }

    #[test]
    fn raw_requests_go_out_as_they_are_and_get_the_metadata_they_lack() {
        let operation = json!({"name": "r", "kind": "raw", "method": "prompts/get", "params": {"name": "{{counter}}"}});
        let old = plan("2025-06-18", &operation);
        let body = MessageBody::compile_operation(&old.operations[0], old.revision, &old.data).unwrap();
        assert_eq!(
            message(&body),
            json!({"jsonrpc": "2.0", "id": 9, "method": "prompts/get", "params": {"name": "{{counter}}"}})
        );
        let body = MessageBody::compile_operation(&old.operations[0], Revision::V2026_07_28, &old.data).unwrap();
        assert!(message(&body)["params"]["_meta"].is_object());
    }
}
