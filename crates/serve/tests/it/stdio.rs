//! stdio where dialogues can't show it: slow readers, broken pipes, how a connection ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcpace_serve::Server;
use mcpace_serve::stdio::{End, Options, StdioError, serve_streams};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadBuf};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::fixture;
use crate::later::answer_initialize_later;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Time is virtual: a limit that is reached means that nothing else could happen any more.
const NEVER: Duration = Duration::from_secs(3600);

fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},{META}}}}}"#
    )
}

struct Client {
    input: DuplexStream,
    output: DuplexStream,
    serving: JoinHandle<Result<End, StdioError>>,
}

fn serve(options: Options) -> Client {
    serve_server(fixture::server(""), options)
}

fn serve_server(server: Server, options: Options) -> Client {
    let (input, their_input) = tokio::io::duplex(4096);
    let (output, their_output) = tokio::io::duplex(4096);
    let serving = tokio::spawn(serve_streams(server, options, their_input, their_output));
    Client { input, output, serving }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_read_either_and_loses_nothing() {
    let Client { mut input, output, serving } = serve(Options { queue_limit: 20_000, ..Options::default() });
    let mut sent = 0;
    loop {
        let line = call(sent, "big", r#"{"bytes":1000}"#) + "\n";
        let Ok(written) = tokio::time::timeout(NEVER, input.write_all(line.as_bytes())).await else { break };
        written.unwrap();
        sent += 1;
        assert!(sent < 1000, "everything is taken");
    }
    // The line that was half written is finished while the replies are read.
    let rest = tokio::spawn(async move {
        let _ = input.shutdown().await;
    });
    let mut lines = BufReader::new(output).lines();
    for id in 0..sent {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.contains(&format!(r#""id":{id},"result""#)), "{line}");
    }
    rest.await.unwrap();
    while lines.next_line().await.unwrap().is_some() {}
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_closed_output_ends_the_connection_and_its_calls() {
    let Client { mut input, output, serving } = serve(Options::default());
    drop(output);
    let lines = [call(1, "wait", "{}"), call(2, "echo", r#"{"text":"a"}"#)].map(|line| line + "\n").concat();
    input.write_all(lines.as_bytes()).await.unwrap();
    assert_eq!(serving.await.unwrap().unwrap(), End::OutputClosed);
    assert!(input.write_all(b"{}\n").await.is_err(), "the input is let go, too");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_never_reads_cannot_hold_the_end_up() {
    let Client { mut input, output, serving } = serve(Options::default());
    input.write_all((call(1, "big", r#"{"bytes":100000}"#) + "\n").as_bytes()).await.unwrap();
    input.shutdown().await.unwrap();
    assert_eq!(serving.await.unwrap().unwrap(), End::CutOff);
    drop(output);
}

#[tokio::test(start_paused = true)]
async fn a_last_line_needs_no_newline() {
    let Client { mut input, mut output, serving } = serve(Options::default());
    input.write_all(call(1, "echo", r#"{"text":"last"}"#).as_bytes()).await.unwrap();
    input.shutdown().await.unwrap();
    let mut all = String::new();
    output.read_to_string(&mut all).await.unwrap();
    assert!(all.contains("last") && all.ends_with('\n'), "{all}");
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished);
}

#[tokio::test(start_paused = true)]
async fn stopped_it_reads_nothing_more_and_finishes_what_it_has() {
    let options = Options::default();
    let stop = options.stop.clone();
    let Client { mut input, mut output, serving } = serve(options);
    let lines = [call(1, "wait", "{}"), call(2, "waiting", "{}"), call(3, "open", "{}")];
    for line in &lines[..2] {
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    let mut lines_read = BufReader::new(&mut output).lines();
    assert!(lines_read.next_line().await.unwrap().unwrap().contains(r#""id":2"#));
    stop.cancel();
    // Nobody reads this any more, so the first call is never released and is cut off.
    let _ = input.write_all(format!("{}\n", lines[2]).as_bytes()).await;
    assert_eq!(lines_read.next_line().await.unwrap(), None);
    assert_eq!(serving.await.unwrap().unwrap(), End::CutOff);
}

#[tokio::test(start_paused = true)]
async fn a_closed_server_ends_subscriptions_with_their_result() {
    let (input, their_input) = tokio::io::duplex(4096);
    let (output, their_output) = tokio::io::duplex(4096);
    let (server, options) = (fixture::server(""), Options::default());
    let stop = options.stop.clone();
    let serving = tokio::spawn(serve_streams(server.clone(), options, their_input, their_output));
    let mut input = input;
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
    );
    input.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(output).lines();
    assert!(lines.next_line().await.unwrap().unwrap().contains("acknowledged"));
    server.close();
    let last = lines.next_line().await.unwrap().unwrap();
    assert!(last.contains(r#""id":"s","result""#), "{last}");
    stop.cancel();
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished);
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn legacy_call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A server whose `initialize` is answered as soon as the semaphore has a permit.
fn serve_beginning_later() -> (Client, Arc<Semaphore>) {
    let (server, may_answer) = (fixture::server(""), Arc::new(Semaphore::new(0)));
    answer_initialize_later(&server, fixture::server(""), Arc::clone(&may_answer));
    (serve_server(server, Options::default()), may_answer)
}

#[tokio::test(start_paused = true)]
async fn lines_that_come_before_initialize_is_answered_wait_for_its_session() {
    let (Client { mut input, output, serving }, may_answer) = serve_beginning_later();
    let lines = [INITIALIZE, INITIALIZED, &legacy_call(2, "echo", r#"{"text":"a"}"#), INITIALIZE];
    input.write_all(lines.map(|line| format!("{line}\n")).concat().as_bytes()).await.unwrap();
    let mut lines = BufReader::new(output).lines();
    assert!(tokio::time::timeout(NEVER, lines.next_line()).await.is_err(), "nothing can be answered yet");
    may_answer.add_permits(1);
    for expected in [r#""id":1,"result""#, r#""id":2,"result""#, "the session is initialized already"] {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.contains(expected), "{line}");
    }
    input.shutdown().await.unwrap();
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_begins_after_the_end_of_the_input_expects_no_answers() {
    let (Client { mut input, output, serving }, may_answer) = serve_beginning_later();
    let lines = [INITIALIZE, INITIALIZED, &legacy_call(2, "ask", "{}")];
    input.write_all(lines.map(|line| format!("{line}\n")).concat().as_bytes()).await.unwrap();
    input.shutdown().await.unwrap();
    may_answer.add_permits(1);
    let mut lines = BufReader::new(output).lines();
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        last = line;
    }
    assert!(last.contains(r#""id":2"#), "the question fails: {last}");
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished, "nobody waited for an answer that can't come");
}

#[tokio::test(start_paused = true)]
async fn an_initialize_that_is_cancelled_lets_the_next_one_begin_the_session() {
    let (Client { mut input, output, serving }, may_answer) = serve_beginning_later();
    let cancelled = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let again = INITIALIZE.replace(r#""id":1"#, r#""id":3"#);
    let lines = [INITIALIZE, cancelled, &again, &legacy_call(4, "echo", r#"{"text":"a"}"#)];
    input.write_all(lines.map(|line| format!("{line}\n")).concat().as_bytes()).await.unwrap();
    may_answer.add_permits(1);
    let mut lines = BufReader::new(output).lines();
    for expected in [r#""id":3,"result""#, r#""id":4,"result""#] {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(line.contains(expected), "{line}");
    }
    input.shutdown().await.unwrap();
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(serving.await.unwrap().unwrap(), End::Finished);
}

struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::other("the disk is gone")))
    }
}

#[tokio::test(start_paused = true)]
async fn an_input_that_fails_is_an_error() {
    let ended = serve_streams(fixture::server(""), Options::default(), Broken, tokio::io::sink()).await;
    assert!(matches!(ended, Err(StdioError::Read(_))), "{ended:?}");
}
