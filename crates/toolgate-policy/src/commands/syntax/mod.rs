//! The grammar of a shell command, POSIX and bash, parsed into a tree.
//!
//! It is stricter than a shell: rare and ambiguous constructs (extended patterns, array elements, co-processes, control
//! characters) are faults, and a command with a fault is unknown. The parser never guesses and never backtracks, and
//! its depth is bounded, so the time for any input is linear in its length.

mod expansion;
mod grammar;
mod parser;
mod tree;
mod word;

use std::fmt;

pub(crate) use grammar::parse;
pub(crate) use tree::{
    AndOr, AssignedValue, Assignment, CommandList, ExpansionOperator, NestedList, Pipeline, Redirection,
    RedirectionKind, RedirectionTarget, ShellCommand, ShellCommandKind, ShellScript, ShellWord, Statement, WordPiece,
};

/// The kernel accepts no longer argument, so no shell can be given more than this.
pub(crate) const LONGEST: usize = 128 * 1024;

/// How deeply commands may be nested.
pub(crate) const DEEPEST: usize = 48;

/// Why a command can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxFault {
    TooLong,
    TooDeep,
    /// A carriage return or an escape makes a command look like another one.
    Control,
    /// The command ends before this.
    Unfinished(&'static str),
    /// This is at a position where the grammar doesn't allow it.
    Unexpected(String),
    /// A shell may understand this, but its effect is too hard to determine.
    Unsupported(&'static str),
}

/// The result of parsing a part of a command.
pub(crate) type SyntaxResult<T> = Result<T, SyntaxFault>;

impl fmt::Display for SyntaxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "it is longer than {LONGEST} bytes"),
            Self::TooDeep => write!(f, "it is nested more than {DEEPEST} levels deep"),
            Self::Control => f.write_str("it contains control characters, which can make it look like another command"),
            Self::Unfinished(what) => write!(f, "{what} is missing"),
            Self::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Self::Unsupported(what) => write!(f, "it uses {what}"),
        }
    }
}
