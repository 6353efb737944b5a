//! `stdio::run` as clients have it: a process of its own, on real pipes.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::peer::limited;

const META: &str =
    r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The 'everything' server, which `cargo test` builds beside the tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/everything");
    assert!(program.is_file(), "build it first: cargo build -p mcpace-serve --example everything");
    program
}

struct Served {
    child: Child,
    /// `None` once it is closed.
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start() -> Self {
        let mut command = Command::new(program());
        command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output }
    }

    async fn send(&mut self, text: &str) {
        limited("room to write", self.input.as_mut().unwrap().write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    /// The next message; `None` when there are no more.
    async fn next(&mut self) -> Option<Value> {
        let line = limited("a line", self.output.next_line()).await.unwrap().unwrap()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    /// Closes the input, where that is not done.
    async fn ended(mut self) -> ExitStatus {
        self.input = None;
        limited("the end", self.child.wait()).await.unwrap().unwrap()
    }
}

fn call(id: u32, tool: &str, arguments: &Value) -> String {
    let meta: Value = serde_json::from_str(META).unwrap();
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn echo(id: u32) -> String {
    call(id, "echo", &json!({"text": "said"}))
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_process_when_all_is_answered() {
    let mut served = Served::start();
    served.send(&format!("{}\n{}\n", call(1, "slow_compute", &json!({"seconds": 0.05})), echo(2))).await;
    served.input = None;
    let mut ids = Vec::new();
    while let Some(answer) = served.next().await {
        assert!(answer["error"].is_null(), "{answer}");
        ids.push(answer["id"].clone());
    }
    assert_eq!(ids, [2, 1], "each is answered when it is done");
    assert!(served.ended().await.success());
}

#[tokio::test]
async fn half_a_line_at_the_end_is_a_parse_error_and_a_whole_one_needs_no_newline() {
    for (last, error) in [(echo(1), Value::Null), (echo(1)[..30].to_owned(), json!(-32700))] {
        let mut served = Served::start();
        served.send(&last).await;
        served.input = None;
        let answer = served.next().await.unwrap();
        assert_eq!(answer["error"]["code"], error, "{answer}");
        assert_eq!(served.next().await, None);
        assert!(served.ended().await.success());
    }
}

#[tokio::test]
async fn a_huge_line_is_refused_and_the_next_is_served() {
    let mut served = Served::start();
    let huge = call(1, "echo", &json!({"text": "x".repeat(5 << 20)}));
    // Written at the same time as it is answered: pipes hold far less.
    let Served { input, output, .. } = &mut served;
    let writing = async {
        input.as_mut().unwrap().write_all(format!("{huge}\n{}\n", echo(2)).as_bytes()).await.unwrap();
    };
    let reading = async { [output.next_line().await.unwrap().unwrap(), output.next_line().await.unwrap().unwrap()] };
    let ((), [refused, served_next]) = limited("two answers", async { tokio::join!(writing, reading) }).await.unwrap();
    assert!(refused.contains("-32600") && refused.contains("\"id\":null"), "{refused}");
    assert!(served_next.contains("\"id\":2") && served_next.contains("said"), "{served_next}");
    assert!(served.ended().await.success());
}

#[tokio::test]
async fn a_client_that_is_gone_leaves_no_process_behind() {
    let mut served = Served::start();
    served.send(&format!("{}\n", echo(1))).await;
    assert_eq!(served.next().await.unwrap()["id"], 1);
    let meta: Value = serde_json::from_str(META).unwrap();
    let mut meta = meta.as_object().unwrap().clone();
    meta.insert("progressToken".to_owned(), json!(1));
    let params = json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": meta});
    let talking = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    served.send(&format!("{talking}\n")).await;
    // The next message has no reader; the process's input is still open.
    drop(served.output);
    let ended = limited("the end", served.child.wait()).await.unwrap().unwrap();
    assert!(ended.success(), "{ended}");
}
