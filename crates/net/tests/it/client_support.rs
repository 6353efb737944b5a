//! A server that answers each request as a test says, over plain sockets, and what tests ask of recordings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_net::client::{CallResult, Client, ClientError, ClientOptions, ServerEndpoint};
use mcpace_net::{Sink, SinkOptions};
use mcpace_record::{Event, EventKind, Instrument, RecordingHead};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use url::Url;

pub(crate) fn client_sink() -> Arc<Sink> {
    let head = RecordingHead {
        instrument: Instrument::Client,
        started: "2026-11-20T00:00:00Z".to_owned(),
        started_at: None,
        mcpace: "0.1.0".to_owned(),
        upstream: "test".to_owned(),
    };
    Sink::new(head, SinkOptions::default()).unwrap()
}

pub(crate) fn client_with(url: &str, options: ClientOptions) -> (Client, Arc<Sink>) {
    let sink = client_sink();
    let endpoint = ServerEndpoint::Http(url.parse().unwrap());
    (Client::new(endpoint, options, Arc::clone(&sink)).unwrap(), sink)
}

/// Calls `tool` with arguments as a value.
pub(crate) async fn call_tool(client: &mut Client, tool: &str, arguments: &Value) -> Result<CallResult, ClientError> {
    client.call_tool(tool, &to_raw_value(arguments).unwrap()).await
}

/// Limits for tests: long enough for a busy machine, and never a hang.
pub(crate) fn options() -> ClientOptions {
    let limit = Duration::from_secs(20);
    // A busy machine must not make a connection look abandoned.
    ClientOptions { limit, settle_limit: limit, ..ClientOptions::default() }
}

pub(crate) fn count(sink: &Sink, wanted: impl Fn(&EventKind) -> bool) -> usize {
    sink.recording().events().iter().filter(|event| wanted(&event.kind)).count()
}

pub(crate) fn connections(sink: &Sink) -> usize {
    count(sink, |kind| matches!(kind, EventKind::ConnectionOpened { .. }))
}

pub(crate) fn event_at(events: &[Event], wanted: impl Fn(&EventKind) -> bool) -> &Event {
    events.iter().find(|event| wanted(&event.kind)).expect("the recording has no such event")
}

/// A request as the scripted server read it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method.
    pub(crate) fn rpc(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// Steps of the scripted server, in order.
#[derive(Clone)]
pub(crate) enum Step {
    Send(String),
    Wait(Arc<Notify>),
    /// Neither goes on nor ends; the client has to.
    Hold,
    Close,
}

pub(crate) struct Script {
    pub(crate) url: Url,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Script {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Script {
    pub(crate) async fn serve(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
        let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                tokio::spawn(async move { converse(stream, &shared, &*answer).await });
            }
        });
        Self { url, seen, task }
    }

    /// The JSON-RPC methods, or HTTP methods where there was no body, in the order they came.
    pub(crate) fn story(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let word = |seen: &Seen| match seen.rpc() {
            rpc if !rpc.is_empty() => rpc,
            _ if seen.json().get("result").is_some() => "a result".to_owned(),
            _ if seen.json().get("error").is_some() => "an error".to_owned(),
            _ => seen.method.clone(),
        };
        seen.iter().map(word).collect()
    }
}

async fn converse(mut stream: TcpStream, seen: &Mutex<Vec<Seen>>, answer: &(dyn Fn(&Seen) -> Vec<Step> + Send + Sync)) {
    let mut read = Vec::new();
    while let Some(request) = request(&mut stream, &mut read).await {
        seen.lock().unwrap().push(request.clone());
        for step in answer(&request) {
            match step {
                Step::Send(text) => {
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Step::Wait(notify) => notify.notified().await,
                Step::Hold => {
                    let mut rest = [0; 64];
                    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                    return;
                }
                Step::Close => return,
            }
        }
    }
}

async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while read.len() < end + length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(read[end..end + length].to_vec()).unwrap();
    read.drain(..end + length);
    Some(Seen { method, target, headers, body })
}

/// A whole reply of any kind.
pub(crate) fn reply(status: u16, headers: &str, body: &str) -> Vec<Step> {
    vec![Step::Send(format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()))]
}

pub(crate) fn json_reply(status: u16, body: &Value) -> Vec<Step> {
    reply(status, "Content-Type: application/json\r\n", &body.to_string())
}

/// The head of an event stream.
pub(crate) fn stream_head() -> Step {
    Step::Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned())
}

/// One piece of an event stream.
pub(crate) fn chunk(text: &str) -> Step {
    Step::Send(format!("{:x}\r\n{text}\r\n", text.len()))
}

pub(crate) fn event(message: &Value) -> Step {
    chunk(&format!("event: message\ndata: {message}\n\n"))
}

pub(crate) fn stream_end() -> Step {
    Step::Send("0\r\n\r\n".to_owned())
}

/// The result of a request.
pub(crate) fn result(seen: &Seen, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": result })
}

/// A well-behaved server of 2025-11-25 that answers as JSON, with one tool.
pub(crate) fn legacy(seen: &Seen) -> Vec<Step> {
    match seen.rpc().as_str() {
        "initialize" => json_reply(
            200,
            &result(
                seen,
                &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } }),
            ),
        ),
        "tools/list" => {
            json_reply(200, &result(seen, &json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })))
        }
        "tools/call" => json_reply(200, &result(seen, &done())),
        "server/discover" => json_reply(
            400,
            &json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "no session" } }),
        ),
        _ => reply(202, "", ""),
    }
}

/// The result of a tool that is done.
pub(crate) fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}
