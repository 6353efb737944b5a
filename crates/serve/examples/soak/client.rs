//! A client over HTTP that can do what a well-behaved one never does: leave in the middle.
//!
//! Dropping a [`Link`] closes its socket, whatever is under way on it.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use mcpace_wire::Revision;
use mcpace_wire::sse;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Events larger than this are none of ours.
const EVENT_LIMIT: usize = 1 << 20;

/// Kinds of replies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Accept {
    Json,
    Events,
    Both,
}

impl Accept {
    pub(crate) const ALL: [Accept; 3] = [Accept::Json, Accept::Events, Accept::Both];

    fn header(self) -> &'static str {
        match self {
            Accept::Json => "application/json",
            Accept::Events => "text/event-stream",
            Accept::Both => "application/json, text/event-stream",
        }
    }
}

/// Headers of a request.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) revision: Revision,
    pub(crate) session: Option<&'a str>,
    pub(crate) accept: Accept,
}

impl Way<'_> {
    pub(crate) fn post(self, message: &Value) -> Request<Full<Bytes>> {
        let mut request = self.request(Method::POST, "/mcp").header("content-type", "application/json");
        if self.revision.is_modern() {
            request = request.header("mcp-method", message["method"].as_str().unwrap_or_default());
            let params = &message["params"];
            let name = ["name", "uri", "taskId"].iter().find_map(|member| params[member].as_str());
            if let Some(name) = name {
                request = request.header("mcp-name", name);
            }
        }
        // Every part of it is written above.
        request.body(Full::from(message.to_string())).unwrap_or_default()
    }

    pub(crate) fn bare(self, method: Method, last_event_id: Option<&str>) -> Request<Full<Bytes>> {
        let mut request = self.request(method, "/mcp");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        request.body(Full::default()).unwrap_or_default()
    }

    fn request(self, method: Method, path: &str) -> hyper::http::request::Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", self.accept.header());
        if self.revision.has_version_header() {
            request = request.header("mcp-protocol-version", self.revision.as_str());
        }
        if let Some(session) = self.session {
            request = request.header("mcp-session-id", session);
        }
        request
    }
}

/// One connection.
pub(crate) struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    _driving: AbortOnDropHandle<()>,
}

impl Link {
    pub(crate) async fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // How the connection ends is seen by whoever reads a reply.
        let driving = AbortOnDropHandle::new(tokio::spawn(async { drop(connection.await) }));
        Ok(Self { sender, _driving: driving })
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Outcome<Reply> {
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok(Reply { head, body, decoder: sse::Decoder::new(EVENT_LIMIT) })
    }

    /// A request whose reply is read to its end: the message that answers it.
    pub(crate) async fn ask(&mut self, way: Way<'_>, message: &Value) -> Outcome<Value> {
        self.send(way.post(message)).await?.answer(&message["id"]).await
    }

    /// A message that wants no answer.
    pub(crate) async fn tell(&mut self, way: Way<'_>, message: &Value) -> Outcome {
        let reply = self.send(way.post(message)).await?;
        expect(reply.status() == 202, || format!("{message} was answered {}", reply.status()))?;
        reply.rest().await.map(drop)
    }
}

/// A reply that is being read.
pub(crate) struct Reply {
    head: hyper::http::response::Parts,
    body: Incoming,
    decoder: sse::Decoder,
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)?.to_str().ok()
    }

    fn is_events(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The next event, priming among them; `None` at the end.
    pub(crate) async fn event(&mut self) -> Outcome<Option<sse::Event>> {
        loop {
            if let Some(event) = self.decoder.next_event()? {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await.transpose()? else { return Ok(None) };
            if let Ok(data) = frame.into_data() {
                self.decoder.feed(&data);
            }
        }
    }

    /// The next message on a stream.
    pub(crate) async fn message(&mut self) -> Outcome<Value> {
        loop {
            let event = self.event().await?.ok_or("the stream ended too soon")?;
            if !event.data.is_empty() {
                return Ok(serde_json::from_str(&event.data)?);
            }
        }
    }

    /// The message that answers `id`, whatever comes before it.
    pub(crate) async fn answer(mut self, id: &Value) -> Outcome<Value> {
        if !self.is_events() {
            let status = self.status();
            let body = self.rest().await?;
            return serde_json::from_slice(&body).map_err(|error| format!("{status}: {error}").into());
        }
        loop {
            let message = self.message().await?;
            if message["method"].is_null() && message["id"] == *id {
                // The end is read too, or the connection could not be used again.
                while self.event().await?.is_some() {}
                return Ok(message);
            }
        }
    }

    pub(crate) async fn rest(self) -> Outcome<Bytes> {
        Ok(self.body.collect().await?.to_bytes())
    }
}

pub(crate) fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// The text of a tool's result.
pub(crate) fn text_of(reply: &Value) -> Outcome<&str> {
    reply["result"]["content"][0]["text"].as_str().ok_or_else(|| format!("no text in {reply}").into())
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}))
}
