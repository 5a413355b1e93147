//! Why an edit wasn't made, for the reader: what, where, and what to do next.

use std::fmt;

use toolgate_contract::{ErrorCode, ToolError};

use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{NearestMatch, NumberedLine};
use crate::support::text::reencode::EncodingFault;

/// Why an edit wasn't made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditFault {
    /// There is nothing to look for.
    EmptyFind,
    /// The old text and the new are the same.
    NothingChanges,
    /// The text is there more than once.
    Ambiguous {
        /// What had to be overlooked to find it.
        tier: MatchTier,
        /// Where it begins each time; only the first ten.
        spots: Vec<NumberedLine>,
        /// Whether there are more.
        more: bool,
    },
    /// The text isn't there.
    NoMatch {
        /// What comes nearest to it.
        nearest: Option<Box<NearestMatch>>,
    },
    /// The file's encoding is in the way.
    Encoding(EncodingFault),
}

impl From<EncodingFault> for EditFault {
    fn from(fault: EncodingFault) -> Self {
        Self::Encoding(fault)
    }
}

impl fmt::Display for EditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyFind => f.write_str("`find` is empty."),
            Self::NothingChanges => f.write_str("`find` and `replace` are the same, so nothing would change."),
            Self::Ambiguous { tier, spots, more } => {
                let many = if *more { "more than 10".to_owned() } else { spots.len().to_string() };
                write!(f, "`find` matches in {many} places")?;
                match tier {
                    MatchTier::Exact => writeln!(f, ":")?,
                    other => writeln!(f, " when {other} may differ:")?,
                }
                let listed: Vec<_> = spots.iter().map(ToString::to_string).collect();
                f.write_str(&listed.join("\n"))
            }
            Self::NoMatch { nearest: None } => f.write_str("`find` isn't in the file, and nothing there is like it."),
            Self::NoMatch { nearest: Some(nearest) } => write!(f, "`find` isn't in the file. {nearest}"),
            Self::Encoding(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for EditFault {}

impl From<EditFault> for ToolError {
    fn from(fault: EditFault) -> Self {
        let message = fault.to_string();
        match fault {
            EditFault::EmptyFind => Self::invalid_args(message)
                .with_hint("Give the text to replace. To create a file or to write it anew, use `write`."),
            EditFault::NothingChanges => {
                Self::invalid_args(message).with_hint("Give the new text in `replace`, or leave the file as it is.")
            }
            EditFault::Ambiguous { tier: MatchTier::Exact | MatchTier::LineEndings, .. } => {
                Self::new(ErrorCode::AmbiguousMatch, message)
                    .with_hint("Add surrounding lines to `find` until it is unique, or set `all`.")
            }
            EditFault::Ambiguous { .. } => Self::new(ErrorCode::AmbiguousMatch, message)
                .with_hint("Copy the text exactly as it is in the file, with surrounding lines."),
            EditFault::NoMatch { .. } => Self::new(ErrorCode::NoMatch, message),
            EditFault::Encoding(EncodingFault::Unmappable { .. } | EncodingFault::NotText) => {
                Self::invalid_args(message).with_hint("Use other characters, or write the whole file anew as UTF-8.")
            }
            EditFault::Encoding(EncodingFault::Stateful { .. }) => {
                Self::new(ErrorCode::IsBinary, message).with_hint("Write the whole file anew as UTF-8.")
            }
        }
    }
}
