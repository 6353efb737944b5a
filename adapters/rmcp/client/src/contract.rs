//! Commands in, answers out: one JSON object a line. Nothing of MCP.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use rmcp::transport::streamable_http_client::StreamableHttpClient;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::kind::kind_of;

const DEFAULT_LIMIT_S: f64 = 60.0;
/// How long leaving a connection may take when nobody asked for it with a limit of their own.
const ABANDON_LIMIT: Duration = Duration::from_secs(2);
const MESSAGE_LIMIT: usize = 2_000;

/// A line on stdin.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Command {
    pub cmd: String,
    pub url: String,
    pub command: Vec<String>,
    pub env: std::collections::HashMap<String, String>,
    pub auth: Auth,
    pub mode: Option<String>,
    pub name: String,
    pub arguments: Map<String, Value>,
    timeout_s: Option<f64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Auth {
    pub kind: String,
    pub token: String,
    pub consent: String,
    pub scope: String,
    pub client_name: String,
    pub fresh: bool,
}

/// Result of an operation, with time stamps read immediately before and after the SDK's calls; 0 where nothing was
/// started.
pub struct Outcome {
    pub start: u64,
    pub end: u64,
    pub result: Result<Value, Failure>,
}

impl Outcome {
    pub fn refused(kind: &'static str, message: impl Into<String>) -> Self {
        Self { start: 0, end: 0, result: Err(Failure { kind, message: message.into() }) }
    }
}

pub struct Failure {
    pub kind: &'static str,
    pub message: String,
}

impl Failure {
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { kind: "unsupported", message: message.into() }
    }

    pub fn auth(message: impl Into<String>) -> Self {
        Self { kind: "auth", message: message.into() }
    }

    pub fn timeout(limit: Duration) -> Self {
        Self { kind: "timeout", message: format!("nothing after {} s", limit.as_secs_f64()) }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    /// The whole chain: the SDK's outermost error seldom says what happened.
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let said = cause.to_string();
            if !message.contains(&said) {
                message = format!("{message}: {said}");
            }
            source = cause.source();
        }
        Self { kind: kind_of(&message), message }
    }
}

/// Serves commands, one after another, until `close`, the end of stdin, or SIGTERM.
pub async fn serve<C>(mut driver: Driver<C>) -> ExitCode
where
    C: StreamableHttpClient + Default + Sync,
{
    let (heard, mut lines) = mpsc::channel(16);
    // A thread of its own: a read of stdin can't be given up, and the runtime would wait for it at its end.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if heard.blocking_send(line).is_err() {
                break;
            }
        }
    });
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return ExitCode::FAILURE };
    answer(json!({"ready": true, "sdk": "rmcp", "version": env!("RMCP_VERSION"), "pid": std::process::id()}));
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = terminated.recv() => None,
        };
        let Some(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        let command: Command = match serde_json::from_str(&line) {
            Ok(command) => command,
            Err(error) => {
                tell("", &Outcome::refused("protocol", format!("this line is no command: {error}")));
                continue;
            }
        };
        if command.cmd == "close" {
            break;
        }
        let outcome = tokio::select! {
            outcome = driver.perform(&command, limit(&command)) => outcome,
            _ = terminated.recv() => break,
        };
        tell(&command.cmd, &outcome);
    }
    driver.leave(ABANDON_LIMIT).await;
    // The thread still reads.
    std::process::exit(0)
}

fn limit(command: &Command) -> Duration {
    let seconds = command.timeout_s.filter(|given| *given > 0.0).unwrap_or(DEFAULT_LIMIT_S);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn tell(name: &str, outcome: &Outcome) {
    let stamp = |ns: u64| if outcome.start == 0 { Value::Null } else { json!(ns) };
    let mut said = json!({
        "op": name, "ok": outcome.result.is_ok(), "start_ns": stamp(outcome.start), "end_ns": stamp(outcome.end),
    });
    match &outcome.result {
        Ok(result) => said["result"] = result.clone(),
        Err(failure) => {
            let message: String = failure.message.replace('\n', " ").chars().take(MESSAGE_LIMIT).collect();
            said["error"] = json!({"kind": failure.kind, "message": message});
        }
    }
    answer(said);
}

fn answer(said: Value) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{said}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(1);
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now() -> u64 {
    let stamp = clock_gettime(ClockId::Monotonic);
    u64::try_from(stamp.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(stamp.tv_nsec).unwrap_or(0)
}
