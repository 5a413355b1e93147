//! What can be wrong with a journal, with the first line that shows it.

use std::fmt;
use toolgate_contract::counted;

/// Why a journal isn't what was written. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalFault {
    /// The line isn't the one that was written.
    Changed {
        /// The line.
        line: u64,
    },
    /// Lines were removed.
    Dropped {
        /// The first line that is missing.
        line: u64,
        /// The last of them.
        through: u64,
    },
    /// The line and the one after it were swapped.
    Swapped {
        /// The first of the two.
        line: u64,
    },
    /// A line was inserted.
    Added {
        /// That line.
        line: u64,
    },
    /// The line isn't a journal line, and valid ones follow.
    Unreadable {
        /// The line.
        line: u64,
    },
    /// The journal ends in an incomplete line.
    Torn {
        /// The line.
        line: u64,
    },
    /// Lines are missing at the end.
    CutOff {
        /// The first line that is missing.
        line: u64,
        /// How many lines there should be.
        expected: u64,
    },
    /// The line continues the chain, but neither the head nor a signature of its own covers it.
    AfterSignature {
        /// The line.
        line: u64,
    },
    /// The line isn't the one that the list of runs has.
    NotAsListed {
        /// The line.
        line: u64,
    },
    /// The list of runs has seen more lines than there are.
    OlderCopy {
        /// The first line that is missing.
        line: u64,
        /// How many lines the list has seen.
        expected: u64,
    },
    /// The head is missing.
    HeadMissing,
    /// The head isn't as it was written.
    HeadUnreadable,
    /// There is a key, but the head has no signature.
    SignatureMissing,
    /// The signature doesn't match the head.
    SignatureWrong,
}

impl JournalFault {
    /// The first invalid line; none when the fault is in the head.
    pub fn line(&self) -> Option<u64> {
        match *self {
            Self::Changed { line }
            | Self::Dropped { line, .. }
            | Self::Swapped { line }
            | Self::Added { line }
            | Self::Unreadable { line }
            | Self::Torn { line }
            | Self::CutOff { line, .. }
            | Self::AfterSignature { line }
            | Self::NotAsListed { line }
            | Self::OlderCopy { line, .. } => Some(line),
            Self::HeadMissing | Self::HeadUnreadable | Self::SignatureMissing | Self::SignatureWrong => None,
        }
    }
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { line } => write!(f, "Line {line} was changed after it was written."),
            Self::Dropped { line, through } if line == through => write!(f, "Line {line} was removed."),
            Self::Dropped { line, through } => write!(f, "Lines {line} to {through} were removed."),
            Self::Swapped { line } => write!(f, "Lines {line} and {} were swapped.", line + 1),
            Self::Added { line } => write!(f, "Line {line} was inserted by another program."),
            Self::Unreadable { line } => write!(f, "Line {line} is not a journal line: it was changed or inserted."),
            Self::Torn { line } => {
                write!(f, "Line {line} is incomplete: it was changed, or the program was killed while writing it.")
            }
            Self::CutOff { line, expected } => {
                write!(
                    f,
                    "The journal was cut off: it had {}, and line {line} is the first one missing.",
                    counted(*expected, "line")
                )
            }
            Self::AfterSignature { line } => {
                write!(f, "Line {line} was added after the last signature.")
            }
            Self::NotAsListed { line } => {
                write!(f, "Line {line} isn't the one that the list of runs has: the run was replaced by another one.")
            }
            Self::OlderCopy { line, expected } => write!(
                f,
                "The run was replaced by an older copy: the list of runs has seen {}, and line {line} is the \
                 first one missing.",
                counted(*expected, "line")
            ),
            Self::HeadMissing => f.write_str("The head is missing, so lines may be missing at the end."),
            Self::HeadUnreadable => f.write_str("The head was changed after it was written."),
            Self::SignatureMissing => f.write_str("The head has no signature, although there is a key."),
            Self::SignatureWrong => f.write_str(
                "The head's signature is wrong: head or run id were changed, or it was signed with another key.",
            ),
        }
    }
}
