//! `cargo xtask dialects record`: records what the models of real clients are shown, for the tests to compare ours with. Each client
//! is installed from npm, at the version that `clients.py` names, and follows a script against a provider on loopback.

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::command_line::{CommandLine, target_directory};

#[derive(Args)]
pub(crate) struct DialectsOptions {
    #[command(subcommand)]
    chore: DialectsChore,
}

#[derive(Subcommand)]
enum DialectsChore {
    /// Install the clients and record them anew; without names, all of them
    Record {
        /// Which clients: claude, codex, gemini, opencode
        clients: Vec<String>,
    },
}

/// What records, beside the scripts and the recordings.
const RECORDER: &str = "crates/toolgate-cli/tests/recordings/record.py";

pub(crate) fn run(options: &DialectsOptions) -> Result<()> {
    let DialectsChore::Record { clients } = &options.chore;
    command(clients).run()
}

fn command(clients: &[String]) -> CommandLine {
    let directory = target_directory().join("recorded-clients").display().to_string();
    CommandLine::new("python3").words([RECORDER, &directory]).words(clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::repository_root;

    #[test]
    fn the_recorder_is_where_it_is_looked_for() {
        assert!(repository_root().join(RECORDER).is_file());
        assert!(command(&["codex".into()]).to_string().ends_with("recorded-clients codex"));
    }
}
