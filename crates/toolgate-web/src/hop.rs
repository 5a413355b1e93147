//! One request and its response.

use std::net::SocketAddr;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE, USER_AGENT};
use reqwest::{Client, Method, Response};
use toolgate_contract::{ErrorCode, ToolError, WebRequest, WebResponse};
use url::Url;

use crate::limits::FetchLimits;

/// The `User-Agent`.
const USER_AGENT_NAME: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));

/// Headers that decide where a request goes or how it is framed; the caller can't set these.
const RESERVED_HEADERS: &[&str] =
    &["host", "connection", "content-length", "transfer-encoding", "upgrade", "proxy-authorization"];

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<String>,
}

/// The outcome of one request.
#[derive(Debug)]
pub(crate) enum HopOutcome {
    /// A redirect.
    Redirect { status: u16, to: String },
    /// The response.
    Response(WebResponse),
}

impl Hop {
    pub(crate) fn first(request: WebRequest) -> Result<Self, ToolError> {
        let url = Url::parse(&request.url)
            .map_err(|fault| ToolError::invalid_args(format!("`url` can't be read: {fault}.")))?;
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| ToolError::invalid_args(format!("`{}` is not an HTTP method.", request.method)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
            let (Ok(name), Ok(mut value)) = pair else {
                return Err(ToolError::invalid_args(format!("The header `{name}` isn't valid in an HTTP request.")));
            };
            if RESERVED_HEADERS.contains(&name.as_str()) {
                return Err(ToolError::invalid_args(format!("The header `{name}` is set by Toolgate; leave it out.")));
            }
            value.set_sensitive(true);
            headers.append(name, value);
        }
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT_NAME));
        Ok(Self { url, method, headers, body: request.body })
    }

    /// The host and the port.
    pub(crate) fn target(&self) -> Result<(String, u16), ToolError> {
        let host = self.url.host_str().filter(|_| matches!(self.url.scheme(), "http" | "https"));
        match (host, self.url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok((host.trim_matches(['[', ']']).to_owned(), port)),
            _ => Err(ToolError::invalid_args("Only http and https URLs with a host can be fetched.")),
        }
    }

    /// Makes the request, only to one of these addresses.
    pub(crate) async fn make(
        &self,
        addresses: &[SocketAddr],
        tls: rustls::ClientConfig,
        limits: &FetchLimits,
    ) -> Result<HopOutcome, ToolError> {
        let response = self.send(&self.client(addresses, tls)?).await?;
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        match (response.status().is_redirection(), to) {
            (true, Some(to)) => Ok(HopOutcome::Redirect { status: response.status().as_u16(), to: to.to_owned() }),
            _ => self.read(response, limits).await.map(HopOutcome::Response),
        }
    }

    /// A client that connects only to these addresses.
    pub(crate) fn client(&self, addresses: &[SocketAddr], tls: rustls::ClientConfig) -> Result<Client, ToolError> {
        Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls)
            .resolve_to_addrs(self.url.host_str().unwrap_or_default(), addresses)
            .build()
            .map_err(|fault| ToolError::internal(format!("The client can't be made: {fault}.")))
    }

    /// Sends the request, and gives the response when its headers are there.
    pub(crate) async fn send(&self, client: &Client) -> Result<Response, ToolError> {
        let mut request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|fault| self.failed(&fault))
    }

    async fn read(&self, mut response: Response, limits: &FetchLimits) -> Result<WebResponse, ToolError> {
        let (status, headers) = (response.status().as_u16(), returned_headers(response.headers(), limits));
        let (mut body, mut complete) = (Vec::new(), true);
        let most = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
        while let Some(piece) = response.chunk().await.map_err(|fault| self.failed(&fault))? {
            let room = most - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                complete = false;
                break;
            }
        }
        Ok(WebResponse { url: self.url.to_string(), status, headers, body, complete, redirects: Vec::new() })
    }

    /// The error with its root cause: the outermost error only says that the request failed.
    pub(crate) fn failed(&self, fault: &reqwest::Error) -> ToolError {
        let mut causes: Vec<String> = Vec::new();
        let mut cause = std::error::Error::source(fault);
        while let Some(deeper) = cause {
            causes.push(deeper.to_string());
            cause = deeper.source();
        }
        let host = self.url.host_str().unwrap_or_default();
        let why = causes.pop().unwrap_or_else(|| "the connection failed".into());
        ToolError::new(ErrorCode::IoError, format!("The request to `{host}` failed: {why}."))
            .with_hint("Check the URL; the server may be down, or may use another protocol than the URL says.")
    }
}

/// The headers of a response that are returned: limited in number and length, and without cookies, which would be
/// secrets.
pub(crate) fn returned_headers(headers: &HeaderMap, limits: &FetchLimits) -> Vec<(String, String)> {
    let shown = headers.iter().filter(|(name, _)| *name != SET_COOKIE).take(limits.headers);
    let text = |value: &HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        text.chars().take(limits.header_bytes).collect::<String>()
    };
    shown.map(|(name, value)| (name.to_string(), text(value))).collect()
}
