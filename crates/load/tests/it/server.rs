//! A scripted target: raw sockets, a thread for each connection, and whatever bytes the script wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use mcpace_load::outcome::{ErrorKind, OperationOutcome};
use mcpace_load::{LoadOutcome, Plan, Run, start_run};
use serde_json::{Value, json};

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// Action of the scripted server for a request.
#[derive(Debug)]
pub(crate) enum Action {
    Send(Vec<u8>),
    /// Sends in pieces, each in a segment of its own.
    Pieces(Vec<Vec<u8>>),
    /// Sends, then closes the connection.
    Close(Vec<u8>),
    /// Ends the connection with a reset.
    Reset,
    /// Says nothing, and keeps the connection.
    Nothing,
    /// One byte, and another, for as long as the client stays.
    Drip(Vec<u8>),
}

/// A target that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) connections: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    _turn: Turn,
}

/// Tests that measure run alone; the others side by side.
#[derive(Debug)]
pub(crate) enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

static TURNS: RwLock<()> = RwLock::new(());

impl Turn {
    pub(crate) fn shared() -> Self {
        Self::Shared { _guard: TURNS.read().unwrap_or_else(PoisonError::into_inner) }
    }

    pub(crate) fn alone() -> Self {
        Self::Alone { _guard: TURNS.write().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl Server {
    pub(crate) fn start(script: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        Self::with(Turn::shared(), script)
    }

    /// No other test runs meanwhile.
    pub(crate) fn alone(script: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        Self::with(Turn::alone(), script)
    }

    fn with(turn: Turn, script: impl Fn(&Request) -> Action + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, connections: Arc::default(), is_over: Arc::default(), _turn: turn };
        let (connections, is_over, script) =
            (Arc::clone(&server.connections), Arc::clone(&server.is_over), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, is_over) = (Arc::clone(&script), Arc::clone(&is_over));
                // A connection that fails is the engine's end of it.
                thread::spawn(move || serve(stream, &*script, &is_over).ok());
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Every connection ends with its next request, and no new one is taken.
    pub(crate) fn die(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener, which then closes.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.die();
    }
}

fn serve(stream: TcpStream, script: &dyn Fn(&Request) -> Action, is_over: &AtomicBool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(&stream);
    while let Some(request) = read(&mut reader)? {
        if is_over.load(Ordering::SeqCst) {
            return Ok(());
        }
        match script(&request) {
            Action::Send(bytes) => (&stream).write_all(&bytes)?,
            Action::Pieces(pieces) => {
                for piece in pieces {
                    (&stream).write_all(&piece)?;
                    thread::yield_now();
                }
            }
            Action::Close(bytes) => return (&stream).write_all(&bytes),
            Action::Reset => {
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
                return Ok(());
            }
            Action::Nothing => {}
            Action::Drip(bytes) => {
                for byte in bytes.chunks(1).cycle() {
                    (&stream).write_all(byte)?;
                    // The fault itself: a target that takes its time.
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { method, headers, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

/// A reply with a body of some type.
pub(crate) fn http(status: &str, extra: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{extra}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A JSON reply.
pub(crate) fn json_reply(message: &Value) -> Vec<u8> {
    http("200 OK", "", "application/json", &message.to_string())
}

/// The good result to a request.
pub(crate) fn result(request: &Request) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": {"content": [{"type": "text", "text": "hi"}], "protocolVersion": "2025-06-18"}})
}

/// Does all that a good server does, as JSON.
pub(crate) fn good(request: &Request) -> Action {
    Action::Send(match (request.method.as_str(), request.rpc()) {
        ("DELETE", _) => http("204 No Content", "", "text/plain", ""),
        (_, "notifications/initialized") => http("202 Accepted", "", "text/plain", ""),
        (_, "initialize") => http("200 OK", "mcp-session-id: s1\r\n", "application/json", &result(request).to_string()),
        _ => json_reply(&result(request)),
    })
}

/// A plan that says the least; `changes` replace its members.
pub(crate) fn plan(url: &str, changes: &Value) -> Plan {
    let mut plan = json!({
        "target": {"kind": "http", "url": url}, "revision": "2025-06-18", "session": "none",
        "model": {"kind": "closed", "vus": 4}, "duration_s": 0.5, "timeout_s": 20, "drain_s": 5,
        "operations": [{"name": "echo", "kind": "call", "tool": "echo", "arguments": {"text": "hi"}}],
    });
    for (name, value) in changes.as_object().unwrap() {
        plan[name] = value.clone();
    }
    Plan::parse(&plan.to_string()).unwrap()
}

/// Runs a plan to its end, which must come.
pub(crate) fn run(plan: Plan) -> LoadOutcome {
    finish(&start_run(plan).unwrap())
}

/// Waits for a run's end, and holds its figures against each other.
pub(crate) fn finish(run: &Run) -> LoadOutcome {
    assert!(run.wait(Duration::from_secs(60)), "the run doesn't end");
    let outcome = run.result().unwrap();
    assert_eq!(outcome.failure, None);
    for operation in &outcome.operations {
        let errors: u64 = operation.errors.values().sum();
        assert_eq!(operation.count, operation.ok + errors, "{operation:?}");
        assert_eq!((operation.latency.count, operation.service.count), (operation.ok, operation.ok));
        assert_eq!(operation.failed.count, errors);
        assert_eq!(operation.first_error.is_some(), errors > 0);
    }
    let counted: u64 = planned(&outcome).map(|operation| operation.count).sum();
    assert_eq!(outcome.begun, counted + outcome.unfinished, "{outcome:?}");
    assert_eq!(outcome.intended, outcome.begun + outcome.dropped, "{outcome:?}");
    outcome
}

/// The plan's operations, without the session's own.
pub(crate) fn planned(outcome: &LoadOutcome) -> impl Iterator<Item = &OperationOutcome> {
    outcome
        .operations
        .iter()
        .filter(|operation| !["initialize", "initialized", "delete"].contains(&operation.name.as_str()))
}

/// The operation of that name.
pub(crate) fn operation<'a>(outcome: &'a LoadOutcome, name: &str) -> &'a OperationOutcome {
    outcome.operations.iter().find(|operation| operation.name == name).unwrap()
}

/// Asserts that all of an operation's calls failed, of that.
pub(crate) fn all_failed(operation: &OperationOutcome, kind: ErrorKind) {
    assert!(operation.count > 0, "{} was never called", operation.name);
    assert_eq!(operation.errors[&kind], operation.count, "{operation:?}");
}

/// A program among the crate's examples.
pub(crate) fn example(name: &str) -> std::path::PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(name)
}
