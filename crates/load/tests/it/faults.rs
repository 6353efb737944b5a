//! Faults of targets: each is counted under its own kind, none is lost, and the run ends on time.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mcpace_load::outcome::{ErrorKind, LoadOutcome, RunEnd};
use mcpace_load::start_run;
use serde_json::json;

use crate::server::{
    Action, Request, Server, all_failed, example, finish, good, http, json_reply, operation, plan, result, run,
};

/// Action of the target for each tool name.
fn misbehave(request: &Request) -> Action {
    let mut message = result(request);
    let whole = json_reply(&message);
    match request.tool() {
        "reset" => Action::Reset,
        "closed" => Action::Close(Vec::new()),
        "silent" => Action::Nothing,
        "drip" => Action::Drip(b"HTTP/1.1 200 OK\r\nx: yyyyyyyyyyyyyy".to_vec()),
        "unauthorized" => Action::Send(http("401 Unauthorized", "", "text/plain", "")),
        "busy" => Action::Send(http("503 Busy", "", "text/plain", "try\nlater")),
        "moved" => Action::Send(http("307 Temporary Redirect", "location: http://else/mcp\r\n", "text/plain", "")),
        "rubbish" => Action::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
        "not-json" => Action::Send(http("200 OK", "", "application/json", "{\"jsonrpc\":")),
        "html" => Action::Send(http("200 OK", "", "text/html", "<p>hello")),
        "half" => Action::Close(whole[..whole.len() - 3].to_vec()),
        "half-head" => Action::Close(whole[..20].to_vec()),
        "half-stream" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            Action::Close(format!("{head}data: {}", result(request)).into_bytes())
        }
        "other-id" => {
            message["id"] = json!(999_999_999);
            Action::Send(json_reply(&message))
        }
        "text-id" => {
            message["id"] = json!(message["id"].to_string());
            Action::Send(json_reply(&message))
        }
        "error" => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}});
            Action::Send(json_reply(&error))
        }
        "error-400" => {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no"}});
            Action::Send(http("400 Bad Request", "", "application/json", &error.to_string()))
        }
        "is-error" => {
            message["result"]["isError"] = json!(true);
            Action::Send(json_reply(&message))
        }
        "huge" => Action::Send(http("200 OK", "", "application/json", &" ".repeat(100_000))),
        "huge-head" => {
            Action::Send(http("200 OK", &format!("x: {}\r\n", "y".repeat(100_000)), "application/json", "{}"))
        }
        _ => good(request),
    }
}

#[test]
fn every_kind_of_error_is_counted_as_what_it_is() {
    use ErrorKind::*;
    let kinds = [
        ("reset", Reset),
        ("closed", Reset),
        ("silent", Timeout),
        ("drip", Timeout),
        ("unauthorized", HttpStatus),
        ("busy", HttpStatus),
        ("moved", Redirect),
        ("rubbish", NotMcp),
        ("not-json", NotMcp),
        ("html", NotMcp),
        ("half", NotMcp),
        ("half-head", NotMcp),
        ("half-stream", NotMcp),
        ("other-id", WrongId),
        ("text-id", WrongId),
        ("error", JsonrpcError),
        ("error-400", JsonrpcError),
        ("is-error", ToolError),
        ("huge", TooLarge),
        ("huge-head", TooLarge),
    ];
    let server = Server::start(misbehave);
    let mut operations: Vec<_> =
        kinds.iter().map(|(name, _)| json!({"name": name, "kind": "call", "tool": name})).collect();
    operations.push(json!({"name": "asserted", "kind": "call", "tool": "echo", "assert": "nowhere"}));
    operations.push(json!({"name": "fine", "kind": "call", "tool": "echo", "assert": "hi"}));
    let changes = json!({"operations": operations, "model": {"kind": "closed", "vus": 40}, "max_calls": 600, "duration_s": 50,
        "timeout_s": 0.5, "limits": {"body_bytes": 50_000}});
    let outcome = run(plan(&server.url(), &changes));
    for (name, kind) in kinds {
        all_failed(operation(&outcome, name), kind);
    }
    all_failed(operation(&outcome, "asserted"), Assertion);
    let fine = operation(&outcome, "fine");
    assert!(fine.ok > 0 && fine.ok == fine.count, "{fine:?}");
    assert_eq!(outcome.operations.iter().map(|operation| operation.count).sum::<u64>(), 600);
    assert_eq!(operation(&outcome, "busy").first_error.as_deref(), Some("HTTP 503: try later"));
    let unauthorized = operation(&outcome, "unauthorized").first_error.as_deref();
    assert_eq!(unauthorized, Some("HTTP 401 (the load has one token, from before it began)"));
    let moved = operation(&outcome, "moved").first_error.as_deref();
    assert!(moved.is_some_and(|words| words.contains("the target is at http://else/mcp")), "{moved:?}");
}

