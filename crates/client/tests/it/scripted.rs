//! A stand-in for servers that do what no good server does: each request is handed to a script, which says what bytes come
//! back and whether the connection goes on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcpace_client::Target;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.lines().filter_map(|line| line.split_once(": "));
        found.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub(crate) fn is_get(&self) -> bool {
        self.head.starts_with("GET ")
    }
}

/// Reaction to a request.
pub(crate) enum Act {
    Reply(String),
    /// And then the connection's end.
    Last(String),
    /// And then nothing more, the connection left open.
    Silence(String),
}

pub(crate) struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    serving: JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start(script: impl Fn(&Request, usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, noted) = (Arc::new(script), Arc::clone(&seen));
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (script, noted) = (Arc::clone(&script), Arc::clone(&noted));
                tokio::spawn(async move { drop(serve(stream, &*script, &noted).await) });
            }
        });
        Self { address, seen, serving }
    }

    pub(crate) fn target(&self) -> Target {
        Target::url(&self.url()).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(|request| request.method().to_owned()).collect()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    script: &(dyn Fn(&Request, usize) -> Act + Send + Sync),
    seen: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut text = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = text.windows(4).position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut text).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&text[..end]).into_owned();
        let mut request = Request { head, body: Value::Null };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        while text.len() < end + length {
            stream.read_buf(&mut text).await?;
        }
        request.body = serde_json::from_slice(&text[end..end + length]).unwrap_or_default();
        text.drain(..end + length);
        let count = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.iter().filter(|earlier| earlier.method() == request.method()).count()
        };
        match script(&request, count) {
            Act::Reply(reply) => stream.write_all(reply.as_bytes()).await?,
            Act::Last(reply) => return stream.write_all(reply.as_bytes()).await,
            Act::Silence(reply) => {
                stream.write_all(reply.as_bytes()).await?;
                while stream.read_buf(&mut text).await? > 0 {}
                return Ok(());
            }
        }
    }
}

pub(crate) fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn as_json(body: &Value) -> Act {
    Act::Reply(response("200 OK", "Content-Type: application/json\r\n", &body.to_string()))
}

pub(crate) fn status(status: &str) -> Act {
    Act::Reply(response(status, "", ""))
}

pub(crate) fn result(request: &Request, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

pub(crate) fn error(request: &Request, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "error": {"code": code, "message": "no"}})
}

/// The head of a stream of events that ends with the connection.
pub(crate) const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// Reply of a well-behaved legacy server, for requests that the script leaves out; `initialize` is given `session`.
pub(crate) fn legacy(request: &Request, session: &str) -> Act {
    match request.method() {
        "server/discover" => status("400 Bad Request"),
        "initialize" => {
            let told = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "scripted", "version": "1"},
            });
            let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n");
            Act::Reply(response("200 OK", &headers, &result(request, &told).to_string()))
        }
        "tools/call" => as_json(&result(request, &json!({"content": [{"type": "text", "text": "ok"}]}))),
        _ if request.is_get() => status("405 Method Not Allowed"),
        _ => status("202 Accepted"),
    }
}

pub(crate) fn modern(request: &Request) -> Act {
    let told = match request.method() {
        "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}),
        _ => json!({"content": [{"type": "text", "text": "ok"}], "resultType": "complete"}),
    };
    as_json(&result(request, &told))
}
