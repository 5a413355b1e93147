//! `toolgate hook exec`: runs a command that a hook has judged, in the place that the client would have run it.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use toolgate_contract::{CancellationToken, Stream};
use toolgate_hooks::{HookedCommand, run_command};

use super::open_hooked;
use crate::commands::{Invocation, block_on};
use crate::exit::Exit;
use crate::output::errln;
use crate::signals::cancel_on_signal;
use crate::workspace::with_attach_socket;

/// Run a command that a hook has judged.
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    /// The id that the hook gave the command. It is good once.
    #[arg(long)]
    id: String,
    /// The command, as it was judged.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: String,
}

impl ExecArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let hooked = open_hooked(invocation)?;
        let directory = std::env::current_dir()?;
        // Clients show both streams as one text, in which a note begins on a line of its own.
        let mut is_line_begun = false;
        let end = block_on(async {
            let cancel = CancellationToken::new();
            cancel_on_signal(cancel.clone(), || {});
            let mut pass_on = |stream: Stream, bytes: &[u8]| {
                is_line_begun = bytes.last().map_or(is_line_begun, |last| *last != b'\n');
                // A reader that has left doesn't stop the command, as it wouldn't stop it without us.
                let _ = match stream {
                    Stream::Stdout => std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()),
                    Stream::Stderr => std::io::stderr().write_all(bytes),
                };
            };
            let started = HookedCommand { id: &self.id, command: &self.command, directory: &directory };
            let work = run_command(&hooked, started, cancel, &mut pass_on);
            with_attach_socket(&hooked.workspace, &invocation.location, work).await
        })?;
        if is_line_begun && !end.notes.is_empty() {
            errln!();
        }
        end.notes.iter().for_each(|note| errln!("toolgate: {note}"));
        Ok(Exit::Code(end.code))
    }
}
