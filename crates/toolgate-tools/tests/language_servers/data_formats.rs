//! Servers for JSON, YAML and TOML: each is started, tells what is wrong before and after a change, and says what it can't do.

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use crate::freshness::{Breakable, breaks_and_fixes};
use crate::{is_said_to_lack, payload, world};

/// A server, a file for it, what breaks the file, and words of what it says then.
struct OneFile {
    server: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    path: &'static str,
    fixed: &'static str,
    broken: &'static str,
    /// A symbol of the file.
    symbol: &'static str,
    /// Tools to which it has no answer.
    lacks: &'static [&'static str],
}

async fn found(world: &TestWorkspace, path: &str) -> Value {
    payload(world.perform("lsp_diagnostics", json!({ "paths": [path] })).await)
}

async fn is_understood(file: OneFile) {
    let Some(world) = world(file.server, file.program, file.arguments) else { return };
    world.file(file.path, file.fixed);
    let clean = found(&world, file.path).await;
    assert_eq!((&clean["count"], &clean["server_status"]), (&json!(0), &json!("ready")), "{clean}");
    assert!(clean["server"].as_str().unwrap().contains(file.server), "{clean}");
    let symbols = payload(world.perform("lsp_symbols", json!({ "path": file.path })).await);
    assert!(symbols["symbols"].to_string().contains(file.symbol), "{symbols}");
    for tool in file.lacks {
        let mut args = json!({ "path": file.path, "line": 1, "symbol": file.symbol });
        if *tool == "lsp_rename" {
            args["new_name"] = json!("title");
        }
        is_said_to_lack(&world, file.server, tool, args).await;
    }
    let OneFile { path, fixed, broken, .. } = file;
    breaks_and_fixes(&world, file.server, path, &[Breakable { path, fixed, broken }]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vscode_json_language_server() {
    is_understood(OneFile {
        server: "vscode-json-language-server",
        program: "vscode-json-language-server",
        arguments: &["--stdio"],
        path: "data.json",
        fixed: "{ \"name\": \"🦀\" }\n",
        broken: "{ \"name\": \"🦀\" \"x\" }\n",
        symbol: "name",
        lacks: &["lsp_definition", "lsp_references", "lsp_calls", "lsp_rename"],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_language_server() {
    is_understood(OneFile {
        server: "yaml-language-server",
        program: "yaml-language-server",
        arguments: &["--stdio"],
        path: "data.yaml",
        fixed: "name: crab\nlist:\n  - one\n",
        broken: "name: crab\nlist:\n  - one\n - two: [\n",
        symbol: "name",
        lacks: &["lsp_references", "lsp_calls"],
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tombi() {
    is_understood(OneFile {
        server: "tombi",
        program: "tombi",
        arguments: &["lsp", "--offline"],
        path: "data.toml",
        fixed: "name = \"🦀\"\n",
        broken: "name = = \"🦀\"\n",
        symbol: "name",
        lacks: &["lsp_calls", "lsp_rename"],
    })
    .await;
}
