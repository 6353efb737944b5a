//! A recording as a server: which answer a request gets, when, and over which transport.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_target::{Faults, Matching, Options, RecordedServer, Target, serve_recording};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::client::{Ask, Connection, LIMIT, limited, response, start, text};

const HEAD: &str = r#"{"format":"mcpace.recording/2","instrument":"recorder","started":"2026-11-20T00:00:00Z","mcpace":"0.1.0","upstream":"http://127.0.0.1:1/mcp"}"#;

/// The lines of a recording, whose exchanges are numbered and follow each other by seconds.
struct Lines {
    text: String,
    exchanges: u64,
}

impl Lines {
    fn new() -> Self {
        Self { text: format!("{HEAD}\n"), exchanges: 0 }
    }

    fn event(&mut self, at_ms: u64, event: &Value) {
        self.text +=
            &format!("{}\n", json!({"at": self.exchanges * 1_000_000_000 + at_ms * 1_000_000, "event": event}));
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) {
        self.exchanges += 1;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let messages = mcpace_record::MessageNote::of(body.as_bytes());
        let digest = mcpace_record::digest_bytes(body.as_bytes());
        let fact = json!({"side": "front", "ex": self.exchanges, "bytes": body.len(), "digest": digest,
            "messages": messages, "body": {"text": body}});
        self.event(0, &json!({"request-end": fact}));
    }

    /// The head of the next request.
    fn request_head(&mut self, method: &str, headers: &Value) {
        let fact = json!({"side": "front", "conn": 1, "ex": self.exchanges + 1, "method": method, "target": "/mcp",
            "headers": headers});
        self.event(0, &json!({"request-head": fact}));
    }

    fn head(&mut self, at_ms: u64, status: u16, headers: &Value) {
        self.event(
            at_ms,
            &json!({"reply-head": {"side": "back", "ex": self.exchanges, "status": status, "headers": headers}}),
        );
    }

    fn event_stream(&mut self, at_ms: u64, body: &Value) {
        let body = body.to_string();
        let messages = mcpace_record::MessageNote::of(body.as_bytes());
        let fact = json!({"side": "back", "ex": self.exchanges, "seq": 0, "began": 0, "bytes": 1,
            "messages": messages, "body": {"text": body}});
        self.event(at_ms, &json!({"reply-event": fact}));
    }

    fn end(&mut self, at_ms: u64, body: Option<(&str, bool)>) {
        let messages = mcpace_record::MessageNote::of(body.unwrap_or_default().0.as_bytes());
        let body = body.map(|(text, cut)| json!({"text": if cut { &text[..10] } else { text }, "cut": cut}));
        let fact = json!({"side": "back", "ex": self.exchanges, "bytes": 1, "digest": "0000000000000001",
            "ending": "complete", "messages": messages, "body": body});
        self.event(at_ms, &json!({"reply-end": fact}));
    }

    /// A request that was answered with JSON after `at_ms`.
    fn answered(&mut self, method: &str, params: &Value, result: &Value, at_ms: u64) {
        let id = self.exchanges;
        self.ask(id, method, params);
        self.head(at_ms, 200, &json!([["content-type", "application/json"]]));
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        self.end(at_ms, Some((&body, false)));
    }

    fn called(&mut self, arguments: &Value, text: &str) {
        let params = json!({"name": "search", "arguments": arguments, "_meta": {"progressToken": self.exchanges}});
        self.answered("tools/call", &params, &json!({"content": [{"type": "text", "text": text}]}), 0);
    }

    fn read(&self, matching: Matching, time_scale: f64) -> RecordedServer {
        RecordedServer::read(|| Ok(self.text.as_bytes()), matching, time_scale).unwrap()
    }

    async fn serve(&self, matching: Matching, time_scale: f64) -> Target {
        start(Options::of_recording(Arc::new(self.read(matching, time_scale)))).await
    }
}

fn search(arguments: &Value) -> Ask {
    Ask::call("search", arguments.clone())
}

