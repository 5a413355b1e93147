//! Errors of JSON-RPC and MCP: the message was wrong, so there is no call whose reply could say so. A call that fails is
//! a result (see `tool_result.rs`).

use serde_json::{Value, json};

/// The `error` of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcError {
    /// The code.
    pub code: i64,
    /// What went wrong.
    pub message: String,
    /// More about it, for programs.
    pub data: Option<Value>,
}

impl JsonRpcError {
    /// Not JSON.
    pub(crate) const PARSE: i64 = -32700;
    /// JSON, but not a valid message.
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    /// Wrong params.
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    /// A fault of the server's.
    pub(crate) const INTERNAL: i64 = -32603;
    /// Too many requests at once.
    pub(crate) const BUSY: i64 = -32000;
    /// Headers and body disagree.
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    /// The client lacks a capability that the request needs.
    pub(crate) const MISSING_CAPABILITY: i64 = -32021;
    /// The client speaks a protocol version that isn't served.
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

    /// An error with this code and message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(Self::PARSE, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// Wrong params.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// An unknown method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("Unknown method `{method}`."))
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(Self::BUSY, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    /// The client lacks a capability.
    pub fn missing_capability(name: &str) -> Self {
        Self::new(Self::MISSING_CAPABILITY, format!("This needs a client that declares the capability `{name}`."))
            .with_data(json!({ "requiredCapabilities": { name: {} } }))
    }

    pub(crate) fn json(&self) -> Value {
        let mut fault = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            fault["data"] = data.clone();
        }
        fault
    }
}
