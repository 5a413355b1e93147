//! Stored output as resources, and images in results.

use serde_json::{Value, json};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, Tool, ToolError, erase, schemars};
use toolgate_mcp::McpOptions;
use toolgate_testkit::TestWorkspace;

use crate::backend::{McpTestBackend, McpTestServer};
use crate::stdio_client::{stateless, with_handshake};

/// Lines that are too many for a reply.
const LINES: u32 = 30_000;

/// A red pixel.
const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\
\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// Stores the pixel, followed by a text, as a tool would that changes nothing about what it got.
struct StoringTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StoredText {
    text: String,
    mime: String,
}

#[derive(Serialize, JsonSchema)]
struct StoredId {
    id: String,
}

impl Tool for StoringTool {
    type Args = StoredText;
    type Output = StoredId;

    const SPEC: Spec = Spec {
        name: "store",
        version: "1.0.0",
        description: "Store an image.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, _: &StoredText) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    async fn run(&self, args: StoredText, hands: &dyn Hands) -> Result<StoredId, ToolError> {
        let stored = hands.keep(&[PIXEL, args.text.as_bytes()].concat(), &args.mime)?;
        Ok(StoredId { id: stored.id })
    }
}

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

#[test]
fn text_in_an_image_is_not_part_of_the_result() {
    let server = McpTestServer::start();
    // A chunk `tEXt` after the header.
    let comment = [b"\0\0\0\x1ftEXtComment\0".as_slice(), b"DB_PASSWORD=tangerine42", b"\0\0\0\0"].concat();
    let (header, rest) = PIXEL.split_at(33);
    server.backend.workspace.file("pixel.png", PIXEL).file("comment.png", [header, &comment, rest].concat());
    let mut client = stateless(&server, json!({}));
    let plain = client.call("image", json!({ "path": "pixel.png" }));
    let commented = client.call("image", json!({ "path": "comment.png" }));
    assert_eq!(part(&commented, "image")["data"], part(&plain, "image")["data"]);
}

#[test]
fn binary_data_with_a_secret_is_neither_embedded_nor_read() {
    let workspace = TestWorkspace::new([erase(StoringTool), erase(toolgate_tools::ArtifactTool)], "");
    let backend = McpTestBackend { workspace, ceilings: Vec::new(), writing: Default::default() };
    let server = backend.serve(McpOptions::default());
    let mut client = stateless(&server, json!({}));
    for (text, is_secret) in [("DB_PASSWORD=tangerine42\n", true), ("nothing of the kind\n", false)] {
        let result = client.call("store", json!({ "text": text, "mime": "image/png" }));
        let kinds: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.contains(&"image"), !is_secret, "{result}");
        assert_eq!(result.to_string().contains("isn't shown: it contains a secret"), is_secret, "{result}");
        let id = result["structuredContent"]["id"].as_str().unwrap();
        let uri = json!({ "uri": format!("toolgate://artifact/{id}") });
        match is_secret {
            true => assert_eq!(client.fault("resources/read", uri)["code"], -32602),
            false => assert!(client.ask("resources/read", uri)["contents"][0]["blob"].is_string()),
        }
    }
}
