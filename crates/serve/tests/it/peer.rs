//! An HTTP/1.1 client that does exactly what a test says: bytes over a socket, no HTTP library.

use std::time::Duration;

use mcpace_wire::sse;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The limit of every wait.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn limited<T>(what: &str, future: impl Future<Output = T>) -> Result<T, String> {
    tokio::time::timeout(LIMIT, future).await.map_err(|_| format!("nothing came: {what}"))
}

/// One connection.
pub(crate) struct Peer {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    body: Body,
    events: sse::Decoder,
    /// Whether the server said that it closes after this reply.
    pub(crate) closing: bool,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The head of a reply.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How much of the body is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Done,
    Length(usize),
    /// Between chunks.
    Chunks,
    /// Inside a chunk, with its line end.
    Chunk(usize),
    UntilClose,
}

impl Peer {
    pub(crate) async fn connect(address: std::net::SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("no connection: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self::over(stream))
    }

    /// On a connection that somebody else made.
    pub(crate) fn over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (buffer, events) = (Vec::new(), sse::Decoder::new(1 << 20));
        Self { stream: Box::new(stream), buffer, body: Body::Done, events, closing: false }
    }

    /// Writes as much as the server takes; one that closes in the middle has its reply read all the same.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Ends our side of the connection.
    pub(crate) async fn finish(&mut self) {
        // Where the server closed first there is nothing left to end.
        let _ = self.stream.shutdown().await;
    }

    /// The next reply's head; `None` where the connection ended instead.
    pub(crate) async fn head(&mut self) -> Result<Option<Head>, String> {
        loop {
            let end = loop {
                if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                    break at + 4;
                }
                if !self.fill().await {
                    return if self.buffer.is_empty() { Ok(None) } else { Err("half a reply".to_owned()) };
                }
            };
            let text: Vec<u8> = self.buffer.drain(..end).collect();
            let head = parse_head(&String::from_utf8_lossy(&text))?;
            if head.status == 100 {
                continue;
            }
            self.body = body_of(&head)?;
            self.events = sse::Decoder::new(1 << 20);
            self.closing = head.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            return Ok(Some(head));
        }
    }

    /// All of the body.
    pub(crate) async fn rest(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        while let Some(part) = self.part().await? {
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// The next event of the body, comments passed over; `None` at its end.
    pub(crate) async fn event(&mut self) -> Result<Option<sse::Event>, String> {
        loop {
            if let Some(event) = self.events.next_event().map_err(|error| error.to_string())? {
                return Ok(Some(event));
            }
            match self.part().await? {
                Some(part) => self.events.feed(&part),
                None => return Ok(None),
            }
        }
    }

    /// The reconnection time of the `retry:` lines so far.
    pub(crate) fn retry(&self) -> Option<u64> {
        self.events.retry()
    }

    /// Whether the server ends the connection, with nothing more on it.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }

    async fn part(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            match self.body {
                Body::Done | Body::Length(0) => {
                    self.body = Body::Done;
                    return Ok(None);
                }
                Body::Chunks => {
                    let Some(at) = find(&self.buffer, b"\r\n") else {
                        self.more().await?;
                        continue;
                    };
                    let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                    let digits = String::from_utf8_lossy(&line);
                    let length = usize::from_str_radix(digits.trim(), 16).map_err(|_| format!("no chunk: {digits}"))?;
                    if length > 0 {
                        self.body = Body::Chunk(length + 2);
                        continue;
                    }
                    while self.buffer.len() < 2 {
                        self.more().await?;
                    }
                    self.buffer.drain(..2);
                    self.body = Body::Done;
                }
                Body::Length(left) | Body::Chunk(left) => {
                    if self.buffer.is_empty() {
                        self.more().await?;
                    }
                    let count = left.min(self.buffer.len());
                    let mut part: Vec<u8> = self.buffer.drain(..count).collect();
                    self.body = match self.body {
                        Body::Length(_) => Body::Length(left - count),
                        _ => {
                            let after = left - count;
                            // The last two bytes are the chunk's line end.
                            part.truncate(part.len().saturating_sub(2_usize.saturating_sub(after)));
                            if after == 0 { Body::Chunks } else { Body::Chunk(after) }
                        }
                    };
                    if !part.is_empty() {
                        return Ok(Some(part));
                    }
                }
                Body::UntilClose => {
                    if self.buffer.is_empty() && !self.fill().await {
                        self.body = Body::Done;
                        return Ok(None);
                    }
                    return Ok(Some(std::mem::take(&mut self.buffer)));
                }
            }
        }
    }

    async fn more(&mut self) -> Result<(), String> {
        if self.fill().await { Ok(()) } else { Err("the connection ended inside a body".to_owned()) }
    }

    /// Whether more came.
    async fn fill(&mut self) -> bool {
        let mut chunk = [0; 8192];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.buffer.extend_from_slice(&chunk[..length]);
                true
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn parse_head(text: &str) -> Result<Head, String> {
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| format!("no status line: {first:?}"))?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Ok(Head { status, headers: lines.filter_map(header).collect() })
}

fn body_of(head: &Head) -> Result<Body, String> {
    if matches!(head.status, 204 | 304) {
        return Ok(Body::Done);
    }
    if head.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Body::Chunks);
    }
    match head.header("content-length") {
        Some(length) => length.parse().map(Body::Length).map_err(|_| format!("no length: {length}")),
        None => Ok(Body::UntilClose),
    }
}
