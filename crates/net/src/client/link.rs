//! One connected transport of three, and the message ids on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use mcpace_client_protocol::{Outgoing, ServerReply, Transport};

use super::ClientError;
use super::http::{Http, LegacySse};
use super::stdio::Stdio;

/// How the server is reached now.
pub(super) enum Link {
    Http(Arc<Http>),
    Legacy(Arc<Http>, LegacySse),
    Stdio(Stdio),
}

/// Hands out request ids; never the same twice, sessions notwithstanding.
#[derive(Default)]
pub(super) struct Ids(AtomicI64);

impl Ids {
    pub(super) fn next_id(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Link {
    pub(super) fn kind(&self) -> Transport {
        match self {
            Link::Http(_) => Transport::StreamableHttp,
            Link::Legacy(..) => Transport::HttpSse,
            Link::Stdio(_) => Transport::Pipe,
        }
    }

    /// URL or program, for messages.
    pub(super) fn address(&self) -> String {
        match self {
            Link::Http(http) | Link::Legacy(http, _) => http.address(),
            Link::Stdio(process) => process.program().to_owned(),
        }
    }

    pub(super) async fn request(&self, message: &Outgoing) -> Result<ServerReply, ClientError> {
        match self {
            Link::Http(http) => http.request(message).await,
            Link::Legacy(_, stream) => stream.request(message).await,
            Link::Stdio(process) => {
                process.request(message).await.map(|answer| ServerReply::Answer { status: 200, answer })
            }
        }
    }

    pub(super) async fn notify(&self, message: &Outgoing) -> Result<(), ClientError> {
        match self {
            Link::Http(http) => http.notify(message).await,
            Link::Legacy(_, stream) => stream.notify(message).await,
            Link::Stdio(process) => process.notify(message).await,
        }
    }

    /// Waits for the end of the last reply's stream, if it is near.
    pub(super) async fn settle_reply(&self) {
        if let Link::Http(http) | Link::Legacy(http, _) = self {
            http.settle_reply().await;
        }
    }

    /// Takes leave of the server, then ends everything that is ours.
    pub(super) async fn close(self, limit: Duration) {
        match self {
            Link::Http(http) => {
                // A server that can't end sessions, or is gone, changes nothing for us.
                drop(tokio::time::timeout(limit, http.delete_session()).await);
                http.close().await;
            }
            Link::Legacy(http, stream) => {
                stream.close().await;
                http.close().await;
            }
            Link::Stdio(process) => process.shutdown(limit).await,
        }
    }
}
