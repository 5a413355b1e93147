//! How far a match had to be stretched: the receipt of leniency.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was overlooked to make the text match, mildest first. Each tier is tried only when all before it found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchTier {
    /// Nothing: byte for byte.
    Exact,
    /// CRLF against LF, or a missing newline at the end of the file.
    LineEndings,
    /// Blanks at the end of lines.
    TrailingWhitespace,
    /// The whole block is indented differently, by the same amount on every line.
    Indentation,
    /// Curly quotes, long dashes and special spaces against their plain forms.
    Punctuation,
}

impl fmt::Display for MatchTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::LineEndings => "line endings",
            Self::TrailingWhitespace => "trailing whitespace",
            Self::Indentation => "indentation",
            Self::Punctuation => "punctuation",
        })
    }
}
