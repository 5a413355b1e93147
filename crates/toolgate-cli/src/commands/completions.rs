//! `toolgate completions` and `toolgate man`: shell completions and manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;
use crate::exit::Exit;
use crate::output::{RawOutput, outln};

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
        clap_complete::generate(self.shell, &mut CommandLine::command(), "toolgate", &mut RawOutput);
        Ok(Exit::Ok)
    }
}

/// Print a manual page, or install all of them.
///
/// Examples:
///   toolgate man | man -l -
///   toolgate man policy explain                  the page of a subcommand
///   toolgate man --install                       all pages, into ~/.local/share/man/man1
///   toolgate man --install /usr/share/man/man1
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ManArgs {
    /// The subcommand whose page is printed.
    #[arg(value_name = "COMMAND")]
    subcommand: Vec<String>,
    /// Write the pages of all subcommands into a directory.
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "subcommand")]
    install: Option<Option<PathBuf>>,
}

impl ManArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        if let Some(directory) = self.install {
            return install(directory);
        }
        // Built first, so that subcommands have their whole names and the options that every command takes.
        let mut command = CommandLine::command();
        command.build();
        let mut found = &command;
        for name in &self.subcommand {
            found = found.find_subcommand(name).with_context(|| {
                format!(
                    "`{}` has no subcommand `{name}`; its --help lists them.",
                    found.get_bin_name().unwrap_or("toolgate")
                )
            })?;
        }
        clap_mangen::Man::new(found.clone()).render(&mut RawOutput)?;
        Ok(Exit::Ok)
    }
}

#[allow(clippy::disallowed_methods, reason = "writes where the person asked for it, before there is any gate")]
fn install(directory: Option<PathBuf>) -> Result<Exit> {
    let directory = match directory {
        Some(directory) => directory,
        None => std::env::home_dir().context("HOME is not set; name a directory")?.join(".local/share/man/man1"),
    };
    let written =
        std::fs::create_dir_all(&directory).and_then(|()| clap_mangen::generate_to(CommandLine::command(), &directory));
    written.with_context(|| format!("{} can't be written", directory.display()))?;
    outln!("Wrote the pages to {}. Try `man toolgate`.", directory.display());
    Ok(Exit::Ok)
}
