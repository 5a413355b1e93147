//! Listening beyond loopback needs TLS, unless the person explicitly allows otherwise.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use toolgate_console::Tls;

/// TLS options.
#[derive(Debug, Args)]
pub(super) struct TlsArgs {
    /// The server's certificate chain, as PEM; enables TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, as PEM and without a passphrase.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS. Put a proxy with TLS in front, or others on the network can read the token
    /// and everything that tools read.
    #[arg(long)]
    expose_without_tls: bool,
}

impl TlsArgs {
    /// TLS for this address, which is required where other machines can reach it.
    pub(super) fn at(&self, address: SocketAddr) -> Result<Option<Tls>> {
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let tls = Tls::from_pem(&read(certificate)?, &read(key)?);
            let files = || format!("{} and {} can't be used", certificate.display(), key.display());
            return tls.with_context(files).map(Some);
        }
        if !address.ip().is_loopback() && !self.expose_without_tls {
            bail!(
                "{address} can be reached from other machines, and there is no TLS. Give a certificate with \
                 `--tls-cert` and `--tls-key`, listen on 127.0.0.1 behind a proxy with TLS, or use \
                 `--expose-without-tls`."
            );
        }
        Ok(None)
    }
}

#[allow(clippy::disallowed_methods, reason = "reads what the person named, before there is any gate")]
fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("{} can't be read", file.display()))
}
