//! Encrypted connections. The URL says by `sslmode` and `sslrootcert` whether to encrypt and how the server proves who it
//! is, in the words of PostgreSQL's own clients:
//!
//! | `sslmode` | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer` (default) | if the server can | isn't checked |
//! | `require` | always | isn't checked; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | always | is signed by a trusted authority |
//! | `verify-full` | always | and is for the host that the URL names |
//!
//! `sslrootcert` is a PEM file with the trusted authorities; without it, or as `system`, they are this machine's. Given
//! without `sslmode`, it means `verify-full`. Where an authority is named and nothing would be checked, the URL is refused.
//!
//! `sslcert` and `sslkey` are PEM files with the certificate of this client, followed by those of its authorities up to one
//! that the server trusts, and with its key, which isn't encrypted.

use std::fmt;
use std::fs;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::BoxError;

/// What is checked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CertificateCheck {
    Nothing,
    Authority,
    AuthorityAndName,
}

/// What a URL says about encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    check: CertificateCheck,
    /// The file with the trusted authorities.
    authorities: Option<String>,
    /// The files with the client's certificate and with its key.
    client: Option<(String, String)>,
}

/// What a URL says, word for word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsValues {
    pub(super) sslmode: Option<String>,
    pub(super) sslrootcert: Option<String>,
    pub(super) sslcert: Option<String>,
    pub(super) sslkey: Option<String>,
}

impl TlsSettings {
    /// Decides by the values in the URL.
    pub(super) fn new(values: TlsValues) -> Result<Self, String> {
        use CertificateCheck::{Authority, AuthorityAndName, Nothing};
        let TlsValues { sslmode, sslrootcert: authorities, sslcert, sslkey } = values;
        let client = match (sslcert, sslkey) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("`sslcert` and `sslkey` belong together: name both files, or none".into()),
        };
        if client.is_some() && sslmode.as_deref() == Some("disable") {
            return Err("`sslcert` is of no use with `sslmode=disable`; use `sslmode=verify-full`".into());
        }
        let (mode, check) = match (sslmode.as_deref(), &authorities) {
            (Some(mode @ ("disable" | "prefer")), Some(_)) => {
                return Err(format!(
                    "`sslrootcert` names an authority that `sslmode={mode}` doesn't check; use `sslmode=verify-full`"
                ));
            }
            (Some("disable"), None) => (SslMode::Disable, Nothing),
            (Some("prefer") | None, None) => (SslMode::Prefer, Nothing),
            (Some("require"), None) => (SslMode::Require, Nothing),
            (Some("require"), Some(_)) | (Some("verify-ca"), _) => (SslMode::Require, Authority),
            (Some("verify-full"), _) | (None, Some(_)) => (SslMode::Require, AuthorityAndName),
            (Some(_), _) => {
                return Err("`sslmode` has to be disable, prefer, require, verify-ca or verify-full".into());
            }
        };
        Ok(Self { mode, check, authorities: authorities.filter(|file| file != "system"), client })
    }

    /// The client's side of the handshake. The files are read each time, so a new authority or certificate needs no
    /// restart.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, BoxError> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let roots = match self.check {
            CertificateCheck::Nothing => None,
            CertificateCheck::Authority | CertificateCheck::AuthorityAndName => Some(self.roots()?),
        };
        let builder = match (roots, self.check) {
            (Some(roots), CertificateCheck::AuthorityAndName) => builder.with_root_certificates(roots),
            (roots, _) => {
                let verifier = Arc::new(AuthorityVerifier { roots, algorithms });
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
        };
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, secret) = (certificates(certificate, "sslcert")?, private_key(key)?);
                builder.with_client_auth_cert(chain, secret).map_err(|error| unusable(certificate, "sslcert", error))?
            }
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, BoxError> {
        let mut roots = RootCertStore::empty();
        let Some(file) = &self.authorities else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in certificates(file, "sslrootcert")? {
            roots.add(certificate).map_err(|error| unusable(file, "sslrootcert", error))?;
        }
        Ok(roots)
    }
}

fn unusable(file: &str, name: &str, reason: impl fmt::Display) -> String {
    format!("the file `{file}` that `{name}` names can't be used: {reason}")
}

/// The certificates of a PEM file; at least one.
fn certificates(file: &str, name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = fs::read(file).map_err(|error| unusable(file, name, error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| unusable(file, name, error))?;
    if found.is_empty() {
        return Err(unusable(file, name, "it holds no certificate in PEM"));
    }
    Ok(found)
}

/// The key of a PEM file.
fn private_key(file: &str) -> Result<PrivateKeyDer<'static>, String> {
    let text = fs::read(file).map_err(|error| unusable(file, "sslkey", error))?;
    let no_key = |_| unusable(file, "sslkey", "it holds no private key in PEM that isn't encrypted");
    PrivateKeyDer::from_pem_slice(&text).map_err(no_key)
}

/// Whether an attempt to connect failed because the two sides couldn't agree on how to encrypt.
pub(super) fn is_handshake_failure(error: &BoxError) -> bool {
    use std::error::Error;
    let source = error.downcast_ref::<tokio_postgres::Error>().and_then(Error::source);
    let source = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    source.and_then(std::io::Error::get_ref).is_some_and(|inner| inner.is::<rustls::Error>())
}

/// Checks who signed a certificate, or nothing at all, and never the name in it. That the server has the certificate's key
/// is always checked.
#[derive(Debug)]
struct AuthorityVerifier {
    /// The trusted authorities; none to trust everybody.
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AuthorityVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
