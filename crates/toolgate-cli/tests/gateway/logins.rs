//! Logins to servers elsewhere, against an authorization server on loopback: what has to happen, what must never happen, and one renewal
//! for many processes (G19 to G21).

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::attacks::recorded_end;
use crate::remote_server::{SpeakerServer, get, location};
use crate::world::{PROGRAM, World};

/// What a login came to: its exit code, and what it wrote to its standard error.
struct LoginOutcome {
    is_done: bool,
    errors: String,
}

/// Logs in as a person would: starts the program, opens the address that it shows, and lets the browser come back.
fn log_in(world: &World) -> LoginOutcome {
    let mut command = world.command(PROGRAM);
    command.args(["--json", "mcp", "login", "remote", "--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if let Some(Ok(line)) = lines.next() {
        let shown: Value = serde_json::from_str(&line).unwrap();
        if let Some(address) = shown["open"].as_str().filter(|address| address.starts_with("http://127.0.0.1")) {
            let back = location(&get(address).0);
            get(&back);
        } else {
            child.kill().unwrap();
        }
    }
    let ended = child.wait_with_output().unwrap();
    LoginOutcome { is_done: ended.status.success(), errors: String::from_utf8_lossy(&ended.stderr).into_owned() }
}

fn call(world: &World) -> Value {
    world.run(&["--json", "call", "--approve", "remote__add", r#"{"a":1,"b":2}"#]).json()
}

/// Every file of the workspace, as one text.
fn workspace_files(world: &World) -> String {
    let mut left = vec![world.workspace()];
    let mut text = String::new();
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()),
            }
        }
    }
    text
}

#[test]
fn a_login_brings_a_token_that_stays_out_of_the_workspace() {
    let server = SpeakerServer::start(json!({ "version": "handshake", "auth": true }));
    let world = server.world("");
    let before = world.run(&["--json", "mcp", "approve", "remote", "--yes"]);
    assert_ne!(before.code, 0);
    assert!(format!("{before:?}").contains("toolgate mcp login remote"), "{before:?}");
    let login = log_in(&world);
    assert!(login.is_done, "{}", login.errors);
    assert_eq!(world.run(&["--json", "mcp", "approve", "remote", "--yes"]).code, 0);
    assert_eq!(call(&world)["ok"], true);
    let requests = server.requests();
    let registered = requests.iter().find(|request| request["path"] == "/register").unwrap()["body"].to_string();
    assert!(registered.contains("native") && registered.contains("http://127.0.0.1:"), "{registered}");
    let asked = requests.iter().find(|request| request["path"].as_str().unwrap().starts_with("/authorize")).unwrap();
    let asked = asked["path"].as_str().unwrap();
    for part in ["code_challenge_method=S256", "resource=http%3A%2F%2F127.0.0.1", "scope=tools", "state="] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let exchanged = requests.iter().find(|request| request["path"] == "/token").unwrap()["body"].to_string();
    assert!(exchanged.contains("resource=") && exchanged.contains("code_verifier="), "{exchanged}");
    let token = server.messages("tools/call")[0]["headers"]["authorization"].as_str().unwrap().to_owned();
    let token = token.strip_prefix("Bearer ").unwrap();
    assert!(!workspace_files(&world).contains(token), "the token is nowhere in the workspace");
    assert!(requests.iter().all(|request| !request["path"].as_str().unwrap().contains(token)), "nor in an address");
    let forgotten = world.run(&["--json", "mcp", "login", "remote", "--forget"]).json();
    assert_eq!(forgotten["forgotten"], true);
    assert_eq!(call(&world)["error"]["details"]["login"], true);
}

