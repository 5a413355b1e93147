//! Servers for shell, Go, JSON and YAML: each is started, and tells what is wrong before and after a change.

use serde_json::{Value, json};
use toolgate_testkit::TestWorkspace;

use crate::{payload, world};

/// A server, a file for it, what breaks the file, and words of what it says then.
struct OneFile {
    server: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    path: &'static str,
    fixed: &'static str,
    broken: &'static str,
    others: &'static [(&'static str, &'static str)],
    /// A symbol of the file.
    symbol: &'static str,
}

async fn found(world: &TestWorkspace, path: &str) -> Value {
    payload(world.perform("lsp_diagnostics", json!({ "paths": [path] })).await)
}

async fn is_understood(file: OneFile) {
    let Some(world) = world(file.server, file.program, file.arguments) else { return };
    world.file(file.path, file.fixed);
    for (path, content) in file.others {
        world.file(path, content);
    }
    let clean = found(&world, file.path).await;
    assert_eq!((&clean["count"], &clean["server_status"]), (&json!(0), &json!("ready")), "{clean}");
    assert!(clean["server"].as_str().unwrap().contains(file.server), "{clean}");
    let symbols = payload(world.perform("lsp_symbols", json!({ "path": file.path })).await);
    assert!(symbols["symbols"].to_string().contains(file.symbol), "{symbols}");
    for _ in 0..2 {
        world.file(file.path, file.broken);
        let wrong = found(&world, file.path).await;
        assert_ne!(wrong["count"], 0, "{wrong}");
        world.file(file.path, file.fixed);
        assert_eq!(found(&world, file.path).await["count"], 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bash_language_server_with_shellcheck() {
    let file = OneFile {
        server: "bash-language-server",
        program: "bash-language-server",
        arguments: &["start"],
        path: "run.sh",
        fixed: "#!/bin/bash\ngreet() {\n  echo \"hello $1\"\n}\ngreet ada\n",
        // shellcheck: SC2086, a variable without quotes.
        broken: "#!/bin/bash\ngreet() {\n  echo hello $1\n}\ngreet ada\n",
        others: &[],
        symbol: "greet",
    };
    let path = file.path;
    let Some(world) = world(file.server, file.program, file.arguments) else { return };
    world.file(path, file.fixed);
    let target = json!({ "path": path, "line": 5, "symbol": "greet" });
    let definition = payload(world.perform("lsp_definition", target.clone()).await);
    assert_eq!(definition["places"][0]["line"], 2, "{definition}");
    let uses = payload(world.perform("lsp_references", target.clone()).await);
    assert_eq!(uses["total"], 2, "{uses}");
    let renamed = json!({ "path": path, "line": 5, "symbol": "greet", "new_name": "welcome" });
    payload(world.perform("lsp_rename", renamed).await);
    assert_eq!(std::fs::read_to_string(world.path().join(path)).unwrap(), file.fixed.replace("greet", "welcome"));
    is_understood(file).await;
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
        others: &[],
        symbol: "name",
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
        others: &[],
        symbol: "name",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls() {
    is_understood(OneFile {
        server: "gopls",
        program: "gopls",
        arguments: &[],
        path: "main.go",
        fixed: "package main\n\nfunc greet(name string) string { return \"hello \" + name }\n\nfunc main() { println(greet(\"ada\")) }\n",
        broken: "package main\n\nfunc greet(name string) string { return \"hello \" + name }\n\nfunc main() { println(greet(42)) }\n",
        others: &[("go.mod", "module example.com/x\n\ngo 1.19\n")],
        symbol: "greet",
    })
    .await;
}
