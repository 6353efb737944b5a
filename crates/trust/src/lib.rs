//! Whom a client believes over TLS: the system's certificates, and those that the user names.
//!
//! Constraint: one answer for all who ask others over TLS (both clients, the verifiers of tokens, the load engine), so that the
//! same bundle is believed by each. No sockets; the system's certificates are read from its files each time, which takes
//! milliseconds: whoever needs a configuration keeps it.
//!
//! Deliberately absent: trusting any certificate. Crates that offer this do so in their own code.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Certificates that can't be believed in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTrusted {
    /// The text has no certificate at all.
    #[error("there is no certificate in PEM in it")]
    Nothing,
    /// One of its certificates can't be used.
    #[error("its certificate {number} can't be used: {reason}")]
    Unusable {
        /// Which, from 1 on.
        number: usize,
        /// In the library's words.
        reason: String,
    },
    /// The environment: this machine's own TLS.
    #[error("TLS can't be set up: {0}")]
    SetUp(String),
}

/// A client's configuration that believes the system's certificates and all of `extra_roots` (PEM, one after the other). No
/// certificate of its own, no ALPN.
///
/// # Errors
/// [`NotTrusted`]: `extra_roots` holds none, or one that can't be used.
pub fn client_config(extra_roots: Option<&str>) -> Result<ClientConfig, NotTrusted> {
    let roots = root_store(extra_roots)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| NotTrusted::SetUp(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn root_store(extra_roots: Option<&str>) -> Result<RootCertStore, NotTrusted> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(pem) = extra_roots else { return Ok(roots) };
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        found += 1;
        let unusable = |reason: String| NotTrusted::Unusable { number: found, reason };
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if found == 0 { Err(NotTrusted::Nothing) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(name: &str) -> String {
        rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem()
    }

    #[test]
    fn each_certificate_of_a_bundle_is_believed() {
        let own = root_store(None).unwrap().len();
        let (one, two) = (certificate("one.example"), certificate("two.example"));
        assert_eq!(root_store(Some(&one)).unwrap().len(), own + 1);
        assert_eq!(root_store(Some(&format!("# a bundle\n{one}\n{two}"))).unwrap().len(), own + 2);
        assert!(client_config(Some(&one)).is_ok());
    }

    #[test]
    fn what_is_no_certificate_is_said() {
        for nothing in ["", "no PEM", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            assert_eq!(client_config(Some(nothing)).err(), Some(NotTrusted::Nothing), "{nothing:?}");
        }
        let broken =
            format!("{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", certificate("one.example"));
        let said = client_config(Some(&broken)).err();
        assert!(matches!(said, Some(NotTrusted::Unusable { number: 2, .. })), "{said:?}");
    }
}