#[tokio::test]
async fn equal_parameters_get_the_recorded_answers_in_order_and_from_the_first_again() {
    let mut lines = Lines::new();
    lines.called(&json!({"q": "tea", "n": 1}), "first");
    lines.called(&json!({"q": "rice"}), "other");
    lines.called(&json!({"n": 1, "q": "tea"}), "second");
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for expected in ["first", "second", "first"] {
        let (head, body) = connection.exchange(&search(&json!({"q": "tea", "n": 1}))).await;
        assert_eq!((head.status(), head.header("content-type")), (200, Some("application/json")));
        assert_eq!((text(&body).as_str(), &response(&body)["id"]), (expected, &json!(7)));
    }
    assert_eq!((target.counters().matches["equal"], target.counters().tools["search"]), (3, 3));
}

#[tokio::test]
async fn what_has_no_match_is_an_error_that_says_what_there_is() {
    let mut lines = Lines::new();
    lines.called(&json!({"q": "tea"}), "first");
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for (ask, code, words) in [
        (
            search(&json!({"q": "milk"})),
            -32602,
            r#"with another set of parameters, and not with these; the nearest has {"arguments":{"q":"tea"},"name":"search"}"#,
        ),
        (Ask::call("serach", json!({})), -32602, r#"no tools/call of "serach"; did you mean search? (it has search)"#),
        (Ask::request("prompts/list", json!({})), -32601, "the recording has no prompts/list (it has tools/call)"),
        (Ask::request("tools/call", json!([])), -32602, "no tools/call"),
    ] {
        let (head, body) = connection.exchange(&ask).await;
        let error = &response(&body)["error"];
        assert_eq!((head.status(), &error["code"]), (200, &json!(code)), "{body}");
        assert!(error["message"].as_str().unwrap().contains(words), "{body}");
    }
    assert_eq!(target.counters().matches["none"], 4);
}

#[tokio::test]
async fn lenient_takes_the_request_with_most_values_in_common_and_never_another_tool() {
    let mut lines = Lines::new();
    lines.called(&json!({"q": "tea", "limit": 5, "sort": "price"}), "by price");
    lines.called(&json!({"q": "tea", "limit": 9, "sort": "name"}), "by name");
    let target = lines.serve(Matching::Lenient, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for (arguments, expected) in [
        (json!({"q": "rice", "limit": 9, "sort": "name"}), "by name"),
        (json!({"q": "rice", "limit": 5, "sort": "price"}), "by price"),
        (json!({"other": true}), "by price"),
    ] {
        assert_eq!(text(&connection.exchange(&search(&arguments)).await.1), expected, "{arguments}");
    }
    let (_, body) = connection.exchange(&Ask::call("find", json!({"q": "tea"}))).await;
    assert_eq!(response(&body)["error"]["code"], -32602);
    assert_eq!(target.counters().matches["nearest"], 3);
}

#[tokio::test]
async fn the_recorded_handshake_serves_every_revision() {
    let mut lines = Lines::new();
    let recorded = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "shop", "version": "3"}, "instructions": "Ask politely."});
    lines.answered("initialize", &json!({"protocolVersion": "2025-06-18"}), &recorded, 0);
    lines.answered("tools/list", &json!({}), &json!({"tools": [{"name": "search", "inputSchema": {}}]}), 0);
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (_, body) = connection.exchange(&Ask::initialize(revision)).await;
        let mut expected = recorded.clone();
        expected["protocolVersion"] = json!(revision);
        assert_eq!(response(&body)["result"], expected);
        let (_, body) = connection.exchange(&Ask::request("ping", json!({}))).await;
        assert_eq!(response(&body)["result"], json!({}));
        let (_, body) = connection.exchange(&Ask::request("tools/list", json!({"cursor": null}))).await;
        assert_eq!(response(&body)["result"], json!({"tools": [{"name": "search", "inputSchema": {}}]}));
    }
    let (head, body) = connection.exchange(&Ask::modern("server/discover", json!({}))).await;
    let result = &response(&body)["result"];
    assert_eq!((head.status(), &result["supportedVersions"]), (200, &json!(["2026-07-28"])));
    assert_eq!(
        (&result["instructions"], &result["capabilities"]),
        (&recorded["instructions"], &recorded["capabilities"])
    );
    let (_, body) = connection.exchange(&Ask::modern("tools/list", json!({}))).await;
    let result = &response(&body)["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"], recorded["serverInfo"]);
    let (head, body) = connection.exchange(&Ask::modern("initialize", json!({}))).await;
    assert_eq!((head.status(), &response(&body)["error"]["code"]), (404, &json!(-32601)));
}

