//! `toolgate chat`: a conversation with an agent.

use std::io::IsTerminal;

use anyhow::Result;
use clap::Args;

use super::run::AgentArgs;
use super::{Invocation, block_on};
use crate::chat;
use crate::exit::Exit;
use crate::terminal::LiveScreen;

/// Talk with an agent, which works through the gate.
///
/// Type what should be done, watch the tools work, answer questions and approvals in place, and go on. What you send
/// while the agent works reaches it before its next turn; Esc or Ctrl-C interrupts it. /help shows the keys and commands.
/// `toolgate` alone, at a terminal, is the same. Without a terminal each line of input is a message, and the answers go
/// to standard output.
///
/// Examples:
///   toolgate chat --model anthropic:claude-sonnet-4-5
///   toolgate chat --continue                            go on with the last conversation or run
///   echo "what does this do?" | toolgate chat
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    agent: AgentArgs,
}

impl ChatArgs {
    pub(crate) fn run(self, invocation: Invocation) -> Result<Exit> {
        anyhow::ensure!(
            !invocation.json,
            "A conversation is for people, so it has no --json. `toolgate --json run TASK` and `--continue` have it."
        );
        match is_possible() {
            true => block_on(chat::at_terminal(self.agent, invocation))?,
            false => block_on(chat::from_lines(self.agent, invocation))?,
        }
    }
}

/// Whether there is a terminal for a conversation.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && LiveScreen::is_possible()
}
