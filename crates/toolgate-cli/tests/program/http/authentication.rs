//! The owner's token, and where the program listens.

use super::server::Server;

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
