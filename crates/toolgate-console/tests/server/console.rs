//! The page's own requests: sign-in, what a cookie is good for, and the routes that the page needs. The page itself is tried
//! in a browser (`cargo xtask test --only console`).

use serde_json::{Value, json};
use toolgate_console::HttpLimits;
use toolgate_contract::Clock;
use toolgate_journal::ConsoleAccess;

use crate::test_server::{ConsoleTestServer, OWNER};

const ORIGIN: (&str, &str) = ("origin", "http://127.0.0.1:8731");
const PAGE: (&str, &str) = ("x-toolgate-console", "1");
const JSON: (&str, &str) = ("content-type", "application/json");

fn link(server: &ConsoleTestServer) -> Value {
    let access = ConsoleAccess::new(server.workspace.location().config.console());
    let workspace = server.workspace.path().canonicalize().unwrap().display().to_string();
    json!({ "once": access.create_link(&workspace, server.workspace.clock.now()).unwrap() })
}

/// Signs in, and returns the cookie.
async fn sign_in(server: &ConsoleTestServer) -> String {
    let answer = server.ask(None, "POST", "/v1/console/session", &[ORIGIN, PAGE], Some(&link(server))).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict") && cookie.starts_with("toolgate-8731="), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_document_needs_no_token_and_lets_nothing_else_run() {
    let server = ConsoleTestServer::start();
    let answer = server.ask(None, "GET", "/", &[("accept-encoding", "gzip")], None).await;
    assert_eq!((answer.status, answer.header("content-encoding")), (200, Some("gzip")));
    let policy = answer.header("content-security-policy").unwrap();
    for part in
        ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let plain = server.ask(None, "GET", "/", &[], None).await;
    let text = String::from_utf8(plain.body.clone()).unwrap();
    let script = text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let script = server.ask(None, "GET", script, &[], None).await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    assert!(script.header("cache-control").unwrap().contains("immutable"));
    let tag = plain.header("etag").unwrap();
    assert_eq!(server.ask(None, "GET", "/", &[("if-none-match", tag)], None).await.status, 304);
    for name in ["/page/0/main.js", "/page/../Cargo.toml", "/page/x/../../secret"] {
        assert_eq!(server.ask(None, "GET", name, &[], None).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn a_link_signs_in_once_and_only_from_the_page() {
    let server = ConsoleTestServer::start();
    let once = link(&server);
    for headers in [&[JSON][..], &[ORIGIN], &[PAGE], &[("origin", "http://evil.example"), PAGE]] {
        let refused = server.ask(None, "POST", "/v1/console/session", headers, Some(&once)).await;
        assert_eq!(refused.status, 403, "{headers:?}");
    }
    let first = server.ask(None, "POST", "/v1/console/session", &[ORIGIN, PAGE], Some(&once)).await;
    assert_eq!(first.status, 204);
    let again = server.ask(None, "POST", "/v1/console/session", &[ORIGIN, PAGE], Some(&once)).await;
    assert_eq!(again.problem(), (403, "link_not_valid".into()));
}

#[tokio::test]
async fn a_cookie_reads_and_changes_only_with_the_header_until_it_ends() {
    let server = ConsoleTestServer::start();
    let cookie = sign_in(&server).await;
    let cookie = ("cookie", cookie.as_str());
    let session = server.ask(None, "GET", "/v1/console/session", &[cookie], None).await;
    assert_eq!((session.status, &session.json()["owner"]), (200, &json!("ada")));
    let body = json!({ "command": "ls" });
    for headers in [&[cookie][..], &[cookie, ORIGIN], &[cookie, PAGE]] {
        let refused = server.ask(None, "POST", "/v1/policy/check", headers, Some(&body)).await;
        assert_eq!(refused.problem(), (403, "not_from_page".into()), "{headers:?}");
    }
    let judged = server.ask(None, "POST", "/v1/policy/check", &[cookie, ORIGIN, PAGE], Some(&body)).await;
    assert_eq!(judged.json()["verdict"]["decision"], "allow", "{judged:?}");
    let twice = format!("{}; {}", cookie.1, cookie.1);
    assert_eq!(server.ask(None, "GET", "/v1/runs", &[("cookie", &twice)], None).await.status, 401);
    assert_eq!(server.ask(None, "DELETE", "/v1/console/session", &[cookie, ORIGIN, PAGE], None).await.status, 204);
    assert_eq!(server.ask(None, "GET", "/v1/runs", &[cookie], None).await.status, 401);
    let expiring = sign_in(&server).await;
    server.workspace.clock.pass(12 * 60 * 60);
    assert_eq!(server.ask(None, "GET", "/v1/runs", &[("cookie", &expiring)], None).await.status, 401);
}

#[tokio::test]
async fn an_answer_is_about_the_request_that_was_shown() {
    let config = "[[rules]]\ndecision = \"ask\"\ntool = \"edit\"\n";
    let server = ConsoleTestServer::with(config, HttpLimits::default());
    let cookie = sign_in(&server).await;
    let (_, token) = server.session(json!({ "wait_seconds": 600 })).await;
    let call = json!({ "name": "edit", "args": { "path": "hello.txt", "find": "hello", "replace": "bye" } });
    let pending = server.spawn(&token, "/v1/calls", &call);
    let approval = server.waiting(OWNER, "approvals").await;
    assert_eq!((&approval["diff"]["additions"], &approval["effects"][1]), (&json!(1), &json!("write hello.txt")));
    let path = format!("/v1/approvals/{}", approval["id"].as_str().unwrap());
    let page = [("cookie", cookie.as_str()), ORIGIN, PAGE];
    for wrong in [json!({ "answer": "approve" }), json!({ "answer": "approve", "hash": "0" })] {
        let refused = server.ask(None, "POST", &path, &page, Some(&wrong)).await;
        assert_eq!(refused.problem(), (409, "other_request".into()), "{wrong}");
    }
    let right = json!({ "answer": "approve", "hash": approval["hash"] });
    assert_eq!(server.ask(None, "POST", &path, &page, Some(&right)).await.status, 204);
    assert_eq!(pending.await.unwrap().json()["ok"], true);
}

#[tokio::test]
async fn a_run_is_rows_and_a_call_has_its_diff_and_a_session_sees_its_own() {
    let server = ConsoleTestServer::start();
    let (session, token) = server.session(json!({})).await;
    let (_, stranger) = server.session(json!({})).await;
    server.call(&token, "edit", json!({ "path": "hello.txt", "find": "hello", "replace": "bye" })).await;
    server.call(&token, "read", json!({ "path": ".env" })).await;
    let run = session["run"].as_str().unwrap();
    let outline = server.get(&token, &format!("/v1/runs/{run}/outline")).await.json();
    assert_eq!((&outline["total"], &outline["counts"]["denied"]), (&json!(2), &json!(1)), "{outline}");
    let denied = server.get(&token, &format!("/v1/runs/{run}/outline?filter=denied")).await.json();
    assert_eq!((&denied["rows"][0]["name"], &denied["rows"][0]["code"]), (&json!("read"), &json!("sensitive_path")));
    let call = outline["rows"][0]["id"].as_str().unwrap();
    let detail = server.get(&token, &format!("/v1/runs/{run}/calls/{call}")).await.json();
    assert_eq!(detail["changes"][0]["diff"]["additions"], 1, "{detail}");
    assert_eq!(detail["verdict"]["decision"], "allow");
    for path in [format!("/v1/runs/{run}/outline"), format!("/v1/runs/{run}/calls/{call}")] {
        assert_eq!(server.get(&stranger, &path).await.status, 404, "{path}");
    }
    for path in ["/v1/policy", "/v1/quarantine", "/v1/doctor", "/v1/console/session"] {
        assert_eq!(server.get(&token, path).await.problem(), (403, "owner_only".into()), "{path}");
    }
    let found = server.get(OWNER, "/v1/search?q=HELLO.txt").await.json();
    assert_eq!(found["calls"][0]["call"], call, "{found}");
    assert_eq!(server.get(&stranger, "/v1/search?q=hello.txt").await.json()["calls"], json!([]));
    let undone = server.post(OWNER, "/v1/undo", &json!({ "call": call, "approve": true })).await.json();
    assert_eq!((undone["ok"].as_bool(), server.read("hello.txt").as_str()), (Some(true), "hello\nworld\n"), "{undone}");
    let refused = server.post(&token, "/v1/undo", &json!({ "call": call, "approve": true })).await;
    assert_eq!(refused.problem(), (403, "owner_only".into()));
}

#[tokio::test]
async fn a_draft_is_replayed_over_past_runs() {
    let server = ConsoleTestServer::start();
    server.call(OWNER, "edit", json!({ "path": "hello.txt", "find": "hello", "replace": "bye" })).await;
    let same = server.post(OWNER, "/v1/policy/replay", &json!({})).await.json();
    assert_eq!((&same["judged"], &same["differing"]), (&json!(1), &json!(0)), "{same}");
    let draft = json!({ "draft": "preset = \"read-only\"\n" });
    let stricter = server.post(OWNER, "/v1/policy/replay", &draft).await.json();
    assert_eq!((&stricter["differing"], &stricter["differences"][0]["now"]["decision"]), (&json!(1), &json!("deny")));
    let wrong = server.post(OWNER, "/v1/policy/replay", &json!({ "draft": "preset = 3" })).await;
    assert_eq!(wrong.problem(), (400, "invalid_request".into()));
}
