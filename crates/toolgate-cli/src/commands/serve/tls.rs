//! Beyond this machine only what is encrypted, unless the person says otherwise in so many words.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use toolgate_console::Tls;

/// Who may listen in.
#[derive(Debug, Args)]
pub(super) struct TlsArgs {
    /// The server's certificate, with those that vouch for it, as PEM: with it, everything is encrypted.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, as PEM and without a passphrase.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine although nothing here encrypts. Put a proxy with TLS before it, or the token and all
    /// that tools read can be overheard.
    #[arg(long)]
    expose_without_tls: bool,
}

impl TlsArgs {
    /// What connections at this address are encrypted with. An address that others reach needs it.
    pub(super) fn at(&self, address: SocketAddr) -> Result<Option<Tls>> {
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let tls = Tls::from_pem(&read(certificate)?, &read(key)?);
            let files = || format!("{} and {} can't be used", certificate.display(), key.display());
            return tls.with_context(files).map(Some);
        }
        if !address.ip().is_loopback() && !self.expose_without_tls {
            bail!(
                "{address} can be reached from other machines, and nothing here encrypts. Give a certificate with \
                 `--tls-cert` and `--tls-key`, listen on 127.0.0.1 behind a proxy with TLS, or say \
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
