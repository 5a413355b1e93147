//! Stored output as resources, and images in results.

use serde_json::{Value, json};

use crate::backend::McpTestServer;
use crate::stdio_client::{stateless, with_handshake};

/// Lines that are too many for a reply.
const LINES: u32 = 30_000;

/// A red pixel.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\
\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

fn part<'a>(result: &'a Value, kind: &str) -> &'a Value {
    result["content"].as_array().unwrap().iter().find(|part| part["type"] == kind).unwrap()
}

#[test]
fn long_output_is_linked_listed_and_read_in_pages() {
    let server = McpTestServer::start();
    let mut client = stateless(&server, json!({}));
    let result = client.call("big", json!({ "lines": LINES }));
    let mut uri = part(&result, "resource_link")["uri"].as_str().unwrap().to_owned();
    let listed = client.ask("resources/list", json!({}));
    assert_eq!(listed["resources"][0]["uri"], uri.as_str());
    let mut whole = String::new();
    loop {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        let content = &read["contents"][0];
        whole += content["text"].as_str().unwrap();
        match content["_meta"]["toolgate/next"].as_str() {
            Some(next) => uri = next.to_owned(),
            None => break,
        }
    }
    let expected: String = (1..=LINES).map(|number| format!("line {number}\n")).collect();
    assert!(whole.contains(&expected), "nothing is lost between pages");
    for uri in ["toolgate://artifact/art_0", "toolgate://artifact/art_0?lines=1", "file:///etc/passwd"] {
        let unknown = client.fault("resources/read", json!({ "uri": uri }));
        assert_eq!((&unknown["code"], &unknown["data"]["uri"]), (&json!(-32602), &json!(uri)));
    }
    let templates = client.ask("resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "toolgate://artifact/{id}{?offset,limit}");
}

#[test]
fn another_clients_output_is_neither_listed_nor_read() {
    let server = McpTestServer::start();
    let (mut ada, mut ben) = (with_handshake(&server, json!({})), with_handshake(&server, json!({})));
    let result = ada.call("big", json!({ "lines": LINES }));
    let uri = part(&result, "resource_link")["uri"].clone();
    assert!(ada.ask("resources/read", json!({ "uri": uri }))["contents"][0]["text"].is_string());
    ben.call("list", json!({}));
    assert_eq!(ben.ask("resources/list", json!({}))["resources"], json!([]));
    assert_eq!(ben.fault("resources/read", json!({ "uri": uri }))["code"], -32602);
}

#[test]
fn images_are_part_of_the_result() {
    let server = McpTestServer::start();
    server.backend.workspace.file("pixel.png", PIXEL);
    let mut client = stateless(&server, json!({}));
    let shown = client.call("image", json!({ "path": "pixel.png" }));
    let image = part(&shown, "image");
    assert!(image["mimeType"].as_str().unwrap().starts_with("image/") && image["data"].as_str().unwrap().len() > 20);
}
