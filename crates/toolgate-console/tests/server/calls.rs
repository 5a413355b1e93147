//! Calls and what is told of them afterwards: replies, problems, runs, changes, undo, the inbox.

use serde_json::{Value, json};
use toolgate_journal::{NewTask, ReplyAddress};

use crate::test_server::{ConsoleTestServer, OWNER};

#[tokio::test]
async fn a_call_is_answered_with_its_reply() {
    let server = ConsoleTestServer::start();
    let reply = server.call(OWNER, "read", json!({ "path": "hello.txt" })).await;
    assert_eq!((&reply["ok"], &reply["payload"]["content"]), (&json!(true), &json!("hello\nworld\n")));
    for (tool, args, code) in [
        ("read", json!({ "path": ".env" }), "sensitive_path"),
        ("raed", json!({}), "unknown_tool"),
        ("read", json!({ "path": 7 }), "invalid_args"),
    ] {
        let reply = server.call(OWNER, tool, args).await;
        assert_eq!(reply["error"]["code"], code, "a call that fails is a reply all the same");
    }
}

#[tokio::test]
async fn a_wrong_request_is_a_problem_in_one_shape() {
    let server = ConsoleTestServer::start();
    let long = "x".repeat(300);
    let posts = [
        ("/v1/calls", json!("text"), 400, "invalid_args"),
        ("/v1/calls", json!({ "args": {} }), 400, "invalid_args"),
        ("/v1/calls", json!([null, "list"]), 400, "invalid_args"),
        ("/v1/calls", json!({ "name": "read", "extra": 1 }), 400, "invalid_args"),
        ("/v1/calls?wait=perhaps", json!({ "name": "list" }), 400, "invalid_request"),
        ("/v1/calls", json!({ "name": "list", "tool_call_id": long }), 400, "invalid_request"),
        ("/v1/sessions", json!([null, null]), 400, "invalid_request"),
        ("/v1/approvals/ask_none", json!({ "answer": "approve" }), 404, "not_found"),
        ("/v1/approvals/ask_none", json!({ "answer": "perhaps" }), 400, "invalid_request"),
        ("/v1/questions/ask_none", json!({ "answer": "left" }), 404, "not_found"),
        ("/v1/inbox", json!({}), 400, "invalid_request"),
        ("/v1/inbox", json!({ "task": " \n" }), 400, "invalid_request"),
        ("/v1/inbox", json!({ "task": "x", "reply_to": "nowhere" }), 400, "invalid_request"),
        ("/v1/inbox", json!({ "task": "x", "id": "task_1" }), 400, "invalid_request"),
    ];
    let mut answers = Vec::new();
    for (path, body, status, code) in posts {
        answers.push((format!("{path} {body}"), server.post(OWNER, path, &body).await, status, code));
    }
    for (path, status, code) in [
        ("/v1/calls", 405, "method_not_allowed"),
        ("/v1/nothing", 404, "not_found"),
        ("/v1/runs/run_none", 404, "not_found"),
        ("/v1/runs/..%2F..%2Fetc", 404, "not_found"),
        ("/v1/runs/run_none/events", 404, "not_found"),
        ("/v1/runs?limit=0", 400, "invalid_request"),
        ("/v1/artifacts/art_none", 404, "not_found"),
        ("/v1/approvals/ask_none", 404, "not_found"),
        ("/v1/changes?run=run_none", 404, "not_found"),
        ("/v1/inbox?limit=0", 400, "invalid_request"),
        ("/v1/inbox/task_none", 404, "not_found"),
        ("/v1/calls/none", 404, "not_found"),
    ] {
        answers.push((path.to_owned(), server.get(OWNER, path).await, status, code));
    }
    for path in ["/v1/sessions/none", "/v1/calls/none"] {
        answers.push((path.to_owned(), server.delete(OWNER, path).await, 404, "not_found"));
    }
    let text = [("content-type", "text/plain")];
    let form = server.ask(Some(OWNER), "POST", "/v1/calls", &text, Some(&json!({}))).await;
    answers.push(("a form".into(), form, 415, "unsupported_media_type"));
    for (request, answer, status, code) in answers {
        assert_eq!(answer.problem(), (status, code.to_owned()), "{request}");
        let error = &answer.json()["error"];
        assert!(error["message"].is_string() && error["hint"].is_string(), "{request}: {error}");
    }
}

