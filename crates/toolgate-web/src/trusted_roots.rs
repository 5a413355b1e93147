//! The trusted root certificates: the bundled ones, and those of this machine, as other programs find them
//! (`SSL_CERT_FILE` and `SSL_CERT_DIR` included). They are read on first use, since most programs never fetch anything.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;
use toolgate_contract::ToolError;

/// The trusted certificates, read once.
#[derive(Debug)]
pub(crate) struct TrustedRoots {
    /// Additional trusted certificates (DER).
    more: Vec<Vec<u8>>,
    tls: OnceCell<ClientConfig>,
}

impl TrustedRoots {
    pub(crate) fn new(more: Vec<Vec<u8>>) -> Self {
        Self { more, tls: OnceCell::new() }
    }

    /// The TLS configuration.
    pub(crate) async fn tls(&self) -> Result<ClientConfig, ToolError> {
        self.tls.get_or_try_init(|| self.read()).await.cloned()
    }

    async fn read(&self) -> Result<ClientConfig, ToolError> {
        // If the machine's own certificates can't be read, the bundled ones remain.
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
