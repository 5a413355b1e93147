//! The grammar of a shell command, POSIX and bash, read into a tree.
//!
//! It is stricter than a shell: what is rare and could mean two things (extended patterns, array elements, co-processes,
//! control characters) is a fault, and a command with a fault is unknown. It never guesses, never backtracks, and its
//! depth is bounded, so any input is answered in time that grows with its length.

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

/// The kernel takes no longer argument, so no shell can be given more than this.
pub(crate) const LONGEST: usize = 128 * 1024;

/// How deeply commands may stand inside each other.
pub(crate) const DEEPEST: usize = 48;

/// Why a command can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SyntaxFault {
    TooLong,
    TooDeep,
    /// A carriage return or an escape makes a command look like another one.
    Control,
    /// It ends before this.
    Unfinished(&'static str),
    /// This stands where it can't.
    Unexpected(String),
    /// A shell may understand this, but what it does is too hard to tell.
    Unsupported(&'static str),
}

impl fmt::Display for SyntaxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "it is longer than {LONGEST} bytes"),
            Self::TooDeep => write!(f, "it is nested more than {DEEPEST} levels deep"),
            Self::Control => f.write_str("it holds control characters, which can make it look like another command"),
            Self::Unfinished(what) => write!(f, "{what} is missing"),
            Self::Unexpected(what) => write!(f, "`{what}` stands where no shell expects it"),
            Self::Unsupported(what) => write!(f, "it uses {what}"),
        }
    }
}
