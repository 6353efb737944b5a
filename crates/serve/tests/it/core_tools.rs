//! Tools: listing, calling, failing.

use std::time::Duration;

use mcpace_serve::{BuildError, NoArguments, ReplyStatus, Server, Tool, ToolError};
use mcpace_wire::Revision;
use serde_json::json;

use crate::core_harness::{Client, MODERN, legacy};
use crate::core_server::server;

#[tokio::test(start_paused = true)]
async fn plain_call_is_answered_at_once_to_the_byte() {
    let server = server();
    for revision in legacy() {
        let client = Client::connect(&server, revision);
        let answer = client.now("a\"b", "tools/call", json!({"name": "echo", "arguments": {"text": "hi \"é\"\n"}}));
        let expected = r#"{"jsonrpc":"2.0","id":"a\"b","result":{"content":[{"type":"text","text":"hi \"é\"\n"}]}}"#;
        assert_eq!(answer.text, expected, "{revision}");
        assert_eq!(answer.timing, None);
    }
    let client = Client::connect(&server, MODERN);
    let answer = client.now(7, "tools/call", json!({"name": "echo", "arguments": {"text": "hi"}}));
    let expected = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hi"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test-server","version":"1.0"}}}}"#;
    assert_eq!(answer.text, expected);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_told_to_the_model_by_field() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        let cases = [
            ("echo", json!({}), "arguments: missing field `text`"),
            ("echo", json!({"text": 1}), "arguments.text: invalid type: integer `1`, expected a string"),
            (
                "nested",
                json!({"points": [{"x": 1, "y": 1}, {"x": "1", "y": 2}]}),
                "arguments.points[1].x: invalid type: string \"1\", expected i64",
            ),
            ("block", json!({"text": null}), "arguments.text: invalid type: null, expected a string"),
        ];
        for (tool, arguments, expected) in cases {
            let answer = client.now(2, "tools/call", json!({"name": tool, "arguments": arguments}));
            assert_eq!(answer.result()["isError"], true, "{}", answer.text);
            assert_eq!(answer.text(), expected);
        }
        assert_eq!(client.now(3, "tools/call", json!({"name": "echo"})).text(), "arguments: missing field `text`");
        // No object at all is a malformed request.
        let answer = client.now(4, "tools/call", json!({"name": "echo", "arguments": ["x"]}));
        assert_eq!(answer.error().0, -32602, "{}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_is_an_error() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        let answer = client.now(2, "tools/call", json!({"name": "nope", "arguments": {}}));
        assert_eq!(answer.error(), (-32602, ReplyStatus::Ok));
        assert_eq!(answer.message(), "unknown tool: nope");
        let answer = client.now(2, "tools/call", json!({"arguments": {}}));
        assert_eq!(answer.error(), (-32602, ReplyStatus::Ok));
        assert_eq!(client.now(2, "tools/call", json!({"name": 1})).error().0, -32602);
        let long = client.now(2, "tools/call", json!({"name": "x".repeat(10_000)}));
        assert!(long.message().len() < 200);
    }
}

#[tokio::test(start_paused = true)]
async fn structured_output_is_said_where_the_revision_has_it() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        let answer = client.call(2, "point", json!({"x": 1, "y": 2})).await;
        assert_eq!(answer.text(), r#"{"x":1,"y":2}"#);
        let structured = &answer.result()["structuredContent"];
        if revision.has_structured_output() {
            assert_eq!(*structured, json!({"x": 1, "y": 2}));
        } else {
            assert!(structured.is_null(), "{revision}");
        }
        // No object: only the newest revision has a place for it.
        let answer = client.call(3, "list", json!({})).await;
        assert_eq!(answer.text(), "[1,2]");
        assert_eq!(answer.result()["structuredContent"].is_array(), revision.is_modern());
        let list = client.now(4, "tools/list", json!({}));
        let tools = list.result()["tools"].as_array().unwrap();
        let output = |name: &str| &tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"];
        assert_eq!(output("point")["type"] == "object", revision.has_structured_output());
        assert_eq!(output("list")["type"] == "array", revision.is_modern());
        assert!(output("echo").is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn failures_tell_only_what_the_author_said() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        for (tool, told) in [
            ("told", "no luck"),
            ("hidden", "internal error"),
            ("panic", "internal error"),
            ("panic-later", "internal error"),
            ("unwritable", "internal error"),
        ] {
            let answer = client.call(2, tool, json!({})).await;
            assert_eq!(answer.result()["isError"], true, "{tool}");
            assert_eq!(answer.text(), told, "{tool}");
            assert!(!answer.text.contains("secret"));
        }
        assert_eq!(client.call(2, "protocol", json!({})).await.error(), (-31_999, ReplyStatus::Ok));
        let old = if revision.is_modern() { -32_602 } else { -32_042 };
        assert_eq!(client.call(2, "old-code", json!({})).await.error().0, old);
        // And the next call is served.
        assert_eq!(client.call(3, "echo", json!({"text": "x"})).await.text(), "x");
    }
    let open = crate::core_server::builder(&<_>::default()).tell_failures(true).build().unwrap();
    let client = Client::connect(&open, MODERN);
    assert!(client.call(2, "hidden", json!({})).await.text().contains("invalid digit"));
    assert_eq!(client.call(2, "panic", json!({})).await.text(), "internal error");
}

