//! The ways to a server: HTTP in its two shapes, and a pair of streams.

mod http;
mod outbox;
mod pipe;
mod process;
mod task;

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpace_client_protocol::{Outgoing, ServerReply, Transport};
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

pub(crate) use self::http::{Http, HttpSession, LegacySse};
pub(crate) use self::outbox::Outbox;
pub(crate) use self::pipe::Pipe;
pub use self::process::Program;
pub(crate) use self::task::BackgroundTask;
use crate::ClientError;

/// A stream of bytes in both directions.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Socket for S {}

type Opening = Pin<Box<dyn Future<Output = io::Result<Box<dyn Socket>>> + Send>>;

/// Opens connections in the place of the network.
pub(crate) type Connector = Arc<dyn Fn() -> Opening + Send + Sync>;

/// Where the server is.
#[derive(Clone)]
pub struct Target(pub(crate) TargetKind);

#[derive(Clone)]
pub(crate) enum TargetKind {
    Http(Url, Option<Connector>),
    Program(Program),
    Pipe(Connector),
}

impl Target {
    /// A server over HTTP.
    ///
    /// # Errors
    /// [`ClientError::BadTarget`] for what is no `http` or `https` URL.
    pub fn url(url: &str) -> Result<Self, ClientError> {
        http_url(url).map(|url| Target(TargetKind::Http(url, None)))
    }

    /// A server over HTTP whose connections somebody else opens: a Unix socket, or a server within this process. The URL
    /// gives path and `Host`.
    ///
    /// # Errors
    /// As [`Target::url`].
    pub fn url_over<F, C>(url: &str, connect: F) -> Result<Self, ClientError>
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Future<Output = io::Result<Box<dyn Socket>>> + Send + 'static,
    {
        let connector: Connector = Arc::new(move || Box::pin(connect()));
        http_url(url).map(|url| Target(TargetKind::Http(url, Some(connector))))
    }

    /// A process of our own, spoken to over its stdin and stdout.
    #[must_use]
    pub fn program(program: Program) -> Self {
        Target(TargetKind::Program(program))
    }

    /// A line a message, over a stream that `connect` opens: once, and again when the server turns out to be of another
    /// era than was thought.
    #[must_use]
    pub fn pipe<F, C>(connect: F) -> Self
    where
        F: Fn() -> C + Send + Sync + 'static,
        C: Future<Output = io::Result<Box<dyn Socket>>> + Send + 'static,
    {
        Target(TargetKind::Pipe(Arc::new(move || Box::pin(connect()))))
    }
}

fn http_url(text: &str) -> Result<Url, ClientError> {
    let bad =
        |reason: &str| ClientError::BadTarget { target: mcpace_wire::quote_printable(text), reason: reason.to_owned() };
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(bad("it must start with http:// or https://")),
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TargetKind::Http(url, _) => f.debug_tuple("Http").field(&mcpace_oauth::printable_url(url)).finish(),
            TargetKind::Program(program) => f.debug_tuple("Program").field(program).finish(),
            TargetKind::Pipe(_) => f.write_str("Pipe"),
        }
    }
}

/// How the server is reached now.
pub(crate) enum Link {
    Http(Arc<HttpSession>),
    Sse(LegacySse),
    Pipe(Pipe),
}

impl Link {
    pub(crate) fn kind(&self) -> Transport {
        match self {
            Link::Http(_) => Transport::StreamableHttp,
            Link::Sse(_) => Transport::HttpSse,
            Link::Pipe(_) => Transport::Pipe,
        }
    }

    /// URL or program, for messages.
    pub(crate) fn address(&self) -> String {
        match self {
            Link::Http(session) => session.address(),
            Link::Sse(stream) => stream.address(),
            Link::Pipe(pipe) => pipe.name().to_owned(),
        }
    }

    pub(crate) async fn request(&self, message: &Outgoing) -> Result<ServerReply, ClientError> {
        match self {
            Link::Http(session) => session.request(message).await,
            Link::Sse(stream) => stream.request(message).await,
            Link::Pipe(pipe) => pipe.request(message).await.map(|answer| ServerReply::Answer { status: 200, answer }),
        }
    }

    pub(crate) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        match self {
            Link::Http(session) => session.send_message(message).await,
            Link::Sse(stream) => stream.tell(message).await,
            Link::Pipe(pipe) => pipe.send(message).await,
        }
    }

    /// The way back for what has no answer, which outlives a request that was given up.
    pub(crate) fn message_sender(&self) -> Back {
        match self {
            Link::Http(session) => Back::Http(Arc::clone(session)),
            Link::Sse(stream) => Back::Http(Arc::clone(stream.session())),
            Link::Pipe(pipe) => Back::Pipe(Arc::clone(pipe.outbox())),
        }
    }

    /// Takes leave of the server, then ends everything that is ours.
    pub(crate) async fn close(&self, limit: Duration) {
        match self {
            Link::Http(session) => {
                // A server that can't end sessions, or is gone, changes nothing for us.
                drop(tokio::time::timeout(limit, session.delete_session()).await);
                session.close_connections();
            }
            Link::Sse(stream) => stream.end(),
            Link::Pipe(pipe) => pipe.close(limit).await,
        }
    }
}

/// The way on which our answers to the server's questions go.
#[derive(Clone)]
pub(crate) enum Back {
    Pipe(Arc<Outbox>),
    Http(Arc<HttpSession>),
}

impl Back {
    /// Sends what has no answer. Whether it arrives is the server's affair: it asked, or it is a courtesy.
    pub(crate) async fn send_unanswered(&self, body: Bytes) {
        if body.is_empty() {
            return;
        }
        match self {
            Back::Pipe(outbox) => drop(outbox.send_line(&body)),
            Back::Http(session) => drop(session.send_message(&Outgoing::notification("an answer", body)).await),
        }
    }
}
