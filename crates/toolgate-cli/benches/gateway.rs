//! Tools of another MCP server through the gate, beside direct calls and beside a proxy from PyPI, in one interleaved run: a read of 4 KiB,
//! the list of 220 tools of fifteen servers, what it costs in tokens, how often the right one is found, and memory.
//!
//! Policy, record and sandbox are on, as always. `cargo xtask bench gateway` installs the server and the proxy.
#![allow(clippy::disallowed_methods, reason = "starts the servers that it measures, in a directory of its own")]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::SpokenServer;

const ROUNDS: usize = 10;
const CALLS: usize = 50;
const LISTS: usize = 15;

/// Characters of JSON for one token, roughly: the published counts of tool definitions are near this.
const CHARACTERS_PER_TOKEN: f64 = 4.2;

/// A proxy of another project, for the same server.
const PROXY: &str = "import sys\nfrom fastmcp.server import create_proxy\n\
                     create_proxy({'mcpServers': {'files': {'command': sys.argv[1], 'args': sys.argv[2:]}}}).run(show_banner=False)";

/// The tools of fifteen servers, and what is asked for among them.
const TOOLS: &str = include_str!("../../toolgate-gateway/tests/data/tools.txt");
const NEEDS: &str = include_str!("../../toolgate-gateway/tests/data/needs.txt");

/// A server with the tools of one name in that file, each with a description and arguments of the usual length.
const ONE_OF_MANY: &str = r##"
import json, sys
rows = [[part.strip() for part in line.split("|")] for line in open(sys.argv[1]) if not line.startswith("#")]
def tool(name, text, arguments):
    named = {argument: {"type": "string", "description": f"The {argument} that `{name}` works with, as the service calls it."} for argument in arguments.split()}
    return {"name": name, "description": text, "inputSchema": {"type": "object", "properties": named, "required": arguments.split()[:1]}}
results = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": sys.argv[2], "version": "1"}},
           "tools/list": {"tools": [tool(*row[1:]) for row in rows if row[0] == sys.argv[2]]}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}), flush=True)
"##;

/// Starts a server in this world, and waits until it is ready.
fn speak_to(words: &[String], world: &Path) -> SpokenServer {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(world.join("workspace")).env("HOME", world.join("home"));
    command.stderr(Stdio::null());
    SpokenServer::start(command)
}

/// The memory of a process and of all below it that run the same program, in MiB. What they share counts once; the servers behind
/// a proxy are other programs, and don't count.
fn memory(first: u32) -> f64 {
    let program = |id: u32| std::fs::read_link(format!("/proc/{id}/exe")).ok();
    let own = program(first);
    let same = family(first).into_iter().filter(|id| program(*id) == own);
    same.map(proportional_memory).sum()
}

/// A process, its children and theirs.
fn family(first: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc").unwrap().flatten().filter_map(parent_of).collect();
    let mut family = vec![first];
    let mut looked = 0;
    while let Some(&parent) = family.get(looked) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(id, _)| *id));
        looked += 1;
    }
    family
}

/// A process and its parent.
fn parent_of(entry: std::fs::DirEntry) -> Option<(u32, u32)> {
    let id = entry.file_name().to_str()?.parse().ok()?;
    let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
    // The name in brackets may have anything in it.
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    Some((id, parent))
}

/// The memory of one process in MiB; of what several share, its part.
fn proportional_memory(id: u32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or_default() / 1024.0
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
    let mut running: Vec<_> =
        candidates.iter().map(|(name, tool, words)| (*name, *tool, speak_to(words, world), Vec::new())).collect();
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
        let (time, memory) = (median(times), memory(conversation.id()));
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!(
            "{name:<14} {:>8.3} ms a call   {ratio:>6.2} x direct   {memory:>6.1} MiB",
            time.as_secs_f64() * 1000.0
        );
        if *name == "toolgate" {
            println!("a judged, recorded, confined call ÷ a direct one: {ratio:.2} x   (wanted: at most 1.5)");
            println!("memory beside the servers: {memory:.1} MiB   (wanted: at most 30)");
        }
    }
}

