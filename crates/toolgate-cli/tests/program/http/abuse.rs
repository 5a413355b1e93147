//! Bytes that are no requests, requests that never end, and more than fits.

use serde_json::json;

use super::server::Server;

/// The server still works for everybody else.
fn still_works(server: &Server) {
    assert_eq!(server.owner().call("list", json!({}))["ok"], true);
}

#[test]
fn garbage_is_answered_with_400_or_silence_and_hurts_nobody() {
    let server = Server::start();
    let noise: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let samples: Vec<Vec<u8>> = vec![
        noise,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET /health HTTP/1.1\r\nHost localhost\r\n\r\n".to_vec(),
        b"POST /v1/calls HTTP/1.1\r\nContent-Length: -5\r\n\r\n".to_vec(),
        b"POST /v1/calls HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello".to_vec(),
        b"\0\0\0\0\r\n\r\n".to_vec(),
    ];
    for bytes in samples {
        let mut client = server.stranger();
        client.raw(&bytes);
        if let Some(response) = client.receive_head() {
            assert!((400..500).contains(&response.status), "{bytes:?}: {response:?}");
        }
    }
    still_works(&server);
    assert!(server.refusals().contains(&"malformed".into()));
}

#[test]
fn half_a_request_holds_nobody_up() {
    let server = Server::start();
    let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", server.address, server.token);
    let mut halves = Vec::new();
    for half in [
        "GET /health HTTP/1.1\r\nHos".to_owned(),
        format!(
            "POST /v1/calls HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{\"name\":"
        ),
        format!(
            "POST /v1/calls HTTP/1.1\r\n{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{\"na"
        ),
    ] {
        let mut client = server.stranger();
        client.raw(half.as_bytes());
        halves.push(client);
    }
    still_works(&server);
    halves.into_iter().for_each(super::client::Client::leave);
    still_works(&server);
}

#[test]
fn what_is_too_large_is_refused() {
    let server = Server::start();
    let mut client = server.owner();
    client.raw(b"GET /health HTTP/1.1\r\nX-Long: ");
    client.raw(&vec![b'a'; 10_000_000]);
    client.raw(b"\r\n\r\n");
    if let Some(response) = client.receive_head() {
        assert_eq!(response.status, 431, "{response:?}");
    }
    let mut client = server.owner();
    client.raw(&[b"GET /", vec![b'a'; 10_000_000].as_slice(), b" HTTP/1.1\r\n\r\n"].concat());
    if let Some(response) = client.receive_head() {
        assert!([414, 431].contains(&response.status), "{response:?}");
    }
    let mut client = server.owner();
    let length = 17 * 1024 * 1024;
    let head = format!(
        "POST /v1/calls HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
        server.address, server.token
    );
    client.raw(head.as_bytes());
    let response = client.receive();
    assert_eq!((response.status, response.code().as_str()), (413, "body_too_large"));
    still_works(&server);
}

#[test]
fn a_body_of_ten_megabytes_is_one_call_like_any_other() {
    let server = Server::start();
    let content = "x".repeat(10_000_000);
    let reply = server.owner().call("write", json!({ "path": "large.txt", "content": content }));
    assert_eq!(reply["ok"], true, "{}", reply["error"]);
    assert_eq!(std::fs::metadata(server.world.workspace().join("large.txt")).unwrap().len(), 10_000_000);
}

#[test]
fn json_that_plays_tricks_is_refused() {
    let server = Server::start();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies = [
        r#"{"name":"list","name":"delete"}"#.to_owned(),
        r#"{"name":"read","args":{"path":"a","path":"b"}}"#.to_owned(),
        format!(r#"{{"name":"list","args":{deep}}}"#),
        "{\"name\":\"list\"} trailing".to_owned(),
        "".to_owned(),
        "\u{feff}{}".to_owned(),
    ];
    for body in bodies {
        let mut client = server.owner();
        let head = format!(
            "POST /v1/calls HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            server.address,
            server.token,
            body.len()
        );
        client.raw(format!("{head}{body}").as_bytes());
        let response = client.receive();
        assert_eq!(
            (response.status, response.code().as_str()),
            (400, "invalid_args"),
            "{}",
            &body[..body.len().min(60)]
        );
    }
    still_works(&server);
}
