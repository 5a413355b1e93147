//! Many clients at once: nothing is lost, and every call has its pair of events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::server::Server;

#[test]
fn a_hundred_clients_with_a_hundred_calls_each() {
    let server = Server::start();
    let sessions: Vec<(Value, super::client::Client)> = (0..100).map(|_| server.session(&json!({}))).collect();
    let runs: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(number, (session, mut client))| {
                scope.spawn(move || {
                    for call in 0..100 {
                        let reply = match call % 10 {
                            0 => client.call(
                                "write",
                                json!({ "path": format!("out/{number}.txt"), "content": format!("{call}\n") }),
                            ),
                            9 => client.call("read", json!({ "path": ".env" })),
                            _ => client.call("read", json!({ "path": "hello.txt" })),
                        };
                        assert_eq!(reply["ok"], json!(call % 10 != 9), "{reply}");
                    }
                    session["run"].as_str().unwrap().to_owned()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (number, run) in runs.iter().enumerate() {
        let mut pairs = BTreeMap::<String, (u32, u32)>::new();
        for event in server.events(run) {
            let Some(call) = event["tool_call_id"].as_str() else { continue };
            let (started, ended) = pairs.entry(call.to_owned()).or_default();
            match event["kind"].as_str().unwrap() {
                "tool_call.started" => *started += 1,
                "tool_call.completed" | "tool_call.failed" => *ended += 1,
                _ => {}
            }
        }
        assert_eq!(pairs.len(), 100, "{run}");
        assert!(pairs.values().all(|pair| *pair == (1, 1)), "{run}: {pairs:?}");
        assert_eq!(server.world.read(&format!("out/{number}.txt")), "90\n");
    }
    let metrics = String::from_utf8(server.owner().get("/metrics").body).unwrap();
    assert!(metrics.contains("toolgate_calls_total{tool=\"read\",outcome=\"ok\"} 8000"), "{metrics}");
    assert!(metrics.contains("toolgate_calls_running 0"), "{metrics}");
}
