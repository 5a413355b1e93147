//! `toolgate completions` and `toolgate man`: what shells and `man` need to know.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Program;
use crate::exit::Exit;

/// Print completions for a shell.
///
/// For bash: toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit> {
        clap_complete::generate(self.shell, &mut Program::command(), "toolgate", &mut std::io::stdout());
        Ok(Exit::Ok)
    }
}

/// Print the manual page.
#[derive(Debug, Args)]
pub(crate) struct Man;

impl Man {
    pub(crate) fn run(self) -> Result<Exit> {
        clap_mangen::Man::new(Program::command()).render(&mut std::io::stdout())?;
        Ok(Exit::Ok)
    }
}
