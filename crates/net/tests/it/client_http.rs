//! The client over Streamable HTTP, against servers that do exactly what a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpace_net::client::{ClientError, ClientOptions};
use mcpace_record::{CallOutcome, Closer, EventKind, ReplyEnding, Side};
use mcpace_wire::Revision;
use serde_json::json;
use tokio::sync::Notify;

use crate::client_support::*;

#[tokio::test]
async fn a_legacy_server_is_found_listed_and_called_on_one_connection() {
    let script = Script::serve(legacy).await;
    let (mut client, sink) = client_with(script.url.as_str(), options());
    let info = client.connect().await.unwrap();
    assert_eq!(info.revision, Revision::V2025_11_25);
    assert_eq!(client.list_tools().await.unwrap()[0].name, "t");
    assert!(!call_tool(&mut client, "t", &json!({})).await.unwrap().is_error);
    client.disconnect().await;
    assert_eq!(
        script.story(),
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]
    );
    let call = script.seen.lock().unwrap()[4].clone();
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("mcp-method"), None);
    assert_eq!(connections(&sink), 1);
    assert_eq!(
        count(&sink, |kind| matches!(kind, EventKind::ConnectionClosed { by: Closer::Client, side: Side::Back, .. })),
        1
    );
}

#[tokio::test]
async fn the_stamps_of_a_call_stand_in_order_from_edge_to_edge() {
    let script = Script::serve(legacy).await;
    let (mut client, sink) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    call_tool(&mut client, "t", &json!({ "a": 1 })).await.unwrap();
    let recording = sink.recording();
    let events = recording.events();
    let start = event_at(events, |kind| matches!(kind, EventKind::CallStart { operation, .. } if operation == "call"));
    let after: Vec<&EventKind> =
        events.iter().skip_while(|event| !std::ptr::eq(*event, start)).map(|event| &event.kind).collect();
    assert!(matches!(
        after[..],
        [
            EventKind::CallStart { tool: Some(_), .. },
            EventKind::RequestHead { side: Side::Back, .. },
            EventKind::RequestEnd { side: Side::Back, .. },
            EventKind::ReplyHead { status: 200, .. },
            EventKind::ReplyBodyStart { .. },
            EventKind::ReplyEnd { ending: ReplyEnding::Complete, .. },
            EventKind::CallEnd { outcome: CallOutcome::Ok, .. },
        ]
    ));
    let EventKind::RequestEnd { messages, .. } = after[2] else { unreachable!() };
    assert_eq!(messages[0].name.as_deref(), Some("t"));
}

#[tokio::test]
async fn a_stream_held_open_after_the_result_does_not_hold_up_the_call() {
    let script = Script::serve(|seen| match seen.rpc().as_str() {
        "tools/call" => vec![stream_head(), event(&result(seen, &done())), Step::Hold],
        _ => legacy(seen),
    })
    .await;
    let settle_limit = Duration::from_millis(1);
    let (mut client, sink) = client_with(script.url.as_str(), ClientOptions { settle_limit, ..options() });
    client.connect().await.unwrap();
    for _ in 0..3 {
        call_tool(&mut client, "t", &json!({})).await.unwrap();
    }
    // The first connection is kept busy by the first call, the second by the second.
    assert_eq!(connections(&sink), 3);
    let ended = |kind: &EventKind| matches!(kind, EventKind::ReplyEnd { ending: ReplyEnding::ClientLeft, .. });
    assert_eq!(count(&sink, ended), 0);
    client.disconnect().await;
    assert_eq!(count(&sink, ended), 3);
}

#[tokio::test]
async fn a_stream_that_ends_after_the_result_gives_its_connection_back() {
    let script = Script::serve(|seen| match seen.rpc().as_str() {
        "tools/call" => {
            vec![
                stream_head(),
                event(&json!({ "jsonrpc": "2.0", "method": "notifications/x" })),
                event(&result(seen, &done())),
                stream_end(),
            ]
        }
        _ => legacy(seen),
    })
    .await;
    let (mut client, sink) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    for _ in 0..3 {
        call_tool(&mut client, "t", &json!({})).await.unwrap();
    }
    client.disconnect().await;
    assert_eq!(connections(&sink), 1);
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ReplyEvent { .. })), 6);
}

#[tokio::test]
async fn requests_of_the_server_in_a_reply_are_answered_before_its_result_comes() {
    let answered = Arc::new(Notify::new());
    let wait = Arc::clone(&answered);
    let script = Script::serve(move |seen| match seen.rpc().as_str() {
        "tools/call" => vec![
            stream_head(),
            event(&json!({ "jsonrpc": "2.0", "id": "r", "method": "roots/list" })),
            Step::Wait(Arc::clone(&wait)),
            event(&result(seen, &done())),
            stream_end(),
        ],
        "" => {
            wait.notify_one();
            reply(202, "", "")
        }
        _ => legacy(seen),
    })
    .await;
    let (mut client, _) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    call_tool(&mut client, "t", &json!({})).await.unwrap();
    assert_eq!(script.story().last().map(String::as_str), Some("a result"));
}

