//! Errors of the protocol: the message was wrong, so there is no call whose reply could say so. A call that fails is a
//! result instead (see `result.rs`).

use serde_json::{Value, json};

/// What is answered instead of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonRpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl JsonRpcError {
    /// No JSON.
    pub(crate) const PARSE: i64 = -32700;
    /// No message.
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    /// The params don't fit.
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    /// A fault of ours.
    pub(crate) const INTERNAL: i64 = -32603;
    /// Too much at once.
    pub(crate) const BUSY: i64 = -32000;
    /// Headers and body disagree.
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    /// The client can't do what the request would need of it.
    pub(crate) const MISSING_CAPABILITY: i64 = -32021;
    /// The client speaks a revision that isn't served.
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    #[must_use]
    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(Self::PARSE, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("There is no method `{method}` here."))
    }

    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(Self::BUSY, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    pub(crate) fn missing_capability(name: &str) -> Self {
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
