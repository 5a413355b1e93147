//! What people do all day works in the default preset, with nobody asked: builds, tests, servers. Each piece of work is
//! settled when it ends, and the workspace has what it made.

use serde_json::{Value, json};

use crate::world::{PROGRAM, Said, World};

/// Runs a command with the real home, where the toolchains are, and with configuration of its own.
fn work(world: &World, command: &str) -> Value {
    let home = std::env::home_dir().unwrap();
    let mut program = world.command(PROGRAM);
    program.env("HOME", home).env("XDG_CONFIG_HOME", world.home()).env("XDG_STATE_HOME", world.home());
    let args = json!({ "command": command, "timeout_seconds": 600 }).to_string();
    let reply = Said::from(program.args(["--json", "call", "shell", &args]).output().unwrap()).json();
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{command}: {reply}");
    assert!(reply["payload"]["changes"]["kept_aside"].is_null(), "{command}: {reply}");
    reply["payload"].clone()
}

fn output(payload: &Value) -> String {
    format!("{}{}", payload["stdout"].as_str().unwrap(), payload["stderr"].as_str().unwrap())
}

#[test]
fn cargo_builds_and_tests_a_crate() {
    let world = World::new()
        .file("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
        .file("src/lib.rs", "pub fn two() -> u8 { 2 }\n#[test]\nfn it_is() { assert_eq!(two(), 2) }\n")
        .file("src/main.rs", "fn main() { println!(\"{}\", small::two()) }\n");
    work(&world, "cargo build --offline");
    assert_eq!(world.shell("target/debug/small").out, "2\n", "the program is in the workspace");
    let tested = output(&work(&world, "cargo test --offline"));
    assert!(tested.contains("it_is ... ok"), "{tested}");
    let again = output(&work(&world, "cargo build --offline"));
    assert!(!again.contains("Compiling"), "what was built before is known by its time: {again}");
}

#[test]
fn make_works_side_by_side_and_again_only_what_is_needed() {
    let rules = "all: a.out b.out c.out\n%.out: %.in\n\t@cp $< $@; echo made $@\n";
    let world = World::new().file("Makefile", rules).file("a.in", "a").file("b.in", "b").file("c.in", "c");
    assert_eq!(output(&work(&world, "make -j4 all")).matches("made").count(), 3);
    assert_eq!(world.read("b.out"), "b");
    work(&world, "touch b.in");
    assert_eq!(output(&work(&world, "make -j4 all")).matches("made").count(), 1, "the time of a touch counts");
}

#[test]
fn npm_and_pytest_run_their_tests() {
    let package = r#"{ "name": "small", "version": "1.0.0", "scripts": { "test": "node --test" } }"#;
    let world = World::new()
        .file("package.json", package)
        .file("small.test.js", "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2));\n")
        .file(
            "test_small.py",
            "def test_adds(tmp_path):\n    (tmp_path / 'x').write_text('2')\n    assert 1 + 1 == 2\n",
        );
    assert!(output(&work(&world, "npm test")).contains("pass 1"));
    assert!(output(&work(&world, "/usr/bin/pytest-3 -q")).contains("1 passed"));
}

#[test]
fn a_server_and_its_client_meet_on_the_loopback() {
    let world = World::new().file("page.txt", "served\n");
    let line = "/usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & \
                for try in $(seq 1000); do sleep 0.1; \
                /usr/bin/python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/page.txt').read())\" \
                2> /dev/null && break; done";
    assert!(output(&work(&world, line)).contains("served"));
}

#[test]
fn a_command_line_with_a_server_and_curl_speaks_to_itself_and_nobody_is_asked() {
    let world = World::new().file("page.txt", "served\n");
    for host in ["localhost", "127.0.0.1", "0.0.0.0", "app.localhost"] {
        let line = format!(
            "/usr/bin/python3 -m http.server 8765 > /dev/null 2>&1 & \
             curl -s --retry 60 --retry-delay 1 --retry-connrefused http://{host}:8765/page.txt"
        );
        assert_eq!(output(&work(&world, &line)), "served\n", "{host}");
    }
    let args = json!({ "command": "curl -s http://localhost:8765/page.txt" }).to_string();
    let reply = world.run(&["--json", "call", "--approve", "--permit", "unsandboxed", "shell", &args]).json();
    assert_eq!(reply["error"]["code"], json!("network_denied"), "without a sandbox it is this machine's: {reply}");
}
