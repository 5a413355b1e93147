//! A client that says exactly what a test wants, over standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::world::{PROGRAM, World};

/// A conversation with the program.
pub(super) struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    is_modern: bool,
    capabilities: Value,
    next: u64,
    /// What is answered to `roots/list`.
    pub(super) roots: Vec<String>,
    /// What is answered to each question for the person, in order.
    pub(super) answers: Vec<Value>,
    /// Everything that came and was no answer to a request.
    pub(super) heard: Vec<Value>,
}

impl Talk {
    pub(super) fn legacy(world: &World, capabilities: Value) -> Self {
        let mut talk = Self::started(world, &[], false, capabilities);
        talk.initialize();
        talk
    }

    pub(super) fn modern(world: &World, capabilities: Value) -> Self {
        Self::started(world, &[], true, capabilities)
    }

    pub(super) fn started(world: &World, flags: &[&str], is_modern: bool, capabilities: Value) -> Self {
        let mut command = world.command(PROGRAM);
        command.args(["serve", "--stdio"]).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (roots, answers, heard) = (vec![], vec![], vec![]);
        Self { child, input, output, is_modern, capabilities, next: 1, roots, answers, heard }
    }

    pub(super) fn initialize(&mut self) -> Value {
        let client = json!({ "name": "talk", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": client,
        });
        let answer = self.ask("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// A request whose result is wanted.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].clone()
    }

    /// A request that is refused.
    pub(super) fn fault(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let message = self.answer(&json!(id));
        assert!(message.get("result").is_none(), "{method}: {message}");
        message["error"].clone()
    }

    pub(super) fn call(&mut self, tool: &str, args: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": args }))
    }

    /// Sends a request and doesn't wait.
    pub(super) fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let params = self.introduced(params);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn introduced(&self, mut params: Value) -> Value {
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "talk", "version": "1" });
        }
        params
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    /// Reads until this request is answered, answering what is asked meanwhile.
    pub(super) fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next_message().expect("an answer before the end");
            if message.get("method").is_none() && message["id"] == *id {
                return message;
            }
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

    /// Hangs up, and waits for the program's end.
    pub(super) fn end(&mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
