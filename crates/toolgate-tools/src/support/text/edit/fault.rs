//! Why an edit failed, for the reader: what, where, and what to do next.

use std::fmt;

use serde_json::json;
use toolgate_contract::{ErrorCode, ToolError};

use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{NearestMatch, NumberedLine};
use crate::support::text::reencode::EncodingFault;

/// Why an edit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditFault {
    /// The text to find is empty.
    EmptyFind,
    /// The old and the new text are equal.
    NothingChanges,
    /// The text occurs more than once.
    Ambiguous {
        /// Which differences the match ignored.
        tier: MatchTier,
        /// Where each match begins; only the first ten.
        matches: Vec<NumberedLine>,
        /// Whether there are more.
        more: bool,
    },
    /// The text doesn't occur.
    NoMatch {
        /// The most similar text.
        nearest: Option<Box<NearestMatch>>,
        /// Whether it does without the line numbers at the beginning of its lines.
        is_numbered: bool,
    },
    /// The edit fails because of the file's encoding.
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
            Self::Ambiguous { tier, matches, more } => {
                let many = if *more { "more than 10".to_owned() } else { matches.len().to_string() };
                write!(f, "`find` matches in {many} places")?;
                match tier {
                    MatchTier::Exact => writeln!(f, ":")?,
                    other => writeln!(f, " when {other} may differ:")?,
                }
                let listed: Vec<_> = matches.iter().map(ToString::to_string).collect();
                f.write_str(&listed.join("\n"))
            }
            Self::NoMatch { is_numbered: true, .. } => {
                f.write_str("`find` isn't in the file; without the line numbers in front of its lines it is.")
            }
            Self::NoMatch { nearest: None, .. } => {
                f.write_str("`find` isn't in the file, and nothing similar is either.")
            }
            Self::NoMatch { nearest: Some(nearest), .. } => write!(f, "`find` isn't in the file. {nearest}"),
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
                .with_hint("Give the text to replace. To create or rewrite a file, use `write`."),
            EditFault::NothingChanges => {
                Self::invalid_args(message).with_hint("Give the new text in `replace`, or leave the file as it is.")
            }
            EditFault::Ambiguous { tier, matches, more } => {
                let hint = match tier {
                    MatchTier::Exact | MatchTier::LineEndings => {
                        "Add surrounding lines to `find` until it is unique, or set `all`."
                    }
                    _ => "Copy the text exactly as it is in the file, with surrounding lines.",
                };
                Self::new(ErrorCode::AmbiguousMatch, message)
                    .with_hint(hint)
                    .with_details(json!({ "places": matches.len(), "more": more }))
            }
            EditFault::NoMatch { is_numbered: true, .. } => Self::new(ErrorCode::NoMatch, message)
                .with_hint("Line numbers aren't part of the file: leave them out.")
                .with_details(json!({ "line_numbers": true })),
            EditFault::NoMatch { .. } => Self::new(ErrorCode::NoMatch, message),
            EditFault::Encoding(EncodingFault::Unmappable { .. } | EncodingFault::NotText) => {
                Self::invalid_args(message)
                    .with_hint("Use other characters, or rewrite the file as UTF-8 with `write`.")
            }
            EditFault::Encoding(EncodingFault::Stateful { .. }) => {
                Self::new(ErrorCode::IsBinary, message).with_hint("Rewrite the file as UTF-8 with `write`.")
            }
        }
    }
}
