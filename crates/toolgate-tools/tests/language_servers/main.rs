//! Real language servers behind the gate: what they answer, that they are never stale, and what they can't do.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod configuration;
mod data_formats;
mod faults;
mod freshness;
mod project_code;
mod project_programs;
mod projects;
mod real_projects;
mod roots;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_contract::Reply;
use toolgate_testkit::{TestWorkspace, skip};

use freshness::{USUAL_ROUNDS, rounds};
use projects::project;

/// Where the project's set-up installs servers for tests.
fn servers_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("target/language-servers")
}

/// A program that the set-up installed, or this machine has.
fn installed(program: &str) -> Option<PathBuf> {
    let directory = servers_directory();
    let places = ["", "python/bin", "node_modules/.bin"];
    let found = places.iter().map(|place| directory.join(place).join(program)).find(|path| path.exists());
    let on_path = || {
        std::env::split_paths(&std::env::var_os("PATH")?).map(|place| place.join(program)).find(|path| path.exists())
    };
    let found = found.or_else(on_path);
    if found.is_none() {
        skip("program-missing", &format!("`{program}` isn't installed; run `cargo xtask setup`"));
    }
    found
}

/// The toolchain's own programs: a test's home has no rustup.
fn toolchain() -> Option<PathBuf> {
    let said = std::process::Command::new("rustup").args(["which", "rust-analyzer"]).output().ok()?;
    let program = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    program.parent().filter(|_| program.exists()).map(Path::to_owned)
}

/// A workspace whose language server is this one, by its absolute path.
fn world(server: &str, program: &str, arguments: &[&str]) -> Option<TestWorkspace> {
    let (program, environment) = match toolchain().filter(|_| program == "rust-analyzer") {
        Some(bin) => {
            let path = format!("{}:/usr/bin:/bin", bin.display());
            let tools = format!("CARGO = '{0}/cargo', RUSTC = '{0}/rustc', PATH = '{path}'", bin.display());
            (bin.join(program), format!("env = {{ {tools} }}\n"))
        }
        None => (installed(program)?, String::new()),
    };
    let words: Vec<String> = [program.display().to_string()]
        .into_iter()
        .chain(arguments.iter().map(|argument| (*argument).to_owned()))
        .collect();
    // A busy machine takes its time until a server has read the project.
    let config =
        format!("preset = 'full'\nlsp.wait_seconds = 120\n[lsp.servers.{server}]\ncommand = {words:?}\n{environment}");
    Some(TestWorkspace::new(toolgate_tools::all(), &config).confined())
}

