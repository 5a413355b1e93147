//! What can be wrong with a journal, named by the first line that shows it.

use std::fmt;

/// Why a journal isn't what was written. Lines count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalFault {
    /// The line isn't the one that was written.
    Changed {
        /// The line.
        line: u64,
    },
    /// Lines were taken out.
    Dropped {
        /// The first line that is missing.
        line: u64,
        /// The last of them.
        through: u64,
    },
    /// The line and the one after it have changed places.
    Swapped {
        /// The first of the two.
        line: u64,
    },
    /// Somebody put a line in.
    Added {
        /// That line.
        line: u64,
    },
    /// The line isn't one of a journal at all, and proper ones follow.
    Unreadable {
        /// The line.
        line: u64,
    },
    /// The journal ends in something that isn't a whole line.
    Torn {
        /// The line.
        line: u64,
    },
    /// Lines are missing at the end.
    CutOff {
        /// The first line that is missing.
        line: u64,
        /// How many there should be.
        expected: u64,
    },
    /// The line fits, but neither the head nor a seal of its own vouches for it.
    AfterSeal {
        /// The line.
        line: u64,
    },
    /// The head is gone.
    HeadMissing,
    /// The head isn't as it was written.
    HeadUnreadable,
    /// There is a key, but the head has no seal.
    SealMissing,
    /// The seal doesn't fit the head.
    SealWrong,
}

impl JournalFault {
    /// The first bad line; none when the fault lies in the head.
    pub fn line(&self) -> Option<u64> {
        match *self {
            Self::Changed { line }
            | Self::Dropped { line, .. }
            | Self::Swapped { line }
            | Self::Added { line }
            | Self::Unreadable { line }
            | Self::Torn { line }
            | Self::CutOff { line, .. }
            | Self::AfterSeal { line } => Some(line),
            Self::HeadMissing | Self::HeadUnreadable | Self::SealMissing | Self::SealWrong => None,
        }
    }
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { line } => write!(f, "Line {line} was changed after it was written."),
            Self::Dropped { line, through } if line == through => write!(f, "Line {line} was taken out."),
            Self::Dropped { line, through } => write!(f, "Lines {line} to {through} were taken out."),
            Self::Swapped { line } => write!(f, "Lines {line} and {} have changed places.", line + 1),
            Self::Added { line } => write!(f, "Line {line} was added by somebody else."),
            Self::Unreadable { line } => write!(f, "Line {line} is not a line of a journal: it was changed or added."),
            Self::Torn { line } => {
                write!(f, "Line {line} is not whole: it was changed, or the program was killed while writing it.")
            }
            Self::CutOff { line, expected } => {
                write!(f, "The journal was cut off: it had {expected} lines, and line {line} is the first one missing.")
            }
            Self::AfterSeal { line } => {
                write!(f, "Line {line} was added after the last seal.")
            }
            Self::HeadMissing => f.write_str("The head is missing, so lines may be missing at the end."),
            Self::HeadUnreadable => f.write_str("The head was changed after it was written."),
            Self::SealMissing => f.write_str("The head has no seal, although there is a key."),
            Self::SealWrong => {
                f.write_str("The head's seal is wrong: head or run id were changed, or it was sealed with another key.")
            }
        }
    }
}