#[tokio::test]
async fn runs_tree_and_changes_are_told_and_a_change_is_undone() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let run = session["run"].as_str().unwrap();
    server.call(&token, "write", json!({ "path": "new.txt", "content": "one\n" })).await;
    let edit = json!({ "path": "hello.txt", "find": "hello", "replace": "bye" });
    assert_eq!(server.call(&token, "edit", edit).await["ok"], true);

    let runs = server.get(&token, "/v1/runs").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "a session sees its own run alone: {runs}");
    assert_eq!(runs["runs"][0]["calls"], 2);
    let shown = server.get(&token, &format!("/v1/runs/{run}")).await.json();
    assert_eq!(shown["calls"][1]["tool"], "edit");
    let tree = server.get(&token, &format!("/v1/runs/{run}/tree")).await.json();
    assert_eq!(tree["turns"][0]["calls"].as_array().unwrap().len(), 2, "{tree}");

    let changes = server.get(&token, "/v1/changes").await.json();
    assert_eq!(changes["changes"].as_array().unwrap().len(), 2, "{changes}");
    assert_eq!(changes["changes"][1]["changes"][0]["path"], "hello.txt");
    let undone = server.post(&token, "/v1/undo", &json!({ "call": changes["changes"][1]["call"] })).await.json();
    assert_eq!(undone["payload"]["undone"], json!(["hello.txt"]), "{undone}");
    assert_eq!(server.read("hello.txt"), "hello\nworld\n");
}

#[tokio::test]
async fn build_output_is_folded_unless_all_is_asked_for() {
    let server = ConsoleTestServer::start();
    let (_, token) = server.session(json!({})).await;
    let files = ["node_modules/a.js", "node_modules/b.js", "src.js"];
    let added: String = files.iter().map(|file| format!("*** Add File: {file}\n+x\n")).collect();
    let patch = json!({ "patch": format!("*** Begin Patch\n{added}*** End Patch\n") });
    let reply = server.call(&token, "patch", patch).await;
    let folded = json!([{ "path": "node_modules/", "created": 2, "changed": 0, "deleted": 0 }]);
    assert_eq!(reply["artifacts"]["files_changed"], json!(["src.js"]), "{reply}");
    assert_eq!(reply["artifacts"]["folded"], folded, "{reply}");
    // The record also has the directory that was made.
    let folded = json!([{ "path": "node_modules/", "created": 3, "changed": 0, "deleted": 0 }]);
    let told = server.get(&token, "/v1/changes").await.json()["changes"][0].clone();
    assert_eq!((&told["folded"], &told["count"]), (&folded, &json!(4)), "{told}");
    assert_eq!(told["changes"].as_array().unwrap().len(), 1, "{told}");
    let all = server.get(&token, "/v1/changes?all=true").await.json()["changes"][0].clone();
    assert_eq!(all["changes"].as_array().unwrap().len(), 4, "{all}");
    // An undo that deletes is asked for, with every path.
    let asked = server.post(&token, "/v1/undo", &json!({ "call": told["call"] })).await.json();
    let effects = asked["error"]["details"]["effects"].to_string();
    files.iter().for_each(|file| assert!(effects.contains(file), "{asked}"));
}

#[tokio::test]
async fn a_call_that_is_not_waited_for_ends_in_the_events() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    for (path, headers) in [("/v1/calls?wait=false", &[][..]), ("/v1/calls", &[("prefer", "respond-async")])] {
        let answer = server.ask(Some(&token), "POST", path, headers, Some(&json!({ "name": "list" }))).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let accepted = answer.json();
        assert_eq!(accepted["events"], json!(format!("/v1/runs/{}/events", session["run"].as_str().unwrap())));
        assert_eq!(
            answer.header("location"),
            Some(format!("/v1/calls/{}", accepted["tool_call_id"].as_str().unwrap()).as_str())
        );
        let has_ended =
            |event: &Value| event["tool_call_id"] == accepted["tool_call_id"] && event["kind"] == "tool_call.completed";
        while !server.events(&session["run"]).await.iter().any(has_ended) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_not_waited_for_is_shown_with_its_state_and_its_reply() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let id = "call 1/\u{e9}";
    let hang = json!({ "name": "hangs", "args": {}, "tool_call_id": id });
    let accepted = server.post(&token, "/v1/calls?wait=false", &hang).await;
    let location = accepted.header("location").unwrap().to_owned();
    assert_eq!(location, "/v1/calls/call%201%2F%C3%A9");
    server.event(&session["run"], "tool_call.started").await;
    let running = server.get(&token, &location).await.json();
    assert_eq!((&running["state"], &running["tool_call_id"]), (&json!("running"), &json!(id)));
    assert_eq!((running.get("reply"), &running["events"]), (None, &accepted.json()["events"]));
    assert_eq!(server.get(OWNER, &location).await.problem(), (404, "not_found".into()), "another session's");

    assert_eq!(server.delete(&token, &location).await.status, 202);
    server.event(&session["run"], "tool_call.failed").await;
    let ended = server.get(&token, &location).await.json();
    assert_eq!((&ended["state"], &ended["reply"]["error"]["code"]), (&json!("ended"), &json!("cancelled")));
    assert_eq!(server.post(&token, "/v1/calls?wait=false", &hang).await.problem(), (409, "duplicate_call".into()));
}

