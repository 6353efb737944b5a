//! A raw HTTP/1.1 client: it shows a reply piece by piece, as a socket gives it.

use std::time::Duration;

use mcpace_target::{Faults, Options, Profile, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No wait in these tests is longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// Long enough that a test which waited for it would run into [`LIMIT`].
pub(crate) const NEVER: Duration = Duration::from_secs(500);

pub(crate) async fn limited<T>(wait: impl Future<Output = T>) -> T {
    timeout(LIMIT, wait).await.expect("the peer kept us waiting")
}

pub(crate) async fn start(options: Options) -> Target {
    Target::start(options).await.unwrap()
}

/// The simple profile with these faults.
pub(crate) async fn faulty(faults: &[&str]) -> Target {
    let faults = Faults::parse(faults).unwrap();
    start(Options { faults, ..Options::new(Profile::Simple) }).await
}

pub(crate) fn authority(target: &Target) -> &str {
    let rest = target.url().split_once("://").unwrap().1;
    rest.split_once('/').unwrap().0
}

/// One connection.
pub(crate) struct Connection<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> Self {
        let stream = limited(TcpStream::connect(authority(target))).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        limited(self.stream.write_all(bytes)).await.unwrap();
        limited(self.stream.flush()).await.unwrap();
    }

    /// Sends a request and reads the reply's head.
    pub(crate) async fn ask(&mut self, request: &Ask) -> Head {
        self.send(&request.encoded()).await;
        self.head().await
    }

    /// Sends a request and reads the whole reply.
    pub(crate) async fn exchange(&mut self, request: &Ask) -> (Head, String) {
        let head = self.ask(request).await;
        let body = self.body(&head).await;
        (head, body)
    }

    pub(crate) async fn head(&mut self) -> Head {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more().await, "closed before a whole head");
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        Head(String::from_utf8(head).unwrap())
    }

    /// The rest of the body; panics where the connection breaks off.
    pub(crate) async fn body(&mut self, head: &Head) -> String {
        let mut body = Vec::new();
        if let Some(length) = head.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.unread.len() < length {
                assert!(self.more().await, "closed in mid-body");
            }
            body.extend(self.unread.drain(..length));
        } else if head.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        }
        String::from_utf8(body).unwrap()
    }

    /// The next chunk of a chunked body; `None` at its proper end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                break self.unread.drain(..at + 2).collect::<Vec<u8>>();
            }
            assert!(self.more().await, "closed between chunks");
        };
        let size = std::str::from_utf8(&line).unwrap().trim();
        let size = usize::from_str_radix(size, 16).unwrap();
        while self.unread.len() < size + 2 {
            assert!(self.more().await, "closed in mid-chunk");
        }
        let chunk: Vec<u8> = self.unread.drain(..size).collect();
        self.unread.drain(..2);
        (size > 0).then_some(chunk)
    }

    /// Whether nothing has come beyond what was asked for.
    pub(crate) fn is_drained(&self) -> bool {
        self.unread.is_empty()
    }

    /// Everything until the peer closes.
    pub(crate) async fn until_closed(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    /// Text of one read, apart from earlier ones.
    pub(crate) async fn one_read(&mut self) -> String {
        assert!(self.unread.is_empty() && self.more().await);
        String::from_utf8(std::mem::take(&mut self.unread)).unwrap()
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        match limited(self.stream.read(&mut buffer)).await {
            Ok(read) => {
                self.unread.extend_from_slice(&buffer[..read]);
                read > 0
            }
            // A reset is a close, too.
            Err(_) => false,
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A reply's head.
#[derive(Debug)]
pub(crate) struct Head(String);

impl Head {
    pub(crate) fn status(&self) -> u16 {
        self.0[9..12].parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.0.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A request to be sent.
#[derive(Clone)]
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub(crate) fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
            .with("Accept", "application/json, text/event-stream")
    }

    /// A JSON-RPC message to the endpoint.
    pub(crate) fn message(message: &Value) -> Self {
        let mut ask = Self::new("POST", "/mcp").with("Content-Type", "application/json");
        ask.body = message.to_string().into_bytes();
        ask
    }

    pub(crate) fn request(method: &str, params: Value) -> Self {
        Self::message(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    }

    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn greet() -> Self {
        Self::call("greet", json!({"name": "World"}))
    }

    pub(crate) fn initialize(version: &str) -> Self {
        Self::request(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "0"},
            }),
        )
    }

    /// A 2026-07-28 request with all that it must have.
    pub(crate) fn modern(method: &str, mut params: Value) -> Self {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let ask =
            Self::request(method, params.clone()).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
        match params["name"].as_str() {
            Some(name) => ask.with("Mcp-Name", name),
            None => ask,
        }
    }

    /// Sets a header, in the place of one of the same name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = path.to_owned();
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        [head.into_bytes(), self.body.clone()].concat()
    }
}

/// The one JSON-RPC response in a body, whether JSON or SSE.
pub(crate) fn response(body: &str) -> Value {
    let json =
        body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| !data.is_empty())).unwrap_or(body);
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {body:?}"))
}

/// The text of a tool's result.
pub(crate) fn text(body: &str) -> String {
    response(body)["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
