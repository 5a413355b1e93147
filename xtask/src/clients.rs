//! Real clients of MCP, and the public conformance suite: installed once into `target/clients`, each at one exact version,
//! then tried against the program as it was built.

mod conformance;
mod install;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command_line::{CommandLine, repository_root};
use crate::step::Outcome;

/// A script that uses one client, and what runs it.
struct Client {
    script: &'static str,
    runner: &'static str,
}

/// Every client that is tried; all of them tell the same story, as far as they can. Add a line to have one more.
const CLIENTS: &[Client] = &[
    Client { script: "python_legacy.py", runner: "python-legacy/bin/python" },
    Client { script: "python_modern.py", runner: "python-modern/bin/python" },
    Client { script: "typescript_legacy.mjs", runner: install::NODE },
    Client { script: "typescript_modern.mjs", runner: install::NODE },
    Client { script: "inspector.mjs", runner: install::NODE },
];

/// Installs the clients and tries all of them.
pub(crate) fn run() -> Result<Outcome> {
    let folder = install::install()?;
    CommandLine::new("cargo build --locked --package toolgate-cli").run()?;
    let program = program();
    for client in CLIENTS {
        let workspace = fresh_workspace(&folder, client.script)?;
        let runner = folder.join(client.runner);
        let script = folder.join(client.script);
        CommandLine::new("").words([shown(&runner), shown(&script), shown(&program), shown(&workspace)]).run()?;
    }
    conformance::run(&folder, &program, &fresh_workspace(&folder, "conformance")?)?;
    Ok(Outcome::Passed)
}

/// Installs the servers that ours is measured beside.
pub(crate) fn install_peers() -> Result<()> {
    let folder = install::install()?;
    install::install_rust_peer(&folder)
}

/// The program that the tests try.
fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository_root().join(target.unwrap_or_else(|| "target".into())).join("debug/toolgate")
}

/// A workspace with a file to read and one that nobody may, and a home beside it.
fn fresh_workspace(folder: &Path, name: &str) -> Result<PathBuf> {
    let world = folder.join("worlds").join(name);
    let workspace = world.join("workspace");
    if world.is_dir() {
        std::fs::remove_dir_all(&world).with_context(|| format!("{} can't be removed", world.display()))?;
    }
    for (file, content) in [("workspace/hello.txt", "hello\nworld\n"), ("workspace/.env", "TOKEN=x\n"), ("home/a", "")]
    {
        let file = world.join(file);
        std::fs::create_dir_all(file.parent().expect("it has a folder"))?;
        std::fs::write(&file, content).with_context(|| format!("{} can't be written", file.display()))?;
    }
    Ok(workspace)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
