//! Which methods there are in which revision, and everything that is refused before a handler.

use mcpace_serve::{Handled, ReplyStatus, Server};
use mcpace_wire::Revision;
use mcpace_wire::mcp::{CacheScope, Method, Sender};
use serde_json::{Value, json};

use crate::core_harness::{Client, MODERN, legacy};
use crate::core_server::server;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[test]
fn initialize_negotiates() {
    let server = server();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let client = Client::stateless(&server, Revision::LATEST_LEGACY);
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = client.now(0, "initialize", params);
        let result = answer.result();
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"], json!({"name": "test-server", "version": "1.0"}));
        assert_eq!(result["instructions"], "Be kind.");
        assert_eq!(result["capabilities"]["tools"], json!({"listChanged": true}));
        assert_eq!(result["capabilities"]["resources"], json!({"subscribe": true, "listChanged": true}));
        assert_eq!(result["capabilities"]["completions"].is_null(), agreed == "2024-11-05");
        assert!(result["capabilities"]["extensions"].is_null());
        assert_eq!(answer.session.unwrap().revision().as_str(), agreed);
    }
}

#[test]
fn initialize_wants_its_parameters_and_happens_once() {
    let server = server();
    let client = Client::stateless(&server, Revision::LATEST_LEGACY);
    for params in [json!({}), json!({"protocolVersion": 1}), json!({"protocolVersion": "2025-06-18"})] {
        assert_eq!(client.now(0, "initialize", params).error(), (-32602, ReplyStatus::Ok));
    }
    let client = Client::connect(&server, Revision::V2025_06_18);
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(client.now(0, "initialize", params).error(), (-32600, ReplyStatus::Ok));
}

#[test]
fn a_session_weighs_only_so_much() {
    let server = server();
    let initialize = |name: String| {
        let info = json!({"name": name, "version": "1", "icons": [{"src": "x".repeat(10_000)}]});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        Client::stateless(&server, Revision::V2025_06_18).now(0, "initialize", params)
    };
    assert_eq!(initialize("x".repeat(100_000)).error().0, -32602);
    let session = initialize("x".to_owned()).session.unwrap();
    assert_eq!((session.client_info().name.as_str(), &session.client_info().icons), ("x", &None));
}

#[test]
fn sessions_belong_to_who_opened_them() {
    let server = server();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let anna = Client::stateless(&server, Revision::V2025_06_18).of("anna");
    let session = anna.now(0, "initialize", params).session.unwrap();
    assert!(session.belongs_to(anna.peer.principal.as_ref()));
    assert!(!session.belongs_to(Client::stateless(&server, MODERN).of("bert").peer.principal.as_ref()));
    assert!(!session.belongs_to(None));
}

#[test]
fn discover_tells_everything() {
    let server = server();
    let answer = Client::connect(&server, MODERN).now(1, "server/discover", json!({}));
    let result = answer.result();
    assert_eq!(
        result["supportedVersions"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    );
    assert_eq!(result["instructions"], "Be kind.");
    assert_eq!(result["resultType"], "complete");
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test-server");
}

#[test]
fn every_method_exists_where_it_should() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for method in Method::ALL {
            let served = method.exists_in(revision) && method.sender() != Sender::Server && !method.is_notification();
            let core_tasks = revision == Revision::V2025_11_25 && method.as_str().starts_with("tasks/");
            let unknown = match client.send(1, method.as_str(), json!({})) {
                Handled::Now(reply) => {
                    let body: Value = serde_json::from_slice(&reply.message).unwrap();
                    let unknown = body["error"]["code"] == -32601;
                    let status = if unknown && revision.is_modern() { ReplyStatus::NotFound } else { ReplyStatus::Ok };
                    assert_eq!(reply.status, status, "{revision} {method}");
                    unknown
                }
                Handled::Later(_) => false,
                Handled::Nothing => panic!("{method} is not answered"),
            };
            assert_eq!(
                unknown,
                !served || core_tasks || (*method == Method::Complete && revision == Revision::V2024_11_05),
                "{revision} {method}"
            );
        }
        for method in ["nope", "", "tools/", "TOOLS/LIST"] {
            assert_eq!(client.now(1, method, json!({})).error().0, -32601);
        }
    }
}

