//! Approvals over HTTP: who sees them, who may answer them, and what an answer does.

use serde_json::{Value, json};
use toolgate_console::HttpLimits;

use crate::test_server::{ConsoleTestServer, HttpAnswer, OWNER};

/// A server on which edits need an approval.
fn start() -> ConsoleTestServer {
    ConsoleTestServer::with("[[rules]]\ndecision = \"ask\"\ntool = \"edit\"\n", HttpLimits::default())
}

/// A call that needs an approval, in a new session: the session, its token, and the response to come.
async fn asking(server: &ConsoleTestServer, wanted: Value) -> (Value, String, tokio::task::JoinHandle<HttpAnswer>) {
    let (session, token) = server.session(wanted).await;
    let call = json!({ "name": "edit", "args": { "path": "hello.txt", "find": "hello", "replace": "bye" } });
    let pending = server.spawn(&token, "/v1/calls", &call);
    (session, token, pending)
}

fn path(approval: &Value) -> String {
    format!("/v1/approvals/{}", approval["id"].as_str().unwrap())
}

#[tokio::test]
async fn an_approved_call_runs_and_the_answer_is_recorded() {
    let server = start();
    let (session, _, pending) = asking(&server, json!({ "wait_seconds": 600 })).await;
    let approval = server.waiting(OWNER, "approvals").await;
    assert_eq!((&approval["session"], &approval["run"]), (&session["id"], &session["run"]));
    assert_eq!(approval["request"]["tool"], "edit");
    assert!(approval["expires"].is_string(), "{approval}");
    let scopes: Vec<&Value> = approval["request"]["scopes"].as_array().unwrap().iter().map(|o| &o["scope"]).collect();
    assert_eq!(scopes[..3], ["call", "run", "session"]);
    assert_eq!(server.get(OWNER, &path(&approval)).await.json(), approval);
    let wrong = server.post(OWNER, &path(&approval), &json!({ "answer": "approve", "scope": "forever" })).await;
    assert_eq!(wrong.status, 400);
    let answer = json!({ "answer": "approve", "scope": "run" });
    assert_eq!(server.post(OWNER, &path(&approval), &answer).await.status, 204);
    let reply = pending.await.unwrap().json();
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(server.read("hello.txt"), "bye\nworld\n");
    let late = server.post(OWNER, &path(&approval), &json!({ "answer": "deny" })).await;
    assert_eq!(late.status, 404, "it no longer waits");
    let granted = server.event(&session["run"], "approval_granted").await;
    assert_eq!((&granted["scope"], &granted["by"]), (&json!("run"), &json!("ada (http)")));
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_reason() {
    let server = start();
    let (_, _, pending) = asking(&server, json!({ "wait_seconds": 600 })).await;
    let approval = server.waiting(OWNER, "approvals").await;
    let answer = json!({ "answer": "deny", "reason": "keep it" });
    assert_eq!(server.post(OWNER, &path(&approval), &answer).await.status, 204);
    let reply = pending.await.unwrap().json();
    assert_eq!(reply["error"]["code"], "approval_denied");
    assert!(reply["error"]["message"].as_str().unwrap().contains("keep it"), "{reply}");
    assert_eq!(server.read("hello.txt"), "hello\nworld\n");
}

#[tokio::test]
async fn a_session_sees_its_own_approvals_and_answers_them_only_if_the_owner_allowed_it() {
    let server = start();
    let (_, worker, _pending) = asking(&server, json!({ "id": "worker", "wait_seconds": 600 })).await;
    let approval = server.waiting(&worker, "approvals").await;
    let refused = server.post(&worker, &path(&approval), &json!({ "answer": "approve" })).await;
    assert_eq!(refused.problem(), (403, "may_not_answer".into()), "a caller doesn't approve its own calls");

    let (_, stranger) = server.session(json!({ "may_answer": true })).await;
    assert_eq!(server.get(&stranger, "/v1/approvals").await.json()["approvals"], json!([]));
    assert_eq!(server.get(&stranger, &path(&approval)).await.status, 404);
    assert_eq!(server.post(&stranger, &path(&approval), &json!({ "answer": "approve" })).await.status, 404);

    let wanted = json!({ "id": "answering", "wait_seconds": 600, "may_answer": true });
    let (_, answering, pending) = asking(&server, wanted).await;
    let own = server.waiting(&answering, "approvals").await;
    assert_eq!(own["session"], "answering");
    assert_eq!(server.post(&answering, &path(&own), &json!({ "answer": "deny" })).await.status, 204);
    assert_eq!(pending.await.unwrap().json()["error"]["code"], "approval_denied");
}

/// Approves what waits with a scope, and returns the grant as the owner sees it.
async fn grant(server: &ConsoleTestServer, scope: &str, pending: tokio::task::JoinHandle<HttpAnswer>) -> Value {
    let approval = server.waiting(OWNER, "approvals").await;
    let answer = json!({ "answer": "approve", "scope": scope });
    assert_eq!(server.post(OWNER, &path(&approval), &answer).await.status, 204);
    assert_eq!(pending.await.unwrap().json()["ok"], true);
    server.workspace.file("hello.txt", "hello\nworld\n");
    server.get(OWNER, "/v1/grants").await.json()["grants"][0].clone()
}

#[tokio::test]
async fn a_session_sees_and_gives_up_its_own_grants_and_the_owner_revokes_the_rest() {
    let server = start();
    let (_, stranger) = server.session(json!({})).await;
    let (session, token, pending) = asking(&server, json!({ "wait_seconds": 600 })).await;
    let own = grant(&server, "session", pending).await;
    assert_eq!((&own["scope"], &own["by"]), (&json!("session"), &json!("ada (http)")));
    assert_eq!((&own["session"], &own["what"]), (&session["id"], &json!("`edit` may read hello.txt, write hello.txt")));
    assert!(own["since"].is_string() && own["until"].is_string(), "{own}");
    assert_eq!(server.get(&token, "/v1/grants").await.json()["grants"], json!([own]));
    assert_eq!(server.get(&stranger, "/v1/grants").await.json()["grants"], json!([]));
    let of = |grant: &Value| format!("/v1/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(server.delete(&stranger, &of(&own)).await.status, 404);
    assert_eq!(server.delete(&token, &of(&own)).await.status, 204);
    assert_eq!(server.delete(OWNER, &of(&own)).await.status, 404, "it is gone");

    let (_, token, pending) = asking(&server, json!({ "wait_seconds": 600, "may_answer": true })).await;
    let approval = server.waiting(&token, "approvals").await;
    let always = json!({ "answer": "approve", "scope": "always" });
    assert_eq!(server.post(&token, &path(&approval), &always).await.problem(), (403, "owner_only".into()));
    let always = grant(&server, "always", pending).await;
    assert_eq!(server.get(&token, "/v1/grants").await.json()["grants"], json!([always]));
    assert_eq!(server.delete(&token, &of(&always)).await.problem(), (403, "owner_only".into()));
    assert_eq!(server.delete(OWNER, &of(&always)).await.status, 204);
    assert_eq!(server.get(OWNER, "/v1/grants").await.json()["grants"], json!([]));
}

#[tokio::test]
async fn a_grant_ends_with_its_session_even_if_another_takes_its_name() {
    let server = start();
    let wanted = json!({ "id": "worker", "wait_seconds": 600 });
    let (_, _, pending) = asking(&server, wanted).await;
    grant(&server, "session", pending).await;
    assert_eq!(server.delete(OWNER, "/v1/sessions/worker").await.status, 204);
    assert_eq!(server.get(OWNER, "/v1/grants").await.json()["grants"], json!([]));
    let (_, _, pending) = asking(&server, json!({ "id": "worker" })).await;
    assert_eq!(pending.await.unwrap().json()["error"]["code"], "approval_required");
}

#[tokio::test]
async fn an_abort_ends_the_run_of_its_session_alone() {
    let server = start();
    let (session, token, pending) = asking(&server, json!({ "wait_seconds": 600 })).await;
    let approval = server.waiting(OWNER, "approvals").await;
    let answer = json!({ "answer": "abort", "reason": "wrong repository" });
    assert_eq!(server.post(OWNER, &path(&approval), &answer).await.status, 204);
    let reply = pending.await.unwrap().json();
    assert_eq!(reply["error"]["code"], "cancelled", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("wrong repository"), "{reply}");
    assert_eq!(server.event(&session["run"], "run.aborted").await["by"], "ada (http)");
    let read = json!({ "path": "hello.txt" });
    assert_eq!(server.call(&token, "read", read.clone()).await["error"]["code"], "cancelled");
    assert_eq!(server.call(OWNER, "read", read).await["ok"], true);
}

#[tokio::test]
async fn a_call_that_ended_is_not_made_again_under_its_id() {
    let server = start();
    let (_, token) = server.session(json!({})).await;
    let call = json!({ "tool_call_id": "mine", "name": "read", "args": { "path": "hello.txt" } });
    assert_eq!(server.post(&token, "/v1/calls", &call).await.json()["ok"], true);
    let again = server.post(&token, "/v1/calls", &call).await;
    assert_eq!((again.status, &again.json()["error"]["code"]), (200, &json!("invalid_args")), "{again:?}");
    let (_, other) = server.session(json!({})).await;
    assert_eq!(server.post(&other, "/v1/calls", &call).await.json()["ok"], true, "in another run it is another call");
}

#[tokio::test]
async fn without_a_wait_the_call_is_refused_at_once() {
    let server = start();
    let (_, _, pending) = asking(&server, json!({})).await;
    assert_eq!(pending.await.unwrap().json()["error"]["code"], "approval_required");
    assert_eq!(server.get(OWNER, "/v1/approvals").await.json()["approvals"], json!([]));
}

#[tokio::test]
async fn disconnecting_withdraws_the_approval() {
    let server = start();
    let (_, _, pending) = asking(&server, json!({ "wait_seconds": 600 })).await;
    server.waiting(OWNER, "approvals").await;
    pending.abort();
    while server.get(OWNER, "/v1/approvals").await.json()["approvals"] != json!([]) {
        tokio::task::yield_now().await;
    }
}
