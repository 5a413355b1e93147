//! Ranked search, as a cleared tool sees it. The index is asked with the hands of the call: it learns of files by their
//! walk and reads text through them, so what they refuse is neither indexed nor answered.

use crate::{FileHands, ToolError, WorkspacePath};

/// What to search for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuestion {
    /// Words, identifiers or a sentence.
    pub text: String,
    /// The directories and files to search, as declared.
    pub paths: Vec<String>,
    /// Globs of files, relative to the workspace; a leading `!` excludes.
    pub globs: Vec<String>,
    /// Only files in this language, by its name or a file ending.
    pub language: Option<String>,
    /// Only files of this kind.
    pub kind: SearchKind,
    /// The most places to return.
    pub limit: usize,
    /// The most bytes of text to return, of all places together.
    pub max_bytes: usize,
}

/// What kind of file to search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it all, and a schema would show models every sentence here")]
pub enum SearchKind {
    #[default]
    Any,
    Code,
    Docs,
    Tests,
}

/// A place that answers a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The file.
    pub place: WorkspacePath,
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// The function, type or heading that the lines belong to.
    pub symbol: Option<String>,
    /// The line with which the snippet begins.
    pub snippet_line: u32,
    /// Some of the lines, read just now.
    pub snippet: String,
    /// Why this place was found.
    pub why: String,
    /// Other places in the file that fit, best first.
    pub also: Vec<AlsoFound>,
}

/// Lines of a file that fit a question too.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct AlsoFound {
    /// The first and last line.
    pub lines: [u32; 2],
    /// The function, type or heading that they belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

/// How much of what was searched the index knew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SearchCoverage {
    /// Files that could be searched.
    pub files: u64,
    /// Those of them that the index has, as they are now.
    pub indexed: u64,
    /// Those of the rest that were read word by word instead.
    pub scanned: u64,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchAnswer {
    /// The places, best first.
    pub hits: Vec<SearchHit>,
    /// How much was searched.
    pub coverage: SearchCoverage,
    /// Remarks about the index.
    pub notes: Vec<String>,
}

/// Ranks places of the workspace for a question.
pub trait SearchIndex: Send + Sync {
    /// Brings the index up to date with what is there now, and answers from it.
    fn search(&self, question: &SearchQuestion, hands: &dyn FileHands) -> Result<SearchAnswer, ToolError>;
}