#[tokio::test]
async fn a_lost_session_is_begun_anew_once_and_the_call_goes_on() {
    let sessions = AtomicUsize::new(0);
    let script = Script::serve(move |seen| match (seen.rpc().as_str(), seen.header("mcp-session-id")) {
        ("initialize", _) => {
            let session = sessions.fetch_add(1, Ordering::Relaxed);
            let mut steps = legacy(seen);
            if let Some(Step::Send(text)) = steps.first_mut() {
                *text = text.replacen("\r\n", &format!("\r\nMcp-Session-Id: s{session}\r\n"), 1);
            }
            steps
        }
        ("tools/call", Some("s0")) => reply(404, "", ""),
        _ => legacy(seen),
    })
    .await;
    let (mut client, _) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    call_tool(&mut client, "t", &json!({})).await.unwrap();
    client.disconnect().await;
    assert_eq!(script.story()[3..], ["tools/call", "initialize", "notifications/initialized", "tools/call", "DELETE"]);
    assert_eq!(script.seen.lock().unwrap()[7].header("mcp-session-id"), Some("s1"));
}

#[tokio::test]
async fn a_stream_that_the_server_ends_early_is_resumed_after_its_last_event() {
    let script = Script::serve(|seen| match (seen.method.as_str(), seen.rpc().as_str()) {
        (_, "tools/call") => vec![stream_head(), chunk("retry: 1\nid: e7\ndata: \n\n"), stream_end()],
        ("GET", _) => {
            assert_eq!(seen.header("last-event-id"), Some("e7"));
            let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": done() });
            vec![stream_head(), event(&answer), stream_end()]
        }
        _ => legacy(seen),
    })
    .await;
    let (mut client, _) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    call_tool(&mut client, "t", &json!({})).await.unwrap();
    assert_eq!(script.story().last().map(String::as_str), Some("GET"));
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_and_one_elsewhere_is_not() {
    let script = Script::serve(|seen| match seen.target.as_str() {
        "/mcp" => reply(307, "Location: /mcp/\r\n", ""),
        _ => legacy(seen),
    })
    .await;
    let (mut client, sink) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    assert_eq!(connections(&sink), 1);
    let away = Script::serve(|_| reply(307, "Location: http://localhost:1/mcp\r\n", "")).await;
    let (mut client, _) = client_with(away.url.as_str(), options());
    assert_eq!(client.connect().await.unwrap_err().code(), "bad-redirect");
}

/// Error of a call that is answered with these steps.
async fn failure_of(options: ClientOptions, steps: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> ClientError {
    let script = Script::serve(move |seen| match seen.rpc().as_str() {
        "tools/call" => steps(seen),
        _ => legacy(seen),
    })
    .await;
    let (mut client, sink) = client_with(script.url.as_str(), options);
    client.connect().await.unwrap();
    let error = call_tool(&mut client, "t", &json!({})).await.unwrap_err();
    let failed = |kind: &EventKind| matches!(kind, EventKind::CallEnd { outcome: CallOutcome::Failed(_), .. });
    assert_eq!(count(&sink, failed), 1);
    client.disconnect().await;
    error
}

#[tokio::test]
async fn every_way_to_fail_a_call_is_told_apart() {
    let small = || ClientOptions { message_limit: 10_000, ..options() };
    let cut = failure_of(options(), |_| vec![stream_head(), chunk("data: {\"json"), Step::Close]).await;
    assert_eq!(cut.code(), "broke-off");
    let ended = failure_of(options(), |_| vec![stream_head(), stream_end()]).await;
    assert_eq!(ended.code(), "broke-off");
    let half = failure_of(options(), |_| {
        let text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
        vec![Step::Send(text.to_owned()), Step::Close]
    })
    .await;
    assert_eq!(half.code(), "broke-off");
    let wrong_id =
        failure_of(options(), |_| json_reply(200, &json!({ "jsonrpc": "2.0", "id": 99, "result": {} }))).await;
    assert_eq!(wrong_id.code(), "bad-reply");
    let error = |seen: &Seen| {
        json_reply(
            200,
            &json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "error": { "code": -32602, "message": "no" } }),
        )
    };
    let refused = failure_of(options(), error).await;
    assert!(matches!(refused, ClientError::Rpc { error, .. } if error.code == -32602));
    let long = |_: &Seen| reply(200, "Content-Type: application/json\r\n", &"x".repeat(20_000));
    assert_eq!(failure_of(small(), long).await.code(), "too-large");
    let long = |_: &Seen| vec![stream_head(), chunk(&format!("data: {}", "x".repeat(20_000))), Step::Hold];
    assert_eq!(failure_of(small(), long).await.code(), "too-large");
    let broken = |seen: &Seen| json_reply(500, &result(seen, &json!({ "content": [] })));
    let refused = failure_of(options(), broken).await;
    assert!(matches!(refused, ClientError::Status { status: 500, .. }), "{refused}");
    let page = |seen: &Seen| {
        reply(200, "Content-Type: text/html<script>\r\n", &result(seen, &json!({ "content": [] })).to_string())
    };
    let refused = failure_of(options(), page).await;
    assert!(refused.code() == "bad-reply" && refused.to_string().contains("text/html"), "{refused}");
    let busy = failure_of(options(), |_| reply(429, "Retry-After: 7\r\n", "")).await;
    assert!(busy.to_string().contains("wait 7"), "{busy}");
    let input = |seen: &Seen| {
        json_reply(200, &result(seen, &json!({ "resultType": "input_required", "inputRequests": { "k": {} } })))
    };
    assert_eq!(failure_of(options(), input).await.code(), "input-required");
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_limit_and_is_cancelled() {
    let script = Script::serve(|seen| match seen.rpc().as_str() {
        "tools/call" => vec![Step::Hold],
        _ => legacy(seen),
    })
    .await;
    let limit = Duration::from_secs(2);
    let (mut client, sink) = client_with(script.url.as_str(), ClientOptions { limit, ..options() });
    client.connect().await.unwrap();
    assert_eq!(call_tool(&mut client, "t", &json!({})).await.unwrap_err().code(), "time-limit");
    assert_eq!(script.story().last().map(String::as_str), Some("notifications/cancelled"));
    let left = |kind: &EventKind| matches!(kind, EventKind::ReplyEnd { ending: ReplyEnding::ClientLeft, .. });
    assert_eq!(count(&sink, left), 1);
}

#[tokio::test]
async fn what_is_no_mcp_server_is_named_as_what_it_is() {
    let site = Script::serve(|_| reply(200, "Content-Type: text/html\r\n", "<html>")).await;
    let (mut client, _) = client_with(site.url.as_str(), options());
    let error = client.connect().await.unwrap_err();
    assert_eq!(error.code(), "not-mcp");
    assert!(error.to_string().contains("text/html"), "{error}");
    let missing = Script::serve(|_| reply(404, "Content-Type: text/plain\r\n", "no")).await;
    let (mut client, _) = client_with(missing.url.as_str(), options());
    let error = client.connect().await.unwrap_err();
    assert!(error.to_string().contains("status 404"), "{error}");
    let other = Script::serve(|_| vec![Step::Send("SSH-2.0-x\r\n".to_owned()), Step::Close]).await;
    let (mut client, _) = client_with(other.url.as_str(), options());
    assert_eq!(client.connect().await.unwrap_err().code(), "not-mcp");
    let guarded = Script::serve(|_| reply(401, "", "")).await;
    let (mut client, _) = client_with(guarded.url.as_str(), options());
    assert_eq!(client.connect().await.unwrap_err().code(), "refused");
    let (mut client, sink) = client_with("http://127.0.0.1:1/mcp", options());
    assert_eq!(client.connect().await.unwrap_err().code(), "connect");
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ConnectFailed { .. })), 1);
    assert_eq!(client.list_tools().await.unwrap_err().code(), "not-connected");
}

