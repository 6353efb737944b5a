//! Speed and memory of `explain`: a recording of a million exchanges, read from its file, split into ledgers and
//! searched for causes. To reach: 10 s and 1 GB.
//!
//! Each recording is written by a process of its own and explained by another, so that the memory that is printed is
//! the reader's alone. Processor time is printed beside the clock's, since that is what a busy machine leaves alone,
//! nearly.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use mcpace_explain::{Account, Exchange, explained_file};
use mcpace_record::{
    CallId, CallOutcome, ConnectionId, Event, EventKind, ExchangeId, Header, Instrument, MessageNote, Nanos, Reader,
    RecordingHead, ReplyEnding, Side, Writer, digest_bytes,
};

/// The allocator of the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exchanges of each session; the first one begins it.
const PER_SESSION: u64 = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", file, exchanges, kind] => write(Path::new(file), exchanges.parse()?, kind),
        ["explain", file] => explain(Path::new(file)),
        [] => run("1000000"),
        [exchanges] => run(exchanges),
        _ => Err("usage: explain [EXCHANGES]".into()),
    }
}

/// Kinds of recordings: those that `mcpace record` writes for a foreign client, those with replies as events, and those
/// of the lab, whose programs mark their operations.
const KINDS: [&str; 3] = ["without operations", EVENTS, OPERATIONS];
const EVENTS: &str = "without operations, replies as events";
const OPERATIONS: &str = "with operations";

fn run(count: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join(format!("mcpace-explain-{}.jsonl.zst", std::process::id()));
    for kind in KINDS {
        let this = || std::env::current_exe().map(Command::new);
        let written = this()?.arg("write").arg(&file).args([count, kind]).status()?.success();
        println!("{count} exchanges {kind}, {:.0} MB on disk", file.metadata()?.len() as f64 / 1e6);
        let explained = written && this()?.arg("explain").arg(&file).status()?.success();
        std::fs::remove_file(&file)?;
        if !explained {
            return Err("the recording was not written, or not explained".into());
        }
    }
    Ok(())
}

fn explain(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    println!("{:>10} B an exchange, {} B an account", size_of::<Exchange<'_>>(), size_of::<Account>());
    let open = || Reader::events(BufReader::new(File::open(file)?)).map_err(std::io::Error::other);
    // Reading alone is measured first; the rest of the total is joining, ledgers and rules.
    let mut events = open()?;
    step("read", || events.by_ref().try_for_each(|event| event.map(drop)))?;
    let begun = Instant::now();
    let mut events = open()?;
    let told = step("explain", || explained_file(&mut events, None))?;
    println!("{:>10} events, {} accounts, {} findings", told.events, told.accounts.len(), told.findings.len());
    println!("{:>10.2} s in all (to reach: 10)", begun.elapsed().as_secs_f64());
    println!("{:>10} at most (to reach: 1 GB)", peak().unwrap_or_default());
    Ok(())
}

fn step<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let (begun, before) = (Instant::now(), processor_s());
    let result = work();
    let (took, own) = (begun.elapsed().as_secs_f64(), processor_s() - before);
    println!("{name:>10} {took:.2} s, {own:.2} s of processor, {} at most so far", peak().unwrap_or_default());
    result
}

/// Processor time of this process, on which a busy machine has hardly any effect.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Fields 14 and 15 of proc(5), in hundredths of a second; the first two are before the bracket.
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Peak memory of this process, as reported by the kernel.
fn peak() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(format!("{:.2} GB", kilobytes * 1024.0 / 1e9))
}

