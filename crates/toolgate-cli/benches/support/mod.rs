//! What several benchmarks of the program share: a world for it, and a server that is spoken to on its standard input.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_contract::RunFacts;
use toolgate_journal::{RunOptions, StateDirectory};

/// A workspace and a home beneath a temporary directory.
pub(crate) struct BenchWorld {
    root: TempDir,
}

impl BenchWorld {
    /// Makes one on a disk, with this configuration of the user's.
    pub(crate) fn new(configuration: &str) -> Self {
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        for directory in ["workspace", "home/.config/toolgate"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        std::fs::write(root.path().join("home/.config/toolgate/config.toml"), configuration).unwrap();
        Self { root }
    }

    /// The directory that the program works in.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// The program with these words, in this world.
    pub(crate) fn toolgate(&self, words: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_toolgate"), words)
    }

    /// Any program with these words, in this world.
    pub(crate) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.workspace()).env("HOME", self.root.path().join("home"));
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// How long a program takes from its start to its end, which is a success.
    pub(crate) fn time(&self, program: &str, words: &[&str]) -> Duration {
        let mut command = self.command(program, words);
        let began = Instant::now();
        let status = command.status().unwrap();
        let took = began.elapsed();
        assert!(status.success(), "{program} {words:?}: {status}");
        took
    }
}

/// An MCP server that is running and spoken to.
pub(crate) struct SpokenServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl SpokenServer {
    /// Starts `toolgate serve --stdio` in a world.
    pub(crate) fn of_toolgate(world: &BenchWorld) -> Self {
        Self::start(world.toolgate(&["serve", "--stdio"]))
    }

    /// Starts a server, and waits until it is ready.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output, next: 1 };
        let client = json!({ "name": "bench", "version": "1" });
        server.ask("initialize", &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(server.input, "{ready}").unwrap();
        server
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The result of a request, which is a success.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
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

    /// How long a call of a tool takes, and its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (Duration, Value) {
        let began = Instant::now();
        let result = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        (began.elapsed(), result)
    }
}

impl Drop for SpokenServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes so many files, fifty in a directory, fifty directories in another.
pub(crate) fn make_tree(root: &Path, files: usize) {
    for number in 0..files {
        let directory = root.join(format!("{}/{}", number / 2_500, number / 50 % 50));
        if number % 50 == 0 {
            std::fs::create_dir_all(&directory).unwrap();
        }
        std::fs::write(directory.join(format!("{number}.txt")), format!("{number}\n")).unwrap();
    }
}

/// Records so many ended runs of a world's workspace.
pub(crate) fn record_runs(world: &BenchWorld, numbers: std::ops::Range<usize>) {
    let state = StateDirectory::open(&world.workspace()).unwrap();
    for number in numbers {
        let facts = RunFacts {
            workspace: world.workspace().display().to_string(),
            session: "cli".into(),
            preset: "workspace".into(),
            front_end: "cli".into(),
            version: "1".into(),
        };
        // Like the ids of real runs, which sort by time.
        let id = format!("run_019a{number:08}70008000000000000000");
        state.begin_run(&id, facts, &RunOptions::default()).unwrap().end().unwrap();
    }
}
