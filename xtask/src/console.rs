//! `cargo xtask test --only console`: the console in a real browser. The libraries come from npm at exact versions, the
//! browser is Debian's; both are used by tests alone.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::command_line::{CommandLine, repository_root, target_directory};
use crate::skip::SkippedTest;

/// Where the scripts lie.
const SCRIPTS: &str = "crates/toolgate-console/tests/browser";

/// Runs the tests of the page.
pub(crate) fn run() -> Result<Vec<SkippedTest>> {
    run_script("console.mjs", &[])?;
    Ok(Vec::new())
}

/// Measures the page.
pub(crate) fn bench() -> Result<()> {
    run_script("bench.mjs", &[])
}

/// Builds the program and runs a script against it.
fn run_script(script: &str, words: &[&str]) -> Result<()> {
    let directory = install()?;
    CommandLine::new("cargo build --locked --package toolgate-cli").run()?;
    let program = target_directory().join("debug/toolgate").display().to_string();
    let script = directory.join(script).display().to_string();
    CommandLine::new("node").words([script.as_str(), program.as_str()]).words(words.iter().copied()).run()
}

/// Installs what is missing beneath the build directory, and tells where everything is.
fn install() -> Result<PathBuf> {
    let directory = repository_root().join("target/console-tests");
    std::fs::create_dir_all(&directory)?;
    for entry in std::fs::read_dir(repository_root().join(SCRIPTS))? {
        let entry = entry?;
        std::fs::copy(entry.path(), directory.join(entry.file_name()))?;
    }
    let wanted = std::fs::read_to_string(directory.join("package.json"))?;
    let stamp = directory.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(directory);
    }
    let place = directory.display().to_string();
    CommandLine::new("npm install --no-audit --no-fund --loglevel error --prefix").words([&place]).run()?;
    std::fs::write(&stamp, wanted).context("the installation can't be noted")?;
    Ok(directory)
}
