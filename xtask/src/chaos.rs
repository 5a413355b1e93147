//! `cargo xtask chaos`: random sequences of everything that can happen to a workspace, for as long as one likes, where
//! the ordinary tests try a few. A sequence follows from its seed, so a violation can be found again; each is printed
//! as the shortest sequence of operations that still shows it.

use std::num::NonZeroUsize;

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;

#[derive(Args)]
pub(crate) struct ChaosOptions {
    /// How long to go on
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// The first seed; the next sequence has the next one
    #[arg(long, default_value_t = 1000)]
    seed: u64,
    /// Operations of a sequence
    #[arg(long, default_value_t = 60)]
    length: u32,
    /// Only this setting, such as `user-tmpfs-small-in_place`; without it, all of them in turn
    #[arg(long, value_name = "NAME")]
    setting: Option<String>,
    /// Run every setting for all of the minutes, so many side by side, and print one summary at the end
    #[arg(long, value_name = "JOBS", conflicts_with_all = ["setting", "replay"])]
    each: Option<NonZeroUsize>,
    /// Also try what is switched off because its fault is known
    #[arg(long)]
    all: bool,
    /// Leave out these classes of names, mutations and operations
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    without: Vec<String>,
    /// Seconds to spend on making a sequence shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    shrink: u64,
    /// Carry out the operations in this file instead, as a report prints them
    #[arg(long, value_name = "FILE")]
    replay: Option<String>,
    /// Keep the workspaces of sequences with a violation, and with `--replay` of all, to look at what they left
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(options: &ChaosOptions) -> Result<()> {
    let mut line = CommandLine::new(TEST)
        .environment("TOOLGATE_CHAOS_MINUTES", &options.minutes.to_string())
        .environment("TOOLGATE_CHAOS_SEED", &options.seed.to_string())
        .environment("TOOLGATE_CHAOS_LENGTH", &options.length.to_string())
        .environment("TOOLGATE_CHAOS_SHRINK", &options.shrink.to_string());
    if let Some(setting) = &options.setting {
        line = line.environment("TOOLGATE_CHAOS_SETTING", setting);
    }
    if let Some(jobs) = options.each {
        line = line.environment("TOOLGATE_CHAOS_JOBS", &jobs.to_string());
    }
    if options.all {
        line = line.environment("TOOLGATE_CHAOS_ALL", "1");
    }
    if !options.without.is_empty() {
        line = line.environment("TOOLGATE_CHAOS_WITHOUT", &options.without.join(","));
    }
    if options.keep {
        line = line.environment("TOOLGATE_CHAOS_KEEP", "1");
    }
    if let Some(file) = &options.replay {
        // The test runs in its package's directory.
        let file = std::path::absolute(file)?;
        line = line.environment("TOOLGATE_CHAOS_REPLAY", &file.display().to_string());
    }
    line.run()
}

/// The test that reads these variables. With `--workspace`, third-party crates have the features that the other tests use,
/// so none is compiled twice; `--test` still builds only this one.
const TEST: &str = "cargo test --locked --workspace --test chaos -- --ignored --exact --nocapture runs::long";
