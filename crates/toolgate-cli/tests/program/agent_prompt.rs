//! What a model is told at the start, seen by a server that speaks chat completions.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::world::World;

/// Answers one request; gives its path and its body.
fn answers_once(listener: TcpListener) -> JoinHandle<(String, Value)> {
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
        while stream.read_line(&mut line).unwrap() > 2 {
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap().to_owned();
            }
            if let Some((_, value)) = line.to_lowercase().split_once("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let chunk = json!({ "choices": [{ "delta": { "content": "Hello." }, "finish_reason": "stop" }] });
        let text = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
        write!(stream.get_mut(), "{head}content-length: {}\r\n\r\n{text}", text.len()).unwrap();
        (path, serde_json::from_slice(&body).unwrap())
    })
}

#[test]
fn the_prompt_holds_date_git_state_skills_memory_and_missing_servers() {
    let world = World::new().file("a.xyz", "x\n");
    let server = "[lsp.servers.nothing]\ncommand = ['no-such-server']\nfiles = { xyz = 'xyz' }\ninstall = 'get it'\n";
    world.put(&world.user_config(), server);
    let git = world.shell("git init -q -b trunk && echo x > new.txt");
    assert_eq!(git.code, 0, "{git:?}");
    let skill = world.home().join(".agents/skills/slides/SKILL.md");
    world.put(&skill, "---\nname: slides\ndescription: Makes slides.\n---\nBe brief.\n");
    world.call("memory", json!({ "action": "create", "title": "style", "content": "Tabs, not spaces." }));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = answers_once(listener);
    let said = world.run(&["run", "Hi.", "--model", "chat:x", "--base-url", &format!("http://{address}")]);
    assert_eq!((said.code, said.out.as_str()), (0, "Hello.\n"), "{said:?}");
    assert!(!said.err.contains(" 0 tokens"), "tokens are estimated where the stream has none: {said:?}");
    let (path, body) = server.join().unwrap();
    assert_eq!(path, "/v1/chat/completions", "a base URL without /v1 is completed");
    let system = body["messages"][0]["content"].as_str().unwrap();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    for words in [date.as_str(), "## No commits yet on trunk", "?? new.txt", "- slides: Makes slides.", "style: Tabs"] {
        assert!(system.contains(words), "{words} isn't in:\n{system}");
    }
    assert_eq!(system.matches("No language server is installed for xyz (`get it`).").count(), 1, "{system}");
}
