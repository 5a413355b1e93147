//! `cargo xtask differential`: runs ordinary commands by plain bash and by `shell`, and compares what they say and leave.

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;

#[derive(Args)]
pub(crate) struct DifferentialOptions {
    /// Run every command of the corpus in every setting, not a sample of them
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(options: &DifferentialOptions) -> Result<()> {
    let extent = if options.full { "full" } else { "sample" };
    CommandLine::new(&format!("env TOOLGATE_DIFFERENTIAL={extent} {TEST}")).run()
}

/// The test that reads this variable.
const TEST: &str = "cargo test --locked --release --package toolgate-cli --test differential -- --nocapture";
