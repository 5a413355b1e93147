//! How lenient a match was.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which differences the match ignored, strictest first. Each tier is tried only when all before it found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchTier {
    /// None: byte for byte.
    Exact,
    /// CRLF against LF, or a missing newline at the end of the file.
    LineEndings,
    /// Trailing whitespace.
    TrailingWhitespace,
    /// The block is indented differently, by the same amount on every line.
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
