//! Tools of another MCP server through the gate, beside direct calls and beside a proxy from PyPI, in one interleaved run: a read of 4 KiB,
//! the list of 220 tools of fifteen servers, what it costs in tokens, and memory.
//!
//! Policy, record and sandbox are on, as always. `cargo xtask bench gateway` installs the server and the proxy.
#![allow(clippy::disallowed_methods, reason = "starts the servers that it measures, in a directory of its own")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ROUNDS: usize = 10;
const CALLS: usize = 50;
const LISTS: usize = 15;
const SERVERS: usize = 15;
const TOOLS: usize = 220;

/// Characters of JSON for one token, roughly: the published counts of tool definitions are near this.
const CHARACTERS_PER_TOKEN: f64 = 4.2;

/// A proxy of another project, for the same server.
const PROXY: &str = "import sys\nfrom fastmcp.server import create_proxy\n\
                     create_proxy({'mcpServers': {'files': {'command': sys.argv[1], 'args': sys.argv[2:]}}}).run(show_banner=False)";

/// A server with as many tools as it is told, each with a description and arguments as servers have them.
const MANY_TOOLS: &str = r#"
import json, sys
first, count = int(sys.argv[1]), int(sys.argv[2])
verbs, things = ["create", "list", "update", "delete", "search"], ["issue", "page", "branch", "pod", "record", "label", "comment", "file"]
def tool(number):
    verb, thing = verbs[number % 5], things[number // 5 % 8]
    text = f"Use this tool to {verb} a {thing}. It takes the name of the {thing}, where it is, and options; it returns the {thing} with its fields. " * 2
    schema = {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "description": f"The name of the {thing}."}, "place": {"type": "string", "description": "Where it is."},
        "limit": {"type": "integer", "description": "How many at most.", "minimum": 1, "maximum": 100}}}
    return {"name": f"{verb}_{thing}_{number}", "description": text, "inputSchema": schema}
for line in sys.stdin:
    message = json.loads(line)
    results = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "many", "version": "1"}},
               "tools/list": {"tools": [tool(number) for number in range(first, first + count)]}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}), flush=True)
"#;

