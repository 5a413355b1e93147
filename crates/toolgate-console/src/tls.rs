//! TLS: the server's certificate and its key, from PEM.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate and its key, ready to be shown to clients.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ServerConfig>);

/// Why a certificate or a key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate where one should be.
    #[error("the file of the certificate holds none; it has to be PEM, with the server's own certificate first")]
    NoCertificate,
    /// The certificate can't be read.
    #[error("the certificate can't be read: {0}")]
    Certificate(pem::Error),
    /// The key can't be read.
    #[error("the key can't be read: {0}; it has to be PEM, without a passphrase")]
    Key(pem::Error),
    /// The two don't fit each other, or nobody could use them.
    #[error("the certificate and the key can't be used together: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and the key that belongs to it.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(TlsError::Certificate)?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// Settles with a client on how to encrypt.
    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(Arc::clone(&self.0)).accept(stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused_with_the_reason() {
        let broken = b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        let strange = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        for (chain, words) in
            [(&b""[..], "holds none"), (b"hello", "holds none"), (broken, "can't be read"), (strange, "the key can't")]
        {
            let refused = Tls::from_pem(chain, b"").unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
