//! Reads a shell command as the effects it has (C-11).
//!
//! ```text
//!  text ──syntax──▶ tree ──walk──▶ simple commands ──knowledge──▶ parts: what each touches, needs, runs
//! ```
//!
//! [`syntax`] is the grammar. [`walk`] goes through the tree as a shell would and keeps what it knows on the way:
//! variables, the working directory, functions. [`program`] holds each simple command against the tables in `knowledge/`,
//! takes wrappers off, and reads what is inside them in turn. What can't be told is said to be unclear, never guessed.

mod arguments;
mod arithmetic;
mod braces;
mod builtins;
mod dangers;
mod embedded_scripts;
mod environment;
mod examples;
mod expand;
mod find;
mod forms;
mod grant_pattern;
mod hosts;
mod nested_commands;
mod operands;
mod path_context;
mod program;
mod roles;
mod shell_changes;
mod shell_reader;
mod shell_state;
mod simple_command;
mod syntax;

pub(crate) use examples::examples;
pub(crate) use grant_pattern::plain_words;
pub use grant_pattern::{GrantPattern, grant_pattern};
pub(crate) use path_context::OUTSIDE;
pub use path_context::PathContext;
pub(crate) use simple_command::{Argument, Certainty, Need, SimpleCommand, Touch};

use shell_reader::ShellReader;

/// All that can be told of a command.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CommandAnalysis {
    /// The simple commands that may run, in the order they are written.
    pub(crate) parts: Vec<SimpleCommand>,
    /// Why the command as a whole can't be read.
    pub(crate) fault: Option<String>,
}

/// Reads a command that runs in `workdir`, which is relative to the workspace or absolute.
pub(crate) fn read(command: &str, workdir: &str, ground: &PathContext) -> CommandAnalysis {
    let script = match syntax::parse(command) {
        Ok(script) => script,
        Err(syntax::SyntaxFault::Control) => return disguised(command),
        Err(fault) => return CommandAnalysis { parts: Vec::new(), fault: Some(fault.to_string()) },
    };
    let directory = PathContext::resolve(ground.workspace(), workdir);
    let mut walk = ShellReader::new(ground, &script.documents, Some(vec![directory]));
    walk.watch_functions(&script.functions);
    walk.list(&script.list);
    walk.finish()
}

/// A command that looks like another one is refused, whatever it would do.
fn disguised(command: &str) -> CommandAnalysis {
    let danger = simple_command::Danger {
        rule: "deny control characters".into(),
        reason: "It holds control characters, which can make it look like another command.".into(),
        fixed: true,
    };
    let words = vec![Argument::unclear(command.escape_default().to_string())];
    CommandAnalysis {
        parts: vec![SimpleCommand { words, dangers: vec![danger], ..SimpleCommand::default() }],
        fault: None,
    }
}
