//! The least that a client of a language server can be: requests and answers over pipes, nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::projects::BenchProject;

/// A server that is asked directly, without a sandbox.
pub(crate) struct BareClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
    at: Value,
    program: String,
}

impl BareClient {
    pub(crate) fn start(project: &BenchProject, directory: &Path) -> Self {
        let mut child = Command::new(&project.command[0])
            .args(&project.command[1..])
            .envs(project.environment.iter().cloned())
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let uri = format!("file://{}", directory.join(project.path).display());
        let (line, character) = project.position();
        let at = json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character },
            "context": { "includeDeclaration": true } });
        let program = project.command[0].clone();
        let mut client = Self { child, input, output, last_id: 0, at, program };
        let root = format!("file://{}", directory.display());
        let capabilities = json!({
            "general": { "positionEncodings": ["utf-8", "utf-16"] },
            "workspace": { "configuration": true, "workspaceFolders": true },
            "textDocument": { "hover": { "contentFormat": ["markdown"] }, "references": {} },
        });
        let folders = json!([{ "uri": root, "name": "project" }]);
        let options = json!({ "checkOnSave": false, "procMacro": { "enable": false },
            "cargo": { "buildScripts": { "enable": false } } });
        client.request(
            "initialize",
            json!({ "processId": null, "rootUri": root, "capabilities": capabilities,
            "workspaceFolders": folders, "initializationOptions": options }),
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
        let text = std::fs::read_to_string(directory.join(project.path)).unwrap();
        let document = json!({ "uri": uri, "languageId": project.language, "version": 1, "text": text });
        let params = json!({ "textDocument": document });
        client.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params }));
        client
    }

    /// How many places use the project's symbol.
    pub(crate) fn references(&mut self) -> usize {
        self.ask("textDocument/references").as_array().map_or(0, Vec::len)
    }

    /// The answer to a question about the project's symbol.
    pub(crate) fn ask(&mut self, method: &str) -> Value {
        self.request(method, self.at.clone())
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut message = self.receive();
            if message["id"] == id && message["method"].is_null() {
                return message["result"].take();
            }
            if message["id"] != Value::Null && !message["method"].is_null() {
                let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                let result = if message["method"] == "workspace/configuration" {
                    json!(vec![Value::Null; items])
                } else {
                    Value::Null
                };
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Resident MiB of the server and what it started.
    pub(crate) fn memory(&self) -> u64 {
        self.resident(true)
    }

    /// Resident MiB of other processes of the same server: those behind the gate.
    pub(crate) fn memory_of_others(&self) -> u64 {
        self.resident(false)
    }

    fn resident(&self, is_own: bool) -> u64 {
        let own = self.child.id();
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_wanted = |pid: &u32| is_server(*pid, &self.program) && (descends_from(*pid, own) == is_own);
        pids.filter(is_wanted).map(resident_kib).sum::<u64>() / 1024
    }
}

/// The gate starts what a link leads to, so programs are compared by where they are in the end.
fn is_server(pid: u32, program: &str) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = std::fs::canonicalize(program).unwrap();
    let is_program =
        |word: &str| word.starts_with('/') && std::fs::canonicalize(word).is_ok_and(|path| path == program);
    String::from_utf8_lossy(&words).split('\0').any(is_program)
}

fn descends_from(mut pid: u32, ancestor: u32) -> bool {
    while pid > 1 {
        if pid == ancestor {
            return true;
        }
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        pid = parent.and_then(|parent| parent.trim().parse().ok()).unwrap_or(0);
    }
    false
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

impl Drop for BareClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
