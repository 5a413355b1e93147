//! Fetching over HTTP, as a cleared tool sees it.

use std::time::Duration;

use crate::{BoxFuture, EgressPolicy, ToolError};

/// An HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRequest {
    /// The complete URL.
    pub url: String,
    /// The method, in upper case.
    pub method: String,
    /// Headers in addition to the default ones.
    pub headers: Vec<(String, String)>,
    /// The request body.
    pub body: Option<String>,
    /// The time limit for the entire request.
    pub timeout: Duration,
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebResponse {
    /// The final URL, after redirects.
    pub url: String,
    /// The status code.
    pub status: u16,
    /// The headers worth reporting.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed.
    pub body: Vec<u8>,
    /// Whether the body is complete.
    pub complete: bool,
    /// The URLs that redirected here.
    pub redirects: Vec<String>,
}

/// A response whose body is read piece by piece.
pub struct StreamedResponse {
    /// The status code.
    pub status: u16,
    /// The headers worth reporting, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn ResponseBody>,
}

impl StreamedResponse {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The body of a response. Dropping it ends the request.
pub trait ResponseBody: Send {
    /// The next piece; none at the end.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ToolError>>;
}

/// Fetches over HTTP. The egress policy checks every host and every address first, including those of redirects.
pub trait Web: Send + Sync {
    /// Sends a request.
    fn fetch<'a>(
        &'a self,
        request: WebRequest,
        egress: &'a dyn EgressPolicy,
    ) -> BoxFuture<'a, Result<WebResponse, ToolError>>;
    /// Sends a request and reads its response piece by piece. A redirect is a response like any other; the time limit is for the
    /// response to begin.
    fn stream<'a>(
        &'a self,
        request: WebRequest,
        egress: &'a dyn EgressPolicy,
    ) -> BoxFuture<'a, Result<StreamedResponse, ToolError>>;
}
