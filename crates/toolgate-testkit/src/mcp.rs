//! An MCP client that sends exactly what a test wants and answers what the server asks, and the calls and answers that
//! tests of several crates use.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

/// A client of a server that reads and writes one message a line.
pub struct McpClient {
    input: Option<Box<dyn Write>>,
    output: Box<dyn BufRead>,
    /// Waits for the server's end, and gives its exit code.
    wait: Option<Box<dyn FnOnce() -> i32>>,
    is_stateless: bool,
    capabilities: Value,
    next_id: u64,
    /// What is answered to `roots/list`.
    pub roots: Vec<String>,
    /// What is answered to each elicitation, and to each request for a sample of its model, in order.
    pub answers: Vec<Value>,
    /// Every message that was no answer to a request.
    pub heard: Vec<Value>,
}

impl McpClient {
    /// A client that has sent nothing yet. With the protocol version that is stateless, each of its requests carries what
    /// the handshake would have said. `wait` waits for the server's end, and gives its exit code.
    pub fn connect(
        input: impl Write + 'static,
        output: impl Read + 'static,
        wait: impl FnOnce() -> i32 + 'static,
        is_stateless: bool,
        capabilities: Value,
    ) -> Self {
        Self {
            input: Some(Box::new(input)),
            output: Box::new(BufReader::new(output)),
            wait: Some(Box::new(wait)),
            is_stateless,
            capabilities,
            next_id: 1,
            roots: vec![],
            answers: vec![],
            heard: vec![],
        }
    }

    /// Makes the handshake, and gives what the server answered.
    pub fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": client_info(),
        });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// The result of a request.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].clone()
    }

    /// The error of a request that is refused.
    #[track_caller]
    pub fn fault(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("result").is_none(), "{method}: {message}");
        message["error"].clone()
    }

    /// The result of a tool call.
    #[track_caller]
    pub fn call(&mut self, tool: &str, args: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": args }))
    }

    /// Sends a request and doesn't wait; gives its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.is_stateless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = client_info();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: u64) {
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    }

    /// Sends a message as it is.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends bytes that may be no message at all.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    /// Reads until this request is answered, answering the server's own requests meanwhile.
    pub fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next_message().expect("an answer before the end");
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
            self.hear(message);
        }
    }

    /// The first message of this method, heard already or still to come.
    pub fn hear_of(&mut self, method: &str) -> Value {
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
            Some("elicitation/create" | "sampling/createMessage") if !self.answers.is_empty() => {
                Some(self.answers.remove(0))
            }
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

    /// Disconnects, and waits until the server has ended everything of this client; gives its exit code.
    pub fn end(&mut self) -> i32 {
        drop(self.input.take());
        self.wait.take().expect("a client that hasn't ended yet")()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        drop(self.input.take());
        // A server that still has something to say must not wait for somebody to read it.
        self.output = Box::new(io::empty());
        if let Some(wait) = self.wait.take() {
            wait();
        }
    }
}

fn client_info() -> Value {
    json!({ "name": "tester", "version": "1" })
}

/// The capabilities of a client that can ask the person by a form.
pub fn form_elicitation() -> Value {
    json!({ "elicitation": {} })
}

/// What a person answers to an elicitation.
pub fn elicitation_answer(answer: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": answer } })
}

/// The parameters of a call that deletes `hello.txt`.
pub fn delete_call() -> Value {
    json!({ "name": "delete", "arguments": { "path": "hello.txt" } })
}

/// The parameters of a call that edits `hello.txt`.
pub fn edit_call() -> Value {
    json!({ "name": "edit", "arguments": { "path": "hello.txt", "find": "world", "replace": "moon" } })
}

/// The code of the error in a tool call's result.
pub fn tool_error_code(result: &Value) -> &str {
    result["_meta"]["toolgate/error"]["code"].as_str().unwrap_or_default()
}

/// The payload of a result, however it was shown: structured, or as blocks with the fields beside them. Null for an error.
pub fn payload(result: &Value) -> Value {
    match (result.get("structuredContent"), result["_meta"].get("toolgate/fields")) {
        (Some(payload), _) => payload.clone(),
        (None, None) if result["isError"] == true => Value::Null,
        (None, None) => json!({ "content": result["content"][0]["text"] }),
        (None, Some(fields)) => {
            let mut payload = fields.clone();
            payload["content"] = result["content"][0]["text"].clone();
            payload
        }
    }
}
