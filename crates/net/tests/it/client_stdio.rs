//! The client over stdio. The servers are lines of shell, so that a test needs nothing installed.

use std::sync::Arc;
use std::time::Duration;

use mcpace_net::Sink;
use mcpace_net::client::{Client, ClientError, ClientOptions, ServerEndpoint};
use mcpace_record::{EventKind, LineFrom};
use mcpace_wire::Revision;
use serde_json::json;

use crate::client_support::*;

/// Answers line by line: a legacy server.
const LEGACY: &str = r#"
while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
    *server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"unknown"}}';;
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}';;
    *tools/list*) echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; read -r pong; echo "$pong" >&2
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}';;
    *tools/call*) CALL;;
  esac
done
"#;

fn shell(script: &str, options: ClientOptions) -> (Client, Arc<Sink>) {
    let sink = client_sink();
    let endpoint =
        ServerEndpoint::Stdio { program: "sh".into(), args: vec!["-c".into(), script.into()], environment: Vec::new() };
    (Client::new(endpoint, options, Arc::clone(&sink)).unwrap(), sink)
}

fn legacy_that(call: &str) -> String {
    LEGACY.replace("CALL", call)
}

const ANSWER: &str = r#"echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}'"#;

fn exits(sink: &Sink) -> usize {
    count(sink, |kind| matches!(kind, EventKind::ProcessExited { .. }))
}

#[tokio::test]
async fn a_process_is_started_asked_and_ended_in_order() {
    let (mut client, sink) = shell(&legacy_that(ANSWER), options());
    assert_eq!(client.connect().await.unwrap().revision, Revision::V2025_11_25);
    assert!(client.list_tools().await.unwrap().is_empty());
    call_tool(&mut client, "t", &json!({})).await.unwrap();
    client.disconnect().await;
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ProcessExited { code: Some(0), .. })), 1);
    // The pong, which the server wrote to its stderr.
    let pong = |kind: &EventKind| match kind {
        EventKind::StdioLine { from: LineFrom::ServerStderr, body: Some(body), .. } => {
            body.text.contains(r#""id":"p","result":{}"#)
        }
        _ => false,
    };
    assert_eq!(count(&sink, pong), 1);
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::StdioLine { from: LineFrom::Server, .. })), 5);
}

#[tokio::test]
async fn a_server_that_ends_at_the_first_question_is_started_again_as_a_legacy_one() {
    let picky = format!(
        r#"read -r line; case $line in *server/discover*) exit 3;; esac
        echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"sh","version":"1"}}}}}}'
        {}"#,
        legacy_that(ANSWER)
    );
    let (mut client, sink) = shell(&picky, options());
    assert_eq!(client.connect().await.unwrap().revision, Revision::V2025_06_18);
    client.disconnect().await;
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ProcessStarted { .. })), 2);
    assert_eq!(exits(&sink), 2);
}

#[tokio::test]
async fn a_server_that_ends_in_the_middle_is_told_with_the_end_of_its_stderr() {
    let (mut client, _) = shell(&legacy_that("echo first >&2; echo no more memory >&2; exit 9"), options());
    client.connect().await.unwrap();
    let error = call_tool(&mut client, "t", &json!({})).await.unwrap_err();
    let ClientError::ProcessEnded { how, stderr, .. } = &error else { panic!("{error}") };
    assert_eq!((how.as_str(), stderr.as_str()), ("exit code 9", "first | no more memory"));
}

#[tokio::test]
async fn a_server_that_closes_its_stdout_and_stays_is_told_with_its_stderr() {
    let (mut client, _) =
        shell(&legacy_that("echo no such table >&2; exec 1>&-; while read -r line; do :; done"), options());
    client.connect().await.unwrap();
    let error = call_tool(&mut client, "t", &json!({})).await.unwrap_err().to_string();
    assert!(error.ends_with("it closed its stdout; its stderr ended with: no such table"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let endpoint =
        ServerEndpoint::Stdio { program: "/nowhere/server".into(), args: Vec::new(), environment: Vec::new() };
    let mut client = Client::new(endpoint, options(), client_sink()).unwrap();
    let error = client.connect().await.unwrap_err();
    assert_eq!(error.code(), "start");
    assert!(error.to_string().contains("server"), "{error}");
}

#[tokio::test]
async fn a_process_that_ignores_everything_is_killed_with_what_it_started() {
    let stubborn = format!("trap '' TERM; sleep 1000 & {} \n while :; do sleep 1000; done", legacy_that(ANSWER));
    let (mut client, sink) =
        shell(&stubborn, ClientOptions { shutdown_limit: Duration::from_millis(100), ..options() });
    client.connect().await.unwrap();
    client.disconnect().await;
    assert_eq!(count(&sink, |kind| matches!(kind, EventKind::ProcessExited { signal: Some(9), .. })), 1);
}

#[tokio::test]
async fn a_dropped_client_leaves_no_process() {
    // The end of its stdin alone does not end it.
    let (mut client, sink) = shell(&format!("{}\nsleep 1000", legacy_that(ANSWER)), options());
    client.connect().await.unwrap();
    drop(client);
    let ended = async {
        while exits(&sink) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the process goes on");
}

#[tokio::test]
async fn a_line_past_the_limit_ends_the_call() {
    let long = "head -c 20000 /dev/zero | tr '\\0' x; echo";
    let (mut client, _) = shell(&legacy_that(long), ClientOptions { message_limit: 10_000, ..options() });
    client.connect().await.unwrap();
    let error = call_tool(&mut client, "t", &json!({})).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 10_000, .. }), "{error}");
    client.disconnect().await;
}

#[tokio::test]
async fn a_server_that_asks_on_and_on_and_reads_nothing_can_still_be_left() {
    let flood = r#"while :; do echo '{"jsonrpc":"2.0","id":"p","method":"ping"}'; done"#;
    let short = ClientOptions { limit: Duration::from_secs(2), shutdown_limit: Duration::from_millis(50), ..options() };
    let (mut client, sink) = shell(&legacy_that(flood), short);
    client.connect().await.unwrap();
    assert_eq!(call_tool(&mut client, "t", &json!({})).await.unwrap_err().code(), "time-limit");
    tokio::time::timeout(Duration::from_secs(20), client.disconnect()).await.expect("it waits for the server to read");
    assert_eq!(exits(&sink), 1);
}
