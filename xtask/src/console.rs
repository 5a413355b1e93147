//! `cargo xtask test --only console`: the console in a real browser. The libraries come from npm at exact versions, the
//! browser is Debian's; both are used by tests alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command_line::{CommandLine, repository_root, target_directory};
use crate::skip::SkippedTest;

/// Where the scripts lie.
const SCRIPTS: &str = "crates/toolgate-console/tests/browser";

/// Arize Phoenix, whose page shows the same run for comparison.
const PHOENIX: &str = "arize-phoenix==20.26.1";

/// Where the page's modules lie.
const PAGE: &str = "crates/toolgate-console/src/page";

/// Checks the types of the page's modules, and runs the tests of the page.
pub(crate) fn run() -> Result<Vec<SkippedTest>> {
    let directory = install()?;
    let compiler = directory.join("node_modules/.bin/tsc").display().to_string();
    CommandLine::new(&compiler).words(["--project", &directory.display().to_string()]).run()?;
    script("console.mjs", "dev", &[])?.run()?;
    Ok(Vec::new())
}

/// Measures the page as `cargo run --release -- serve` shows it, beside Arize Phoenix, and gives each line that is printed to
/// `each`.
pub(crate) fn bench(each: impl FnMut(String) -> String) -> Result<()> {
    let phoenix = install_phoenix()?.display().to_string();
    script("bench.mjs", "release", &[&phoenix])?.run_by_line(each)
}

/// Builds the program, and says how to run a script against it.
fn script(script: &str, profile: &str, words: &[&str]) -> Result<CommandLine> {
    let directory = install()?;
    CommandLine::new("cargo build --locked --package toolgate-cli --profile").words([profile]).run()?;
    // The profile `dev` has a directory of another name.
    let built = if profile == "dev" { "debug" } else { profile };
    let program = target_directory().join(built).join("toolgate").display().to_string();
    let script = directory.join(script).display().to_string();
    Ok(CommandLine::new("node").words([script.as_str(), program.as_str()]).words(words.iter().copied()))
}

/// Installs Arize Phoenix beneath the build directory, and tells where its program is. `uv` finds versions that fit together in
/// seconds, where `pip` takes very long.
fn install_phoenix() -> Result<PathBuf> {
    let directory = repository_root().join("target/console-bench/phoenix");
    let program = directory.join("bin/phoenix");
    if !program.exists() {
        let [place, pip, uv, python] =
            ["", "bin/pip", "bin/uv", "bin/python"].map(|name| directory.join(name).display().to_string());
        CommandLine::new("python3 -m venv").words([&place]).run()?;
        CommandLine::new(&pip).words(["install", "--quiet", "uv"]).run()?;
        CommandLine::new(&uv).words(["pip", "install", "--quiet", "--python", &python, PHOENIX]).run()?;
    }
    Ok(program)
}

/// Installs what is missing beneath the build directory, and tells where everything is.
fn install() -> Result<PathBuf> {
    let directory = repository_root().join("target/console-tests");
    copy_files(&repository_root().join(SCRIPTS), &directory)?;
    copy_files(&repository_root().join(PAGE), &directory.join("page"))?;
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

/// Copies the files of a directory, where the libraries are found beside them.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
