//! The way out to commanders over HTTP: JSON there, JSON back.

use std::sync::Once;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Url};
use serde_json::Value;

/// How long a commander may take. A long poll takes half of it at the most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Speaks to commanders.
#[derive(Clone)]
pub(crate) struct JsonClient(Client);

impl JsonClient {
    pub(crate) fn new() -> Result<Self> {
        static PROVIDER: Once = Once::new();
        // Somebody else may have installed one; then that one is used.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        let roots: reqwest::Result<Vec<_>> = roots.iter().map(|der| reqwest::Certificate::from_der(der)).collect();
        let client = Client::builder()
            .timeout(PATIENCE)
            // What is meant for one place doesn't follow a redirection to another.
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_merge(roots?)
            .build()?;
        Ok(Self(client))
    }

    /// Posts a value and reads the answer; null where that isn't JSON. An address may hold a secret, so no error shows it.
    pub(crate) async fn post(&self, url: &str, body: &Value) -> Result<Value> {
        let url = Url::parse(url).ok().context("the address of a commander can't be read")?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = self.0.post(url).header("content-type", "application/json").body(body.to_string());
        let response = request.send().await.map_err(reqwest::Error::without_url).context(host.clone())?;
        let status = response.status();
        let text = response.text().await.map_err(reqwest::Error::without_url).context(host.clone())?;
        ensure!(status.is_success(), "{host} answered {status}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}
