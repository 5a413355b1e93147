//! Analyzes a shell command into its effects.
//!
//! ```text
//!  text ──syntax──▶ tree ──shell_reader──▶ simple commands ──knowledge──▶ what each touches, needs, runs
//! ```
//!
//! [`syntax`] is the grammar. [`shell_reader`] walks the tree as a shell would and tracks variables, the working
//! directory and functions. [`program`] matches each simple command against the tables in `knowledge/`, unwraps
//! wrappers, and analyzes what is inside them in turn. What can't be determined is reported as unclear, never guessed.

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
mod find_expression;
mod forms;
mod grant_pattern;
mod hosts;
mod nested_commands;
mod old_style;
mod operands;
mod options;
mod path_context;
mod program;
mod remote_url;
mod roles;
mod shell_changes;
mod shell_reader;
mod shell_state;
mod simple_command;
mod syntax;
mod word_pattern;

pub(crate) use examples::examples;
pub(crate) use grant_pattern::plain_words;
pub use grant_pattern::{GrantPattern, grant_pattern};
pub use options::program_options;
pub(crate) use path_context::OUTSIDE;
pub use path_context::PathContext;
pub(crate) use remote_url::remote_url;
pub(crate) use simple_command::{Argument, Certainty, Need, SimpleCommand, Touch};

use shell_reader::ShellReader;

/// The analysis of a command.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CommandAnalysis {
    /// The simple commands that may run, in the order of the text.
    pub(crate) parts: Vec<SimpleCommand>,
    /// Why the command can't be parsed.
    pub(crate) fault: Option<String>,
}

/// Analyzes a command that runs in `workdir`, which is relative to the workspace or absolute.
pub(crate) fn analyze(command: &str, workdir: &str, paths: &PathContext) -> CommandAnalysis {
    let script = match syntax::parse(command) {
        Ok(script) => script,
        Err(syntax::SyntaxFault::Control) => return disguised(command),
        Err(fault) => return CommandAnalysis { parts: Vec::new(), fault: Some(fault.to_string()) },
    };
    let directory = PathContext::resolve(paths.workspace(), workdir);
    let mut reader = ShellReader::new(paths, &script.documents, Some(vec![directory]));
    reader.watch_functions(&script.functions);
    reader.list(&script.list);
    reader.finish()
}

/// Denies a command that can be displayed as a different one, regardless of its effects.
fn disguised(command: &str) -> CommandAnalysis {
    let danger = simple_command::Danger {
        rule: "deny control characters".into(),
        reason: "It contains control characters, which can make it look like another command.".into(),
        fixed: true,
    };
    let words = vec![Argument::unclear(command.escape_default().to_string())];
    CommandAnalysis {
        parts: vec![SimpleCommand { words, dangers: vec![danger], ..SimpleCommand::default() }],
        fault: None,
    }
}
