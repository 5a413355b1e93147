//! Programs that a project brings along and that its servers would run: a compiler in `node_modules`, an interpreter in `.venv`, a
//! wrapper of rustc that cargo is told of. In a workspace that isn't trusted, none of them runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use toolgate_testkit::TestWorkspace;

use crate::{installed, payload, world};

/// A shell script that leaves a mark in the server's own directory, and goes on as this program.
fn script(world: &TestWorkspace, path: &str, program: &str) {
    world.file(path, format!("#!/bin/sh\ntouch \"$HOME/it-ran\"\nexec {program} \"$@\"\n"));
    let file = world.path().join(path);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn it_ran(world: &TestWorkspace) -> bool {
    let homes = world.location().config.language_servers();
    let found = Command::new("find").arg(homes).args(["-name", "it-ran"]).output().unwrap();
    !found.stdout.is_empty()
}

/// The same workspace, trusted.
fn trusted(world: TestWorkspace) -> TestWorkspace {
    let config = std::fs::read_to_string(&world.location().config.user).unwrap();
    toolgate_config::trust::trust(&world.location().config.trusted(), &world.location().directory, "").unwrap();
    world.reopened("run_trusted", toolgate_tools::all(), &config).confined()
}

async fn errors(world: &TestWorkspace, path: &str) -> u64 {
    payload(world.perform("lsp_diagnostics", json!({ "paths": [path] })).await)["count"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_compiler_of_a_project_runs_only_where_it_is_trusted() {
    let server = "typescript-language-server";
    let Some(compiler) = installed("tsserver") else { return };
    let Some(world) = world(server, server, &["--stdio"]) else { return };
    let compiler = std::fs::canonicalize(compiler).unwrap();
    let package = compiler.ancestors().nth(2).unwrap();
    let own = world.path().join("node_modules/.store/typescript");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg("-r").args([package, &own]).status().unwrap().success());
    // As pnpm puts it there.
    std::os::unix::fs::symlink(".store/typescript", world.path().join("node_modules/typescript")).unwrap();
    let mark = "require('fs').writeFileSync(process.env.HOME + '/it-ran', 'x');\n";
    for name in ["tsserver.js", "_tsserver.js"] {
        let file = own.join("lib").join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{mark}{text}")).unwrap();
    }
    world
        .file("tsconfig.json", "{ \"compilerOptions\": { \"types\": [] } }\n")
        .file("main.ts", "export const x: string = 1;\n");
    assert_eq!(errors(&world, "main.ts").await, 1, "another compiler answers");
    assert!(!it_ran(&world));
    let world = trusted(world);
    assert_eq!(errors(&world, "main.ts").await, 1);
    assert!(it_ran(&world), "the project's own compiler is used where it is trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_interpreter_of_a_project_runs_only_where_it_is_trusted() {
    for (server, program, arguments) in [
        ("pyrefly", "pyrefly", &["lsp"][..]),
        ("ty", "ty", &["server"]),
        ("pyright", "pyright-langserver", &["--stdio"]),
        ("basedpyright", "basedpyright-langserver", &["--stdio"]),
    ] {
        let Some(world) = world(server, program, arguments) else { return };
        world.file(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
        world.file(".venv/lib/python3.11/site-packages/here.py", "");
        for name in ["python", "python3"] {
            script(&world, &format!(".venv/bin/{name}"), "/usr/bin/python3");
        }
        world.file("main.py", "x: int = \"a\"\n");
        assert_eq!(errors(&world, "main.py").await, 1, "{server}");
        assert!(!it_ran(&world), "{server}");
        if server == "pyrefly" {
            let world = trusted(world);
            assert_eq!(errors(&world, "main.py").await, 1);
            assert!(it_ran(&world), "pyrefly asks the project's interpreter where it is trusted");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrapper_and_the_toolchain_of_a_project_run_only_where_it_is_trusted() {
    let Some(world) = world("rust-analyzer", "rust-analyzer", &[]) else { return };
    let root = world.path().to_owned();
    script(&world, "wrapper.sh", "");
    let shown = |path: &Path| path.display().to_string();
    world
        .file("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
        .file("src/lib.rs", "pub fn length() -> usize {\n    0\n}\n")
        .file(".cargo/config.toml", format!("[build]\nrustc-wrapper = '{}'\n", shown(&root.join("wrapper.sh"))));
    let hover = json!({ "path": "src/lib.rs", "line": 1, "symbol": "length" });
    payload(world.perform("lsp_hover", hover.clone()).await);
    assert!(!it_ran(&world));
    let world = trusted(world);
    payload(world.perform("lsp_hover", hover).await);
    assert!(it_ran(&world), "cargo is told of the wrapper where the project is trusted");
}
