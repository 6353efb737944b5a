//! Peers that do exactly what a test says: bytes over sockets, no HTTP library.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_net::recorder::{Recorder, RecorderOptions};
use mcpace_net::{Sink, SinkOptions};
use mcpace_record::{Event, EventKind, Instrument, RecordingHead};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The limit of every wait.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn limited<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("nothing came: {what}"),
    }
}

pub(crate) fn sink() -> Arc<Sink> {
    sink_with(SinkOptions::default())
}

pub(crate) fn sink_with(options: SinkOptions) -> Arc<Sink> {
    let head = RecordingHead {
        instrument: Instrument::Recorder,
        started: "2026-11-20T00:00:00Z".to_owned(),
        started_at: None,
        mcpace: "0.1.0".to_owned(),
        upstream: "test".to_owned(),
    };
    Sink::new(head, options).unwrap()
}

/// A port to accept on and its URL.
pub(crate) async fn listen() -> (TcpListener, Url) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    (listener, url)
}

pub(crate) fn record(upstream: &Url) -> Recorder {
    Recorder::start(RecorderOptions::new(upstream.clone()), sink()).unwrap()
}

/// The address of a recorder, as in a `Host` header.
pub(crate) fn authority(recorder: &Recorder) -> String {
    let url: Url = recorder.url().parse().unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}

/// One connection, spoken by hand.
pub(crate) struct Peer<S = TcpStream> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

impl Peer {
    pub(crate) async fn connect(recorder: &Recorder) -> Self {
        Self::over(limited("connect", TcpStream::connect(authority(recorder))).await.unwrap())
    }

    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = limited("a connection to the upstream", listener.accept()).await.unwrap();
        Self::over(stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        limited("a write", self.stream.write_all(text.as_bytes())).await.unwrap();
        limited("a flush", self.stream.flush()).await.unwrap();
    }

    /// Everything up to and with `end`.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.read).into_owned();
            if let Some(at) = text.find(end) {
                self.read.drain(..at + end.len());
                return text[..at + end.len()].to_owned();
            }
            let got = limited(end, self.stream.read_buf(&mut self.read)).await.unwrap();
            assert!(got > 0, "closed before {end:?}, after {text:?}");
        }
    }

    /// One message's head and its body of a known size.
    pub(crate) async fn message(&mut self) -> (String, String) {
        let head = self.until("\r\n\r\n").await;
        let lower = head.to_ascii_lowercase();
        let size =
            lower.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        while self.read.len() < size {
            let got = limited("a body", self.stream.read_buf(&mut self.read)).await.unwrap();
            assert!(got > 0, "closed inside a body");
        }
        let body = self.read.drain(..size).collect();
        (head, String::from_utf8(body).unwrap())
    }

    /// Reads until the other side closes. Returns the text, and whether the close was orderly.
    pub(crate) async fn rest(&mut self) -> (String, bool) {
        loop {
            match limited("the close", self.stream.read_buf(&mut self.read)).await {
                Ok(0) => return (String::from_utf8_lossy(&self.read).into_owned(), true),
                Ok(_) => {}
                Err(_) => return (String::from_utf8_lossy(&self.read).into_owned(), false),
            }
        }
    }
}

pub(crate) fn post(recorder: &Recorder, body: &str) -> String {
    let (host, size) = (authority(recorder), body.len());
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n{body}"
    )
}

pub(crate) fn get(recorder: &Recorder, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", authority(recorder))
}

pub(crate) fn json_reply(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The first event that `pick` takes, waiting for it.
pub(crate) async fn noted<T>(sink: &Sink, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
    limited(what, async {
        loop {
            if let Some(found) = sink.recording().events().iter().find_map(&pick) {
                return found;
            }
            // The recorder's threads make progress meanwhile; nothing but the sink shows that they did.
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub(crate) fn events(recorder: &Recorder) -> Vec<EventKind> {
    recorder.stop().unwrap();
    recorder.sink().recording().events().iter().map(|event| event.kind.clone()).collect()
}

/// A server that answers every request by a function, and keeps what it was asked.
pub(crate) struct Site {
    pub(crate) url: Url,
    pub(crate) asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Site {
    pub(crate) async fn start(answer: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        let (listener, url) = listen().await;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut peer = Peer::over(stream);
                    let mut first = [0];
                    while matches!(peer.stream.peek(&mut first).await, Ok(1)) {
                        let (head, body) = peer.message().await;
                        let reply = answer(&head, &body);
                        kept.lock().unwrap().push((head, body));
                        peer.send(&reply).await;
                    }
                });
            }
        });
        Self { url, asked }
    }

    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) fn last(&self) -> (String, String) {
        self.asked.lock().unwrap().last().cloned().unwrap()
    }
}