fn payload(reply: Reply) -> Value {
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

/// Asks everything that can be asked of one server.
async fn every_tool_answers(server: &str) {
    let Some((world, project)) = project(server) else { return };
    let (library, program) = (project.library.0, project.program_file.0);
    let ask = async |tool: &str, args: Value| {
        let answer = payload(world.perform(tool, args.clone()).await);
        assert_eq!(answer["server_status"], "ready", "{tool} {args}: {answer}");
        answer
    };
    // Shell calls without parentheses.
    let call = if project.program_file.1.contains("greet(") { "(" } else { " " };
    let use_line = project.program_file.1.lines().position(|line| line.contains(&format!("greet{call}"))).unwrap() + 1;
    let target = json!({ "path": program, "line": use_line, "symbol": "greet" });
    let clean = ask("lsp_diagnostics", json!({ "paths": [program] })).await;
    assert_eq!(clean["count"], 0, "{clean}");
    let found = ask("lsp_definition", target.clone()).await;
    let places = found["places"].to_string();
    assert!(places.contains("library."), "{found}");
    assert!(places.contains("greet"), "the line's text: {found}");
    let uses = ask("lsp_references", target.clone()).await;
    let files: Vec<&str> =
        uses["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(files.contains(&program) && files.contains(&library), "{uses}");
    let hover = ask("lsp_hover", target.clone()).await;
    assert!(hover["contents"].as_str().unwrap_or_default().contains("greet"), "{hover}");
    let symbols = ask("lsp_symbols", json!({ "path": library })).await;
    assert!(symbols["symbols"].to_string().contains("greet"), "{symbols}");
    let by_name = ask("lsp_symbols", json!({ "query": "greet" })).await;
    let found = by_name["symbols"].as_array().unwrap();
    let is_library = |symbol: &Value| symbol["path"].as_str().is_some_and(|path| path.contains("library."));
    assert!(
        found.iter().any(|symbol| is_library(symbol) && symbol["name"].as_str().unwrap().contains("greet")),
        "{by_name}"
    );
    let alone = world.perform("lsp_definition", json!({ "symbol": "greet" })).await;
    match alone.error {
        // Declared in a header and defined beside it: both are told.
        Some(error) => {
            assert!(error.code.as_str() == "ambiguous_match" && error.message.contains("library.h:1"), "{error}")
        }
        None => assert!(payload(alone)["places"].to_string().contains("library."), "by its name alone"),
    }
    if IS_QUICK.contains(&server) || rounds() > USUAL_ROUNDS {
        restart(&world, server);
        assert_eq!(ask("lsp_references", target.clone()).await, uses, "a restart changes nothing");
    }
    let of_calls = json!({ "path": library, "symbol": "greet" });
    if project.lacks.contains(&"lsp_calls") {
        is_said_to_lack(&world, server, "lsp_calls", of_calls).await;
    } else {
        let calls = ask("lsp_calls", of_calls).await;
        assert!(calls["calls"].to_string().contains("greet"), "{calls}");
    }
    let dry = ask(
        "lsp_rename",
        json!({ "path": program, "line": use_line, "symbol": "greet", "new_name": "welcome", "dry_run": true }),
    )
    .await;
    assert_eq!(dry["applied"], false);
    assert!(world_has(&world, program, "greet"), "a dry run changes nothing");
    let before: Vec<Vec<u8>> =
        [library, program].iter().map(|path| std::fs::read(world.path().join(path)).unwrap()).collect();
    let renamed =
        ask("lsp_rename", json!({ "path": program, "line": use_line, "symbol": "greet", "new_name": "welcome" })).await;
    // At an import, this one gives the name an alias there.
    let least = if server == "tsc" { 1 } else { 2 };
    assert!(renamed["files"].as_array().unwrap().len() >= least, "{renamed}");
    let calls = |name: &str| world_has(&world, program, &format!("{name}{call}"));
    assert!(calls("welcome") && !calls("greet"), "{renamed}");
    let undone = world.perform("undo", json!({ "call": last_change(&world) })).await;
    assert!(undone.ok, "{:?}", undone.error);
    let after: Vec<Vec<u8>> =
        [library, program].iter().map(|path| std::fs::read(world.path().join(path)).unwrap()).collect();
    assert_eq!(before, after, "undo restores every byte");
}

/// What a server can't do is told as that, not as an empty answer.
async fn is_said_to_lack(world: &TestWorkspace, server: &str, tool: &str, args: Value) {
    let error = world.perform(tool, args).await.error.unwrap_or_else(|| panic!("{server} answers {tool} now"));
    let is_named = error.message.starts_with(&format!("The language server `{server}` can't "));
    assert!(is_named && error.hint.as_deref() == Some("Use `grep` instead."), "{tool}: {error:?}");
}

/// Servers that start so quickly that the tests restart them.
const IS_QUICK: [&str; 1] = ["ty"];

/// What `toolgate lsp restart` does.
fn restart(world: &TestWorkspace, server: &str) {
    std::fs::write(world.location().language_server_restart(server).unwrap(), "").unwrap();
}

fn world_has(world: &TestWorkspace, path: &str, text: &str) -> bool {
    std::fs::read_to_string(world.path().join(path)).unwrap().contains(text)
}

fn last_change(world: &TestWorkspace) -> String {
    use toolgate_contract::EventPayload;
    let changing = |event: &toolgate_contract::Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap()
}

macro_rules! servers {
    ($($name:ident: $server:literal;)*) => {
        mod every_tool {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::every_tool_answers($server).await;
            })*
        }
        mod fresh {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::freshness::nothing_is_stale($server).await;
            })*
        }
    };
}

