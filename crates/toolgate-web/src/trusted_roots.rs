//! Whose certificates are trusted: the usual ones, which the program brings along, and beside them those of this machine, as
//! other programs here trust them (`SSL_CERT_FILE` and `SSL_CERT_DIR` included). They are read when the first of them is
//! needed, since most programs never fetch anything.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;
use toolgate_contract::ToolError;

/// What is trusted, read once.
#[derive(Debug)]
pub(crate) struct TrustedRoots {
    /// Certificates (DER) that are trusted besides.
    more: Vec<Vec<u8>>,
    tls: OnceCell<ClientConfig>,
}

impl TrustedRoots {
    pub(crate) fn new(more: Vec<Vec<u8>>) -> Self {
        Self { more, tls: OnceCell::new() }
    }

    /// How connections are encrypted.
    pub(crate) async fn tls(&self) -> Result<ClientConfig, ToolError> {
        self.tls.get_or_try_init(|| self.read()).await.cloned()
    }

    async fn read(&self) -> Result<ClientConfig, ToolError> {
        // A machine whose own can't be read still has the usual ones.
        let machines = tokio::task::spawn_blocking(|| rustls_native_certs::load_native_certs().certs);
        let machines = machines.await.unwrap_or_default();
        let more = self.more.iter().map(|certificate| CertificateDer::from(certificate.clone()));
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        roots.add_parsable_certificates(machines);
        roots.add_parsable_certificates(more);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let versions = versions.map_err(|fault| ToolError::internal(format!("TLS can't be set up: {fault}.")))?;
        Ok(versions.with_root_certificates(roots).with_no_client_auth())
    }
}