#[tokio::test]
async fn listing_ends_at_a_cursor_that_repeats_and_after_a_hundred_pages() {
    let page = |seen: &Seen, next: &str| json_reply(200, &result(seen, &json!({ "tools": [], "nextCursor": next })));
    let same = Script::serve(move |seen| if seen.rpc() == "tools/list" { page(seen, "a") } else { legacy(seen) }).await;
    let (mut client, _) = client_with(same.url.as_str(), options());
    client.connect().await.unwrap();
    assert_eq!(client.list_tools().await.unwrap_err().code(), "bad-reply");
    let pages = AtomicUsize::new(0);
    let endless = Script::serve(move |seen| match seen.rpc().as_str() {
        "tools/list" => page(seen, &pages.fetch_add(1, Ordering::Relaxed).to_string()),
        _ => legacy(seen),
    })
    .await;
    let (mut client, _) = client_with(endless.url.as_str(), options());
    client.connect().await.unwrap();
    assert_eq!(client.list_tools().await.unwrap_err().code(), "too-large");
}

#[tokio::test]
async fn a_server_that_wants_another_revision_than_asked_is_an_error_and_a_named_one_is_taken() {
    let script = Script::serve(legacy).await;
    let pinned = ClientOptions { revision: Some(Revision::V2025_06_18), ..options() };
    let (mut client, _) = client_with(script.url.as_str(), pinned);
    let error = client.connect().await.unwrap_err();
    assert_eq!(error.code(), "revision");
    assert!(error.to_string().contains("2025-11-25"), "{error}");
    let picky = Script::serve(|seen| match seen.rpc().as_str() {
        "server/discover" => json_reply(
            400,
            &json!({ "jsonrpc": "2.0", "id": seen.json()["id"],
                     "error": { "code": -32022, "message": "no", "data": { "supported": ["2025-11-25"], "requested": "x" } } }),
        ),
        _ => legacy(seen),
    })
    .await;
    let (mut client, _) = client_with(picky.url.as_str(), options());
    assert_eq!(client.connect().await.unwrap().revision, Revision::V2025_11_25);
}

