//! What calls reach beyond this machine, and how a call that confinement stopped gets what it lacked.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::world::World;

/// A name that no table can read out of the command.
const LOOK_UP: &str = r#"getent ahostsv4 "$(echo evil).example""#;

fn with_config(config: &str) -> World {
    let world = World::new();
    world.put(&world.user_config(), config);
    world
}

fn call(world: &World, options: &[&str], command: &str) -> Value {
    let args = json!({ "command": command }).to_string();
    world.run(&[&["--json", "call"], options, &["shell", &args]].concat()).json()
}

fn events(world: &World) -> String {
    std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap()
}

fn serve(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_page_is_fetched_from_a_host_that_a_rule_names() {
    let page =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>T</title><h1>Big</h1><p>news";
    let port = serve(page);
    let args = json!({ "url": format!("http://127.0.0.1:{port}/"), "headers": { "X-Api-Key": "my-secret-key-123" } });
    let refused = World::new().call("fetch", args.clone());
    assert_eq!(refused["error"]["code"], json!("network_denied"), "{refused}");
    let world = with_config("network.allow = ['127.0.0.1']");
    let reply = world.call("fetch", args);
    assert_eq!((&reply["payload"]["status"], &reply["payload"]["title"]), (&json!(200), &json!("T")), "{reply}");
    assert_eq!(reply["payload"]["content"], json!("Big\n\nnews"));
    assert!(!events(&world).contains("my-secret-key-123"), "what is sent along isn't recorded");
    let asked = World::new().call("fetch", json!({ "url": "https://example.com/" }));
    assert_eq!(asked["error"]["code"], json!("approval_required"), "{asked}");
}

#[test]
fn what_a_server_calls_bytes_is_shown_as_the_text_that_it_is() {
    let text = "HTTP/1.1 404 Not Found\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n\
                db: postgres://app:hunter2hunter2@db/app\n";
    let bytes = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n\0\u{1}\0\u{2}";
    let world = with_config("network.allow = ['127.0.0.1']");
    let fetch = |answer: &'static str| {
        let args = json!({ "url": format!("http://127.0.0.1:{}/", serve(answer)) }).to_string();
        world.run(&["call", "fetch", &args])
    };
    let said = fetch(text);
    assert_eq!(said.out, "db: postgres://app:***REDACTED***@db/app\n", "{said:?}");
    assert!(said.err.contains("status 404, application/octet-stream, 41 bytes"), "{said:?}");
    let said = fetch(bytes);
    assert!(said.out.is_empty() && said.err.contains("status 200"), "{said:?}");
    assert!(said.err.contains("4 bytes; not text, stored as art_"), "{said:?}");
}

#[test]
fn a_command_reaches_names_on_the_list_and_is_told_of_the_others() {
    let world = with_config("network.allow = ['ok.example']");
    let reply = call(&world, &[], r#"getent ahostsv4 "$(echo ok).example""#);
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert!(reply["payload"]["stdout"].as_str().unwrap().contains("198.18."), "{reply}");
    assert_eq!(reply["enforced"]["network"], json!("held"), "{reply}");

    let reply = call(&world, &[], LOOK_UP);
    let denied = &reply["payload"]["denied"][0];
    assert_ne!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert_eq!(denied["code"], json!("network_denied"), "{reply}");
    assert_eq!(denied["request"], json!(["net.connect=evil.example:80", "net.connect=evil.example:443"]), "{reply}");
    let events = events(&world);
    assert!(events.contains("\"denials\"") && events.contains("evil.example"), "{events}");
}

#[test]
fn a_host_that_was_missing_is_asked_for_and_the_call_tried_once_more() {
    let world = with_config("network.allow = ['ok.example']");
    let reply = call(&world, &["--approve"], LOOK_UP);
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert!(reply["payload"]["stdout"].as_str().unwrap().contains("198.18."), "{reply}");
    let recorded = events(&world);
    for (words, times) in [("tool_call.started", 1), ("tool_call.widened", 1), ("approval_granted", 1)] {
        assert_eq!(recorded.matches(words).count(), times, "{words}: {recorded}");
    }
    let denied = with_config("network.allow = ['ok.example']\n[[rules]]\ndecision = 'deny'\nhost = 'evil.example'");
    let reply = call(&denied, &["--approve"], LOOK_UP);
    assert_ne!(reply["payload"]["exit_code"], json!(0), "a deny can't be approved away: {reply}");
    assert!(!events(&denied).contains("tool_call.widened"));
    let reply = call(&world, &["--permit", "net.connect=evil.example:443"], LOOK_UP);
    assert_eq!(reply["error"]["code"], json!("approval_required"), "{reply}");
    assert!(reply["error"]["hint"].as_str().unwrap().contains("--permit net.connect=evil.example:443"), "{reply}");
}

#[test]
fn with_no_host_on_the_list_it_is_still_known_whom_a_command_tried_to_reach() {
    let world = World::new();
    let reply = call(&world, &[], LOOK_UP);
    let denied = &reply["payload"]["denied"][0];
    assert_eq!(denied["request"], json!(["net.connect=evil.example:80", "net.connect=evil.example:443"]), "{reply}");
    assert_eq!(reply["enforced"]["network"], json!("held"), "{reply}");
    let reply = call(&world, &["--approve"], LOOK_UP);
    assert!(reply["payload"]["stdout"].as_str().unwrap().contains("198.18."), "asked for and tried once more: {reply}");
    let said = world.run(&["sandbox", "--", "getent", "ahostsv4", "evil.example"]);
    assert!(said.code != 0 && said.err.contains("evil.example wasn't reached"), "{said:?}");
}

#[test]
fn a_host_that_was_missing_can_be_granted_from_another_terminal() {
    let world = with_config("approvals.wait_seconds = 3600");
    let (reply, asked, approved) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&world, &[], LOOK_UP));
        while world.run(&["--json", "approvals", "list"]).list() == json!([]) {
            assert!(!waiting.is_finished(), "nobody was asked: {:?}", waiting.join());
        }
        let asked = world.run(&["approvals", "show", "last"]);
        let approved = world.run(&["approvals", "approve", "last"]);
        (waiting.join().unwrap(), asked, approved)
    });
    assert!(asked.err.contains("connect to evil.example:443") && approved.code == 0, "{asked:?} {approved:?}");
    assert!(reply["payload"]["stdout"].as_str().unwrap().contains("198.18."), "{reply}");
    let recorded = events(&world);
    for (words, times) in [("tool_call.widened", 1), ("approval_granted", 1)] {
        assert_eq!(recorded.matches(words).count(), times, "{words}: {recorded}");
    }
}

