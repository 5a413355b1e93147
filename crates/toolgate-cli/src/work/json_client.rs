//! An HTTP client for reply channels: JSON in, JSON out.

use std::sync::Once;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Url};
use serde_json::Value;

/// Request timeout. A long poll takes at most half of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Posts JSON.
#[derive(Clone)]
pub(crate) struct JsonClient(Client);

impl JsonClient {
    pub(crate) fn new() -> Result<Self> {
        static PROVIDER: Once = Once::new();
        // If a crypto provider is already installed, that one is used.
        PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
        let roots: reqwest::Result<Vec<_>> = roots.iter().map(|der| reqwest::Certificate::from_der(der)).collect();
        let client = Client::builder()
            .timeout(REQUEST_TIMEOUT)
            // An answer for one address must not follow a redirect to another.
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_merge(roots?)
            .build()?;
        Ok(Self(client))
    }

    /// Posts a value and reads the response; null if it isn't JSON. A URL may contain a secret, so no error shows it.
    pub(crate) async fn post(&self, url: &str, body: &Value) -> Result<Value> {
        let url = Url::parse(url).ok().context("the reply address is not a valid URL")?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = self.0.post(url).header("content-type", "application/json").body(body.to_string());
        let response = request.send().await.map_err(reqwest::Error::without_url).context(host.clone())?;
        let status = response.status();
        let text = response.text().await.map_err(reqwest::Error::without_url).context(host.clone())?;
        ensure!(status.is_success(), "{host} answered {status}");
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}
