//! Who isn't let in, and that it is written down.

use serde_json::json;

use super::client::Client;
use super::server::Server;

/// Headers of a request, as a table can hold them.
type Headers<'a> = &'a [(&'a str, &'a str)];

#[test]
fn requests_for_other_hosts_and_from_other_pages_are_turned_away_on_every_route() {
    let server = Server::start();
    let foreign: &[(Headers, u16, &str)] = &[
        (&[("Host", "evil.example")], 421, "wrong_host"),
        (&[("Host", "evil.example:8731")], 421, "wrong_host"),
        (&[("Origin", "http://evil.example")], 403, "cross_origin"),
        (&[("Origin", "null")], 403, "cross_origin"),
        (&[("Origin", "http://localhost:3000")], 403, "cross_origin"),
        (&[("Sec-Fetch-Site", "cross-site")], 403, "cross_origin"),
    ];
    for path in ["/health", "/metrics", "/openapi.json", "/v1/tools", "/v1/runs", "/v1/approvals", "/nothing"] {
        for (headers, status, code) in foreign {
            let response = server.owner().request("GET", path, headers, None);
            assert_eq!((response.status, response.code().as_str()), (*status, *code), "{path} {headers:?}");
            assert_eq!(response.header("access-control-allow-origin"), None);
        }
    }
    let call = json!({ "name": "write", "args": { "path": "owned.txt", "content": "x" } });
    for (headers, status, _) in foreign {
        assert_eq!(server.owner().request("POST", "/v1/calls", headers, Some(&call)).status, *status);
    }
    assert!(!server.world.workspace().join("owned.txt").exists(), "nothing ran");
    let preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
    assert_eq!(server.stranger().request("OPTIONS", "/v1/calls", &preflight, None).status, 403);
    let refusals = server.refusals();
    assert!(refusals.contains(&"wrong_host".into()) && refusals.contains(&"cross_origin".into()), "{refusals:?}");
}

#[test]
fn nobody_comes_in_without_the_token() {
    let server = Server::start();
    let (start, last) = server.token.split_at(server.token.len() - 1);
    let wrong = format!("Bearer {start}{}", if last == "0" { "1" } else { "0" });
    let basic = format!("Basic {}", server.token);
    for headers in [
        vec![],
        vec![("Authorization", wrong.as_str())],
        vec![("Authorization", basic.as_str())],
        vec![("Authorization", "Bearer ")],
        vec![("Authorization", "Bearer")],
        vec![("Cookie", "token=x")],
    ] {
        for path in ["/v1/tools", "/v1/runs", "/metrics", "/openapi.json", "/v1/approvals", "/nothing"] {
            let response = server.stranger().request("GET", path, &headers, None);
            assert_eq!((response.status, response.code().as_str()), (401, "unauthorized"), "{path} {headers:?}");
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        }
    }
    let (right, again) = (format!("Bearer {}", server.token), format!("Bearer {}", server.token));
    let twice = [("Authorization", right.as_str()), ("Authorization", again.as_str())];
    assert_eq!(server.stranger().request("GET", "/v1/tools", &twice, None).status, 401, "two tokens");
    assert!(server.refusals().iter().all(|code| code == "unauthorized"));
}

#[test]
fn a_token_in_an_address_is_refused_and_not_repeated_in_the_record() {
    let server = Server::start();
    let (_, mut session) = server.session(&json!({ "id": "mine" }));
    for path in [
        format!("/v1/tools?token={}", server.token),
        "/v1/tools?access_token=guess".to_owned(),
        format!("/v1/tools?x={}", server.token),
        format!("/v1/runs/{}", server.token),
    ] {
        for client in [&mut server.owner(), &mut server.stranger(), &mut session] {
            let response = client.get(&path);
            assert_eq!((response.status, response.code().as_str()), (400, "token_in_url"), "{path}");
        }
    }
    assert!(server.refusals().contains(&"token_in_url".into()));
    let runs = server.world.workspace().join(".toolgate/runs");
    for run in std::fs::read_dir(runs).unwrap() {
        let events = std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap();
        assert!(!events.contains(&server.token), "the record holds the token");
    }
}

#[test]
fn the_token_is_made_once_and_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let first = Server::start();
    let file = first.world.home().join(".local/state/toolgate/http.token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = first.token.clone();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = first.world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("others can read"), "{said:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
}

#[test]
fn beyond_this_machine_only_when_it_is_said_so() {
    let world = crate::world::World::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let said = world.run(&["serve", "--listen", address]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("--tls-cert") && said.err.contains("--expose-without-tls"), "{said:?}");
    }
}

#[test]
fn another_sessions_run_events_and_approvals_do_not_exist() {
    let server = Server::start();
    let (mine, mut me) = server.session(&json!({}));
    let (yours, _) = server.session(&json!({}));
    let run = yours["run"].as_str().unwrap();
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events"),
        format!("/v1/runs/{run}/tree"),
        format!("/v1/changes?run={run}"),
    ] {
        let response = me.get(&path);
        assert_eq!((response.status, response.code().as_str()), (404, "not_found"), "{path}");
        let mut owner = Client::new(server.address, Some(&server.token));
        assert_eq!(owner.get(&path).status, 200, "the owner sees it: {path}");
    }
    let other = me.get(&format!("/v1/runs?session={}", yours["id"].as_str().unwrap())).json();
    assert_eq!(other["runs"], json!([]));
    assert_eq!(me.get(&format!("/v1/runs/{}", mine["run"].as_str().unwrap())).status, 200);
}
