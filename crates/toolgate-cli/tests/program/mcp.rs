//! `toolgate serve --stdio` and `/mcp`, spoken to message by message: what clients of both eras get, what is refused, and
//! what survives.

mod approvals;
mod client;
mod http;
mod questions;
mod robust;
mod tool_list_changed;

use std::io::{Read, Write};

use serde_json::{Value, json};

use self::client::Talk;
use crate::world::World;

/// Tokens that the default list of tools may cost, at four bytes each: all of it, and what a client shows its model of it.
/// Raise them on purpose only.
const WHOLE: usize = 11_000;
const SHOWN: usize = 7_000;

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_client_with_a_handshake_reads_edits_and_runs() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    let list = talk.ask("tools/list", json!({}));
    assert!(names(&list).contains(&"read") && names(&list).contains(&"shell"));
    let read = talk.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["structuredContent"]["content"], "hello\nworld\n");
    let text: Value = serde_json::from_str(read["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, read["structuredContent"], "older clients find the same in a text");
    talk.call("edit", json!({ "path": "hello.txt", "find": "world", "replace": "moon" }));
    assert_eq!(world.read("hello.txt"), "hello\nmoon\n");
    let ran = talk.call("shell", json!({ "command": "wc -l < hello.txt" }));
    assert_eq!(ran["structuredContent"]["stdout"].as_str().unwrap().trim(), "2", "{ran}");
    assert_eq!(talk.end(), 0);
    let said = world.run(&["audit", "verify"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_client_whose_requests_stand_alone_needs_no_handshake() {
    let world = World::new();
    let mut talk = Talk::modern(&world, json!({}));
    let found = talk.ask("server/discover", json!({}));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_eq!(found["resultType"], "complete");
    let read = talk.call("read", json!({ "path": "hello.txt" }));
    assert_eq!(read["structuredContent"]["content"], "hello\nworld\n");
    assert_eq!(read["content"], json!([]), "the same bytes aren't sent twice");
    let gone = talk.fault("ping", json!({}));
    assert_eq!(gone["code"], -32601, "{gone}");
}

#[test]
fn what_is_refused_says_what_why_and_what_next() {
    let world = World::new().file(".env", "TOKEN=x\n");
    let mut talk = Talk::legacy(&world, json!({}));
    let refused = talk.call("read", json!({ "path": ".env" }));
    assert_eq!(refused["isError"], true);
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("error[sensitive_path]:") && words.contains("\nrule: ") && words.contains("\nnext: "));
    assert_eq!(refused["_meta"]["toolgate/error"]["code"], "sensitive_path");
    for (tool, args, code) in [
        ("raed", json!({}), "unknown_tool"),
        ("read", json!({ "path": 7 }), "invalid_args"),
        ("read", json!({ "path": "../../etc/passwd" }), "path_outside_workspace"),
    ] {
        assert_eq!(talk.call(tool, args)["_meta"]["toolgate/error"]["code"], code);
    }
}

#[test]
fn the_list_of_tools_is_fit_for_any_client() {
    let world = World::new();
    let mut talk = Talk::modern(&world, json!({}));
    let list = talk.ask("tools/list", json!({}));
    for tool in list["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() < 60 && tool["title"].is_string() && tool["description"].is_string());
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            assert_eq!(schema["type"], "object", "{name}");
            for clause in ["anyOf", "oneOf", "allOf", "$ref"] {
                assert!(schema.get(clause).is_none(), "{name} has {clause} at its top");
            }
        }
        let hints = &tool["annotations"];
        let reads = ["artifact", "find", "grep", "image", "list", "read"].contains(&name);
        assert!(hints["readOnlyHint"] == true || !reads, "{name}");
        // What an agent notes for itself changes, and takes nothing from anybody.
        let notes = ["memory", "plan", "todo_write"].contains(&name);
        assert!(hints["readOnlyHint"] == false || !notes, "{name}");
        assert_eq!(hints["readOnlyHint"] == true || notes, hints["destructiveHint"] == false, "{name}");
    }
    let shown = |tool: &Value| {
        ["name", "description", "inputSchema"].map(|field| tool[field].to_string().len()).iter().sum::<usize>()
    };
    let shown: usize = list["tools"].as_array().unwrap().iter().map(shown).sum::<usize>() / 4;
    let whole = list["tools"].to_string().len() / 4;
    println!("the default list of tools costs about {whole} tokens, of which models are shown {shown}");
    assert!(whole <= WHOLE && shown <= SHOWN, "{whole} tokens, {shown} shown");
}

#[test]
fn the_list_can_be_narrowed_and_what_is_not_on_it_is_not_run() {
    let world = World::new();
    let mut talk = Talk::started(&world, &["--tools", "read,edit"], false, json!({}));
    talk.initialize();
    assert_eq!(names(&talk.ask("tools/list", json!({}))), ["edit", "read"]);
    let refused = talk.call("list", json!({}));
    assert_eq!(refused["_meta"]["toolgate/error"]["code"], "tool_not_allowed");
    drop(talk);
    let said = world.run(&["serve", "--stdio", "--tools", "reed"]);
    assert!(said.code == 2 || said.code == 1, "{said:?}");
    assert!(said.err.contains("there is no tool `reed`") && said.err.contains("reading"), "{said:?}");
}

#[test]
fn long_output_is_linked_and_can_be_read_in_pages() {
    let world = World::new();
    let mut talk = Talk::modern(&world, json!({}));
    let ran = talk.call("shell", json!({ "command": "seq 1 30000" }));
    let link = ran["content"].as_array().unwrap().iter().find(|part| part["type"] == "resource_link").unwrap();
    let mut uri = link["uri"].as_str().unwrap().to_owned();
    let listed = talk.ask("resources/list", json!({}));
    assert!(listed["resources"].as_array().unwrap().iter().any(|found| found["uri"] == uri.as_str()));
    let mut whole = String::new();
    loop {
        let read = talk.ask("resources/read", json!({ "uri": uri }));
        let content = &read["contents"][0];
        whole += content["text"].as_str().unwrap();
        match content["_meta"]["toolgate/next"].as_str() {
            Some(next) => uri = next.to_owned(),
            None => break,
        }
    }
    let expected: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    assert!(whole.contains(&expected), "nothing is lost between pages");
    let unknown = talk.fault("resources/read", json!({ "uri": "toolgate://artifact/art_0" }));
    assert_eq!((&unknown["code"], &unknown["data"]["uri"]), (&json!(-32602), &json!("toolgate://artifact/art_0")));
}

#[test]
fn more_than_a_tool_states_can_be_asked_for() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    let listed = talk.ask("tools/list", json!({}));
    let has_it = |tool: &&Value| tool["inputSchema"]["properties"]["requested_permissions"].is_object();
    let having: Vec<Value> = listed["tools"].as_array().unwrap().iter().filter(has_it).cloned().collect();
    assert_eq!(names(&json!({ "tools": having })), ["script", "shell"]);
    let mut ask =
        |tool: &str, right: &str| talk.call(tool, json!({ "command": "true", "requested_permissions": [right] }));
    let asked = ask("shell", "net.connect=ok.example:22");
    let words = asked["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("error[approval_required]"), "{asked}");
    assert!(words.contains("--permit net.connect=ok.example:22"), "{asked}");
    assert_eq!(ask("list", "unsandboxed")["_meta"]["toolgate/error"]["code"], "invalid_args", "`list` runs nothing");
    let args = json!({ "command": "true", "requested_permissions": ["everything"] });
    let fault = talk.fault("tools/call", json!({ "name": "shell", "arguments": args }));
    assert!(fault["message"].as_str().unwrap().contains("there is no right `everything`"), "{fault}");
}

#[test]
fn secrets_in_bytes_that_are_no_text_are_replaced() {
    let world = World::new();
    world.put(&world.user_config(), "network.allow = ['127.0.0.1']");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-thing\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}\0\0 postgres://app:hunter2hunter2@db/app \0").as_bytes());
    });
    let mut talk = Talk::modern(&world, json!({}));
    let fetched = talk.call("fetch", json!({ "url": url }));
    let uri = format!("toolgate://artifact/{}", fetched["structuredContent"]["artifact"].as_str().unwrap());
    let content = talk.ask("resources/read", json!({ "uri": uri }))["contents"][0].clone();
    assert_eq!(content["mimeType"], "application/x-thing");
    assert_eq!(content["text"], "\0\0 postgres://app:***REDACTED***@db/app \0", "{content}");
}