/// A server that is running and spoken to.
struct SpokenServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl SpokenServer {
    fn start(words: &[String], world: &Path) -> Self {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(world.join("workspace")).env("HOME", world.join("home"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut conversation = Self { child, input, output, next: 1 };
        let client = json!({ "name": "bench", "version": "1" });
        conversation
            .ask("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(conversation.input, "{ready}").unwrap();
        conversation
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        writeln!(self.input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                assert_ne!(message["result"]["isError"], true, "{line}");
                return message["result"].clone();
            }
        }
    }

    /// The resident memory in MiB.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for SpokenServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers");
    let Ok(servers) = servers.canonicalize() else {
        println!("the server isn't installed: cargo xtask setup");
        return;
    };
    let world = tempfile::tempdir().unwrap();
    for directory in ["workspace", "home/.config/toolgate"] {
        std::fs::create_dir_all(world.path().join(directory)).unwrap();
    }
    let world = world.path().canonicalize().unwrap();
    std::fs::write(world.join("workspace/page.txt"), "0123456789abcde\n".repeat(256)).unwrap();
    calls(&world, &servers);
    lists(&world);
}

fn toolgate(world: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(words).current_dir(world.join("workspace")).env("HOME", world.join("home"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn configure(world: &Path, text: &str) {
    let rule = "rules = [{ decision = 'allow', permission = 'mcp.call' }]\n";
    std::fs::write(world.join("home/.config/toolgate/config.toml"), format!("{rule}{text}")).unwrap();
}

/// A call through each, in turn, so that all of them meet the same machine.
fn calls(world: &Path, servers: &Path) {
    let script =
        servers.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js").display().to_string();
    let direct = vec!["node".to_owned(), script, ".".to_owned()];
    let section = format!("command = {}\ndirectory = 'workspace'\nroots = ['{}']\n", json!(direct), servers.display());
    configure(world, &format!("[mcp.servers.files]\n{section}"));
    toolgate(world, &["--json", "mcp", "approve", "files", "--yes"]);
    let own = vec![env!("CARGO_BIN_EXE_toolgate").to_owned(), "serve".to_owned(), "--stdio".to_owned()];
    let mut candidates = vec![("direct", "read_text_file", direct.clone()), ("toolgate", "files__read_text_file", own)];
    if let Some(python) = proxy(servers) {
        let words = [python.display().to_string(), "-c".to_owned(), PROXY.to_owned()];
        candidates.push(("fastmcp proxy", "read_text_file", words.into_iter().chain(direct).collect()));
    } else {
        println!("the proxy isn't installed: cargo xtask bench gateway installs it");
    }
    let mut running: Vec<_> = candidates
        .iter()
        .map(|(name, tool, words)| (*name, *tool, SpokenServer::start(words, world), Vec::new()))
        .collect();
    for round in 0..=ROUNDS {
        for (_, tool, conversation, times) in &mut running {
            for _ in 0..CALLS {
                let params = json!({ "name": *tool, "arguments": { "path": "page.txt" } });
                let start = Instant::now();
                conversation.ask("tools/call", &params);
                // The first round starts what starts with the first call.
                if round > 0 {
                    times.push(start.elapsed());
                }
            }
        }
    }
    let base = median(&mut running[0].3);
    for (name, _, conversation, times) in &mut running {
        let (time, memory) = (median(times), conversation.memory());
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!(
            "{name:<14} {:>8.3} ms a call   {ratio:>6.2} x direct   {memory:>6.1} MiB",
            time.as_secs_f64() * 1000.0
        );
    }
}

/// The Python that has the proxy.
fn proxy(servers: &Path) -> Option<PathBuf> {
    let python = servers.join("python/bin/python");
    let has = Command::new(&python).args(["-c", "import fastmcp"]).stderr(Stdio::null()).status();
    has.is_ok_and(|status| status.success()).then_some(python)
}

/// How long a list of many tools takes, with no server started, and what it costs.
fn lists(world: &Path) {
    let mut config = String::new();
    let script = world.join("many.py");
    std::fs::write(&script, MANY_TOOLS).unwrap();
    for server in 0..SERVERS {
        let (first, next) = (server * TOOLS / SERVERS, (server + 1) * TOOLS / SERVERS);
        let command = json!(["python3", script, first.to_string(), (next - first).to_string()]);
        config += &format!("[mcp.servers.many{server}]\ncommand = {command}\nroots = ['{}']\n", script.display());
    }
    configure(world, &config);
    for server in 0..SERVERS {
        toolgate(world, &["--json", "mcp", "approve", &format!("many{server}"), "--yes"]);
    }
    let own = [env!("CARGO_BIN_EXE_toolgate").to_owned(), "serve".to_owned(), "--stdio".to_owned()];
    let (mut times, mut listed) = (Vec::new(), Value::Null);
    for _ in 0..LISTS {
        let start = Instant::now();
        let mut conversation = SpokenServer::start(&own, world);
        listed = conversation.ask("tools/list", &json!({}));
        times.push(start.elapsed());
    }
    let finders: Vec<&Value> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| matches!(tool["name"].as_str(), Some("tools_find" | "tools_use" | "mcp_resources" | "mcp_read")))
        .collect();
    let all = toolgate(world, &["--json", "tools", "--all"]);
    let told = |line: &str| {
        let tool: Value = serde_json::from_str(line).unwrap();
        let told =
            json!({ "name": tool["name"], "description": tool["description"], "parameters": tool["args_schema"] });
        told.to_string().len()
    };
    let definitions: usize = all.lines().filter(|line| line.contains("\"name\":\"many")).map(told).sum();
    println!(
        "{TOOLS} tools of {SERVERS} servers: listed {:.1} ms after the program was started, with no server started",
        median(&mut times).as_secs_f64() * 1000.0
    );
    println!(
        "about {:.0} tokens for a model, in place of about {:.0}",
        json!(finders).to_string().len() as f64 / CHARACTERS_PER_TOKEN,
        definitions as f64 / CHARACTERS_PER_TOKEN
    );
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