/// The Python that has the proxy.
fn proxy(servers: &Path) -> Option<PathBuf> {
    let python = servers.join("python/bin/python");
    let has = Command::new(&python).args(["-c", "import fastmcp"]).stderr(Stdio::null()).status();
    has.is_ok_and(|status| status.success()).then_some(python)
}

/// How long a list of many tools takes, with no server started, what it costs, and whether the right tool is found.
fn lists(world: &Path) {
    let mut config = String::new();
    let (script, tools) = (world.join("one_of_many.py"), world.join("tools.txt"));
    std::fs::write(&script, ONE_OF_MANY).unwrap();
    std::fs::write(&tools, TOOLS).unwrap();
    let servers: BTreeSet<&str> = rows(TOOLS).map(|row| row[0]).collect();
    for server in &servers {
        let command = json!(["python3", script, tools, server]);
        let roots = json!([script, tools]);
        config += &format!("[mcp.servers.{server}]\ncommand = {command}\nroots = {roots}\n");
    }
    configure(world, &config);
    for server in &servers {
        toolgate(world, &["--json", "mcp", "approve", server, "--yes"]);
    }
    let own = [env!("CARGO_BIN_EXE_toolgate").to_owned(), "serve".to_owned(), "--stdio".to_owned()];
    let (mut times, mut listed) = (Vec::new(), Value::Null);
    for _ in 0..LISTS {
        let start = Instant::now();
        let mut conversation = speak_to(&own, world);
        listed = conversation.ask("tools/list", &json!({}));
        times.push(start.elapsed());
    }
    let (number, many) = (rows(TOOLS).count(), servers.len());
    let time = median(&mut times).as_secs_f64() * 1000.0;
    println!("program started and {number} tools of {many} servers listed: {time:.1} ms   (wanted: at most 50)");
    tokens(world, &listed, &servers);
    let mut conversation = speak_to(&own, world);
    let found = rows(NEEDS).filter(|row| is_found(&mut conversation, row)).count();
    let share = found as f64 * 100.0 / rows(NEEDS).count() as f64;
    println!("needs met by the first five of tools_find: {share:.1} %   (wanted: at least 95)");
}

/// What a model is told of the tools, in place of all of them.
fn tokens(world: &Path, listed: &Value, servers: &BTreeSet<&str>) {
    let is_finder = |tool: &&Value| {
        matches!(tool["name"].as_str(), Some("tools_find" | "tools_use" | "mcp_resources" | "mcp_read"))
    };
    let finders: Vec<&Value> = listed["tools"].as_array().unwrap().iter().filter(is_finder).collect();
    assert_eq!(finders.len(), 4, "{listed}");
    let told = |line: &str| {
        let tool: Value = serde_json::from_str(line).unwrap();
        let is_of_server = tool["name"]
            .as_str()
            .is_some_and(|name| name.split_once("__").is_some_and(|(server, _)| servers.contains(server)));
        let told =
            json!({ "name": tool["name"], "description": tool["description"], "parameters": tool["args_schema"] });
        if is_of_server { told.to_string().len() } else { 0 }
    };
    let definitions: usize = toolgate(world, &["--json", "tools", "--all"]).lines().map(told).sum();
    let told = json!(finders).to_string().len() as f64 / CHARACTERS_PER_TOKEN;
    println!("told of them to a model: {told:.0} tokens   (wanted: at most 1000)");
    println!("in place of about {:.0} tokens", definitions as f64 / CHARACTERS_PER_TOKEN);
}

/// Whether the tool for a need is among the first five that are found.
fn is_found(conversation: &mut SpokenServer, need: &[&str]) -> bool {
    let asked = json!({ "name": "tools_find", "arguments": { "query": need[0], "limit": 5 } });
    let found = conversation.ask("tools/call", &asked);
    let tools = found["structuredContent"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().any(|tool| need[1].split(", ").any(|right| tool["name"] == right))
}

/// The lines of a file of data, each in its parts.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('|').map(str::trim).collect())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