#[test]
fn images_are_shown() {
    let world = World::new().file("pixel.png", PIXEL);
    let mut talk = Talk::modern(&world, json!({}));
    let shown = talk.call("image", json!({ "path": "pixel.png" }));
    let image = shown["content"].as_array().unwrap().iter().find(|part| part["type"] == "image").unwrap();
    assert!(image["mimeType"].as_str().unwrap().starts_with("image/") && image["data"].as_str().unwrap().len() > 20);
}

/// A red pixel.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\
\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

#[test]
fn roots_narrow_the_workspace() {
    let world = World::new().file("src/a.txt", "a\n").file("other/b.txt", "b\n");
    let mut talk = Talk::legacy(&world, json!({ "roots": {} }));
    talk.roots = vec![format!("file://{}/src", world.workspace().display()), "file:///etc".into()];
    assert_eq!(talk.call("read", json!({ "path": "src/a.txt" }))["structuredContent"]["content"], "a\n");
    for (tool, args) in [
        ("read", json!({ "path": "other/b.txt" })),
        ("list", json!({})),
        ("read", json!({ "path": "/etc/hostname" })),
        ("shell", json!({ "command": "cat other/b.txt" })),
    ] {
        let refused = talk.call(tool, args);
        assert_eq!(refused["_meta"]["toolgate/error"]["code"], "path_outside_workspace", "{tool}: {refused}");
    }
}

#[test]
fn what_a_tool_says_reaches_the_client_as_progress_and_log() {
    let world = World::new();
    let mut talk = Talk::legacy(&world, json!({}));
    let args = json!({ "name": "display", "arguments": { "content": "half way", "level": "info" } });
    talk.ask("tools/call", with(args, "_meta", json!({ "progressToken": "p" })));
    let told = |method: &str| talk.heard.iter().find(|message| message["method"] == method).cloned();
    assert_eq!(told("notifications/progress").unwrap()["params"]["progressToken"], "p");
    assert_eq!(told("notifications/message").unwrap()["params"]["data"]["content"], "half way");
}

fn with(mut value: Value, field: &str, more: Value) -> Value {
    value[field] = more;
    value
}