#[tokio::test]
async fn a_legacy_server_asked_for_the_modern_revision_is_said_to_be_older() {
    let script = Script::serve(|_| json_reply(400, &json!({ "error": "Missing session ID" }))).await;
    let modern = ClientOptions { revision: Some(Revision::V2026_07_28), ..options() };
    let (mut client, _) = client_with(script.url.as_str(), modern);
    let error = client.connect().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server speaks older revisions only, by its answer, but 2026-07-28 was asked for"
    );
}

#[tokio::test]
async fn a_modern_call_mirrors_its_arguments_and_bad_annotations_drop_the_tool() {
    let script = Script::serve(|seen| {
        let complete = |mut value: serde_json::Value| {
            value["resultType"] = "complete".into();
            json_reply(200, &result(seen, &value))
        };
        match seen.rpc().as_str() {
            "server/discover" => complete(json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} })),
            "tools/list" => complete(json!({ "tools": [
                { "name": "good", "inputSchema": { "type": "object",
                    "properties": { "city": { "type": "string", "x-mcp-header": "City" } } } },
                { "name": "bad", "inputSchema": { "type": "object",
                    "properties": { "x": { "type": "number", "x-mcp-header": "X" } } } },
            ] })),
            _ => complete(done()),
        }
    })
    .await;
    let (mut client, _) = client_with(script.url.as_str(), options());
    assert!(client.connect().await.unwrap().revision.is_modern());
    assert_eq!(client.list_tools().await.unwrap().len(), 1);
    call_tool(&mut client, "good", &json!({ "city": "Zürich" })).await.unwrap();
    let call = script.seen.lock().unwrap()[2].clone();
    assert_eq!(call.header("mcp-method"), Some("tools/call"));
    assert_eq!(call.header("mcp-name"), Some("good"));
    assert_eq!(call.header("mcp-param-city"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!(call.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(call.json()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[tokio::test]
async fn http_plus_sse_is_found_when_initialize_is_refused() {
    let told = Arc::new(Notify::new());
    let asked = Arc::clone(&told);
    let script = Script::serve(move |seen| match (seen.method.as_str(), seen.target.as_str()) {
        ("GET", "/mcp") => vec![
            stream_head(),
            chunk("event: endpoint\ndata: /messages?s=1\n\n"),
            Step::Wait(Arc::clone(&told)),
            // The client's third request: after the question for the era and the refused `initialize`.
            event(&json!({ "jsonrpc": "2.0", "id": 2, "result": {
                "protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": { "name": "old", "version": "1" } } })),
            Step::Hold,
        ],
        ("POST", "/messages?s=1") => {
            asked.notify_one();
            reply(202, "", "Accepted")
        }
        _ => reply(405, "", ""),
    })
    .await;
    let (mut client, _) = client_with(script.url.as_str(), options());
    let info = client.connect().await.unwrap();
    assert_eq!((info.revision, info.transport.as_str()), (Revision::V2024_11_05, "http+sse"));
    client.disconnect().await;
}

#[tokio::test]
async fn a_server_that_keeps_no_connection_alive_gets_one_for_each_request() {
    let script = Script::serve(|seen| {
        let mut steps = legacy(seen);
        if let Some(Step::Send(text)) = steps.first_mut() {
            *text = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        }
        steps.push(Step::Close);
        steps
    })
    .await;
    let (mut client, sink) = client_with(script.url.as_str(), options());
    client.connect().await.unwrap();
    call_tool(&mut client, "t", &json!({})).await.unwrap();
    client.disconnect().await;
    assert_eq!(connections(&sink), 4);
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ConnectionClosed { .. })), 4);
}
