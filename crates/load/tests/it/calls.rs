//! Requests and replies: sessions, revisions, forms of replies, stdio.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use mcpace_load::Plan;
use serde_json::{Value, json};

use crate::server::{Action, Request, Server, example, good, http, operation, plan, result, run};

#[test]
fn a_user_holds_its_session_and_ends_it() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    let server = Server::start(move |request: &Request| {
        let name = if request.method == "DELETE" { "DELETE" } else { request.rpc() };
        let is_first = name == "initialize";
        assert_eq!(request.header("mcp-session-id"), (!is_first).then_some("s1"), "{name}");
        assert_eq!(request.header("mcp-protocol-version"), (!is_first).then_some("2025-06-18"), "{name}");
        log.lock().unwrap().push(name.to_owned());
        good(request)
    });
    let changes = json!({"session": "user", "max_calls": 5, "model": {"kind": "closed", "vus": 1}, "duration_s": 50});
    let outcome = run(plan(&server.url(), &changes));
    let expected = [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "tools/call",
        "DELETE",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(operation(&outcome, "echo").ok, 5);
    for name in ["initialize", "initialized", "delete"] {
        assert_eq!(operation(&outcome, name).ok, 1, "{name}");
    }
    assert_eq!((outcome.connections.opened, outcome.connections.reused_requests), (1, 7));
}

#[test]
fn every_request_has_a_connection_of_its_own_where_the_plan_says_so() {
    let server = Server::start(good);
    let changes = json!({"session": "none", "revision": "2026-07-28", "max_calls": 5, "duration_s": 50, "model": {"kind": "closed", "vus": 1}, "new_connections": true});
    let outcome = run(plan(&server.url(), &changes));
    assert_eq!(operation(&outcome, "echo").ok, 5);
    assert_eq!((outcome.connections.opened, outcome.connections.reused_requests), (5, 0));
    assert_eq!(outcome.connections.failed, 0);
}

#[test]
fn a_session_a_call_is_counted_apart_from_the_call() {
    let server = Server::start(|request: &Request| {
        if request.rpc() == "initialize" {
            // The fault itself: an expensive session.
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        good(request)
    });
    let outcome = run(plan(&server.url(), &json!({"session": "call", "max_calls": 8, "duration_s": 50})));
    let (call, initialize) = (operation(&outcome, "echo"), operation(&outcome, "initialize"));
    assert_eq!((call.ok, initialize.ok, operation(&outcome, "delete").ok), (8, 8, 8));
    assert!(initialize.latency.min_s >= 0.05 && call.latency.p50_s < initialize.latency.p50_s, "{call:?}");
}

#[test]
fn ids_are_used_once_and_templates_differ() {
    let seen: Arc<Mutex<Vec<(u64, Value)>>> = Arc::default();
    let log = Arc::clone(&seen);
    let server = Server::start(move |request: &Request| {
        log.lock().unwrap().push((request.body["id"].as_u64().unwrap(), request.body["params"]["arguments"].clone()));
        good(request)
    });
    let operations =
        json!([{"name": "e", "kind": "call", "tool": "echo", "arguments": {"u": "{{uuid}}", "n": "{{counter}}"}}]);
    let outcome =
        run(plan(&server.url(), &json!({"operations": operations, "threads": 2, "max_calls": 41, "duration_s": 50})));
    assert_eq!(operation(&outcome, "e").ok, 41);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().map(|(id, _)| id).collect::<HashSet<_>>().len(), 41);
    assert_eq!(seen.iter().map(|(_, arguments)| arguments["u"].as_str().unwrap()).collect::<HashSet<_>>().len(), 41);
    assert_eq!(seen.iter().map(|(_, arguments)| arguments["n"].as_u64().unwrap()).collect::<HashSet<_>>().len(), 41);
}

#[test]
fn event_streams_in_pieces_with_other_messages_before_the_result() {
    let server = Server::start(|request: &Request| {
        let events = format!(
            ": hello\n\nid: 1\ndata: \n\nevent: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\n\ndata: {}\r\n\r\n",
            result(request)
        );
        let mut pieces =
            vec![b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()];
        pieces.extend(
            events
                .as_bytes()
                .chunks(50)
                .map(|part| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()),
        );
        pieces.push(b"0\r\n\r\n".to_vec());
        Action::Pieces(pieces)
    });
    let outcome = run(plan(&server.url(), &json!({"max_calls": 200, "duration_s": 50})));
    let echo = operation(&outcome, "echo");
    assert_eq!((echo.ok, echo.sse_replies, echo.json_replies), (200, 200, 0));
    // A stream that ends soon after its result leaves the connection to the next call.
    assert_eq!(outcome.connections.opened, server.connections.load(Ordering::SeqCst));
    assert!(outcome.connections.opened < 50, "{:?}", outcome.connections);
}

