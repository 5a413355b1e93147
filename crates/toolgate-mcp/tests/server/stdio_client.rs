//! Clients of a test server, over a pair of pipes as on standard input and output.

use std::io::pipe;
use std::sync::Arc;

use serde_json::Value;
use toolgate_mcp::serve_stream;
use toolgate_testkit::mcp::McpClient;

use crate::backend::McpTestServer;

/// A client that has made its handshake.
pub(crate) fn with_handshake(server: &McpTestServer, capabilities: Value) -> McpClient {
    let mut client = connect(server, false, capabilities);
    client.initialize();
    client
}

/// A client whose requests carry its own information.
pub(crate) fn stateless(server: &McpTestServer, capabilities: Value) -> McpClient {
    connect(server, true, capabilities)
}

/// A client that has sent nothing yet.
pub(crate) fn connect(server: &McpTestServer, is_stateless: bool, capabilities: Value) -> McpClient {
    let ((server_input, input), (output, server_output)) = (pipe().unwrap(), pipe().unwrap());
    let server = Arc::clone(&server.server);
    let serving = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(serve_stream(&server, server_input, server_output));
        runtime.shutdown_background();
    });
    let wait = move || {
        serving.join().unwrap();
        0
    };
    McpClient::connect(input, output, wait, is_stateless, capabilities)
}

/// The value with one more field.
pub(crate) fn with(mut value: Value, field: &str, more: Value) -> Value {
    value[field] = more;
    value
}
