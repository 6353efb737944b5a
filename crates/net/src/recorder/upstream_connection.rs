//! One connection to a server, for one front connection.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mcpace_oauth::reason_of;
use mcpace_record::{Closer, ConnectionId, Side};
use tokio::sync::oneshot;

use super::meter::Meter;
use super::request::{BackHead, PassingRequest, RequestBody};
use super::shared::RecorderShared;
use crate::tap::Tap;
use crate::{NetError, Origin};

/// How long an orderly close (a TLS goodbye) may take after the front side is gone.
const GOODBYE: Duration = Duration::from_secs(1);

/// A connection that requests can be sent on, one after another.
pub(super) struct UpstreamConnection {
    pub(super) origin: Origin,
    pub(super) meter: Arc<Meter>,
    sender: SendRequest<RequestBody>,
    /// Whether a reply has come on it.
    pub(super) used: bool,
    /// Dropped with this: tells the driver that nobody will send any more.
    _in_use: oneshot::Sender<()>,
}

/// Why no reply came.
pub(super) enum Unanswered {
    /// Nothing of the request went out: it can be sent on another connection.
    Unsent(Box<Request<RequestBody>>),
    /// The server closed or spoke no HTTP.
    Failed(String),
}

impl UpstreamConnection {
    /// Dials for the connection `client`, and drives the new connection on a task of its own until either side ends it.
    /// `on_end` is then called with the id of the new connection.
    pub(super) async fn open_connection(
        shared: &RecorderShared,
        origin: &Origin,
        client: ConnectionId,
        on_end: impl FnOnce(ConnectionId) + Send + 'static,
    ) -> Result<Self, NetError> {
        let (stream, conn) = shared.dialer.dial_origin(origin, Some(client)).await?;
        let meter = Meter::new(shared, Side::Back, conn, shared.options.quickack);
        let tap = Tap::new(stream, Arc::clone(&meter));
        let handshake = http1::Builder::new().preserve_header_case(true).handshake(TokioIo::new(tap)).await;
        let (sender, connection) =
            handshake.map_err(|e| NetError::Connect { address: origin.authority(), reason: e.to_string() })?;
        let (in_use, released) = oneshot::channel();
        tokio::spawn(drive_connection(connection, released, Arc::clone(&meter), on_end));
        Ok(Self { origin: origin.clone(), meter, sender, used: false, _in_use: in_use })
    }

    /// Whether the server, or an error, has ended it.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a request and waits for its reply's head.
    pub(super) async fn send_request(
        &mut self,
        request: Request<RequestBody>,
        outgoing: &Arc<PassingRequest>,
        head: BackHead,
    ) -> Result<Response<Incoming>, Unanswered> {
        if self.sender.ready().await.is_err() {
            return Err(Unanswered::Unsent(Box::new(request)));
        }
        outgoing.leaves_on(head);
        self.meter.expect_handover(Arc::clone(outgoing) as _);
        match self.sender.try_send_request(request).await {
            Ok(reply) => {
                self.used = true;
                Ok(reply)
            }
            Err(mut failure) => match failure.take_message() {
                Some(request) => Err(Unanswered::Unsent(Box::new(request))),
                None => Err(Unanswered::Failed(reason_of(failure.error()))),
            },
        }
    }

    /// The server announced the close of this connection.
    pub(super) fn server_will_close(&self) {
        self.meter.declare_close(Closer::Server);
    }
}

type HyperConnection = http1::Connection<TokioIo<Tap<crate::Stream, Meter>>, RequestBody>;

async fn drive_connection(
    connection: HyperConnection,
    released: oneshot::Receiver<()>,
    meter: Arc<Meter>,
    on_end: impl FnOnce(ConnectionId),
) {
    {
        let mut connection = std::pin::pin!(connection);
        // How it ended was noted by the tap.
        tokio::select! {
            _ = &mut connection => {}
            _ = released => {
                let _ = tokio::time::timeout(GOODBYE, &mut connection).await;
            }
        }
    }
    // A last reply, which may have announced this close, is read by a task that is ready before this one again.
    tokio::task::yield_now().await;
    meter.note_close();
    on_end(meter.connection_id());
}
