//! `cargo xtask oracle`: a long run of the oracle test, which runs what is judged plain reading by real bash in throw-away
//! roots. A run is made by rule from its seed, so a failure can be found again.

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;

#[derive(Args)]
pub(crate) struct OracleOptions {
    /// How many generated commands to run
    #[arg(long, default_value_t = 20_000)]
    commands: u64,
    /// Where the generator begins; another number makes other commands
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(options: &OracleOptions) -> Result<()> {
    let OracleOptions { commands, seed } = options;
    let line = format!("env TOOLGATE_ORACLE={commands} TOOLGATE_ORACLE_SEED={seed} {TEST}");
    CommandLine::new(&line).run()
}

/// The test that reads these variables, built as the other tests are: nearly all of its time is spent in the commands
/// that it runs. With `--workspace`, third-party crates have the features that the other tests use, so none is compiled
/// twice; `--test` still builds only this one.
const TEST: &str = "cargo test --locked --workspace --test reading -- oracle --nocapture --test-threads=1";