#[tokio::test]
async fn a_modern_result_serves_a_legacy_client_without_the_members_of_its_era() {
    let mut lines = Lines::new();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    let info = json!({"io.modelcontextprotocol/serverInfo": {"name": "shop", "version": "3"}});
    let result = json!({"resultType": "complete", "ttlMs": 5, "cacheScope": "public", "tools": [], "_meta": info});
    lines.answered("tools/list", &json!({"_meta": meta}), &result, 0);
    let asked = json!({"resultType": "input_required", "inputRequests": {}, "requestState": "x"});
    lines.answered("tools/call", &json!({"name": "order", "_meta": meta}), &asked, 0);
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    let (_, body) = connection.exchange(&Ask::request("tools/list", json!({}))).await;
    assert_eq!(response(&body)["result"], json!({"tools": []}));
    let (_, body) = connection.exchange(&Ask::modern("tools/list", json!({}))).await;
    assert_eq!(response(&body)["result"], result);
    let (_, body) = connection.exchange(&Ask::call("order", json!({}))).await;
    assert!(response(&body)["error"]["message"].as_str().unwrap().contains("needs a client of 2026-07-28"), "{body}");
}

#[tokio::test]
async fn recorded_times_are_kept_or_scaled_and_progress_goes_to_the_clients_own_token() {
    let mut lines = Lines::new();
    lines.ask(1, "tools/call", &json!({"name": "search", "arguments": {}, "_meta": {"progressToken": "old"}}));
    lines.head(20, 200, &json!([["content-type", "text/event-stream"]]));
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "old", "progress": 1}});
    lines.event_stream(60, &progress);
    lines.event_stream(
        120,
        &json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "done"}]}}),
    );
    lines.end(180, None);
    let ask = Ask::request("tools/call", json!({"name": "search", "_meta": {"progressToken": "new"}}));
    for (scale, bounds) in [(1.0, [20, 60, 120, 180]), (0.5, [10, 30, 60, 90]), (0.0, [0, 0, 0, 0])] {
        let target = lines.serve(Matching::Strict, scale).await;
        let mut connection = Connection::open(&target).await;
        let begun = Instant::now();
        let mut passed = Vec::new();
        let head = connection.ask(&ask).await;
        passed.push(begun.elapsed());
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        let mut events = String::new();
        while let Some(chunk) = connection.chunk().await {
            events += &String::from_utf8(chunk).unwrap();
            if scale > 0.0 {
                passed.push(begun.elapsed());
            }
        }
        assert!(events.contains(r#""progressToken":"new""#) && events.contains("done"), "{events}");
        // Only lower bounds: a busy machine is late, and never early.
        passed.push(begun.elapsed());
        for (passed, bound) in passed.iter().zip(bounds) {
            assert!(*passed >= Duration::from_millis(bound), "{passed:?} of {bound} ms at scale {scale}");
        }
    }
    let target = lines.serve(Matching::Strict, 0.0).await;
    let (_, body) = Connection::open(&target).await.exchange(&search(&json!({}))).await;
    assert!(!body.contains("progress"), "the client gave no token: {body}");
}

#[tokio::test]
async fn progress_belongs_to_the_request_of_its_own_session_or_exchange() {
    let mut lines = Lines::new();
    let call = |name: &str| json!({"name": name, "arguments": {}, "_meta": {"progressToken": 1}});
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let result = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
    let stream = json!([["content-type", "text/event-stream"]]);
    // Two clients with one token: the answers of the first session come in a stream of its own.
    for (id, name, session) in [(1, "first", "a"), (2, "second", "b")] {
        lines.request_head("POST", &json!([["mcp-session-id", session]]));
        lines.ask(id, "tools/call", &call(name));
    }
    lines.request_head("GET", &json!([["mcp-session-id", "a"]]));
    lines.exchanges = 3;
    lines.head(1, 200, &stream);
    lines.event_stream(2, &progress);
    lines.event_stream(3, &result(1));
    lines.exchanges = 2;
    lines.event_stream(2_000, &result(2));
    // Two clients without sessions.
    for (id, name) in [(4, "third"), (5, "fourth")] {
        lines.exchanges = id - 1;
        lines.ask(id, "tools/call", &call(name));
    }
    lines.exchanges = 4;
    lines.head(1_500, 200, &stream);
    lines.event_stream(1_600, &progress);
    lines.event_stream(1_700, &result(4));
    lines.exchanges = 5;
    lines.event_stream(1_000, &result(5));
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for (name, has_progress) in [("first", true), ("second", false), ("third", true), ("fourth", false)] {
        let (head, body) = connection.exchange(&Ask::request("tools/call", call(name))).await;
        assert_eq!(head.status(), 200, "{body}");
        assert_eq!(body.contains("notifications/progress"), has_progress, "{name}: {body}");
    }
}

#[tokio::test]
async fn a_request_whose_text_was_cut_is_of_the_revision_in_its_header() {
    for (revision, is_adapted) in [("2026-07-28", true), ("2025-06-18", false)] {
        let mut lines = Lines::new();
        lines.request_head("POST", &json!([["mcp-protocol-version", revision]]));
        lines.ask(1, "tools/list", &json!({}));
        lines.text = lines.text.replace(r#""body":{"text""#, r#""body":{"cut":true,"text""#);
        lines.head(1, 200, &json!([["content-type", "application/json"]]));
        let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "ttlMs": 5}}).to_string();
        lines.end(1, Some((&result, false)));
        let target = lines.serve(Matching::Lenient, 0.0).await;
        let (_, body) = Connection::open(&target).await.exchange(&Ask::request("tools/list", json!({}))).await;
        // A member of the modern revisions is left out for a client of another one.
        assert_eq!(response(&body)["result"]["ttlMs"].is_null(), is_adapted, "{body}");
    }
}