#[test]
fn a_program_that_talks_without_end_does_not_keep_its_thread_from_the_clock() {
    let said = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let changes = json!({"target": {"kind": "stdio", "command": ["yes", said]}, "model": {"kind": "closed", "vus": 1},
        "duration_s": 2, "timeout_s": 0.1});
    let outcome = run(plan("", &changes));
    let begun = operation(&outcome, "echo");
    all_failed(begun, ErrorKind::Timeout);
    assert!(begun.count > 4, "{begun:?}");
}

#[test]
fn a_reply_before_its_request_was_sent_leaves_no_half_request_to_the_next() {
    // More than all buffers on the way take, to a target that answers the head alone and reads no further.
    let arguments = json!({"text": "x".repeat(32 << 20)});
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut begun = [0; 1024];
            let length = std::io::Read::read(&mut stream, &mut begun).unwrap();
            let text = String::from_utf8_lossy(&begun[..length]).into_owned();
            let id = text.split("\"id\":").nth(1).unwrap().split(',').next().unwrap().to_owned();
            let reply = json!({"jsonrpc": "2.0", "id": id.parse::<u64>().unwrap(), "result": {}});
            std::io::Write::write_all(&mut stream, &json_reply(&reply)).unwrap();
            held.push(stream);
        }
    });
    let operations = json!([{"name": "large", "kind": "call", "tool": "large", "arguments": arguments}]);
    let changes =
        json!({"operations": operations, "model": {"kind": "closed", "vus": 1}, "max_calls": 3, "duration_s": 50});
    let outcome = run(plan(&url, &changes));
    assert_eq!(operation(&outcome, "large").ok, 3);
    assert_eq!((outcome.connections.opened, outcome.connections.reused_requests), (3, 0));
}

#[test]
fn a_lost_session_is_opened_anew() {
    let calls = AtomicU64::new(0);
    let server = Server::start(move |request: &Request| {
        if request.rpc() == "tools/call" && calls.fetch_add(1, Ordering::SeqCst) == 3 {
            return Action::Send(http("404 Not Found", "", "text/plain", ""));
        }
        good(request)
    });
    let changes = json!({"session": "user", "max_calls": 10, "model": {"kind": "closed", "vus": 1}, "duration_s": 50});
    let outcome = run(plan(&server.url(), &changes));
    let echo = operation(&outcome, "echo");
    assert_eq!((echo.ok, echo.errors[&ErrorKind::SessionLost]), (9, 1));
    assert_eq!(operation(&outcome, "initialize").ok, 2);
}

#[test]
fn a_session_that_cant_be_opened_fails_its_call() {
    let server = Server::start(|_: &Request| Action::Send(http("401 Unauthorized", "", "text/plain", "who are you?")));
    let changes = json!({"session": "user", "max_calls": 3, "model": {"kind": "closed", "vus": 1}, "duration_s": 50});
    let outcome = run(plan(&server.url(), &changes));
    all_failed(operation(&outcome, "echo"), ErrorKind::HttpStatus);
    all_failed(operation(&outcome, "initialize"), ErrorKind::HttpStatus);
}

#[test]
fn nobody_there_is_said_and_not_hammered() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let outcome = run(plan(&format!("http://127.0.0.1:{port}/"), &json!({})));
    let echo = operation(&outcome, "echo");
    all_failed(echo, ErrorKind::Connect);
    assert!(echo.count < 1000 && echo.first_error.as_ref().unwrap().contains("refused"), "{echo:?}");
    assert_eq!(outcome.connections.opened, 0);
}

#[test]
fn a_name_that_isnt_there_fails_the_run() {
    let run = start_run(plan("http://no-such-name.invalid/mcp", &json!({}))).unwrap();
    assert!(run.wait(Duration::from_secs(60)));
    let outcome = run.result().unwrap();
    assert_eq!(outcome.ended, RunEnd::Failed);
    assert!(outcome.failure.unwrap().contains("no-such-name.invalid"));
}

