//! Faults over HTTP, and their outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpace_client::{
    Arguments, Auth, CallOptions, Callbacks, Client, ClientError, Limits, Mode, Options, Secret, Target,
};
use serde_json::{Value, json};

use crate::scripted::{Act, EVENTS, Request, Scripted, as_json, error, legacy, modern, response, result, status};
use crate::support::{connect, http_options, limited, serve, text};

async fn echo(client: &Client) -> Result<String, ClientError> {
    let result = limited(client.call_tool("echo", &json!({"text": "ok"}))).await?;
    Ok(text(&result.content).to_owned())
}

fn event(id: &str, data: &Value) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

#[tokio::test]
async fn a_lost_session_is_begun_anew_once() {
    let server = Scripted::start(|request, count| match (request.method(), request.header("mcp-session-id")) {
        ("initialize", _) => legacy(request, &format!("s{count}")),
        ("tools/call", Some("s1")) => status("404 Not Found"),
        _ => legacy(request, ""),
    });
    let server = server.await;
    let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
    assert_eq!(echo(&client).await.unwrap(), "ok");
    assert_eq!(server.methods().iter().filter(|method| *method == "initialize").count(), 2);
    assert_eq!(server.seen().last().unwrap().header("mcp-session-id"), Some("s2"));

    let server = Scripted::start(|request, _| match request.method() {
        "tools/call" => status("404 Not Found"),
        _ => legacy(request, "s"),
    });
    let server = server.await;
    let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
    assert_eq!(echo(&client).await.unwrap_err().code(), "http-status");
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 2);
}

#[tokio::test]
async fn a_lost_stream_is_taken_up_where_it_was_lost_after_the_time_that_the_server_names() {
    let server = Scripted::start(|request, count| {
        if request.is_get() {
            // The standalone stream is not asked for: nobody hears anything.
            assert_eq!(request.header("last-event-id"), Some(if count == 1 { "a" } else { "b" }));
            let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "late"}]}});
            return Act::Last(match count {
                1 => format!("{EVENTS}{}", event("b", &json!({"jsonrpc": "2.0", "method": "notifications/x"}))),
                _ => format!("{EVENTS}{}", event("c", &answer)),
            });
        }
        match request.method() {
            "tools/call" => Act::Last(format!("{EVENTS}retry: 1\nid: a\ndata:\n\n")),
            _ => legacy(request, "s"),
        }
    });
    let server = server.await;
    let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
    assert_eq!(echo(&client).await.unwrap(), "late");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_brings_nothing_is_not_taken_up_for_ever() {
    let server = Scripted::start(|request, _| match request.method() {
        "tools/call" => Act::Last(format!("{EVENTS}id: a\ndata:\n\n")),
        _ if request.is_get() => Act::Last(EVENTS.to_owned()),
        _ => legacy(request, "s"),
    });
    let server = server.await;
    let client = Client::connect(server.target(), Options { mode: Mode::Legacy, ..Options::default() }).await.unwrap();
    let failed = client.call_tool("echo", &json!({})).await.unwrap_err();
    assert_eq!(failed.code(), "broke-off");
    assert_eq!(server.seen().iter().filter(|request| request.is_get()).count(), 5);
}