/// Calls through the recorder as the Python SDK makes them: a session for each thousand, one connection each, JSON
/// replies.
fn write(file: &Path, count: u64, kind: &str) -> Result<(), Box<dyn std::error::Error>> {
    let head = RecordingHead {
        instrument: Instrument::Recorder,
        started: "2026-11-01T12:00:00Z".to_owned(),
        started_at: None,
        mcpace: env!("CARGO_PKG_VERSION").to_owned(),
        upstream: "http://127.0.0.1:1/mcp".to_owned(),
    };
    let mut writer = Writer::new(BufWriter::new(File::create(file)?), &head)?;
    for exchange in 0..count {
        let told = |event: &Event| matches!(event.kind, EventKind::CallStart { .. } | EventKind::CallEnd { .. });
        for event in one(exchange, kind == EVENTS).into_iter().filter(|event| kind == OPERATIONS || !told(event)) {
            writer.write(&event)?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn one(number: u64, as_events: bool) -> Vec<Event> {
    let session = number / PER_SESSION;
    let (front, back, ex) = (ConnectionId(session * 2), ConnectionId(session * 2 + 1), ExchangeId(number));
    let first = number.is_multiple_of(PER_SESSION);
    let at = number * 2_000_000;
    let mut events = Vec::new();
    let mut event = |after: u64, kind: EventKind| events.push(Event { at: Nanos(at + after), kind });
    let address = || "127.0.0.1:43210".to_owned();
    if first {
        event(0, EventKind::ConnectionOpened { side: Side::Front, conn: front, address: address(), serves: None });
        event(10, EventKind::ConnectStart { conn: back, address: address() });
        let serves = Some(front);
        event(20, EventKind::ConnectionOpened { side: Side::Back, conn: back, address: address(), serves });
    }
    let call = CallId(number);
    let operation = if first { "connect" } else { "call" }.to_owned();
    event(30, EventKind::CallStart { call, operation, tool: (!first).then(|| "greet".to_owned()) });
    let asked = if first {
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#.to_owned()
    } else {
        format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"greet","arguments":{{"name":"{number}"}}}}}}"#
        )
    };
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"Hello {number}"}}],"isError":false}}}}"#,
        if first { 0 } else { number }
    );
    for (side, conn, after) in [(Side::Front, front, 40_000), (Side::Back, back, 60_000)] {
        let near = side == Side::Front;
        let (method, target) = ("POST".to_owned(), "/mcp".to_owned());
        let headers = if near { headers(session, first) } else { Vec::new() };
        event(after, EventKind::RequestHead { side, conn, ex, method, target, headers });
        let messages = if near { MessageNote::of(asked.as_bytes()) } else { Vec::new() };
        let (bytes, digest) = (asked.len() as u64, digest_bytes(asked.as_bytes()));
        event(after + 1_000, EventKind::RequestEnd { side, ex, bytes, digest, messages, body: None });
    }
    for (side, after) in [(Side::Back, 500_000), (Side::Front, 520_000)] {
        let far = side == Side::Back;
        let reply = |name: &str, value: String| Header(name.to_owned(), value);
        let shape = if as_events { "text/event-stream" } else { "application/json" };
        let mut headers = vec![reply("content-type", shape.to_owned())];
        headers.extend(first.then(|| reply("mcp-session-id", format!("session-{session}"))));
        let headers = if far { headers } else { Vec::new() };
        event(after, EventKind::ReplyHead { side, ex, status: 200, headers });
        event(after + 100, EventKind::ReplyBodyStart { side, ex });
        let mut messages = if far { MessageNote::of(answer.as_bytes()) } else { Vec::new() };
        let (bytes, digest) = (answer.len() as u64, digest_bytes(answer.as_bytes()));
        if as_events {
            let messages = std::mem::take(&mut messages);
            let began = Nanos(at + after + 100);
            event(
                after + 1_000,
                EventKind::ReplyEvent { side, ex, seq: 0, began, bytes, event: None, id: None, messages, body: None },
            );
        }
        let ending = ReplyEnding::Complete;
        event(after + 2_000, EventKind::ReplyEnd { side, ex, bytes, digest, ending, messages, body: None });
    }
    event(700_000, EventKind::CallEnd { call, outcome: CallOutcome::Ok });
    events
}

fn headers(session: u64, first: bool) -> Vec<Header> {
    let mut headers: Vec<Header> = [
        ("host", "127.0.0.1:43210"),
        ("accept", "application/json, text/event-stream"),
        ("accept-encoding", "gzip, deflate"),
        ("connection", "keep-alive"),
        ("user-agent", "python-httpx/0.28.1"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2025-06-18"),
    ]
    .map(|(name, value)| Header(name.to_owned(), value.to_owned()))
    .to_vec();
    if !first {
        headers.push(Header("mcp-session-id".to_owned(), format!("session-{session}")));
    }
    headers
}