#[tokio::test]
async fn cut_and_missing_answers_are_counted_and_refused() {
    let mut lines = Lines::new();
    lines.called(&json!({"q": "tea"}), "whole");
    let long = json!({"jsonrpc": "2.0", "id": 5, "result": {"content": []}}).to_string();
    lines.ask(5, "tools/call", &json!({"name": "search", "arguments": {"q": "long"}}));
    lines.end(1, Some((&long, true)));
    lines.ask(6, "tools/call", &json!({"name": "search", "arguments": {"q": "lost"}}));
    lines.ask(7, "tools/call", &json!({"name": "search", "arguments": {"q": "barred"}}));
    lines.head(1, 403, &json!([]));
    lines.end(1, None);
    lines.called(&json!({"q": "key"}), "the key is [redacted 1f2e3d4c]");
    let recorded = lines.read(Matching::Strict, 0.0);
    let summary = recorded.summary();
    assert_eq!(summary.answers, [("tools/call".to_owned(), 2)].into());
    assert_eq!((summary.cut, summary.unanswered, summary.refused, summary.redacted), (1, 1, 1, 1));
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    for (q, words) in [("long", "--body-limit"), ("lost", "has no answer"), ("barred", "refused")] {
        let (_, body) = connection.exchange(&search(&json!({"q": q}))).await;
        assert!(response(&body)["error"]["message"].as_str().unwrap().contains(words), "{body}");
    }
}

