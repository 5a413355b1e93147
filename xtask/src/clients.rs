//! Real clients of MCP, and the public conformance suite: installed once into `target/clients`, each at one exact version,
//! then tried against the program as it was built.

mod conformance;
mod install;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command_line::{CommandLine, target_directory};
use crate::hooks;
use crate::setup;
use crate::skip::SkippedTest;

/// A script that uses one client, and what runs it.
struct ClientScript {
    script: &'static str,
    runner: &'static str,
}

/// Every client that is tried; all of them tell the same story, as far as they can. Add a line to have one more.
const CLIENTS: &[ClientScript] = &[
    ClientScript { script: "python_legacy.py", runner: "python-legacy/bin/python" },
    ClientScript { script: "python_modern.py", runner: "python-modern/bin/python" },
    ClientScript { script: "typescript_legacy.mjs", runner: install::NODE },
    ClientScript { script: "typescript_modern.mjs", runner: install::NODE },
    ClientScript { script: "inspector.mjs", runner: install::NODE },
    ClientScript { script: "codex.mjs", runner: install::NODE },
    ClientScript { script: "gateway.mjs", runner: install::NODE },
];

/// Installs the clients and tries all of them.
pub(crate) fn run() -> Result<Vec<SkippedTest>> {
    let directory = install::install()?;
    setup::install_mcp_servers()?;
    CommandLine::new("cargo build --locked --package toolgate-cli").run()?;
    let program = built("toolgate");
    for client in CLIENTS {
        let workspace = fresh_workspace(&directory, client.script)?;
        let runner = directory.join(client.runner);
        let script = directory.join(client.script);
        CommandLine::new("").words([shown(&runner), shown(&script), shown(&program), shown(&workspace)]).run()?;
    }
    conformance::run(&directory, &directory.join("worlds/conformance"))?;
    hooks::run_short()?;
    Ok(Vec::new())
}

/// Installs the servers that ours is measured beside.
pub(crate) fn install_peers() -> Result<()> {
    let directory = install::install()?;
    install::install_rust_peer(&directory)
}

/// A program that was built for the tests.
fn built(program: &str) -> PathBuf {
    target_directory().join("debug").join(program)
}

/// A workspace with a file to read and one that nobody may, and a home beside it.
fn fresh_workspace(directory: &Path, name: &str) -> Result<PathBuf> {
    let world = directory.join("worlds").join(name);
    let workspace = world.join("workspace");
    if world.is_dir() {
        std::fs::remove_dir_all(&world).with_context(|| format!("{} can't be removed", world.display()))?;
    }
    for (file, content) in [("workspace/hello.txt", "hello\nworld\n"), ("workspace/.env", "TOKEN=x\n"), ("home/a", "")]
    {
        let file = world.join(file);
        std::fs::create_dir_all(file.parent().expect("it has a directory"))?;
        std::fs::write(&file, content).with_context(|| format!("{} can't be written", file.display()))?;
    }
    Ok(workspace)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
