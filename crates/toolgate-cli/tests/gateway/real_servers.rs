//! Real MCP servers from npm and PyPI, as their authors publish them: calls, progress, questions, cancelling, resources, images, crashes,
//! and files that are written and restored.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolgate_testkit::mcp::{McpClient, form_elicitation, tool_error_code};
use toolgate_testkit::{skip, wait_until};

use crate::attacks::events;
use crate::client;
use crate::remote_server::SpeakerServer;
use crate::servers::call;
use crate::world::{PROGRAM, Said, World};

/// Where `cargo xtask setup` puts the servers.
fn installed() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers").canonicalize().ok();
    let has_all = |directory: &PathBuf| {
        ["python/bin/mcp-server-time", "node_modules/@playwright/mcp/cli.js"]
            .iter()
            .all(|file| directory.join(file).exists())
    };
    let is_whole = directory.as_ref().is_some_and(has_all);
    if !is_whole {
        skip("no-mcp-servers", "`cargo xtask setup` installs the MCP servers of these tests");
        return None;
    }
    directory
}

/// A workspace with some of the servers, approved.
fn world(directory: &Path, servers: &[(&str, &str)]) -> World {
    let world = World::new().file("data.bin", [0, 159, 146, 150, 10]);
    let node = |package: &str| {
        let script = directory.join(format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
        vec!["node".to_owned(), script.display().to_string()]
    };
    let python = |program: &str| vec![directory.join("python/bin").join(program).display().to_string()];
    let mut config = String::from("rules = [{ decision = 'allow', permission = 'mcp.call' }]\n");
    for (name, settings) in servers {
        let command = match *name {
            "everything" => [node("server-everything"), vec!["stdio".into()]].concat(),
            "files" => [node("server-filesystem"), vec![".".into()]].concat(),
            // It would write beside its own program, which it only reads here.
            "memory" => {
                let line = format!("MEMORY_FILE_PATH=\"$HOME/memory.jsonl\" exec {}", node("server-memory").join(" "));
                ["sh", "-c", &line].map(str::to_owned).to_vec()
            }
            "browser" => browser(directory),
            "git" => python("mcp-server-git"),
            // Its own check of addresses would take those of the gate for private ones.
            "fetch" => {
                let flags = ["--allow-private-ips", "--ignore-robots-txt"].map(str::to_owned).to_vec();
                [python("mcp-server-fetch"), flags].concat()
            }
            other => python(&format!("mcp-server-{other}")),
        };
        let roots = json!([directory, python_installation(directory)]);
        config += &format!("[mcp.servers.{name}]\ncommand = {}\nroots = {roots}\n{settings}\n", json!(command));
    }
    world.put(&world.user_config(), config);
    for (name, _) in servers {
        let said = world.run(&["--json", "mcp", "approve", name, "--yes"]);
        assert_eq!(said.code, 0, "{name}: {said:?}");
    }
    world
}

/// Playwright's server with Debian's browser. Its sandbox would need namespaces inside of ours.
fn browser(directory: &Path) -> Vec<String> {
    let script = directory.join("node_modules/@playwright/mcp/cli.js").display().to_string();
    let program = "/usr/bin/chromium-headless-shell";
    let flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", program];
    ["node".to_owned(), script].into_iter().chain(flags.map(str::to_owned)).collect()
}

/// Where the Python of the environment is from: it may be in the home of whoever runs the tests.
fn python_installation(directory: &Path) -> PathBuf {
    let python = directory.join("python/bin/python").canonicalize().unwrap();
    python.parent().and_then(Path::parent).unwrap().to_owned()
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

fn connected(world: &World) -> McpClient {
    let mut client = client::start(world, &[], false, form_elicitation());
    client.initialize();
    client
}

#[test]
fn files_that_a_real_server_writes_are_restored_byte_for_byte() {
    let Some(directory) = installed() else { return };
    let bound = "effects.write_file.write = ['$.path']";
    let world = world(&directory, &[("files", &format!("workspace = 'write'\ndirectory = 'workspace'\n{bound}"))]);
    let before = std::fs::read(world.workspace().join("data.bin")).unwrap();
    let reply = call(&world, "files__write_file", &json!({ "path": "data.bin", "content": "text\n" }));
    assert_eq!(reply["artifacts"]["files_changed"], json!(["data.bin"]), "{reply}");
    assert_eq!(world.read("data.bin"), "text\n");
    assert_eq!(world.run(&["undo", "last"]).code, 0);
    assert_eq!(std::fs::read(world.workspace().join("data.bin")).unwrap(), before);
    let hidden = call(&world, "files__write_file", &json!({ "path": ".env", "content": "x" }));
    assert_eq!(hidden["error"]["code"], "sensitive_path", "{hidden}");
    let read = call(&world, "files__read_text_file", &json!({ "path": "hello.txt" }));
    assert!(read["payload"]["content"].as_str().unwrap().contains("hello\nworld"), "{read}");
}

#[test]
fn the_server_of_everything_gets_what_it_was_given_and_no_secret() {
    let Some(directory) = installed() else { return };
    let world = world(&directory, &[("everything", "")]);
    let mut command = world.command(PROGRAM);
    command.env("CANARY_TOKEN", "canary-of-the-environment").env("ANTHROPIC_API_KEY", "canary-of-the-key");
    let said = Said::from(command.args(["--json", "call", "everything__get-env", "{}"]).output().unwrap()).json();
    assert_eq!(said["ok"], true, "{said}");
    assert!(!said.to_string().contains("canary"), "{said}");
    let mut client = connected(&world);
    let sum = client.call("everything__get-sum", json!({ "a": 2, "b": 40 }));
    assert!(text(&sum).contains("42"), "{sum}");
    let image = client.call("everything__get-tiny-image", json!({}));
    assert!(
        image.to_string().contains("The image is stored as") || image.to_string().contains("\"type\":\"image\""),
        "{image}"
    );
    progress(&mut client);
    question(&mut client);
    let listed = client.call("mcp_resources", json!({ "server": "everything" }));
    let link = listed["structuredContent"]["resources"][0]["link"].clone();
    let read = client.call("mcp_read", json!({ "server": "everything", "link": link }));
    assert!(text(&read).contains("what the MCP server `everything` says"), "{read}");
    client.end();
}

fn progress(client: &mut McpClient) {
    let params = json!({
        "name": "everything__trigger-long-running-operation", "arguments": { "duration": 1, "steps": 2 },
        "_meta": { "progressToken": "mine" },
    });
    let done = client.ask("tools/call", params);
    assert_ne!(done["isError"], true, "{done}");
    let told = client.heard.iter().filter(|told| told["method"] == "notifications/progress").count();
    assert!(told >= 2, "{:?}", client.heard);
}

/// Its form has thirteen fields of every kind. The one whose description speaks of a PIN isn't asked for.
fn question(client: &mut McpClient) {
    let choose = |choice: &str| json!({ "action": "accept", "content": { "choice": choice } });
    let say = |words: &str| json!({ "action": "accept", "content": { "words": words } });
    client.answers = [vec![say("Ada"), choose("true")], vec![choose("(leave out)"); 5]].concat();
    client.answers.extend([choose("Ross"), choose("(in my own words)"), say("Guitar, Drums")]);
    client.answers.extend([choose("hero-2"), choose("fish-3"), choose("pet-1")]);
    let asked = client.call("everything__trigger-elicitation-request", json!({}));
    assert_ne!(asked["isError"], true, "{asked}");
    let said = text(&asked);
    assert!(said.contains("- Name: Ada") && said.contains("- Agreed to terms: true"), "{said}");
    for (field, value) in [
        ("untitledMultipleSelectEnum", r#"["Guitar","Drums"]"#),
        ("untitledSingleSelectEnum", r#""Ross""#),
        ("titledMultipleSelectEnum", r#"["fish-3"]"#),
    ] {
        let compact: String = said.split_whitespace().collect();
        assert!(compact.contains(&format!("\"{field}\":{value}")), "{field}: {said}");
    }
    assert!(!said.contains("\"integer\""), "{said}");
    let forms = client.heard.iter().filter(|told| told["method"] == "elicitation/create").count();
    assert_eq!(forms, 13, "twelve fields, and one of them in own words");
}

#[test]
fn a_browser_is_driven_behind_the_gate() {
    let Some(directory) = installed() else { return };
    if !Path::new("/usr/bin/chromium-headless-shell").exists() {
        skip("no-chromium", "Debian's package `chromium-headless-shell` has the browser of this test");
        return;
    }
    let world = world(&directory, &[("browser", "timeout_seconds = 90")]);
    let mut client = connected(&world);
    let page =
        "data:text/html,<title>Behind the gate</title><button onclick=\"document.title='pressed'\">Press</button>";
    let opened = client.call("browser__browser_navigate", json!({ "url": page }));
    assert_eq!(opened["isError"], Value::Null, "{opened}");
    assert!(opened.to_string().contains("Behind the gate"), "{opened}");
    let seen = client
        .call("browser__browser_evaluate", json!({ "function": "() => document.querySelector('button').textContent" }));
    assert!(seen.to_string().contains("Press"), "{seen}");
    let image = client.call("browser__browser_take_screenshot", json!({ "type": "png", "scale": "css" }));
    assert!(image.to_string().contains("The image is stored as"), "{image}");
    let outside = client.call("browser__browser_navigate", json!({ "url": "https://example.com/" }));
    assert_eq!(outside["isError"], true, "no host was given to it: {outside}");
    client.end();
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(record.contains("browser__browser_take_screenshot") && record.contains("Behind the gate"), "{record}");
}

#[test]
fn a_real_server_that_is_cancelled_or_killed_is_started_again() {
    let Some(directory) = installed() else { return };
    let world = world(&directory, &[("everything", "timeout_seconds = 5")]);
    let mut client = connected(&world);
    let long =
        json!({ "name": "everything__trigger-long-running-operation", "arguments": { "duration": 60, "steps": 1 } });
    let late = client.ask("tools/call", long.clone());
    assert_eq!(tool_error_code(&late), "timeout", "{late}");
    let echo = |client: &mut McpClient| client.call("everything__echo", json!({ "message": "on" }))["isError"].clone();
    assert_eq!(echo(&mut client), Value::Null);
    let is_recorded = |code: &str| events(&world).iter().any(|event| event["error"]["code"] == code);
    let cancelled = client.begin("tools/call", long.clone());
    assert_eq!(echo(&mut client), Value::Null, "it runs beside others");
    client.cancel(cancelled);
    wait_until("the call is cancelled", || is_recorded("cancelled"));
    client.begin("tools/call", long);
    assert_eq!(echo(&mut client), Value::Null);
    assert_eq!(kill_processes(&world, "server-everything"), 1, "it is one process");
    wait_until("the call ends with its server", || is_recorded("server_error"));
    assert_eq!(echo(&mut client), Value::Null, "it is started again");
    client.end();
    assert_eq!(kill_processes(&world, "server-everything"), 0, "nothing is left of it");
}

/// Kills the processes of a server of this world, and gives how many there were.
fn kill_processes(world: &World, program: &str) -> usize {
    let home = world.home().canonicalize().unwrap().display().to_string();
    let has = |path: &Path, file: &str, text: &str| {
        std::fs::read(path.join(file)).is_ok_and(|read| String::from_utf8_lossy(&read).contains(text))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let own = processes.filter(|path| has(path, "cmdline", program) && has(path, "environ", &home));
    let killed = own.filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok());
    killed
        .filter(|id| Command::new("kill").args(["-9", &id.to_string()]).status().is_ok_and(|status| status.success()))
        .count()
}

#[test]
fn real_servers_of_both_versions_keep_state_and_reach_only_their_hosts() {
    let Some(directory) = installed() else { return };
    let servers =
        [("memory", ""), ("time", "protocol = 'stateless'"), ("git", "directory = 'workspace'"), ("fetch", "")];
    let world = world(&directory, &servers);
    let made = call(
        &world,
        "memory__create_entities",
        &json!({ "entities": [
        { "name": "Ada", "entityType": "person", "observations": ["wrote the first program"] },
    ] }),
    );
    assert_eq!(made["ok"], true, "{made}");
    let known = call(&world, "memory__search_nodes", &json!({ "query": "Ada" }));
    assert!(known.to_string().contains("wrote the first program"), "another process has its home: {known}");
    let time = call(&world, "time__get_current_time", &json!({ "timezone": "UTC" }));
    assert!(time.to_string().contains("UTC"), "{time}");
    assert!(world.shell("git init -q . && git add hello.txt").code == 0);
    let status = call(&world, "git__git_status", &json!({ "repo_path": world.workspace() }));
    assert!(status.to_string().contains("hello.txt"), "{status}");
    let fetched = call(&world, "fetch__fetch", &json!({ "url": "https://example.com/" }));
    assert_ne!(fetched["ok"], true, "no host was given to it: {fetched}");
    assert!(fetched["error"]["message"].as_str().unwrap().contains("example.com wasn't reached"), "{fetched}");
}

#[test]
fn a_real_server_reaches_a_port_of_this_machine_that_is_listed_and_allowed() {
    let Some(directory) = installed() else { return };
    let (page, other) = (SpeakerServer::start(json!({})), SpeakerServer::start(json!({})));
    let world = world(&directory, &[("fetch", &format!("hosts = ['localhost:{}']", page.port))]);
    let fetch = |server: &SpeakerServer| {
        let url = format!("http://localhost:{}/requests", server.port);
        call(&world, "fetch__fetch", &json!({ "url": url }))
    };
    let refused = fetch(&page);
    assert!(refused["error"]["message"].as_str().unwrap().contains("only a rule that names it"), "{refused}");
    let config = std::fs::read_to_string(world.user_config()).unwrap();
    let rules = ["127.0.0.1", "localhost"].map(|host| format!("{{ decision = 'allow', host = '{host}' }}, "));
    let allowed = config.replacen("rules = [", &format!("rules = [{}", rules.concat()), 1);
    world.put(&world.user_config(), allowed);
    let fetched = fetch(&page);
    let content = fetched["payload"]["content"].as_str().unwrap_or_default();
    assert!(content.contains(&format!("Contents of http://localhost:{}/requests:\n[]", page.port)), "{fetched}");
    assert_ne!(fetch(&other)["ok"], true, "another port of this machine");
}