#[test]
fn a_stream_that_stays_open_holds_nobody_up() {
    let server = Server::start(|request: &Request| {
        let body = format!("data: {}\n\n", result(request));
        Action::Send(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}").into_bytes())
    });
    let outcome = run(plan(&server.url(), &json!({"max_calls": 100, "duration_s": 50})));
    assert_eq!(operation(&outcome, "echo").ok, 100);
    // Such a connection can't be used again.
    assert_eq!(outcome.connections.reused_requests, 0);
}

#[test]
fn stateless_requests_say_all_about_themselves() {
    let server = Server::start(|request: &Request| {
        let version = request.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let headers =
            ["mcp-protocol-version", "mcp-method", "mcp-name"].map(|name| request.header(name).unwrap_or_default());
        if version == Some("2026-07-28") && headers == ["2026-07-28", "tools/call", "echo"] {
            good(request)
        } else {
            Action::Send(http("400 Bad Request", "", "text/plain", "no"))
        }
    });
    let outcome = run(plan(&server.url(), &json!({"revision": "2026-07-28", "max_calls": 10, "duration_s": 50})));
    assert_eq!(operation(&outcome, "echo").ok, 10);
}

#[test]
fn what_the_server_agrees_to_is_what_is_spoken() {
    let server = Server::start(|request: &Request| match (request.rpc(), request.header("mcp-protocol-version")) {
        ("initialize", None) => good(request),
        (_, Some("2025-06-18")) => good(request),
        _ => Action::Send(http("400 Bad Request", "", "text/plain", "no")),
    });
    let changes = json!({"revision": "2025-11-25", "session": "user", "max_calls": 10, "duration_s": 50});
    assert_eq!(operation(&run(plan(&server.url(), &changes)), "echo").ok, 10);
}

#[test]
fn a_process_a_user_over_stdio() {
    let command = [example("peer").to_str().unwrap().to_owned(), "stdio".to_owned()];
    let changes =
        json!({"target": {"kind": "stdio", "command": command}, "session": "user", "max_calls": 50, "duration_s": 50});
    let outcome = run(plan("http://unused", &changes));
    assert_eq!((operation(&outcome, "echo").ok, outcome.connections.opened), (50, 4));
    assert_eq!(operation(&outcome, "initialize").ok, 4);
}

#[test]
fn impossible_plans_are_refused_with_the_reason() {
    let base = serde_json::to_value(plan("http://h/", &json!({}))).unwrap();
    let cases = [
        (json!({"revision": "2026-07-28", "session": "user"}), "no sessions"),
        (json!({"revision": "2024-11-05"}), "no Streamable HTTP"),
        (json!({"duration_s": 0}), "longer than 0"),
        (json!({"duration_s": 1e300}), "a week"),
        (json!({"duration_s": null}), "how long"),
        (json!({"stages": [{"duration_s": 1, "to": 5}]}), "leave the duration out"),
        (json!({"model": {"kind": "closed", "vus": 200_000}}), "at most 100000 users"),
        (json!({"model": {"kind": "open", "rate": 0, "max_in_flight": 5}}), "above 0"),
        (json!({"model": {"kind": "open", "rate": 5, "max_in_flight": 0}}), "from 1 to"),
        (json!({"model": {"kind": "open", "rate": 5, "max_in_flight": 5}, "think_s": 1}), "think time"),
        (json!({"operations": []}), "nothing to call"),
        (
            json!({"operations": [{"name": "x", "kind": "call", "tool": "t", "arguments": {"a": "{{nope}}"}}]}),
            "no template",
        ),
        (json!({"operations": [{"name": "x", "kind": "call"}]}), "calls no tool"),
        (json!({"operations": [{"name": "x", "kind": "ping", "weight": 0}]}), "weights"),
        (json!({"session": "user", "fixed_id": 1}), "fixed id"),
        (json!({"target": {"kind": "http", "url": "http://h/", "headers": [["a b", "c"]]}}), "header's name"),
        (
            json!({"target": {"kind": "http", "url": "http://h/", "headers": [["a", "b\r\nc: d"]]}}),
            "control characters",
        ),
        (json!({"target": {"kind": "stdio", "command": []}}), "command is empty"),
        (
            json!({"operations": vec![json!({"name": "x", "kind": "call", "tool": "t"}); 1_001]}),
            "at most 1000 operations, not 1001",
        ),
        (
            json!({"operations": vec![json!({"name": "x", "kind": "call", "tool": "t"}); 100], "threads": 41}),
            "100 operations on 41 threads",
        ),
        (json!({"threads": 0}), "threads"),
        (json!({"cores": [70_000]}), "no core 70000"),
        (json!({"threads": 2, "model": {"kind": "open", "rate": 5, "max_in_flight": 1}}), "at least one for each"),
        (json!({"max_calls": 0}), "no calls at all"),
        (json!({"surprise": 1}), "surprise"),
    ];
    for (changes, why) in cases {
        let mut text = base.clone();
        changes.as_object().unwrap().iter().for_each(|(name, value)| text[name] = value.clone());
        let refused = Plan::parse(&text.to_string()).unwrap_err().to_string();
        assert!(refused.contains(why), "{changes}: {refused}");
    }
}