#[test]
fn a_program_that_ends_or_isnt_there() {
    let peer = example("peer").to_str().unwrap().to_owned();
    let operations = json!([{"name": "exit", "kind": "call", "tool": "exit"}]);
    let target = json!({"kind": "stdio", "command": [peer, "stdio"]});
    let outcome = run(plan(
        "",
        &json!({"target": target, "session": "user", "operations": operations, "max_calls": 4, "duration_s": 50}),
    ));
    all_failed(operation(&outcome, "exit"), ErrorKind::ProcessExit);
    let target = json!({"kind": "stdio", "command": ["/no/such/program"]});
    let outcome = run(plan("", &json!({"target": target, "session": "user"})));
    all_failed(operation(&outcome, "echo"), ErrorKind::ProcessExit);
}

#[test]
fn without_descriptors_users_are_counted_as_exhausted() {
    let server = Server::start(good);
    let text = serde_json::to_string(&plan(&server.url(), &json!({"model": {"kind": "closed", "vus": 60}}))).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 30; exec \"$0\"", example("load").to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let outcome: LoadOutcome = serde_json::from_slice(&output.stdout).unwrap();
    let echo = operation(&outcome, "echo");
    assert!(echo.errors[&ErrorKind::Exhausted] > 0 && echo.ok > 0, "{echo:?}");
    assert_eq!(echo.count, echo.ok + echo.errors[&ErrorKind::Exhausted]);
}

#[test]
fn a_target_that_dies_in_mid_run() {
    let server = Server::start(good);
    let run = start_run(plan(&server.url(), &json!({"duration_s": 2.5}))).unwrap();
    // The first whole second has been told: the run is in its middle.
    while run.progress().is_empty() {
        std::thread::yield_now();
    }
    server.die();
    let outcome = finish(&run);
    let echo = operation(&outcome, "echo");
    assert!(echo.ok > 0 && echo.errors[&ErrorKind::Connect] > 0, "{echo:?}");
    assert_eq!(outcome.ended, RunEnd::Done);
    assert!(outcome.seconds[0].errors == 0 && outcome.seconds[2].errors > 0, "{:?}", outcome.seconds);
}

#[test]
fn a_target_that_falls_silent_is_timed_out_each_time() {
    let calls = AtomicU64::new(0);
    let server = Server::start(
        move |request: &Request| {
            if calls.fetch_add(1, Ordering::SeqCst) < 40 { good(request) } else { Action::Nothing }
        },
    );
    // The silence begins long after the connections did.
    let outcome = run(plan(&server.url(), &json!({"think_s": 0.05, "timeout_s": 0.3, "duration_s": 2.5})));
    let echo = operation(&outcome, "echo");
    assert_eq!(echo.ok, 40);
    assert!(echo.errors[&ErrorKind::Timeout] >= 8, "{echo:?}");
    // A histogram keeps three digits.
    assert!(echo.failed.min_s >= 0.3 * 0.999, "{echo:?}");
}

#[test]
fn a_target_that_hangs_doesnt_hold_the_run_up() {
    let hangs = AtomicBool::new(false);
    let server = Server::start(move |request: &Request| {
        if request.rpc() == "tools/call" && hangs.swap(true, Ordering::SeqCst) {
            Action::Nothing
        } else {
            good(request)
        }
    });
    let outcome = run(plan(&server.url(), &json!({"session": "user", "drain_s": 0.2})));
    assert_eq!((operation(&outcome, "echo").ok, outcome.unfinished), (1, 4));
    assert_eq!(operation(&outcome, "delete").ok, 4);
}

#[test]
fn a_stop_in_mid_run_keeps_what_was_measured() {
    let server = Server::start(good);
    let run = start_run(plan(&server.url(), &json!({"duration_s": 600, "threads": 2}))).unwrap();
    let mut told = Vec::new();
    while told.is_empty() {
        told.extend(run.progress());
        std::thread::yield_now();
    }
    run.stop();
    let outcome = finish(&run);
    assert_eq!(outcome.ended, RunEnd::Stopped);
    assert!(operation(&outcome, "echo").ok >= told[0].ok && outcome.measured_s < 600.0);
    assert_eq!(outcome.seconds[0], told[0]);
}