#[tokio::test]
async fn a_modern_call_whose_reply_was_lost_is_not_repeated_but_a_list_is_with_a_new_id() {
    let server = Scripted::start(|request, count| match (request.method(), count) {
        ("tools/call", _) | ("tools/list", 1) => Act::Last(EVENTS.to_owned()),
        ("tools/list", _) => as_json(&result(request, &json!({"tools": [], "resultType": "complete"}))),
        _ => modern(request),
    });
    let server = server.await;
    let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
    assert_eq!(echo(&client).await.unwrap_err().code(), "broke-off");
    assert!(client.list_tools().await.unwrap().is_empty());
    let ids: Vec<Value> = server.seen().iter().map(|request| request.body["id"].clone()).collect();
    assert_eq!(server.methods()[1..], ["tools/call", "tools/list", "tools/list"]);
    assert_ne!(ids[2], ids[3]);
    // Nobody knows the effect of a second request by its bare name.
    let arguments = Arguments::of(&json!({"name": "echo"})).unwrap();
    let raw = client.request_raw("tools/call", &arguments, &CallOptions::default()).await;
    assert_eq!(raw.unwrap_err().code(), "broke-off");
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_the_server_never_takes_is_given_up() {
    let server = Scripted::start(|request, _| match request.method() {
        "notifications/roots/list_changed" => Act::Silence(String::new()),
        _ => legacy(request, "s"),
    });
    let server = server.await;
    let client = Client::connect(server.target(), Options { mode: Mode::Legacy, ..Options::default() }).await.unwrap();
    assert_eq!(client.roots_changed().await.unwrap_err().code(), "time-limit");
}

#[tokio::test]
async fn a_server_that_pings_without_taking_the_answers_opens_so_many_connections_and_no_more() {
    let answers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answers);
    let server = Scripted::start(move |request, _| match request.method() {
        "tools/call" => {
            let pings = (0..200).map(|id| event("a", &json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
            let answer = event("b", &result(request, &json!({"content": [{"type": "text", "text": "ok"}]})));
            Act::Last(format!("{EVENTS}{}{answer}", pings.collect::<String>()))
        }
        "" if !request.is_get() => {
            counted.fetch_add(1, Ordering::Relaxed);
            Act::Silence(String::new())
        }
        _ => legacy(request, "s"),
    });
    let server = server.await;
    let limits = Limits { asked: 3, ..Limits::default() };
    let client = Client::connect(server.target(), Options { mode: Mode::Legacy, limits, ..Options::default() });
    let client = client.await.unwrap();
    assert_eq!(echo(&client).await.unwrap(), "ok");
    limited(async {
        while answers.load(Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Requests that had begun by then would have come before this one.
    assert_eq!(echo(&client).await.unwrap(), "ok");
    assert_eq!(answers.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_kept_connection_that_died_costs_a_call_nothing() {
    // Each connection serves one request, without saying so.
    let server = Scripted::start(|request, _| match modern(request) {
        Act::Reply(reply) => Act::Last(reply),
        act => act,
    });
    let server = server.await;
    let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
    for _ in 0..20 {
        assert_eq!(echo(&client).await.unwrap(), "ok");
    }
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_after_one_another_share_a_connection_and_calls_at_once_are_bounded() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (running, _) = serve(http_options());
    let opened = std::sync::Arc::new(AtomicUsize::new(0));
    let (counted, address) = (std::sync::Arc::clone(&opened), running.address());
    let target = Target::url_over(&format!("http://{address}/mcp"), move || {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            let stream = tokio::net::TcpStream::connect(address).await?;
            Ok(Box::new(stream) as Box<dyn mcpace_client::Socket>)
        }
    });
    let limits = Limits { connections: 4, ..Limits::default() };
    let client = Client::connect(target.unwrap(), Options { limits, ..Options::default() }).await.unwrap();
    for _ in 0..10 {
        echo(&client).await.unwrap();
    }
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        calls.spawn(async move { echo(&client).await.unwrap() });
    }
    assert_eq!(limited(calls.join_all()).await.len(), 50);
    assert!(opened.load(Ordering::Relaxed) <= 4);
}

/// Reply of our own server for an unknown path.
const NOTHING: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"nothing is here"}}"#;

#[tokio::test]
async fn what_no_mcp_server_says_is_told_in_one_sentence() {
    type Case = (&'static str, fn() -> Act, &'static str);
    let cases: [Case; 6] = [
        ("not-mcp", || Act::Reply(response("200 OK", "Content-Type: text/html\r\n", "<html>")), "text/html"),
        ("http-status", || Act::Reply(response("503 Busy", "Retry-After: 7\r\n", "")), "wait 7"),
        ("refused", || Act::Reply(response("401 No", "WWW-Authenticate: Bearer error=\"x\"\r\n", "")), "bearer token"),
        ("not-mcp", || Act::Last("SSH-2.0-OpenSSH\r\n".to_owned()), "no HTTP"),
        ("not-mcp", || Act::Reply(response("404 No", "Content-Type: application/json\r\n", NOTHING)), "check the URL"),
        ("bad-redirect", || Act::Reply(response("307 Go", "Location: http://h/?s=SECRET\r\n", "")), "another origin"),
    ];
    for (code, act, words) in cases {
        let server = Scripted::start(move |_, _| act()).await;
        let failed = limited(Client::connect(server.target(), Options::default())).await.unwrap_err();
        assert_eq!(failed.code(), code, "{failed}");
        assert!(failed.to_string().contains(words) && !failed.to_string().contains("SECRET"), "{failed}");
    }
    let failed = Client::connect(Target::url("http://127.0.0.1:1/mcp").unwrap(), Options::default()).await.unwrap_err();
    assert_eq!(failed.code(), "connect");
    assert_eq!(Target::url("ftp://h").unwrap_err().code(), "bad-target");
}

#[tokio::test]
async fn a_modern_refusal_is_no_reason_to_go_back_to_initialize() {
    let server = Scripted::start(|request, _| {
        let body = match request.method() {
            "server/discover" => {
                let mut body = error(request, -32022);
                body["error"]["data"] = json!({"supported": ["2099-01-01"], "requested": "2026-07-28"});
                body
            }
            _ => unreachable!("{request:?}"),
        };
        Act::Reply(response("400 Bad Request", "Content-Type: application/json\r\n", &body.to_string()))
    });
    let server = server.await;
    let failed = limited(Client::connect(server.target(), Options::default())).await.unwrap_err();
    assert_eq!(failed.code(), "revision");
    assert!(failed.to_string().contains("2099-01-01"));
}

#[tokio::test]
async fn replies_past_the_limits_are_given_up() {
    let limits = Limits { message: 1000, messages_per_call: 5, ..Limits::default() };
    let cases: [fn(&Request) -> Act; 3] = [
        |request| as_json(&result(request, &json!({"content": [{"type": "text", "text": "x".repeat(1000)}]}))),
        |_| Act::Silence(format!("{EVENTS}data: {}", "x".repeat(2000))),
        |_| Act::Silence(format!("{EVENTS}{}", event("", &json!({"jsonrpc": "2.0", "method": "n"})).repeat(9))),
    ];
    for case in cases {
        let server = Scripted::start(move |request, _| match request.method() {
            "tools/call" => case(request),
            _ => modern(request),
        });
        let server = server.await;
        let options = Options { limits: limits.clone(), ..Options::default() };
        let client = Client::connect(server.target(), options).await.unwrap();
        assert_eq!(echo(&client).await.unwrap_err().code(), "too-large");
    }
}

#[tokio::test]
async fn answers_that_nest_too_deep_or_are_no_answers_are_refused() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for body in [deep, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned(), "nonsense".to_owned()] {
        let server = Scripted::start(move |request, _| match request.method() {
            "tools/call" => Act::Reply(response("200 OK", "Content-Type: application/json\r\n", &body)),
            _ => modern(request),
        });
        let server = server.await;
        let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
        let failed = echo(&client).await.unwrap_err();
        assert!(matches!(failed.code(), "bad-reply" | "not-mcp"), "{failed}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_as_its_era_does() {
    for is_modern in [false, true] {
        let server = Scripted::start(move |request, _| match request.method() {
            "tools/call" => Act::Silence(String::new()),
            _ if is_modern => modern(request),
            _ => legacy(request, "s"),
        });
        let server = server.await;
        let client = connect(&server.target(), Mode::Auto, Callbacks::default()).await;
        let options = CallOptions { time: Some(Duration::from_millis(20)), ..CallOptions::default() };
        let none = Arguments::of(&json!(null)).unwrap();
        let failed = limited(client.call_tool_raw("echo", &none, &options)).await.unwrap_err();
        assert_eq!(failed.code(), "time-limit");
        if is_modern {
            continue;
        }
        let cancelled = async {
            while !server.methods().iter().any(|method| method == "notifications/cancelled") {
                tokio::task::yield_now().await;
            }
        };
        limited(cancelled).await;
        let seen = server.seen();
        let call = seen.iter().find(|request| request.method() == "tools/call").unwrap();
        assert_eq!(seen.last().unwrap().body["params"]["requestId"], call.body["id"]);
    }
}

#[tokio::test]
async fn a_token_and_own_headers_go_with_each_request_and_the_protocols_own_stay() {
    let server = Scripted::start(|request, _| modern(request)).await;
    let own = [("X-Key", "k"), ("Mcp-Method", "mine"), ("Mcp-Session-Id", "mine")];
    let headers = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let auth = Auth::Bearer(Secret::new("token"));
    let client = Client::connect(server.target(), Options { auth, headers, ..Options::default() }).await.unwrap();
    echo(&client).await.unwrap();
    for request in server.seen() {
        assert_eq!(request.header("authorization"), Some("Bearer token"));
        assert_eq!((request.header("x-key"), request.header("mcp-method")), (Some("k"), Some(request.method())));
        assert_eq!(request.header("mcp-session-id"), None);
    }
    assert_eq!(server.seen()[1].header("mcp-name"), Some("echo"));
    let headers = vec![("bad name".to_owned(), String::new())];
    let failed = Client::connect(server.target(), Options { headers, ..Options::default() }).await.unwrap_err();
    assert_eq!(failed.code(), "bad-header");
    assert_eq!(failed.to_string(), "the header \"bad name\" can't be sent: it is no header's name");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_who_proves_its_name() {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls =
        mcpace_serve::http::Tls::from_pem(issued.cert.pem().as_bytes(), issued.signing_key.serialize_pem().as_bytes());
    let (running, _) = serve(mcpace_serve::http::Options { tls: Some(tls.unwrap()), ..http_options() });
    let target = Target::url(&format!("https://localhost:{}/mcp", running.address().port())).unwrap();
    let failed = limited(Client::connect(target.clone(), Options::default())).await.unwrap_err();
    assert_eq!(failed.code(), "tls", "{failed}");
    let options = Options { extra_root: Some(issued.cert.pem()), ..Options::default() };
    let client = limited(Client::connect(target, options)).await.unwrap();
    assert_eq!(echo(&client).await.unwrap(), "ok");
}
