//! Requests that are refused before they reach a route, and that this is recorded.

use axum::Extension;
use serde_json::json;
use toolgate_runtime::Principal;

use crate::test_server::{ConsoleTestServer, HeaderTable, OWNER};

#[tokio::test]
async fn other_hosts_and_origins_are_refused_on_every_route() {
    let server = ConsoleTestServer::start();
    let foreign: &[(HeaderTable, u16, &str)] = &[
        (&[("host", "evil.example")], 421, "wrong_host"),
        (&[("host", "evil.example:8731")], 421, "wrong_host"),
        (&[("origin", "http://evil.example")], 403, "cross_origin"),
        (&[("origin", "null")], 403, "cross_origin"),
        (&[("origin", "http://localhost:3000")], 403, "cross_origin"),
        (&[("sec-fetch-site", "cross-site")], 403, "cross_origin"),
    ];
    for path in ["/health", "/metrics", "/openapi.json", "/v1/tools", "/v1/runs", "/v1/approvals", "/nothing"] {
        for (headers, status, code) in foreign {
            let answer = server.ask(Some(OWNER), "GET", path, headers, None).await;
            assert_eq!(answer.problem(), (*status, (*code).to_owned()), "{path} {headers:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let call = json!({ "name": "write", "args": { "path": "owned.txt", "content": "x" } });
    for (headers, status, _) in foreign {
        assert_eq!(server.ask(Some(OWNER), "POST", "/v1/calls", headers, Some(&call)).await.status, *status);
    }
    assert!(!server.workspace.path().join("owned.txt").exists(), "nothing ran");
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    assert_eq!(server.ask(None, "OPTIONS", "/v1/calls", &preflight, None).await.status, 403);
    let refusals = server.refusals().await;
    assert!(refusals.contains(&"wrong_host".into()) && refusals.contains(&"cross_origin".into()), "{refusals:?}");
}

#[tokio::test]
async fn every_route_but_health_needs_exactly_one_valid_token() {
    let server = ConsoleTestServer::start();
    for headers in [
        vec![],
        vec![("authorization", "Bearer tgt_owneR")],
        vec![("authorization", "Basic tgt_owner")],
        vec![("authorization", "Bearer ")],
        vec![("authorization", "Bearer")],
        vec![("authorization", "Bearer tgt_owner"), ("authorization", "Bearer tgt_owner")],
        vec![("cookie", "token=x")],
    ] {
        for path in ["/v1/tools", "/v1/runs", "/metrics", "/openapi.json", "/v1/approvals", "/nothing"] {
            let answer = server.ask(None, "GET", path, &headers, None).await;
            assert_eq!(answer.problem(), (401, "unauthorized".into()), "{path} {headers:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    let health = server.ask(None, "GET", "/health", &[], None).await;
    assert_eq!((health.status, health.json()), (200, json!({ "ok": true })));
    assert_eq!(health.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(health.header("cache-control"), Some("no-store"));
    assert!(server.refusals().await.iter().all(|code| code == "unauthorized"));
}

#[tokio::test]
async fn a_token_in_a_url_is_refused_and_not_recorded() {
    let server = ConsoleTestServer::start();
    let (_, token) = server.session(json!({ "id": "mine" })).await;
    for path in [
        "/v1/tools?token=tgt_owner".to_owned(),
        "/v1/tools?access_token=guess".to_owned(),
        "/v1/tools?x=tgt_owner".to_owned(),
        format!("/v1/runs/{token}"),
    ] {
        for caller in [None, Some(OWNER), Some(token.as_str())] {
            let answer = server.ask(caller, "GET", &path, &[], None).await;
            assert_eq!(answer.problem(), (400, "token_in_url".into()), "{path}");
        }
    }
    let runs = server.get(OWNER, "/v1/runs?session=http").await.json();
    let events = serde_json::to_string(&server.events(&runs["runs"][0]["id"]).await).unwrap();
    assert!(events.contains("token_in_url") && !events.contains(OWNER) && !events.contains(&token), "{events}");
}

#[tokio::test]
async fn a_session_does_not_reach_what_is_the_owners_or_another_sessions() {
    let server = ConsoleTestServer::start();
    let (mine, me) = server.session(json!({})).await;
    let (yours, _) = server.session(json!({})).await;
    let run = yours["run"].as_str().unwrap();
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events"),
        format!("/v1/runs/{run}/tree"),
        format!("/v1/changes?run={run}"),
    ] {
        assert_eq!(server.get(&me, &path).await.problem(), (404, "not_found".into()), "{path}");
        assert_eq!(server.get(OWNER, &path).await.status, 200, "the owner sees it: {path}");
    }
    let other = server.get(&me, &format!("/v1/runs?session={}", yours["id"].as_str().unwrap())).await;
    assert_eq!(other.json()["runs"], json!([]));
    assert_eq!(server.get(&me, &format!("/v1/runs/{}", mine["run"].as_str().unwrap())).await.status, 200);
    for path in ["/v1/sessions", "/metrics", "/v1/inbox", "/v1/inbox/task_1"] {
        assert_eq!(server.get(&me, path).await.problem(), (403, "owner_only".into()), "{path}");
    }
}

#[tokio::test]
async fn routes_of_another_front_end_are_told_whose_a_request_is() {
    let server = ConsoleTestServer::start();
    let whose = |Extension(principal): Extension<Principal>| async move {
        let session = principal.session.map(|principal| (principal.session.id, principal.may_answer));
        format!("{session:?}")
    };
    let nested = axum::Router::new().route("/nested", axum::routing::get(whose));
    let (_, token) = server.session(json!({ "id": "mine" })).await;
    let ConsoleTestServer { workspace, server, .. } = server;
    let server = server.with_routes(nested);
    let server = ConsoleTestServer { router: server.router(), workspace, server };
    assert_eq!(server.get(OWNER, "/nested").await.body, b"None");
    assert_eq!(server.get(&token, "/nested").await.body, b"Some((\"mine\", false))");
    assert_eq!(server.ask(None, "GET", "/nested", &[], None).await.status, 401);
}
