//! `toolgate completions` and `toolgate man`: prints shell completions and the manual page.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;
use crate::exit::Exit;

/// Print completions for a shell.
///
/// For bash: toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

impl CompletionsArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        clap_complete::generate(self.shell, &mut CommandLine::command(), "toolgate", &mut std::io::stdout());
        Ok(Exit::Ok)
    }
}

/// Print the manual page.
#[derive(Debug, Args)]
pub(crate) struct ManArgs;

impl ManArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        clap_mangen::Man::new(CommandLine::command()).render(&mut std::io::stdout())?;
        Ok(Exit::Ok)
    }
}