#[test]
fn who_refuses_what_was_missing_is_told_to_the_model_with_their_words() {
    let (world, outside) = (with_config("approvals.wait_seconds = 3600"), tempfile::tempdir_in("/var/tmp").unwrap());
    let command = format!("touch \"$(echo {})/new\"", outside.path().display());
    let (reply, asked, answered) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&world, &[], &command));
        while world.run(&["--json", "approvals", "list"]).list() == json!([]) {
            assert!(!waiting.is_finished(), "nobody was asked: {:?}", waiting.join());
        }
        let asked = world.run(&["approvals", "show", "last"]);
        let answered = world.run(&["approvals", "deny", "last", "--reason", "no thanks"]);
        (waiting.join().unwrap(), asked, answered)
    });
    let directory = outside.path().display();
    let words = format!("`{directory}/new` wasn't made: to make it the command has to write in `{directory}`");
    assert!(asked.err.contains(&words) && answered.code == 0, "{asked:?} {answered:?}");
    let denied = &reply["payload"]["denied"][0];
    let next = denied["next"].as_str().unwrap_or_default();
    assert!(next.contains("don't ask for it again") && next.contains("no thanks"), "{reply}");
    assert!(denied["request"].is_null() && !outside.path().join("new").exists(), "{reply}");
}

#[test]
fn a_name_that_was_looked_up_and_not_reached_is_told_only_if_the_command_failed() {
    let world = with_config("network.allow = ['ok.example']");
    let connect = r#"exec 3<>/dev/tcp/"$(echo ok)".example/22"#;
    let reply = call(&world, &[], connect);
    let denied = &reply["payload"]["denied"][0];
    assert!(denied["reason"].as_str().unwrap().contains("net.connect=ok.example:PORT"), "{reply}");
    assert!(denied["request"].is_null() && denied["next"].is_null(), "nothing can be asked for as it is: {reply}");
    let reply = call(&world, &[], &format!("({connect}) || true"));
    assert!(reply["payload"]["denied"].is_null() && !events(&world).contains("was looked up"), "{reply}");
}