#[tokio::test]
async fn a_request_with_a_masked_secret_is_found_by_its_original_text() {
    let mut lines = Lines::new();
    lines.called(&json!({"api_key": "s3cret"}), "for the key");
    // The recorder masks the text and keeps the digest of the original.
    lines.text = lines.text.replace("s3cret", "[redacted 1f2e3d4c]");
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    assert_eq!(text(&connection.exchange(&search(&json!({"api_key": "s3cret"}))).await.1), "for the key");
    let (_, body) = connection.exchange(&search(&json!({"api_key": "other"}))).await;
    assert_eq!(response(&body)["error"]["code"], -32602);
}

#[tokio::test]
async fn a_recorded_http_error_is_repeated() {
    let mut lines = Lines::new();
    lines.ask(1, "tools/call", &json!({"name": "search", "arguments": {}}));
    lines.head(1, 429, &json!([["content-type", "text/plain"], ["retry-after", "7"]]));
    lines.end(1, Some(("slow down", false)));
    let target = lines.serve(Matching::Strict, 0.0).await;
    let (head, body) = Connection::open(&target).await.exchange(&search(&json!({}))).await;
    assert_eq!((head.status(), head.header("retry-after"), body.as_str()), (429, Some("7"), "slow down"));
    assert_eq!(head.header("content-type"), Some("text/plain"));
}

#[tokio::test]
async fn sessions_are_kept_where_the_recorded_server_kept_them() {
    let mut lines = Lines::new();
    lines.ask(0, "initialize", &json!({"protocolVersion": "2025-06-18"}));
    lines.head(1, 200, &json!([["content-type", "application/json"], ["mcp-session-id", "[redacted 1f2e3d4c]"]]));
    let result =
        json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}).to_string();
    lines.end(1, Some((&result, false)));
    lines.called(&json!({}), "found");
    let target = lines.serve(Matching::Strict, 0.0).await;
    let mut connection = Connection::open(&target).await;
    assert_eq!(connection.exchange(&search(&json!({}))).await.0.status(), 400);
    let (head, _) = connection.exchange(&Ask::initialize("2025-06-18")).await;
    let id = head.header("mcp-session-id").unwrap().to_owned();
    let (_, body) = connection.exchange(&search(&json!({})).with("Mcp-Session-Id", &id)).await;
    assert_eq!(text(&body), "found");
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let refused = |text: &str, scale| {
        RecordedServer::read(|| Ok(text.as_bytes()), Matching::Strict, scale).unwrap_err().to_string()
    };
    assert!(refused("hello", 1.0).starts_with("not a recording"), "{}", refused("hello", 1.0));
    assert!(refused(HEAD, 1.0).contains("no request with a whole answer"));
    for scale in [-1.0, 1_001.0, f64::NAN, f64::INFINITY] {
        assert!(refused(HEAD, scale).contains("time scale"));
    }
    let failed = |_: ()| RecordedServer::read(|| Err::<&[u8], _>(io::Error::other("gone")), Matching::Strict, 1.0);
    assert!(failed(()).unwrap_err().to_string().contains("gone"));
}

#[test]
fn faults_of_a_profiles_tools_are_refused() {
    let mut lines = Lines::new();
    lines.called(&json!({}), "x");
    let recorded = Arc::new(lines.read(Matching::Strict, 0.0));
    let options = Options { faults: Faults::parse(["tool=1ms"]).unwrap(), ..Options::of_recording(recorded) };
    let started = tokio::runtime::Runtime::new().unwrap().block_on(Target::start(options));
    assert!(started.unwrap_err().to_string().contains("a recording has none"));
}