#[tokio::test(start_paused = true)]
async fn results_keep_blocks_and_metadata() {
    let server = server();
    let client = Client::connect(&server, MODERN);
    let answer = client.call(2, "blocks", json!({})).await;
    assert_eq!(answer.result()["content"][1]["text"], "b");
    assert_eq!(answer.result()["_meta"]["k"], 1);
    assert_eq!(answer.result()["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test-server");
    let client = Client::connect(&server, Revision::V2025_06_18);
    assert_eq!(client.call(2, "blocks", json!({})).await.result()["_meta"], json!({"k": 1}));
}

#[tokio::test(start_paused = true)]
async fn asynchronous_and_blocking_tools_answer_later() {
    let server = server();
    for revision in Revision::ALL {
        let client = Client::connect(&server, revision);
        assert_eq!(client.call(2, "sleep", json!({})).await.text(), "slept");
        assert_eq!(client.call(2, "block", json!({"text": "x"})).await.text(), format!("x by {revision}"));
    }
}

#[tokio::test(start_paused = true)]
async fn layers_are_timed_only_where_asked() {
    let server = server();
    for revision in Revision::ALL {
        let mut client = Client::connect(&server, revision);
        let asked = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"dev.mcpace/timing": true}});
        let answer = client.now(2, "tools/call", asked.clone());
        let told = &answer.result()["_meta"]["dev.mcpace/timing"];
        for layer in ["transport_ns", "dispatch_ns", "service_ns"] {
            assert!(told[layer].is_u64(), "{told}");
        }
        let timing = answer.timing.unwrap();
        assert_eq!(told["service_ns"], u64::try_from(timing.service.as_nanos()).unwrap());
        let declined = json!({"name": "echo", "arguments": {"text": "x"}, "_meta": {"dev.mcpace/timing": false}});
        assert!(client.now(2, "tools/call", declined).timing.is_none());
        // The transport's own wish doesn't show in the result.
        client.timed = true;
        let answer = client.call(2, "sleep", json!({})).await;
        assert!(answer.timing.unwrap().dispatch < Duration::from_secs(3_600));
        assert!(answer.result()["_meta"]["dev.mcpace/timing"].is_null());
        assert!(client.now(3, "tools/list", json!({})).timing.is_some());
    }
}

#[test]
fn mistakes_are_found_at_registration() {
    let tool = |name: &str| Tool::new(name).handler(|_: NoArguments| Ok::<_, ToolError>(()));
    let build = |tool: Tool| Server::builder("x", "1").tool(tool).build().map(drop);
    assert!(matches!(
        Server::builder("x", "1").tool(tool("a")).tool(tool("a")).build().map(drop),
        Err(BuildError::Duplicate { kind: "tool", .. })
    ));
    for name in ["", "a b", "é", &"x".repeat(129)] {
        assert!(matches!(build(tool(name)), Err(BuildError::Name { .. })), "{name}");
    }
    assert!(matches!(build(Tool::new("a")), Err(BuildError::NoHandler { .. })));
    let list = Tool::new("a").handler(|_: Vec<u8>| Ok::<_, ToolError>(()));
    assert!(matches!(build(list), Err(BuildError::Schema { .. })));
    let header =
        schemars::json_schema!({"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}});
    assert!(matches!(build(tool("a").input_schema(header)), Err(BuildError::Header { .. })));
    assert!(matches!(Server::builder("x", "1").revisions(&[]).build().map(drop), Err(BuildError::NoRevision)));
}

#[test]
fn header_annotations_are_known_to_transports() {
    let schema = schemars::json_schema!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let tool = Tool::new("a").input_schema(schema).handler(|_: NoArguments| Ok::<_, ToolError>(()));
    let plain = Tool::new("b").handler(|_: NoArguments| Ok::<_, ToolError>(()));
    let server = Server::builder("x", "1").tool(tool).tool(plain).build().unwrap();
    assert_eq!(server.param_headers("a").unwrap()[0].name, "Region");
    assert!(server.param_headers("b").is_none());
    assert!(server.param_headers("c").is_none());
}
