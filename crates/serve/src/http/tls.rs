//! TLS: which certificate, and that HTTP/2 is offered first.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::ServeError;

/// A server's certificate and key, ready to accept with. TLS 1.2 and 1.3.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

impl Tls {
    /// From a certificate chain and its key, both as PEM text.
    ///
    /// # Errors
    /// [`ServeError::Certificate`] when either can't be read or they don't belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ServeError> {
        let unusable = |error: &dyn fmt::Display| ServeError::Certificate(error.to_string());
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| unusable(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config) })
    }

    /// With settings of one's own, client certificates for instance. ALPN decides between HTTP/2 and HTTP/1.1.
    #[must_use]
    pub fn from_config(config: Arc<ServerConfig>) -> Self {
        Self { config }
    }

    pub(super) fn current_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

/// Neither certificate nor key is shown.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
