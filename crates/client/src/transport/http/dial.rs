//! Opens connections: TCP, TLS where the scheme wants it, or whatever the caller opens in their place.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpace_oauth::printable_url;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use url::Url;

use crate::transport::Connector;
use crate::{ClientError, Socket};

/// Scheme, host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    pub(super) fn from_url(url: &Url) -> Result<Self, ClientError> {
        let bad = |reason: &str| ClientError::BadTarget { target: printable_url(url), reason: reason.to_owned() };
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(bad("it must start with http:// or https://")),
        };
        let host = url.host_str().ok_or_else(|| bad("it names no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| bad("it names no port"))?;
        Ok(Self { tls, host: host.trim_start_matches('[').trim_end_matches(']').to_owned(), port })
    }

    /// As it stands in a `Host` header: the port is left out where it is the scheme's own.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

pub(super) struct Dialer {
    /// Opens connections to the server itself; others, an authorization server's, are always dialled.
    connector: Option<(Origin, Connector)>,
    extra_root: Option<String>,
    /// Made when first needed: reading the system's certificates takes milliseconds.
    tls: OnceLock<Result<Arc<rustls::ClientConfig>, String>>,
    limit: Duration,
}

impl Dialer {
    pub(super) fn new(
        connector: Option<(Origin, Connector)>,
        extra_root: Option<String>,
        limit: Duration,
    ) -> Result<Self, ClientError> {
        let dialer = Self { connector, extra_root, tls: OnceLock::new(), limit };
        // A bad certificate is the caller's mistake, to be told at once.
        if dialer.extra_root.is_some() {
            dialer.tls_settings("the extra root certificate")?;
        }
        Ok(dialer)
    }

    pub(super) async fn dial_origin(&self, origin: &Origin) -> Result<Box<dyn Socket>, ClientError> {
        let opened = tokio::time::timeout(self.limit, self.open_socket(origin)).await;
        opened.unwrap_or_else(|_| {
            Err(ClientError::TimeLimit { what: format!("connecting to {}", origin.authority()), limit: self.limit })
        })
    }

    async fn open_socket(&self, origin: &Origin) -> Result<Box<dyn Socket>, ClientError> {
        let refused =
            |error: io::Error| ClientError::Connect { address: origin.authority(), reason: error.to_string() };
        if let Some((_, connector)) = self.connector.as_ref().filter(|(reached, _)| reached == origin) {
            return connector().await.map_err(refused);
        }
        let stream = TcpStream::connect((origin.host.as_str(), origin.port)).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        if !origin.tls {
            return Ok(Box::new(stream));
        }
        let failed = |reason: String| ClientError::Tls { host: origin.host.clone(), reason };
        let name = ServerName::try_from(origin.host.clone()).map_err(|error| failed(error.to_string()))?;
        let connector = tokio_rustls::TlsConnector::from(self.tls_settings(&origin.host)?);
        let stream = connector.connect(name, stream).await.map_err(|error| failed(error.to_string()))?;
        Ok(Box::new(stream))
    }

    fn tls_settings(&self, host: &str) -> Result<Arc<rustls::ClientConfig>, ClientError> {
        let made = self.tls.get_or_init(|| tls_configuration(self.extra_root.as_deref()));
        made.clone().map_err(|reason| ClientError::Tls { host: host.to_owned(), reason })
    }
}

fn tls_configuration(extra_root: Option<&str>) -> Result<Arc<rustls::ClientConfig>, String> {
    let mut config = mcpace_trust::client_config(extra_root).map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
