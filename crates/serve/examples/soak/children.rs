//! Servers over stdio: a process each, ended by the end of its input, in the middle of calls, or killed.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::{Outcome, call, expect, notification, request, text_of};
use crate::load::{Dice, Target};
use crate::modern::told;

/// A server over stdio.
pub(crate) struct Served {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Served {
    pub(crate) async fn start(target: &Target) -> Outcome<Self> {
        let mut command = Command::new(&target.program);
        command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        let mut served = Self { child, input, output };
        let client = json!({"name": "soak", "version": "1"});
        let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}}, "clientInfo": client});
        served.ask(&request(0, "initialize", asked)).await?;
        served.send(&notification("notifications/initialized", json!({}))).await?;
        Ok(served)
    }

    pub(crate) fn pid(&self) -> Outcome<u32> {
        self.child.id().ok_or_else(|| "a server over stdio has ended".into())
    }

    async fn send(&mut self, message: &Value) -> Outcome {
        Ok(self.input.write_all(format!("{message}\n").as_bytes()).await?)
    }

    async fn message(&mut self) -> Outcome<Value> {
        let line = self.output.next_line().await?.ok_or("the output ended too soon")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn ask(&mut self, message: &Value) -> Outcome<Value> {
        self.send(message).await?;
        loop {
            let came = self.message().await?;
            if came["method"] == "elicitation/create" {
                self.send(&json!({"jsonrpc": "2.0", "id": came["id"], "result": {"action": "decline"}})).await?;
            } else if came["id"] == message["id"] {
                return Ok(came);
            }
        }
    }

    /// A bit of everything.
    pub(crate) async fn work(&mut self) -> Outcome {
        for tool in ["test_simple_text", "test_tool_with_progress"] {
            text_of(&self.ask(&call(1, tool, json!({}))).await?)?;
        }
        text_of(&self.ask(&call(2, "test_elicitation", json!({"message": "Who?"}))).await?)?;
        text_of(&self.ask(&told(call(3, "echo", json!({"text": "alone"})), false)).await?)?;
        self.send(&call(4, "slow_compute", json!({"seconds": 60.0}))).await?;
        self.send(&notification("notifications/cancelled", json!({"requestId": 4}))).await?;
        self.input.write_all(b"no message\n").await?;
        let refused = self.message().await?;
        expect(refused["error"]["code"] == -32700, || format!("{refused} in the place of a parse error"))
    }
}

pub(crate) async fn children(target: &Target, dice: &mut Dice) -> Outcome {
    let mut served = Served::start(target).await?;
    served.work().await?;
    if dice.one_of(2) == 0 {
        served.send(&call(9, "slow_compute", json!({"seconds": 0.05}))).await?;
    }
    if dice.one_of(3) == 0 {
        return Ok(served.child.kill().await?);
    }
    drop(served.input);
    let ended = served.child.wait().await?;
    expect(ended.success(), || format!("a server over stdio ended with {ended}"))
}
