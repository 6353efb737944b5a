//! Opens connections to a server, stamping each step.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcpace_oauth::printable_url;
use mcpace_record::{ConnectionId, EventKind, Side};
use mcpace_trust::NotTrusted;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use url::Url;

use crate::{NetError, Sink};

/// Scheme, host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// Whether to speak TLS.
    pub(crate) tls: bool,
    /// Host name or address, IPv6 without brackets.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
}

impl Origin {
    /// The origin of an `http` or `https` URL.
    ///
    /// # Errors
    /// [`NetError::BadUrl`] for another scheme or a URL without a host.
    pub(crate) fn from_url(url: &Url) -> Result<Self, NetError> {
        let bad = |reason: &str| NetError::BadUrl { url: printable_url(url), reason: reason.to_owned() };
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("it must start with http:// or https://")),
        };
        let host = url.host_str().ok_or_else(|| bad("it names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().ok_or_else(|| bad("it names no port"))?;
        Ok(Self { tls, host, port })
    }

    /// As it stands in a `Host` header: the port is left out where it is the scheme's own.
    #[must_use]
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// As a URL without a path: `https://host:port`.
    #[must_use]
    pub(crate) fn to_url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// Opens connections and notes `connect-start`, `connection-opened`, `tls-ready`, `connect-failed`.
#[derive(Clone)]
pub(crate) struct Dialer {
    sink: Arc<Sink>,
    tls: Arc<rustls::ClientConfig>,
    limit: Duration,
}

/// A connection to a server, plain or TLS.
pub(crate) enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP; boxed, it is large.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Dialer {
    /// `limit` bounds TCP and TLS together. `extra_root` are certificates (PEM) to trust beside the system's, for a server
    /// with a certificate of its own.
    ///
    /// # Errors
    /// [`NetError::Tls`] where `extra_root` is no certificate.
    pub(crate) fn new(sink: Arc<Sink>, limit: Duration, extra_root: Option<&str>) -> Result<Self, NetError> {
        let refused = |error: NotTrusted| {
            let host =
                if matches!(error, NotTrusted::SetUp(_)) { "this machine" } else { "the extra root certificate" };
            NetError::Tls { host: host.to_owned(), reason: error.to_string() }
        };
        let mut config = mcpace_trust::client_config(extra_root).map_err(refused)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { sink, tls: Arc::new(config), limit })
    }

    /// Opens a connection to `origin`, trying its addresses in turn; each try is a connection id of its own.
    ///
    /// `serves` is the front connection that this one is for, in the recorder.
    ///
    /// # Errors
    /// The last address's error; a time limit; TLS refused.
    pub(crate) async fn dial_origin(
        &self,
        origin: &Origin,
        serves: Option<ConnectionId>,
    ) -> Result<(Stream, ConnectionId), NetError> {
        match tokio::time::timeout(self.limit, self.dial_unlimited(origin, serves)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(NetError::TimeLimit { what: "connecting", limit: self.limit }),
        }
    }

    async fn dial_unlimited(
        &self,
        origin: &Origin,
        serves: Option<ConnectionId>,
    ) -> Result<(Stream, ConnectionId), NetError> {
        let refused = |reason: String| NetError::Connect { address: origin.authority(), reason };
        let addresses = tokio::net::lookup_host((origin.host.as_str(), origin.port)).await;
        let addresses: Vec<SocketAddr> = addresses.map_err(|e| refused(e.to_string()))?.collect();
        self.try_in_turn(&addresses, origin, serves).await
    }

    async fn try_in_turn(
        &self,
        addresses: &[SocketAddr],
        origin: &Origin,
        serves: Option<ConnectionId>,
    ) -> Result<(Stream, ConnectionId), NetError> {
        let refused = |reason: String| NetError::Connect { address: origin.authority(), reason };
        let mut last = refused("its name has no address".to_owned());
        for address in addresses {
            let conn = self.sink.connection();
            self.sink.note(EventKind::ConnectStart { conn, address: address.to_string() });
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    return self.prepare_stream(stream, origin, *address, conn, serves).await.map(|s| (s, conn));
                }
                Err(error) => {
                    let reason = error.to_string();
                    let address = address.to_string();
                    self.sink.note(EventKind::ConnectFailed { conn, address, reason: reason.clone() });
                    last = refused(reason);
                }
            }
        }
        Err(last)
    }

    async fn prepare_stream(
        &self,
        stream: TcpStream,
        origin: &Origin,
        address: SocketAddr,
        conn: ConnectionId,
        serves: Option<ConnectionId>,
    ) -> Result<Stream, NetError> {
        let opened = EventKind::ConnectionOpened { side: Side::Back, conn, address: address.to_string(), serves };
        self.sink.note(opened);
        // Our own writes must never wait for an ACK; the peer's stalls stay visible (see `delayed-ack` in findings).
        stream.set_nodelay(true).map_err(|reason| NetError::Io { what: "could not set TCP_NODELAY", reason })?;
        if !origin.tls {
            return Ok(Stream::Plain(stream));
        }
        let failed = |reason: String| NetError::Tls { host: origin.host.clone(), reason };
        let name = ServerName::try_from(origin.host.clone()).map_err(|e| failed(e.to_string()))?;
        match tokio_rustls::TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await {
            Ok(stream) => {
                let version = stream.get_ref().1.protocol_version();
                let protocol = version.map_or_else(|| "unknown".to_owned(), |v| format!("{v:?}"));
                self.sink.note(EventKind::TlsReady { conn, protocol });
                Ok(Stream::Tls(Box::new(stream)))
            }
            Err(error) => {
                let reason = error.to_string();
                self.sink.note(EventKind::ConnectFailed { conn, address: address.to_string(), reason: reason.clone() });
                Err(failed(reason))
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use mcpace_explain::find_causes;
    use mcpace_record::{Instrument, RecordingHead};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::SinkOptions;

    const LIMIT: Duration = Duration::from_secs(20);

    fn dialer() -> Dialer {
        let head = RecordingHead::bare(Instrument::Client);
        Dialer::new(Sink::new(head, SinkOptions::default()).unwrap(), LIMIT, None).unwrap()
    }

    /// A listener that accepts nobody: its queue is full, so that the kernel drops who else comes.
    async fn deaf() -> (TcpListener, TcpStream) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0))).unwrap();
        let listener = socket.listen(0).unwrap();
        let queued = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (listener, queued)
    }

    /// A server at the first address's port, which by chance may be taken at the second address.
    async fn dead_and_alive() -> (TcpListener, TcpStream, TcpListener) {
        loop {
            let (dead, queued) = deaf().await;
            let port = dead.local_addr().unwrap().port();
            if let Ok(alive) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                return (dead, queued, alive);
            }
        }
    }

    fn codes(dialer: &Dialer) -> Vec<&'static str> {
        let recording = dialer.sink.recording();
        find_causes(&recording).iter().map(|finding| finding.cause.code()).collect()
    }

    #[tokio::test]
    async fn an_address_that_takes_its_time_to_fail_is_found_before_the_one_that_stands() {
        let (dead, queued, alive) = dead_and_alive().await;
        let addresses = [dead.local_addr().unwrap(), alive.local_addr().unwrap()];
        let origin = Origin { tls: false, host: "localhost".to_owned(), port: addresses[0].port() };
        let dialer = dialer();
        let trying = {
            let (dialer, origin) = (dialer.clone(), origin.clone());
            tokio::spawn(async move { dialer.try_in_turn(&addresses, &origin, None).await.is_ok() })
        };
        let tried = async {
            while dialer.sink.recording().events().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, tried).await.unwrap();
        // A caller whose connection was dropped tries again after a second, and is refused.
        drop((dead, queued));
        assert!(tokio::time::timeout(LIMIT, trying).await.unwrap().unwrap());
        assert_eq!(codes(&dialer), ["address-fallback"]);

        let control = self::dialer();
        control.try_in_turn(&addresses[1..], &origin, None).await.unwrap();
        assert_eq!(codes(&control), [""; 0]);
    }
}
