//! Reads a shell command as the effects it has (C-11).
//!
//! ```text
//!  text ──syntax──▶ tree ──walk──▶ simple commands ──knowledge──▶ parts: what each touches, needs, runs
//! ```
//!
//! [`syntax`] is the grammar. [`walk`] goes through the tree as a shell would and keeps what it knows on the way:
//! variables, the working folder, functions. [`program`] holds each simple command against the tables in `knowledge/`,
//! takes wrappers off, and reads what is inside them in turn. What can't be told is said to be unclear, never guessed.

mod arguments;
mod arithmetic;
mod braces;
mod builtins;
mod changed;
mod dangers;
mod environment;
mod examples;
mod expand;
mod find;
mod forms;
mod grant;
mod ground;
mod hosts;
mod inside;
mod operands;
mod part;
mod program;
mod roles;
mod scripts;
mod shell;
mod syntax;
mod walk;

pub(crate) use examples::examples;
pub(crate) use grant::plain_words;
pub use grant::{Pattern, grant_pattern};
pub use ground::Ground;
pub(crate) use ground::OUTSIDE;
pub(crate) use part::{Argument, Certainty, Need, Part, Touch};

use walk::Walk;

/// All that can be told of a command.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// The simple commands that may run, in the order they are written.
    pub(crate) parts: Vec<Part>,
    /// Why the command as a whole can't be read.
    pub(crate) fault: Option<String>,
}

/// Reads a command that runs in `workdir`, which is relative to the workspace or absolute.
pub(crate) fn read(command: &str, workdir: &str, ground: &Ground) -> Reading {
    let script = match syntax::parse(command) {
        Ok(script) => script,
        Err(syntax::SyntaxFault::Control) => return disguised(command),
        Err(fault) => return Reading { parts: Vec::new(), fault: Some(fault.to_string()) },
    };
    let folder = Ground::resolve(ground.workspace(), workdir);
    let mut walk = Walk::new(ground, &script.documents, Some(vec![folder]));
    walk.watch_functions(&script.functions);
    walk.list(&script.list);
    walk.finish()
}

/// A command that looks like another one is refused, whatever it would do.
fn disguised(command: &str) -> Reading {
    let danger = part::Danger {
        rule: "deny control characters".into(),
        reason: "It holds control characters, which can make it look like another command.".into(),
        fixed: true,
    };
    let words = vec![Argument::unclear(command.escape_default().to_string())];
    Reading { parts: vec![Part { words, dangers: vec![danger], ..Part::default() }], fault: None }
}