#[test]
fn modern_requests_say_what_they_must() {
    let server = server();
    let client = Client::stateless(&server, MODERN);
    let send = |meta: Value| {
        let params = if meta.is_null() { json!({}) } else { json!({"_meta": meta}) };
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "nope", "params": params}).to_string();
        let Handled::Now(reply) = client.raw(&text) else { panic!("no answer") };
        crate::core_harness::Answer::from(reply)
    };
    let missing = (-32602, ReplyStatus::BadRequest);
    assert_eq!(send(Value::Null).error(), missing);
    assert_eq!(send(json!({})).error(), missing);
    assert_eq!(send(json!({VERSION: "2026-07-28"})).error(), missing);
    assert_eq!(send(json!({CAPABILITIES: {}})).error(), missing);
    assert_eq!(send(json!({VERSION: 1, CAPABILITIES: {}})).error(), missing);
    assert_eq!(send(json!({VERSION: "2026-07-28", CAPABILITIES: true})).error(), missing);
    // The version comes before the method.
    for version in ["2099-01-01", "2025-06-18", "", "20\u{0}"] {
        let answer = send(json!({VERSION: version, CAPABILITIES: {}}));
        assert_eq!(answer.error(), (-32022, ReplyStatus::BadRequest));
        assert_eq!(answer.body["error"]["data"]["requested"], version);
        assert!(answer.body["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    }
    assert_eq!(send(json!({VERSION: "2026-07-28", CAPABILITIES: {}})).error(), (-32601, ReplyStatus::NotFound));
    let escaped = r#"{"jsonrpc":"2.0","id":1,"method":"nope","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026\u002d07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let Handled::Now(reply) = client.raw(escaped) else { panic!("no answer") };
    assert_eq!(reply.status, ReplyStatus::NotFound);
}

#[test]
fn odd_parameters_are_refused() {
    let server = server();
    let client = Client::connect(&server, Revision::V2025_06_18);
    for params in [
        "[]",
        r#"{"name":1}"#,
        r#"{"_meta":1}"#,
        r#"{"_meta":[]}"#,
        r#"{"name":"echo","name":"echo"}"#,
        r#"{"_meta":{"progressToken":{}}}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let Handled::Now(reply) = client.raw(&text) else { panic!("no answer") };
        let answer = crate::core_harness::Answer::from(reply);
        assert_eq!(answer.error(), (-32602, ReplyStatus::Ok), "{params}");
        assert!(!answer.message().contains("line"), "{}", answer.message());
    }
}

#[test]
fn ids_come_back_as_they_came() {
    let server = server();
    let client = Client::connect(&server, Revision::V2025_06_18);
    for id in ["1", "-1", "0", "\"a\"", "\"\"", "1.5", "123456789012345678901234567890", "\"\\u00e9\\\"\""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let Handled::Now(reply) = client.raw(&text) else { panic!("no answer") };
        let answer: Value = serde_json::from_slice(&reply.message).unwrap();
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).unwrap(), "{id}");
        assert_eq!(answer["result"], json!({}));
    }
}

#[test]
fn lists_come_in_pages() {
    let server =
        crate::core_server::builder(&<_>::default()).page_size(4).cache(60_000, CacheScope::Public).build().unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for (method, key, count) in [
            ("tools/list", "tools", 22),
            ("resources/list", "resources", 4),
            ("resources/templates/list", "resourceTemplates", 1),
            ("prompts/list", "prompts", 2),
        ] {
            let mut names = Vec::new();
            let mut params = json!({});
            loop {
                let answer = client.now(1, method, params);
                let page = answer.result()[key].as_array().unwrap();
                assert!(page.len() <= 4);
                names.extend(page.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()));
                assert_eq!(answer.result()["ttlMs"] == 60_000, revision.is_modern());
                assert_eq!(answer.result()["cacheScope"] == "public", revision.is_modern());
                match answer.result()["nextCursor"].as_str() {
                    Some(cursor) => params = json!({"cursor": cursor}),
                    None => break,
                }
            }
            assert_eq!(names.len(), count, "{method}: {names:?}");
            names.dedup();
            assert_eq!(names.len(), count);
        }
        for cursor in ["", "x", "MC45OQ", "MS4w", &"A".repeat(100)] {
            assert_eq!(client.now(1, "tools/list", json!({"cursor": cursor})).error().0, -32602, "{cursor}");
        }
    }
}

#[test]
fn descriptions_keep_to_the_revision() {
    let server = server();
    let title = |revision| {
        let answer = Client::connect(&server, revision).now(1, "resources/list", json!({}));
        answer.result()["resources"][0]["title"].clone()
    };
    assert_eq!(title(Revision::V2025_03_26), Value::Null);
    assert_eq!(title(Revision::V2025_06_18), "One");
    let answer = Client::connect(&server, MODERN).now(1, "tools/list", json!({}));
    let echo = &answer.result()["tools"][0];
    assert_eq!(echo["inputSchema"]["properties"]["text"]["description"], "Text to say.");
    assert_eq!(echo["inputSchema"]["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn what_is_not_declared_is_unknown() {
    let server = Server::builder("bare", "1").build().unwrap();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for method in
            ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "completion/complete"]
        {
            assert_eq!(client.now(1, method, json!({})).error().0, -32601, "{revision} {method}");
        }
    }
}

#[test]
fn only_some_revisions() {
    let server = Server::builder("x", "1").revisions(&[Revision::V2025_06_18]).build().unwrap();
    let answer = Client::stateless(&server, MODERN).now(1, "server/discover", json!({}));
    assert_eq!(answer.error(), (-32022, ReplyStatus::BadRequest));
    assert_eq!(answer.body["error"]["data"]["supported"], json!(["2025-06-18"]));
    let server = Server::builder("x", "1").revisions(&[MODERN]).build().unwrap();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = Client::stateless(&server, Revision::V2025_06_18).now(1, "initialize", params);
    assert_eq!(answer.error(), (-32022, ReplyStatus::Ok));
    assert_eq!(answer.body["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[test]
fn notifications_and_stray_responses_have_no_answer() {
    let server = server();
    for revision in legacy().chain([MODERN]) {
        let client = Client::connect(&server, revision);
        for method in ["notifications/initialized", "notifications/cancelled", "notifications/nope", "tools/call"] {
            client.notify(method, json!({"requestId": 99}));
        }
        client.respond(&json!(99), json!({}));
        client.respond(&json!("x"), json!({}));
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#;
        assert!(matches!(client.raw(error), Handled::Nothing));
        assert!(client.outbox.take().is_empty());
    }
}
