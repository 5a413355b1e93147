//! Language servers and linters by way of the program: which there are, what they say, and that none is left behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use toolgate_testkit::mcp::McpClient;
use toolgate_testkit::{processes_with, skip, wait_until};

use crate::world::{PROGRAM, Said, World};

/// Where the project's set-up installs servers and linters for tests.
fn servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("target/language-servers")
}

/// A directory of the world with links to these programs, of which each has to be installed.
fn links(world: &World, programs: &[&str]) -> Option<PathBuf> {
    let directory = world.home().join("programs");
    std::fs::create_dir_all(&directory).unwrap();
    for program in programs {
        let places = ["python/bin", "node_modules/.bin"].map(|place| servers().join(place).join(program));
        let Some(found) = places.into_iter().find(|path| path.exists()) else {
            skip("program-missing", &format!("`{program}` isn't installed; run `cargo xtask setup`"));
            return None;
        };
        std::os::unix::fs::symlink(found, directory.join(program)).unwrap();
    }
    Some(directory)
}

/// The program with a search path that has only the system and this directory.
fn with_path(world: &World, first: &Path) -> Command {
    let mut path = OsString::from(first);
    path.push(":/usr/bin:/bin");
    let mut command = world.command(PROGRAM);
    command.env("PATH", path);
    command
}

fn said(command: &mut Command, args: &[&str]) -> Said {
    Said::from(command.args(args).output().unwrap())
}

fn call(command: &mut Command, tool: &str, args: Value) -> Value {
    said(command, &["--json", "call", tool, &args.to_string()]).json()
}

/// Who found something, by the name of the rule.
fn rules(reply: &Value) -> Vec<(String, String)> {
    let items = reply["payload"]["diagnostics"].as_array().unwrap_or_else(|| panic!("{reply}"));
    let word = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    items.iter().map(|item| (word(item, "source"), word(item, "code"))).collect()
}

#[track_caller]
fn has_rule(reply: &Value, linter: &str, rule: &str) {
    assert!(rules(reply).contains(&(linter.into(), rule.into())), "{reply}");
}

#[test]
fn ruff_and_shellcheck_speak_through_lints() {
    let world = World::new().file("a.py", "import os\nx = 1\n").file("b.sh", "#!/bin/sh\necho $1\n");
    let Some(programs) = links(&world, &["ruff", "ty", "bash-language-server"]) else { return };
    if !Path::new("/usr/bin/shellcheck").exists() {
        return skip("program-missing", "`shellcheck` isn't installed; run `cargo xtask setup`");
    }
    let reply = call(&mut with_path(&world, &programs), "lints", json!({ "paths": ["a.py", "b.sh"] }));
    has_rule(&reply, "ruff", "F401");
    has_rule(&reply, "shellcheck", "SC2086");
    let servers = reply["payload"]["server"].as_str().unwrap();
    assert!(servers.contains("ty, bash-language-server, ruff, shellcheck"), "{reply}");
    let quotes = rules(&reply).iter().filter(|(_, rule)| rule == "SC2086").count();
    assert_eq!(quotes, 1, "the server asks the same linter: {reply}");
    let plain = call(&mut with_path(&world, &programs), "lsp_diagnostics", json!({ "paths": ["a.py"] }));
    assert_eq!(rules(&plain), [], "linters are only asked by `lints`: {plain}");
}

