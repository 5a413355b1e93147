//! `cargo xtask lsp`: breaks and fixes files many times with each real language server, by a tool, by a command, with git and from
//! outside, and asks after each, where the ordinary tests do so a few times. One stale answer is a failure.

use anyhow::Result;
use clap::Args;

use crate::command_line::CommandLine;
use crate::setup;

#[derive(Args)]
pub(crate) struct LspOptions {
    /// How often each file is broken and fixed
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Only this server, such as `rust_analyzer`; without it, all of them
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
}

/// What is tried of each server: files that break and are fixed, configurations that change, and every tool around a restart.
const PARTS: [&str; 4] = ["fresh", "data_formats", "configuration", "every_tool"];

pub(crate) fn run(options: &LspOptions) -> Result<()> {
    setup::install_language_servers()?;
    let names = PARTS.map(|part| format!("{part}::{}", options.server.as_deref().unwrap_or_default()));
    // `ty` isn't `typescript_language_server` too.
    let exact = options.server.iter().map(|_| "--exact".to_owned());
    let words = names.into_iter().chain(exact);
    CommandLine::new(TEST).environment("TOOLGATE_LSP_ROUNDS", &options.rounds.to_string()).words(words).run()
}

/// The test that reads this variable. One server at a time: side by side, they would wait for one another.
const TEST: &str = "cargo test --locked --workspace --test language_servers -- --nocapture --test-threads 1";
