//! TLS with a certificate that the target makes for itself.
//!
//! A client trusts it by taking [`Target::certificate_pem`](crate::Target::certificate_pem) as a
//! root. The key never leaves memory. Deliberately absent: ALPN for HTTP/2, which targets don't
//! speak.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::TargetError;

/// A certificate and what accepts connections with it.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) certificate_pem: String,
}

impl Tls {
    /// Makes a certificate for `localhost`, the loopback addresses and `host`.
    pub(crate) fn self_signed(host: IpAddr) -> Result<Self, TargetError> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !names.contains(&host.to_string()) {
            names.push(host.to_string());
        }
        let made =
            rcgen::generate_simple_self_signed(names).map_err(|error| TargetError::Certificate(error.to_string()))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key))
            .map_err(|error| TargetError::Certificate(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate_pem: made.cert.pem() })
    }
}
