//! The stdio recorder between a test's pipes and real processes.

use std::sync::Arc;
use std::time::Duration;

use mcpace_net::stdio_recorder::{ProcessEnd, StdioOptions, record_stdio};
use mcpace_net::{NetError, Sink};
use mcpace_record::{EventKind, LineFrom, Side};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use crate::recorder_support::{limited, sink};

struct Session {
    input: DuplexStream,
    output: DuplexStream,
    errors: DuplexStream,
    sink: Arc<Sink>,
    end: JoinHandle<Result<ProcessEnd, NetError>>,
}

fn shell(script: &str) -> StdioOptions {
    StdioOptions::new(["sh", "-c", script].map(str::to_owned).to_vec())
}

fn start(options: StdioOptions) -> Session {
    let ((input, theirs_in), (output, theirs_out), (errors, theirs_errors)) =
        (tokio::io::duplex(1024), tokio::io::duplex(1024), tokio::io::duplex(1024));
    let sink = sink();
    let kept = Arc::clone(&sink);
    let end = tokio::spawn(async move { record_stdio(&options, kept, theirs_in, theirs_out, theirs_errors).await });
    Session { input, output, errors, sink, end }
}

impl Session {
    async fn line(&mut self) -> String {
        let mut text = Vec::new();
        while text.last() != Some(&b'\n') {
            text.push(limited("a line", self.output.read_u8()).await.unwrap());
        }
        String::from_utf8(text).unwrap()
    }

    async fn end(self) -> (ProcessEnd, Vec<EventKind>) {
        let end = limited("the end", self.end).await.unwrap().unwrap();
        (end, self.sink.recording().events().iter().map(|event| event.kind.clone()).collect())
    }
}

#[tokio::test]
async fn lines_pass_one_by_one_unchanged_and_are_stamped_on_both_sides() {
    let mut session = start(shell("while read -r line; do echo \"$line\"; done; exit 3"));
    let request = "  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    session.input.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(session.line().await.trim(), request.trim());
    session.input.write_all(b"\xff not even text\n").await.unwrap();
    while limited("a byte", session.output.read_u8()).await.unwrap() != b'\n' {}
    session.input.shutdown().await.unwrap();
    let (end, events) = session.end().await;
    assert_eq!((end.code, end.exit_code()), (Some(3), 3));
    let lines: Vec<_> = events
        .iter()
        .filter_map(|kind| match kind {
            EventKind::StdioLine { side, from, messages, .. } => Some((*side, *from, messages.len())),
            _ => None,
        })
        .collect();
    let once = [
        (Side::Front, LineFrom::Client, 1),
        (Side::Back, LineFrom::Client, 0),
        (Side::Back, LineFrom::Server, 1),
        (Side::Front, LineFrom::Server, 0),
    ];
    assert_eq!(lines[..4], once);
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert!(matches!(events.first(), Some(EventKind::ProcessStarted { program, .. }) if program == "sh"));
    assert!(matches!(events.last(), Some(EventKind::ProcessExited { code: Some(3), .. })));
}

#[tokio::test]
async fn stderr_passes_and_is_recorded_up_to_its_limit() {
    let mut session = start(StdioOptions { stderr_limit: 10, ..shell("echo first >&2; echo second-one >&2; cat") });
    let mut text = vec![0; 17];
    limited("stderr", session.errors.read_exact(&mut text)).await.unwrap();
    assert_eq!(text, b"first\nsecond-one\n");
    drop(session.input.shutdown().await);
    let (_, events) = session.end().await;
    let recorded =
        |kind: &&EventKind| matches!(kind, EventKind::StdioLine { side: Side::Back, from: LineFrom::ServerStderr, .. });
    assert_eq!(events.iter().filter(recorded).count(), 1);
    assert!(events.iter().any(|kind| matches!(kind, EventKind::EventsLost { count: 1 })));
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_is_terminated_then_killed() {
    let short = Duration::from_millis(20);
    for (script, signal) in [("echo up; exec sleep 600", 15), ("trap '' TERM; echo up; while :; do sleep 600; done", 9)]
    {
        let options = StdioOptions { exit_limit: short, terminate_limit: short, ..shell(script) };
        let mut session = start(options);
        assert_eq!(session.line().await, "up\n");
        session.input.shutdown().await.unwrap();
        let (end, events) = session.end().await;
        assert_eq!((end.signal, end.exit_code()), (Some(signal), 128 + signal));
        assert!(matches!(events.last(), Some(EventKind::ProcessExited { .. })));
    }
}

#[tokio::test]
async fn what_the_server_started_goes_with_it_even_when_the_recorder_is_dropped() {
    for orderly in [true, false] {
        let mut session = start(shell("sleep 600 & echo $!; cat"));
        let orphan: i32 = session.line().await.trim().parse().unwrap();
        if orderly {
            session.input.shutdown().await.unwrap();
            session.end().await;
        } else {
            session.end.abort();
        }
        let gone = async {
            while std::fs::read_to_string(format!("/proc/{orphan}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
                tokio::task::yield_now().await;
            }
        };
        limited("the orphan's end", gone).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_no_more_ends_the_server() {
    let session = start(shell("while :; do echo more || exit 0; done"));
    drop(session.output);
    let end = limited("the end", session.end).await.unwrap().unwrap();
    assert!(end.code.is_some() || end.signal.is_some());
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let session = start(StdioOptions::new(vec!["/nonexistent/server".to_owned()]));
    let error = limited("the error", session.end).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("/nonexistent/server"), "{error}");
    let session = start(StdioOptions::new(Vec::new()));
    assert!(limited("the error", session.end).await.unwrap().is_err());
}
