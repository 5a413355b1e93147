//! Roots beside the workspace: asked about like the workspace itself, and changed only where that is allowed.

use serde_json::json;
use toolgate_testkit::TestWorkspace;

use crate::{installed, last_change, payload};

#[tokio::test(flavor = "multi_thread")]
async fn other_roots_are_asked_about_too() {
    let Some(program) = installed("ty") else { return };
    let other = tempfile::tempdir().unwrap();
    let directory = other.path().canonicalize().unwrap();
    std::fs::write(directory.join("shared.py"), "def shared() -> int:\n    return ''\n").unwrap();
    let config = format!(
        "preset = 'full'\nroots = [{{ path = '{}', access = 'read' }}]\n[lsp.servers.ty]\ncommand = [{:?}, 'server']\n",
        directory.display(),
        program.display().to_string()
    );
    let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
    world.file("main.py", "x = 1\n");
    let path = directory.join("shared.py").display().to_string();
    let symbols = payload(world.perform("lsp_symbols", json!({ "path": path })).await);
    assert_eq!(symbols["symbols"][0]["name"], "shared", "{symbols}");
    let wrong = payload(world.perform("lsp_diagnostics", json!({ "paths": [path] })).await);
    assert_eq!((&wrong["count"], &wrong["diagnostics"][0]["path"]), (&json!(1), &json!(path)), "{wrong}");
    let rename = json!({ "path": path, "line": 1, "symbol": "shared", "new_name": "common" });
    let refused = world.perform("lsp_rename", rename).await.error.unwrap();
    assert_eq!(refused.code.as_str(), "policy_denied", "the root is read-only: {refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_in_another_root_is_made_where_it_may_be_written_and_undone() {
    let Some(program) = installed("ty") else { return };
    let other = tempfile::tempdir().unwrap();
    let directory = other.path().canonicalize().unwrap();
    let files = [
        ("shared.py", "def shared() -> int:\r\n    return 1\r\n"),
        ("use.py", "from shared import shared\nx = '🦀'; shared()\n"),
    ];
    for (path, content) in files {
        std::fs::write(directory.join(path), content).unwrap();
    }
    let config = format!(
        "preset = 'full'\nroots = [{{ path = '{}', access = 'write' }}]\n[lsp.servers.ty]\ncommand = [{:?}, 'server']\n",
        directory.display(),
        program.display().to_string()
    );
    let world = TestWorkspace::new(toolgate_tools::all(), &config).confined();
    world.file("shared.py", "def shared() -> str:\n    return ''\n");
    let path = directory.join("shared.py").display().to_string();
    let rename = json!({ "path": path, "line": 1, "symbol": "shared", "new_name": "common" });
    let renamed = payload(world.perform("lsp_rename", rename).await);
    assert_eq!(renamed["files"].as_array().unwrap().len(), 2, "{renamed}");
    let now = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(now("shared.py"), files[0].1.replace("shared", "common"));
    assert_eq!(now("use.py"), "from shared import common\nx = '🦀'; common()\n");
    assert!(
        std::fs::read_to_string(world.path().join("shared.py")).unwrap().contains("def shared"),
        "its namesake stays"
    );
    let undone = world.perform("undo", json!({ "call": last_change(&world) })).await;
    assert!(undone.ok, "{:?}", undone.error);
    files.iter().for_each(|(path, content)| assert_eq!(now(path), *content, "undo restores every byte"));
}
