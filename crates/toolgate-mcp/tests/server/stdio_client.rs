//! A client that sends exactly what a test wants, over a pair of pipes.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolgate_mcp::serve_stream;

use crate::backend::McpTestServer;

/// A connection to a server.
pub(crate) struct StdioClient {
    serving: Option<JoinHandle<()>>,
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    is_stateless: bool,
    capabilities: Value,
    next_id: u64,
    /// What is answered to `roots/list`.
    pub(crate) roots: Vec<String>,
    /// What is answered to each elicitation, in order.
    pub(crate) answers: Vec<Value>,
    /// Every message that was no answer to a request.
    pub(crate) heard: Vec<Value>,
}

impl StdioClient {
    /// A client that has sent its handshake.
    pub(crate) fn with_handshake(server: &McpTestServer, capabilities: Value) -> Self {
        let mut client = Self::connect(server, false, capabilities);
        client.initialize();
        client
    }

    /// A client whose requests carry its own information.
    pub(crate) fn stateless(server: &McpTestServer, capabilities: Value) -> Self {
        Self::connect(server, true, capabilities)
    }

    /// A client that has sent nothing yet.
    pub(crate) fn connect(server: &McpTestServer, is_stateless: bool, capabilities: Value) -> Self {
        let ((server_input, input), (output, server_output)) = (pipe().unwrap(), pipe().unwrap());
        let server = Arc::clone(&server.server);
        let serving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(serve_stream(&server, server_input, server_output));
            runtime.shutdown_background();
        });
        Self {
            serving: Some(serving),
            input: Some(input),
            output: BufReader::new(output),
            is_stateless,
            capabilities,
            next_id: 1,
            roots: vec![],
            answers: vec![],
            heard: vec![],
        }
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let client = json!({ "name": "tester", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": client,
        });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// The result of a request.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].clone()
    }

    /// The error of a request that is refused.
    pub(crate) fn fault(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("result").is_none(), "{method}: {message}");
        message["error"].clone()
    }

    pub(crate) fn call(&mut self, tool: &str, args: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": args }))
    }

    /// Sends a request and doesn't wait.
    pub(crate) fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.is_stateless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "tester", "version": "1" });
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Cancels a request.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Reads until this request is answered, answering the server's own requests meanwhile.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next_message().expect("an answer before the end");
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
            self.hear(message);
        }
    }

    /// The first message of this method, heard already or still to come.
    pub(crate) fn hear_of(&mut self, method: &str) -> Value {
        loop {
            if let Some(heard) = self.heard.iter().find(|message| message["method"] == method) {
                return heard.clone();
            }
            let message = self.next_message().expect("a message before the end");
            self.hear(message);
        }
    }

    fn hear(&mut self, message: Value) {
        let result = match message["method"].as_str() {
            Some("roots/list") => {
                let roots: Vec<Value> = self.roots.iter().map(|uri| json!({ "uri": uri })).collect();
                Some(json!({ "roots": roots }))
            }
            Some("elicitation/create") if !self.answers.is_empty() => Some(self.answers.remove(0)),
            _ => None,
        };
        if let Some(result) = result {
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
        self.heard.push(message);
    }

    fn next_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Disconnects, and waits until the server has ended everything of this client.
    pub(crate) fn end(&mut self) {
        drop(self.input.take());
        if let Some(serving) = self.serving.take() {
            serving.join().unwrap();
        }
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        drop(self.input.take());
    }
}

/// The value with one more field.
pub(crate) fn with(mut value: Value, field: &str, more: Value) -> Value {
    value[field] = more;
    value
}

/// The code of the error in a result.
pub(crate) fn error_code(result: &Value) -> &str {
    result["_meta"]["toolgate/error"]["code"].as_str().unwrap_or_default()
}
