//! Requests as bytes, for the tests of the HTTP transport.

use std::net::SocketAddr;

use mcpace_serve::http::{self, Options, ServerHandle};
use serde_json::{Value, json};

use crate::fixture;
use crate::peer::{Head, Peer, limited};

/// Serves the fixture.
pub(crate) fn start(change: impl FnOnce(&mut Options)) -> ServerHandle {
    let mut options = Options { address: ([127, 0, 0, 1], 0).into(), ..Options::default() };
    change(&mut options);
    http::serve(fixture::server(""), options).unwrap()
}

/// A request that is right, but for what a test changes.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Request {
    pub(crate) fn post(body: &Value) -> Self {
        let headers = vec![
            ("Host", "localhost".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        Self { method: "POST", path: "/mcp".to_owned(), headers, body: body.to_string() }
    }

    pub(crate) fn bare(method: &'static str) -> Self {
        let headers = vec![("Host", "localhost".to_owned()), ("Accept", "text/event-stream".to_owned())];
        Self { method, path: "/mcp".to_owned(), headers, body: String::new() }
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn text(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn and(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        self.without(name).and(name, value)
    }

    /// In a session.
    pub(crate) fn within(self, session: &str, revision: &str) -> Self {
        self.with("Mcp-Session-Id", session).with("MCP-Protocol-Version", revision)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        text += "\r\n";
        text += &self.body;
        text.into_bytes()
    }
}

/// A reply, read whole.
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// The data of its events, priming passed over.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub(crate) fn status_and_code(&self) -> (u16, i64) {
        (self.head.status, self.json()["error"]["code"].as_i64().unwrap_or_default())
    }
}

/// Sends `bytes` on a connection of their own.
pub(crate) async fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut peer = Peer::connect(address).await.unwrap();
    peer.send(bytes).await;
    receive(&mut peer).await
}

pub(crate) async fn ask(address: SocketAddr, request: &Request) -> Answer {
    send(address, &request.bytes()).await
}

pub(crate) async fn receive(peer: &mut Peer) -> Answer {
    let head = head(peer).await;
    let body = limited("a body", peer.rest()).await.unwrap().unwrap();
    Answer { head, body: String::from_utf8(body).unwrap() }
}

pub(crate) async fn head(peer: &mut Peer) -> Head {
    limited("a head", peer.head()).await.unwrap().unwrap().expect("a reply")
}

/// The next event's data; `None` at the stream's end.
pub(crate) async fn event(peer: &mut Peer) -> Option<Value> {
    loop {
        let event = limited("an event", peer.event()).await.unwrap().unwrap()?;
        if !event.data.is_empty() {
            return Some(serde_json::from_str(&event.data).unwrap());
        }
    }
}

/// Opens a connection, sends, and leaves the reply to be read.
pub(crate) async fn open(address: SocketAddr, request: &Request) -> Peer {
    let mut peer = Peer::connect(address).await.unwrap();
    assert!(peer.send(&request.bytes()).await);
    peer
}

pub(crate) fn call(id: u32, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(crate) fn echo(id: u32, text: &str) -> Value {
    call(id, "echo", &json!({"text": text}))
}

pub(crate) fn initialize(revision: &str) -> Value {
    let params =
        json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// Begins a session; its id.
pub(crate) async fn session(address: SocketAddr, revision: &str) -> String {
    let answer = ask(address, &Request::post(&initialize(revision))).await;
    assert_eq!(answer.head.status, 200, "{}", answer.body);
    answer.head.header("mcp-session-id").unwrap().to_owned()
}

/// The text of a tool's result.
pub(crate) fn text_of(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}
