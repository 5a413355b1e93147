//! `cargo xtask hooks`: real clients with our hooks, against a scripted model on loopback. Each is installed from npm at one exact
//! version. The short selection runs with the clients of `cargo xtask test`.

use anyhow::Result;
use clap::Args;

use crate::command_line::{CommandLine, target_directory};

#[derive(Args)]
pub(crate) struct HooksOptions {
    /// Try every case, also hooks that fail in every way; this takes several minutes
    #[arg(long)]
    full: bool,
    /// Which clients: claude, codex, gemini, opencode, copilot, goose; without them all, and goose only with `--full`
    clients: Vec<String>,
}

/// What tries the clients.
const MATRIX: &str = "crates/toolgate-cli/tests/hooks/matrix.py";
/// What measures them.
const BENCH: &str = "crates/toolgate-cli/tests/hooks/bench.py";

pub(crate) fn run(options: &HooksOptions) -> Result<()> {
    CommandLine::new("cargo build --locked --package toolgate-cli").run()?;
    command(options).run()
}

/// Measures what hooks cost, with the program as packages have it, and gives each line that is printed to `each`.
pub(crate) fn bench(arguments: &[String], each: impl FnMut(String) -> String) -> Result<()> {
    CommandLine::new("cargo build --locked --package toolgate-cli --profile dist").run()?;
    let target = target_directory();
    let [program, clients] = ["dist/toolgate", "hook-clients"].map(|path| target.join(path).display().to_string());
    CommandLine::new("python3").words([BENCH, &program, &clients]).words(arguments).run_by_line(each)
}

/// The short selection, with the program as it was built.
pub(crate) fn run_short() -> Result<()> {
    command(&HooksOptions { full: false, clients: Vec::new() }).run()
}

fn command(options: &HooksOptions) -> CommandLine {
    let target = target_directory();
    let program = target.join("debug/toolgate").display().to_string();
    let directory = target.join("hook-clients").display().to_string();
    let full = if options.full { &["--full"][..] } else { &[] };
    CommandLine::new("python3").words([MATRIX, &program, &directory]).words(full).words(&options.clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::repository_root;

    #[test]
    fn the_matrix_is_where_it_is_looked_for() {
        assert!(repository_root().join(MATRIX).is_file() && repository_root().join(BENCH).is_file());
        let options = HooksOptions { full: true, clients: vec!["codex".into()] };
        assert!(command(&options).to_string().ends_with("hook-clients --full codex"));
    }
}