#[tokio::test]
async fn over_stdio_calls_run_side_by_side_and_can_be_cancelled() {
    let mut lines = Lines::new();
    let content = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let call = |name: &str| json!({"name": name, "arguments": {}});
    lines.answered("tools/call", &call("slow"), &content("slow"), 150);
    lines.answered("tools/call", &call("quick"), &content("quick"), 0);
    lines.answered("tools/call", &call("never"), &content("never"), 3_000_000);
    let recorded = Arc::new(lines.read(Matching::Strict, 1.0));
    let (client, server) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(server);
    let serving = tokio::spawn(serve_recording(recorded, input, output));
    let (reading, mut writing) = tokio::io::split(client);
    let mut replies = BufReader::new(reading).lines();
    let ask = |id: u64, name: &str| {
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(name)}))
    };
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    let batch = format!("[{},{}]\n", ask(4, "quick").trim(), ask(5, "quick").trim());
    let modern = json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "quick", "_meta":
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let sent =
        [ask(1, "slow"), ask(3, "never"), ask(2, "quick"), format!("{cancel}\n{{\n"), batch, format!("{modern}\n")];
    limited(writing.write_all(sent.concat().as_bytes())).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let line = limited(replies.next_line()).await.unwrap().unwrap();
        seen.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    assert_eq!(seen[4]["id"], 1, "the slow one is last: {seen:?}");
    assert!(seen.iter().any(|line| line["error"]["code"] == -32700), "{seen:?}");
    assert!(seen.iter().any(|line| line[0]["id"] == 4 && line[1]["id"] == 5), "{seen:?}");
    assert!(seen.iter().any(|line| line["id"] == 6 && line["result"]["resultType"] == "complete"), "{seen:?}");
    writing.shutdown().await.unwrap();
    // The cancelled call would keep the server for its grace otherwise.
    let counters = tokio::time::timeout(LIMIT, serving).await.unwrap().unwrap().unwrap();
    assert_eq!((counters.requests["tools/call"], counters.notifications, counters.tools["quick"]), (6, 1, 4));
    assert!(limited(replies.next_line()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_cancelled_request_of_a_batch_is_left_out_of_the_array() {
    let mut lines = Lines::new();
    let call = |name: &str| json!({"name": name, "arguments": {}});
    lines.answered("tools/call", &call("quick"), &json!({"content": []}), 0);
    lines.answered("tools/call", &call("never"), &json!({"content": []}), 3_000_000);
    let recorded = Arc::new(lines.read(Matching::Strict, 1.0));
    let (client, server) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(server);
    let serving = tokio::spawn(serve_recording(recorded, input, output));
    let (reading, mut writing) = tokio::io::split(client);
    let mut replies = BufReader::new(reading).lines();
    let ask = |id: u64, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    // A modern request without its other members of `_meta` is refused in the array, too.
    let refused = json!({"name": "quick", "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let mixed = json!([ask(1, call("quick")), ask(2, call("never")), ask(3, refused)]);
    let cancel = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    // A batch of which nothing is left has no answer.
    let sent = [mixed, cancel(2), json!([ask(4, call("never"))]), cancel(4), ask(5, call("quick"))];
    let sent: String = sent.iter().map(|message| format!("{message}\n")).collect();
    limited(writing.write_all(sent.as_bytes())).await.unwrap();
    writing.shutdown().await.unwrap();
    let mut seen: Vec<Value> = Vec::new();
    while let Some(line) = limited(replies.next_line()).await.unwrap() {
        seen.push(serde_json::from_str(&line).unwrap());
    }
    seen.sort_by_key(Value::is_object);
    assert_eq!((seen.len(), seen[0].as_array().unwrap().len()), (2, 2), "{seen:?}");
    assert_eq!((&seen[0][0]["id"], &seen[0][1]["id"], &seen[1]["id"]), (&json!(1), &json!(3), &json!(5)), "{seen:?}");
    assert_eq!(seen[0][1]["error"]["code"], -32602, "{seen:?}");
    limited(serving).await.unwrap().unwrap();
}
