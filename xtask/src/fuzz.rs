//! `cargo xtask fuzz`: a long run of random and mutated commands, where the ordinary tests try a few. Each round is made
//! by rule, so a failure can be found again.

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;

#[derive(Args)]
pub(crate) struct FuzzOptions {
    /// How many commands to try
    #[arg(default_value_t = 1_000_000)]
    rounds: u64,
}

pub(crate) fn run(options: &FuzzOptions) -> Result<()> {
    let line = format!("env TOOLGATE_FUZZ={} {}", options.rounds, TEST);
    CommandLine::new(&line).run()
}

/// The test that reads `TOOLGATE_FUZZ`, built as fast as what is shipped.
const TEST: &str = "cargo test --locked --release --package toolgate-policy --test reading -- nonsense";
