//! TLS over a socket that doesn't block.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use crate::poller::Socket;

/// A socket with TLS over it.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    pub(crate) socket: Socket,
    session: ClientConnection,
}

impl TlsSocket {
    pub(crate) fn new(socket: Socket, config: &Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        session.set_buffer_limit(None);
        Ok(Self { socket, session })
    }

    /// Goes on with the handshake; whether it is over.
    pub(crate) fn continue_handshake(&mut self) -> io::Result<bool> {
        loop {
            self.flush()?;
            if !self.session.is_handshaking() {
                return Ok(true);
            }
            match self.read_records() {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Closed without a farewell: HTTP's own framing tells whether anything is missing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            self.read_records()?;
            self.flush()?;
        }
    }

    /// Takes all bytes; sends what the socket takes, the rest with [`TlsSocket::flush`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.session.writer().write_all(bytes)?;
        self.flush()?;
        Ok(bytes.len())
    }

    /// Sends what the socket takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                done => done?,
            };
        }
        Ok(())
    }

    fn read_records(&mut self) -> io::Result<usize> {
        let read = self.session.read_tls(&mut self.socket)?;
        self.session.process_new_packets().map_err(io::Error::other)?;
        Ok(read)
    }
}

/// TLS settings that trust the system's certificates and those of `ca`, or any certificate if `insecure`.
pub(crate) fn client_config(ca: Option<&str>, insecure: bool) -> Result<Arc<ClientConfig>, String> {
    let trusted = mcpace_trust::client_config(ca.filter(|_| !insecure));
    let mut config = trusted.map_err(|error| format!("the certificates to trust: {error}"))?;
    if insecure {
        let provider = Arc::clone(config.crypto_provider());
        config.dangerous().set_certificate_verifier(Arc::new(Anybody(provider)));
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Believes every certificate: only where the user asked for it by name.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