#[test]
fn what_a_command_changed_before_it_lacked_a_right_is_part_of_the_reply() {
    let (world, outside) = (World::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let command = format!(
        "[ -e log ] || echo 1 > once; echo line >> log; touch \"$(echo {})/new\"; exit $?",
        outside.path().display()
    );
    for input in [false, true] {
        let args = json!({ "command": command, "stdin": input }).to_string();
        let reply = world.run(&["--json", "call", "--approve", "shell", &args]).json();
        assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
        assert_eq!(world.read("log"), "line\nline\n", "{reply}");
        let changes = &reply["payload"]["changes"];
        assert_eq!(changes["paths"], json!(["+log", "+once"]), "{reply}");
        assert_eq!((&changes["created"], &changes["changed"]), (&json!(2), &json!(0)), "{reply}");
        assert!(changes["notes"][0].as_str().unwrap().contains("ran twice"), "{reply}");
        assert_eq!(reply["artifacts"]["files_changed"], json!(["once", "log"]), "{reply}");
        assert_eq!(world.run(&["undo", "last"]).code, 0);
        assert!(!world.workspace().join("log").exists() && !world.workspace().join("once").exists());
        std::fs::remove_file(outside.path().join("new")).unwrap();
    }
}

#[test]
fn a_place_that_was_missing_is_granted_for_one_call() {
    let (world, outside) = (World::new(), tempfile::tempdir_in("/var/tmp").unwrap());
    let command = format!("touch \"$(echo {})/new\"", outside.path().display());
    let reply = call(&world, &[], &command);
    let denied = &reply["payload"]["denied"][0];
    assert_eq!(denied["code"], json!("sandbox_denied"), "{reply}");
    assert_eq!(denied["missing"], json!(format!("write {}", outside.path().display())), "{reply}");
    assert!(denied["reason"].as_str().unwrap().contains("/new` wasn't made"), "the file is named too: {reply}");
    assert!(denied["next"].as_str().unwrap().contains("--permit fs.write="), "{reply}");
    assert!(!outside.path().join("new").exists());
    let reply = call(&world, &["--approve"], &command);
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert!(outside.path().join("new").exists() && events(&world).contains("tool_call.widened"));
    let again = call(&world, &[], &command.replace("new", "newer"));
    assert_ne!(again["payload"]["exit_code"], json!(0), "it was for one call: {again}");
}

#[test]
fn doing_without_the_sandbox_is_a_grant_of_its_own_and_loud() {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let command = format!("touch {}/ran", outside.path().display());
    let generous = "commands.allow = ['touch']\n[[rules]]\ndecision = 'allow'\ntool = 'shell'";
    for config in ["", generous] {
        let world = with_config(config);
        let reply = call(&world, &["--permit", "unsandboxed"], &command);
        assert_eq!(reply["error"]["code"], json!("approval_required"), "{config}: {reply}");
        let error = reply["error"].to_string();
        assert!(error.contains("NO SANDBOX") && error.contains("--permit unsandboxed"), "{error}");
        let scopes = reply["error"]["details"]["scopes"].to_string();
        assert!(!scopes.contains("always"), "{scopes}");
        assert!(!outside.path().join("ran").exists());
    }
    let world = World::new();
    let reply = call(&world, &["--approve", "--permit", "unsandboxed"], &command);
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert_eq!(reply["enforced"]["filesystem"], json!("not_held"), "{reply}");
    assert!(outside.path().join("ran").exists());
    for (preset, code) in [("read-only", "policy_denied"), ("autonomous", "policy_denied")] {
        let reply =
            call(&with_config(&format!("preset = '{preset}'")), &["--approve", "--permit", "unsandboxed"], &command);
        assert_eq!(reply["error"]["code"], json!(code), "{preset}: {reply}");
    }
    let other = World::new().run(&["--json", "call", "--permit", "unsandboxed", "list"]).json();
    assert_eq!(other["error"]["code"], json!("invalid_args"), "only commands have a sandbox: {other}");
}

#[test]
fn a_person_can_try_the_list_from_the_shell() {
    let world = World::new();
    let line = "getent ahostsv4 ok.example && getent ahostsv4 evil.example";
    let said = world.run(&["sandbox", "--connect", "*.example.org", "--connect", "ok.example", "--", "sh", "-c", line]);
    assert!(said.code != 0 && said.out.contains("198.18."), "{said:?}");
    assert!(said.err.contains("evil.example wasn't reached"), "{said:?}");
}

/// The loopback inside is the sandbox's own, but for a port that the person named.
#[test]
fn a_server_on_this_machine_is_reached_by_its_port() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut request = [0; 4096];
            if std::io::Read::read(&mut client, &mut request).is_ok_and(|count| count > 0) {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nmet";
                std::io::Write::write_all(&mut client, answer).unwrap();
            }
        }
    });
    let world = World::new();
    for named in ["localhost", "127.0.0.1"] {
        for asked in ["localhost", "127.0.0.1"] {
            let (connect, address) = (format!("{named}:{port}"), format!("http://{asked}:{port}/"));
            let said = world.run(&["sandbox", "--connect", &connect, "--", "curl", "-sS", &address]);
            assert_eq!(said.out, "met", "{named}, {asked}: {said:?}");
        }
    }
    let address = format!("http://127.0.0.1:{port}/");
    let said = world.run(&["sandbox", "--connect", "localhost", "--", "curl", "-sS", &address]);
    assert!(said.code != 0 && said.out.is_empty(), "no port was named: {said:?}");
}

/// A model that is told to ask for what policy denies anyway asks in vain.
#[test]
fn only_what_policy_could_grant_is_suggested() {
    let command = format!("{LOOK_UP}; exit 1");
    let denied = |config: &str| call(&with_config(config), &[], &command)["payload"]["denied"][0].clone();
    assert!(denied("")["request"].is_array(), "somebody may be asked for it");
    for config in ["preset = 'autonomous'", "rules = [{ decision = 'deny', host = '*.example' }]"] {
        let denied = denied(config);
        assert!(denied["request"].is_null(), "{config}: {denied}");
        assert!(denied["next"].as_str().unwrap().contains("Work without"), "{config}: {denied}");
    }
}