#[tokio::test]
async fn a_call_is_shown_with_the_reply_that_whoever_waited_got() {
    let server = ConsoleTestServer::start();
    for (tool, args) in [
        ("read", json!({ "path": "hello.txt" })),
        ("write", json!({ "path": "new.txt", "content": "TOKEN=ghp_0123456789abcdefghij0123456789abcdef\n" })),
        ("read", json!({ "path": ".env" })),
        ("long", json!({})),
        ("made-up", json!({})),
    ] {
        let mut reply = server.call(OWNER, tool, args).await;
        let path = format!("/v1/calls/{}", reply["tool_call_id"].as_str().unwrap());
        let mut shown = server.get(OWNER, &path).await.json();
        assert_eq!(shown["state"], "ended", "{shown}");
        for reply in [&mut reply, &mut shown["reply"]] {
            assert!(reply["duration_ms"].is_u64());
            reply["duration_ms"] = json!(0);
        }
        assert_eq!(shown["reply"], reply, "{tool}");
    }
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_id_or_by_disconnecting() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({ "id": "mine" })).await;
    let call = json!({ "name": "hangs", "args": {}, "tool_call_id": "call-1" });
    let pending = server.spawn(&token, "/v1/calls", &call);
    server.event(&session["run"], "tool_call.started").await;
    assert_eq!(server.post(&token, "/v1/calls", &call).await.problem(), (409, "duplicate_call".into()));
    assert_eq!(server.delete(OWNER, "/v1/calls/call-1").await.status, 404, "not a call of the owner's session");
    assert_eq!(server.delete(&token, "/v1/calls/call-1").await.status, 202);
    assert_eq!(pending.await.unwrap().json()["error"]["code"], "cancelled");

    let (session, token) = server.session(json!({})).await;
    let pending = server.spawn(&token, "/v1/calls", &call);
    server.event(&session["run"], "tool_call.started").await;
    pending.abort();
    assert_eq!(server.event(&session["run"], "tool_call.failed").await["error"]["code"], "cancelled");
}

#[tokio::test]
async fn the_owner_sees_the_inbox() {
    let server = ConsoleTestServer::start();
    let inbox = server.workspace.stores.inbox().unwrap();
    let task = "write it down".to_owned();
    inbox.add(&NewTask { id: "task_1".into(), task, reply_to: ReplyAddress::Terminal }).unwrap();
    let tasks = server.get(OWNER, "/v1/inbox").await.json();
    assert_eq!((&tasks["tasks"][0]["id"], &tasks["tasks"][0]["state"]), (&json!("task_1"), &json!("waiting")));
    assert_eq!(server.get(OWNER, "/v1/inbox/task_1").await.json()["task"], "write it down");
    inbox.cancel("task_1").unwrap();
    assert_eq!(server.get(OWNER, "/v1/inbox").await.json()["tasks"], json!([]));
    assert_eq!(server.get(OWNER, "/v1/inbox?all=true").await.json()["tasks"][0]["state"], "cancelled");
}

#[tokio::test]
async fn the_owner_adds_a_task_and_a_session_does_not() {
    let server = ConsoleTestServer::start();
    let added = server.post(OWNER, "/v1/inbox", &json!({ "task": "tidy up" })).await;
    assert_eq!(added.status, 201, "{added:?}");
    let task = added.json();
    assert_eq!(
        (&task["task"], &task["state"], &task["reply_to"]),
        (&json!("tidy up"), &json!("waiting"), &json!("terminal"))
    );
    assert_eq!(server.get(OWNER, added.header("location").unwrap()).await.json(), task);
    let posted = json!({ "task": "report", "reply_to": "http://127.0.0.1:9/answers" });
    assert_eq!(server.post(OWNER, "/v1/inbox", &posted).await.json()["reply_to"], "http://127.0.0.1:9/answers");

    let (_, token) = server.session(json!({})).await;
    assert_eq!(server.post(&token, "/v1/inbox", &json!({ "task": "x" })).await.problem(), (403, "owner_only".into()));
    let tasks = server.get(OWNER, "/v1/inbox").await.json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 2, "{tasks}");
}