servers! {
    ty: "ty";
    pyright: "pyright";
    basedpyright: "basedpyright";
    tsc: "tsc";
    typescript_language_server: "typescript-language-server";
    clangd: "clangd";
    rust_analyzer: "rust-analyzer";
    pyrefly: "pyrefly";
    gopls: "gopls";
    bash_language_server: "bash-language-server";
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_server_is_told_with_the_command_that_installs_it() {
    let config = "preset = 'full'\n[lsp.servers.nothing]\ncommand = ['no-such-server']\nfiles = { xyz = 'xyz' }\ninstall = 'get it'\n";
    let world = TestWorkspace::new(toolgate_tools::all(), config).confined();
    world.file("a.xyz", "a\n").file("b.unknown", "b\n");
    let error = world.perform("lsp_symbols", json!({ "path": "a.xyz" })).await.error.unwrap();
    assert!(error.message.contains("get it") && error.hint.unwrap().contains("grep"), "{}", error.message);
    assert_eq!(error.details.unwrap()["server_status"], "missing");
    let error = world.perform("lsp_symbols", json!({ "path": "b.unknown" })).await.error.unwrap();
    assert_eq!(error.details.unwrap()["server_status"], "missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_touches_a_denied_file_changes_nothing() {
    // They count columns in bytes, and in UTF-16.
    for (server, program, argument) in [("ty", "ty", "server"), ("pyright", "pyright-langserver", "--stdio")] {
        rename_around_a_denied_file(server, program, argument).await;
    }
}

async fn rename_around_a_denied_file(server: &str, program: &str, argument: &str) {
    let Some(program) = installed(program) else { return };
    let config = format!(
        "preset = 'full'\n[lsp.servers.{server}]\ncommand = [{:?}, '{argument}']\n[[rules]]\ndecision = 'deny'\npath = 'generated.py'\naccess = ['write']\n",
        program.display().to_string()
    );
    let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
    let crlf = "def greet(name):\r\n    return name\r\n";
    world.file("library.py", crlf).file("main.py", "\u{feff}from library import greet\nx = '🦀'; greet(x)\n");
    world.file("generated.py", "from library import greet\ngreet('x')\n");
    let args = json!({ "path": "library.py", "line": 1, "symbol": "greet", "new_name": "welcome" });
    let refused = world.perform("lsp_rename", args.clone()).await;
    let error = refused.error.unwrap();
    assert_eq!(error.code.as_str(), "policy_denied", "{error:?}");
    assert_eq!(std::fs::read_to_string(world.path().join("library.py")).unwrap(), crlf, "all or nothing");
    std::fs::remove_file(world.path().join("generated.py")).unwrap();
    let done = payload(world.perform("lsp_rename", args).await);
    assert_eq!(done["files"], json!(["library.py", "main.py"]));
    assert_eq!(std::fs::read_to_string(world.path().join("library.py")).unwrap(), crlf.replace("greet", "welcome"));
    let main = std::fs::read_to_string(world.path().join("main.py")).unwrap();
    assert_eq!(main, "\u{feff}from library import welcome\nx = '🦀'; welcome(x)\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_new_since_a_mark_is_told() {
    let Some((world, project)) = project("ty") else { return };
    let (program, other) = (project.program_file.0, "other.py");
    world.file(other, "missing()\n");
    let first = payload(world.perform("lsp_diagnostics", json!({ "paths": [program, other] })).await);
    assert_eq!(first["count"], 1, "{first}");
    for (args, count) in [(json!({}), 1), (json!({ "path": other }), 1), (json!({ "path": program }), 0)] {
        let found = payload(world.perform("lsp_diagnostics", args.clone()).await);
        assert_eq!(found["count"], count, "{args}: {found}");
    }
    world.file(program, project.broken);
    let since = |mark: &Value| json!({ "paths": [program, other], "since": mark });
    let second = payload(world.perform("lsp_diagnostics", since(&first["mark"])).await);
    assert_eq!((&second["count"], &second["fixed"]), (&json!(1), &json!(0)), "{second}");
    assert_eq!(second["diagnostics"][0]["path"], program);
    world.file(other, "").file(program, project.program_file.1);
    let third = payload(world.perform("lsp_diagnostics", since(&second["mark"])).await);
    assert_eq!((&third["count"], &third["fixed"]), (&json!(0), &json!(2)), "{third}");
    let unknown = world.perform("lsp_diagnostics", since(&json!("d999"))).await.error.unwrap();
    assert_eq!(unknown.code.as_str(), "invalid_args", "{unknown:?}");
}

/// What has another name outside, and what comes in a new directory.
#[tokio::test(flavor = "multi_thread")]
async fn changes_are_seen_wherever_a_file_is_and_however_it_changes() {
    let Some((world, _)) = project("ty") else { return };
    let elsewhere = tempfile::tempdir_in(world.path().parent().unwrap()).unwrap();
    let linked = elsewhere.path().join("linked.py");
    std::fs::write(&linked, "LINKED = 1\n").unwrap();
    std::fs::hard_link(&linked, world.path().join("linked.py")).unwrap();
    world.file("main.py", "from linked import LINKED\nx: int = LINKED\n");
    let count = async || {
        let answer = payload(world.perform("lsp_diagnostics", json!({ "paths": ["main.py"] })).await);
        answer["count"].as_u64().unwrap()
    };
    assert_eq!(count().await, 0);
    std::fs::write(&linked, "LINKED = 'one'\n").unwrap();
    assert_ne!(count().await, 0, "through another name, which is in no directory of the workspace");
    std::fs::write(&linked, "LINKED = 1\n").unwrap();
    assert_eq!(count().await, 0);
    world.file("main.py", "from made.later import LATER\nx: int = LATER\n");
    assert_ne!(count().await, 0, "there is no such module");
    world.file("made/later.py", "LATER = 1\n");
    assert_eq!(count().await, 0, "in a directory that was made after the first question");
    world.file("made/later.py", "LATER = 'x'\n");
    assert_ne!(count().await, 0);
    std::fs::rename(world.path().join("made"), world.path().join("moved")).unwrap();
    world.file("main.py", "from moved.later import LATER\nx: str = LATER\n");
    assert_eq!(count().await, 0, "in a directory with another name");
    world.file("moved/later.py", "LATER = 1\n");
    assert_ne!(count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_tells_the_errors_that_it_caused() {
    let Some((world, project)) = project("ty") else { return };
    let program = project.program_file.0;
    let quiet = payload(world.perform("edit", json!({ "path": program, "find": "\"ada\"", "replace": "7" })).await);
    assert_eq!(quiet["new_errors"], Value::Null, "no server runs yet: {quiet}");
    payload(world.perform("edit", json!({ "path": program, "find": "7", "replace": "\"ada\"" })).await);
    payload(world.perform("lsp_symbols", json!({ "path": program })).await);
    let broken = payload(world.perform("edit", json!({ "path": program, "find": "\"ada\"", "replace": "7" })).await);
    let errors = broken["new_errors"].as_array().unwrap_or_else(|| panic!("{broken}"));
    assert_eq!((errors.len(), &errors[0]["path"]), (1, &json!(program)), "{broken}");
    let other = payload(world.perform("edit", json!({ "path": program, "find": "🦀", "replace": "crab" })).await);
    assert_eq!(other["new_errors"], Value::Null, "what was wrong before isn't new: {other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_tells_the_errors_that_it_caused() {
    let Some((world, project)) = project("ty") else { return };
    let program = project.program_file.0;
    world.file("unseen.py", "missing()\n");
    payload(world.perform("lsp_symbols", json!({ "path": program })).await);
    let shell = async |command: &str| payload(world.perform("shell", json!({ "command": command })).await);
    let broken = shell("sed -i 's/\"ada\"/7/' main.py && echo '# more' >> unseen.py && echo 'other()' > new.py").await;
    let errors = broken["new_errors"].as_array().unwrap_or_else(|| panic!("{broken}"));
    let mut paths: Vec<&str> = errors.iter().map(|error| error["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    // What was wrong in a file that the server never saw isn't known, so nothing is said of it.
    assert_eq!(paths, [program, "new.py"], "{broken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_neither_write_nor_connect_nor_read_what_is_hidden() {
    let config =
        "preset = 'full'\n[lsp.servers.spy]\ncommand = ['/usr/bin/python3', '/dev/fd/none']\nfiles = { xyz = 'xyz' }\n";
    let spy = include_str!("spy.py");
    let world = TestWorkspace::new(
        toolgate_tools::all(),
        &config.replace("'/dev/fd/none'", &format!("'-c', {}", serde_json::to_string(spy).unwrap())),
    )
    .confined();
    world.file("a.xyz", "a\n").file(".env", "TOKEN=hunter2\n");
    let hover = payload(world.perform("lsp_hover", json!({ "path": "a.xyz", "line": 1, "symbol": "a" })).await);
    let seen: Value = serde_json::from_str(hover["contents"].as_str().unwrap()).unwrap();
    assert!(seen["write"].as_str().unwrap().starts_with("OSError"), "{seen}");
    assert!(seen["connect"].as_str().unwrap().starts_with("OSError"), "{seen}");
    assert!(!seen.to_string().contains("hunter2") && seen["env"].as_str().unwrap().contains("decoy"), "{seen}");
    assert_eq!(seen["cache"], "written", "its own directory is its own");
    assert!(!world.path().join("written-by-spy").exists());
}