/// A connection that is closed while a part of the request is unread is reset, and the answer in it is lost.
#[test]
fn a_browser_is_answered_once_its_whole_request_has_come() {
    let server = SpeakerServer::start(json!({ "version": "handshake", "auth": true }));
    let world = server.world("");
    let mut command = world.command(PROGRAM);
    command.args(["--json", "mcp", "login", "remote", "--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let shown: Value = serde_json::from_str(&line).unwrap();
    let back = location(&get(shown["open"].as_str().unwrap()).0);
    let (host, path) = back.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut browser = TcpStream::connect(host).unwrap();
    browser.write_all(format!("GET /{path} HTTP/1.1\r\n").as_bytes()).unwrap();
    browser.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let early = browser.read(&mut [0; 64]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "nothing is answered yet");
    browser.set_read_timeout(None).unwrap();
    browser.write_all(format!("Host: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    browser.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("You are logged in"), "{answer}");
    assert!(child.wait().unwrap().success());
}

/// Each of these is a way to get a token, or the person, to somebody else (G19, G20).
#[test]
fn g19_g20_a_login_that_leads_elsewhere_fails() {
    let other = SpeakerServer::start(json!({}));
    let elsewhere = other.url("/token");
    for (wrong, expected) in [
        (json!({ "resource": "https://other.example/mcp" }), "about another server"),
        (json!({ "issuer": "https://evil.example" }), "says that it is another one"),
        (json!({ "pkce": ["plain"] }), "PKCE"),
        (json!({ "iss": "https://evil.example" }), "another issuer"),
        (json!({ "iss": "" }), "doesn't say which issuer"),
        (json!({ "state": "of another login" }), "another login"),
        (json!({ "resource_metadata": "http://169.254.169.254/latest/meta-data" }), "isn't encrypted"),
        (json!({ "resource_metadata": "https://169.254.169.254/latest/meta-data" }), "169.254.169.254 wasn't reached"),
        (json!({ "resource_metadata": "file:///etc/passwd" }), "can't be used"),
        (json!({ "names_issuer": "http://10.0.0.1" }), "isn't encrypted"),
        (json!({ "names_issuer": "https://10.0.0.1" }), "10.0.0.1 wasn't reached"),
        (json!({ "token_endpoint": "https://192.168.1.1/token" }), "192.168.1.1 wasn't reached"),
        (json!({ "registration_endpoint": "https://metadata.google.internal/" }), "metadata.google.internal"),
        (json!({ "authorization_endpoint": "a:$(touch pwned)" }), "can't be used"),
        (json!({ "authorization_endpoint": "javascript:alert(1)" }), "can't be used"),
    ] {
        let mut options = json!({ "version": "handshake", "auth": true });
        options.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let server = SpeakerServer::start(options);
        let world = server.world("");
        let login = log_in(&world);
        assert!(!login.is_done && login.errors.contains(expected), "{wrong}: {}", login.errors);
        assert_eq!(call(&world)["error"]["code"], "unknown_tool", "{wrong}: nothing came of it");
        assert_eq!(recorded_end(&world, "remote__add"), "unknown_tool", "{wrong}");
        assert!(!world.workspace().join("pwned").exists());
    }
    assert!(!other.requests().iter().any(|request| request["path"] == "/token"), "{elsewhere} was never asked");
}

#[test]
fn g19_more_rights_are_a_persons_to_give_and_asked_for_once() {
    let server = SpeakerServer::start(json!({ "version": "handshake", "scope": "admin" }));
    let world = server.world("bearer = 'file:/etc/hostname'");
    let said = format!("{:?}", world.run(&["--json", "mcp", "approve", "remote", "--yes"]));
    assert!(said.contains("wants more rights") && said.contains("--scope 'admin'"), "{said}");
    assert_eq!(server.requests().len(), 1, "it isn't tried again");
    assert_eq!(recorded_end(&world, "mcp_describe"), "server_error");
}

#[test]
fn g21_of_many_processes_one_renews_the_token() {
    let server = SpeakerServer::start(json!({ "version": "handshake", "auth": true }));
    let world = server.world("");
    assert!(log_in(&world).is_done);
    assert_eq!(world.run(&["--json", "mcp", "approve", "remote", "--yes"]).code, 0);
    get(&server.url("/expire"));
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let mut command = world.command(PROGRAM);
            command.args(["--json", "call", "--approve", "remote__add", r#"{"a":1,"b":2}"#]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for called in calls {
        let said = called.wait_with_output().unwrap();
        let reply: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(reply["ok"], true, "{reply}");
    }
    let renewals = server.requests().into_iter().filter(|request| {
        request["path"] == "/token" && request["body"].as_str().unwrap().contains("grant_type=refresh_token")
    });
    assert_eq!(renewals.count(), 1);
    let record = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(record.contains("tool_call.completed") && !record.contains("refresh-"), "{record}");
}
