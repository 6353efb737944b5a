//! HTTP without a socket: connections that somebody else made, over any stream of bytes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection_state::{ConnectionState, IdleCheck, IdleTimeouts};
use super::http_server::HttpServer;
use super::reply_body::ReplyBody;
use super::{Options, ServeError, connection};
use crate::Server;

/// The endpoint of [`super::serve`] without listeners and threads: for Unix sockets, for calls within a process, for tests.
/// Connections share sessions. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    http_server: Arc<HttpServer>,
    /// When idle sessions were last ended.
    swept: Arc<Mutex<Instant>>,
}

/// How often idle sessions are ended, at most: it looks at all of them.
const SWEEP: Duration = Duration::from_secs(10);

impl Endpoint {
    /// Ignores the options that say where and how to listen: `tls`, `workers` and `limits.connections`. `address` only names the
    /// host that requests may name beside loopback.
    ///
    /// # Errors
    /// [`ServeError::Option`].
    pub fn new(server: Server, options: Options) -> Result<Self, ServeError> {
        let bound = options.address;
        let http_server = HttpServer::new_registered(server, options, bound)?;
        Ok(Self { http_server, swept: Arc::new(Mutex::new(Instant::now())) })
    }

    /// Serves one connection, HTTP/1.1 or HTTP/2 in clear, to its end. Dropping the future cuts it off.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.sweep_sessions();
        let connection_state = Arc::new(ConnectionState::new(self.http_server.limits.connection_reply_bytes));
        let serving = connection::serve_plain(stream, Arc::clone(&self.http_server), Arc::clone(&connection_state));
        tokio::select! {
            () = serving => {}
            () = self.watch_connection(&connection_state) => {}
        }
    }

    /// Answers one request without a connection, its body being there. HTTP's own rules (framing, `Expect`, HTTP/1.1 and 2)
    /// are the caller's; MCP's are kept. `Options::beside` has no part in it: other paths are the caller's, too.
    pub async fn call(&self, request: Request<Bytes>) -> Response<EndpointBody> {
        self.sweep_sessions();
        self.http_server.respond_given(request).await.map(EndpointBody)
    }

    /// Ends idle sessions, where that is due: nobody else does here.
    fn sweep_sessions(&self) {
        let now = Instant::now();
        let is_due = {
            let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = now.duration_since(*swept) >= SWEEP;
            if is_due {
                *swept = now;
            }
            is_due
        };
        if is_due {
            self.http_server.sessions.sweep_idle(now);
        }
    }

    /// Gives the order to cut off what is too slow; never ends.
    async fn watch_connection(&self, connection_state: &ConnectionState) {
        let limits = &self.http_server.limits;
        let patience =
            IdleTimeouts::new(limits.head_time, limits.body_time, limits.connection_idle, limits.write_stall);
        let mut observed = IdleCheck::default();
        loop {
            tokio::time::sleep(patience.interval).await;
            observed.check_idle(connection_state, &patience);
        }
    }
}

/// The body of an answer, whole or a stream of events. Dropping it is what a client does that goes away.
pub struct EndpointBody(ReplyBody);

impl EndpointBody {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.0.poll_next(cx)).await
    }

    /// Whether more may come after the first piece.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        matches!(self.0, ReplyBody::Events(_))
    }
}

impl std::fmt::Debug for EndpointBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("is_stream", &self.is_stream()).finish()
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
