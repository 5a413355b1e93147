//! Fetching over HTTP, as a cleared tool sees it.

use std::time::Duration;

use crate::{BoxFuture, EgressPolicy, ToolError};

/// What is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// Where, in full.
    pub url: String,
    /// The method, in capitals.
    pub method: String,
    /// Headers beside the usual ones.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<String>,
    /// How long all of it may take.
    pub timeout: Duration,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResponse {
    /// Where it came from in the end.
    pub url: String,
    /// The server's code.
    pub status: u16,
    /// The headers, as far as they are worth telling.
    pub headers: Vec<(String, String)>,
    /// The body, unpacked.
    pub body: Vec<u8>,
    /// Whether that is all of it.
    pub complete: bool,
    /// The addresses that led here.
    pub redirects: Vec<String>,
}

/// Fetches over HTTP. Every host and every address is shown to the border first, those of redirects too.
pub trait Web: Send + Sync {
    /// Fetches something.
    fn fetch<'a>(
        &'a self,
        request: WebRequest,
        egress: &'a dyn EgressPolicy,
    ) -> BoxFuture<'a, Result<WebResponse, ToolError>>;
}
