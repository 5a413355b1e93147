//! `cargo xtask differential`: runs ordinary commands by plain bash and by `shell`, and compares what they say and leave.

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;

#[derive(Args)]
pub(crate) struct DifferentialOptions {
    /// Run every command of the corpus in every setting, not a sample of them
    #[arg(long)]
    full: bool,
    /// Run the commands that contain this text, in every setting
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

pub(crate) fn run(options: &DifferentialOptions) -> Result<()> {
    let extent = if options.full { "full" } else { "sample" };
    CommandLine::new(TEST)
        .environment("TOOLGATE_DIFFERENTIAL", extent)
        .environment("TOOLGATE_DIFFERENTIAL_ONLY", options.only.as_deref().unwrap_or_default())
        .run()
}

/// The test that reads this variable.
const TEST: &str = "cargo test --locked --release --package toolgate-cli --test differential -- --nocapture";
