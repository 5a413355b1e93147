//! Methods and results beside those of the gate's tools. Toolgate itself has no extension: the conformance test server
//! uses one for the prompts, resources and results that the public suite asks for.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::call_context::CallContext;
use crate::client::Client;
use crate::json_rpc_error::JsonRpcError;
use crate::server::ListKind;

/// Extends one server. Tools are registered with the gate like any others; an extension only sees their calls.
pub trait ServerExtension: Send + Sync + 'static {
    /// Adds to what the server declares that it can do.
    fn add_capabilities(&self, capabilities: &mut Map<String, Value>, is_stateless: bool);

    /// Answers a request before the server does; none leaves it to the server.
    fn answer(&self, request: &ExtensionRequest<'_>) -> Option<Result<Value, JsonRpcError>>;

    /// A call goes to the gate.
    fn call_started(&self, call: ClientCall);

    /// A call came back from the gate. Some replaces its result; the field `state` of one that asks for input is signed
    /// and sent as `requestState`.
    fn call_ended(&self, call_id: &str) -> Option<Result<Value, JsonRpcError>>;
}

/// A request that an extension may answer.
pub struct ExtensionRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// Its params.
    pub params: &'a Map<String, Value>,
    /// Whether the client speaks the protocol version without a handshake.
    pub is_stateless: bool,
}

/// A running call and the client that made it.
#[derive(Clone)]
pub struct ClientCall {
    id: String,
    client: Arc<Client>,
    context: Arc<CallContext>,
}

impl ClientCall {
    pub(crate) fn new(id: &str, client: &Arc<Client>, context: &Arc<CallContext>) -> Self {
        Self { id: id.to_owned(), client: Arc::clone(client), context: Arc::clone(context) }
    }

    /// The call's id, as its tool knows it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the client speaks the protocol version without a handshake.
    pub fn is_stateless(&self) -> bool {
        self.context.profile.is_stateless()
    }

    /// Whether the client declares a capability.
    pub fn can(&self, capability: &str) -> bool {
        self.context.profile.can(capability)
    }

    /// What the client sent along as `inputResponses`.
    pub fn inputs(&self) -> &Map<String, Value> {
        &self.context.inputs
    }

    /// The state that an earlier result of this call carried.
    pub fn state(&self) -> Option<&Value> {
        self.context.state.as_ref()
    }

    /// Sends the client a request of the server's and waits for the result or the error; none when the client left.
    pub async fn ask(&self, method: &str, params: Value) -> Option<Result<Value, Value>> {
        self.client.ask(&self.context.sink(), method, params).await
    }

    /// Tells every client that a list changed.
    pub fn announce(&self, changed: ListKind) {
        self.client.server.announce(changed);
    }
}