#[test]
fn eslint_runs_the_workspaces_configuration_only_where_it_is_trusted() {
    let config = "require('fs').writeFileSync(process.env.HOME + '/eslint-ran', 'x');\n\
        let written = 'no'; try { require('fs').writeFileSync('written', 'x'); written = 'yes'; } catch {}\n\
        let secret = 'no'; try { secret = require('fs').readFileSync('.env', 'utf8'); } catch {}\n\
        if (written === 'yes' || secret.includes('hunter2')) throw new Error('it got through');\n\
        module.exports = [{ rules: { 'no-undef': 'error' } }];\n";
    let world = World::new()
        .file("eslint.config.js", config)
        .file("package.json", "{}\n")
        .file(".env", "TOKEN=hunter2\n")
        .file("a.js", "missing();\n");
    let Some(programs) = links(&world, &["eslint", "typescript-language-server"]) else { return };
    let lint = || call(&mut with_path(&world, &programs), "lints", json!({ "paths": ["a.js"] }));
    let ran = || !find(&world.home(), "eslint-ran").is_empty();
    let untrusted = lint();
    assert!(untrusted["payload"]["notes"].to_string().contains("toolgate trust"), "{untrusted}");
    assert!(!ran(), "an untrusted workspace's configuration isn't run");
    let trusted = world.run(&["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let reply = lint();
    has_rule(&reply, "eslint", "no-undef");
    assert!(ran() && !world.workspace().join("written").exists(), "{reply}");
}

/// The files of this name beneath a directory.
fn find(directory: &Path, name: &str) -> Vec<PathBuf> {
    let found = Command::new("find").arg(directory).args(["-name", name]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(PathBuf::from).collect()
}

#[test]
fn clippy_speaks_through_lints_where_the_workspace_is_trusted() {
    let found = Command::new("rustup").args(["which", "cargo-clippy"]).output();
    let Some(clippy) = found.ok().filter(|found| found.status.success()) else {
        return skip("no-clippy", "the toolchain has no clippy");
    };
    let clippy = PathBuf::from(String::from_utf8(clippy.stdout).unwrap().trim());
    let world = World::new()
        .file("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
        // The workspace is read-only to linters, so cargo can't make one.
        .file("Cargo.lock", "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\n")
        .file("src/lib.rs", "pub fn f(x: &Vec<u8>) -> bool {\n    return x.len() == 0;\n}\n");
    assert_eq!(world.run(&["trust", "--yes"]).code, 0);
    let rustup = clippy.ancestors().nth(4).unwrap();
    let mut command = with_path(&world, clippy.parent().unwrap());
    let reply = call(command.env("RUSTUP_HOME", rustup), "lints", json!({ "paths": ["src/lib.rs"] }));
    has_rule(&reply, "clippy", "clippy::needless_return");
    has_rule(&reply, "clippy", "clippy::len_zero");
    assert!(!world.workspace().join("target").exists(), "it builds in its own directory");
}

#[test]
fn people_see_uses_as_lines_and_a_rename_as_its_diff() {
    let world = World::new().file("a.py", "def greet(): pass\n").file("b.py", "from a import greet\n");
    let Some(programs) = links(&world, &["ty"]) else { return };
    let target = json!({ "path": "a.py", "line": 1, "symbol": "greet" });
    let uses = said(&mut with_path(&world, &programs), &["call", "lsp_references", &target.to_string()]);
    assert_eq!(uses.out, "a.py:1: def greet(): pass [greet]\nb.py:1: from a import greet\n");
    assert!(uses.err.contains("2 uses; ty is ready"), "{uses:?}");
    let rename = json!({ "path": "a.py", "line": 1, "symbol": "greet", "new_name": "hello", "dry_run": true });
    let shown = said(&mut with_path(&world, &programs), &["call", "lsp_rename", &rename.to_string()]);
    assert!(shown.out.contains("-from a import greet\n+from a import hello"), "{shown:?}");
}

#[test]
fn status_doctor_logs_and_restart_tell_of_servers() {
    let world = World::new().file("a.py", "x = 1\n");
    let Some(programs) = links(&world, &["ty"]) else { return };
    let run = |args: &[&str]| said(&mut with_path(&world, &programs), args);
    let status = run(&["lsp", "status"]);
    assert!(status.out.contains(&servers().join("python/bin/ty").display().to_string()), "{status:?}");
    assert!(status.out.contains("missing: rustup component add rust-analyzer"), "{status:?}");
    let doctor = run(&["doctor"]).out;
    let line = doctor.lines().find(|line| line.contains("language servers")).unwrap();
    assert!(line.contains("ty") && line.contains("missing for") && line.contains("rustup component add"), "{line}");
    let unknown = run(&["lsp", "restart", "nothing"]);
    assert!(unknown.code != 0 && unknown.err.contains("Known are"), "{unknown:?}");
    let mut client = serve(&world, &programs).1;
    let ask = json!({ "path": "a.py" });
    assert_ne!(client.call("lsp_symbols", ask.clone())["isError"], json!(true));
    let first = server_processes(&world);
    assert!(!first.is_empty(), "the server runs");
    assert_ne!(client.call("lsp_symbols", ask.clone())["isError"], json!(true));
    assert_eq!(server_processes(&world), first, "it is shared by calls");
    let running = run(&["--json", "lsp", "status"]).out;
    let of = |name: &str| -> Value {
        let lines = running.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.into_iter().find(|line| line["server"] == name).unwrap()["running"].clone()
    };
    assert_eq!(of("ty")["pids"], json!(first), "{running}");
    assert!(of("ty")["memory_bytes"].as_u64().unwrap() > 1024 * 1024 && of("clangd").is_null(), "{running}");
    let status = run(&["lsp", "status"]).out;
    assert!(status.lines().any(|line| line.starts_with("ty ") && line.contains(" MiB ")), "{status}");
    let restarted = run(&["lsp", "restart", "ty"]);
    assert_eq!(restarted.code, 0, "{restarted:?}");
    assert_ne!(client.call("lsp_symbols", ask)["isError"], json!(true));
    let second = server_processes(&world);
    assert!(!second.is_empty() && second.iter().all(|pid| !first.contains(pid)), "{first:?} {second:?}");
    let logs = run(&["lsp", "logs", "ty"]);
    assert!(logs.code == 0 && !logs.out.is_empty(), "{logs:?}");
    client.end();
    wait_until("the server ends with us", || server_processes(&world).is_empty());
}

/// The processes of language servers that started in this workspace.
fn server_processes(world: &World) -> Vec<i32> {
    let workspace = world.workspace().canonicalize().unwrap();
    let is_here = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|path| path == workspace);
    processes_with("/language-servers/").into_iter().filter(is_here).collect()
}

/// The MCP server of the program, and its process.
fn serve(world: &World, programs: &Path) -> (u32, McpClient) {
    let mut command = with_path(world, programs);
    let mut child = command.args(["serve", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (pid, input, output) = (child.id(), child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let wait = move || child.wait().unwrap().code().unwrap_or(-1);
    let mut client = McpClient::connect(input, output, wait, false, json!({}));
    client.initialize();
    (pid, client)
}

#[test]
fn no_server_is_left_when_the_program_is_killed() {
    let world = World::new().file("a.py", "x = 1\n").file("b.json", "{}\n");
    let Some(programs) = links(&world, &["ty", "vscode-json-language-server"]) else { return };
    let (pid, mut client) = serve(&world, &programs);
    for path in ["a.py", "b.json"] {
        let reply = client.call("lsp_symbols", json!({ "path": path }));
        assert_ne!(reply["isError"], json!(true), "{reply}");
    }
    assert!(server_processes(&world).len() >= 2, "both run");
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    wait_until("all servers are gone", || server_processes(&world).is_empty());
}
