//! Why a patch couldn't be parsed or applied, for the reader: which file, which hunk, what was expected and what was
//! found.

use std::fmt;

use toolgate_contract::{ErrorCode, ToolError};

use super::PatchFormat;
use crate::support::text::match_tier::MatchTier;
use crate::support::text::nearest::{NearestMatch, NumberedLine};
use crate::support::text::reencode::EncodingFault;

/// Why a patch couldn't be parsed or applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchFault {
    /// The text contains no patch.
    Nothing,
    /// The text isn't a valid patch.
    Malformed {
        /// The line of the patch, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The patch requires something unsupported.
    Unsupported {
        /// The line of the patch, from 1.
        line: usize,
        /// What it requires.
        message: String,
    },
    /// A file to be created already exists, or one that another is moved or copied to.
    Exists {
        /// The file that exists.
        path: String,
        /// The file that is moved or copied there.
        from: Option<String>,
        /// The format of the patch, for the advice.
        format: PatchFormat,
    },
    /// A file to be changed doesn't exist.
    Missing {
        /// The file.
        path: String,
    },
    /// A file to be deleted contains more than the patch says.
    Leftover {
        /// The file.
        path: String,
        /// The first line that isn't in the patch.
        line: Option<NumberedLine>,
    },
    /// Hunks that don't match.
    Hunks {
        /// The file.
        path: String,
        /// Number of hunks for this file.
        total: usize,
        /// The hunks that don't match.
        faults: Vec<HunkFault>,
    },
    /// The patch fails because of the file's encoding.
    Encoding {
        /// The file.
        path: String,
        /// The encoding error.
        fault: EncodingFault,
    },
}

/// A hunk that doesn't match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkFault {
    /// Which hunk of the file, from 1.
    pub hunk: usize,
    /// The line of the patch where it begins, from 1.
    pub patch_line: usize,
    /// The reason.
    pub why: HunkFaultReason,
}

/// Why a hunk doesn't match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkFaultReason {
    /// Its lines aren't in the file.
    Mismatch {
        /// The expected lines; only the first when there are many.
        expected: Vec<String>,
        /// The most similar text.
        nearest: Option<Box<NearestMatch>>,
    },
    /// Its lines occur more than once.
    Ambiguous {
        /// Which differences the match ignored.
        tier: MatchTier,
        /// Where they occur.
        matches: Vec<NumberedLine>,
    },
    /// The hunk is already applied.
    AlreadyApplied {
        /// The line, from 1.
        line: usize,
    },
    /// It adds lines without context.
    NoContext,
    /// The line after its `@@` isn't in the file.
    HeadingMissing {
        /// That line.
        heading: String,
        /// The most similar line.
        nearest: Option<Box<NearestMatch>>,
    },
}

impl PatchFault {
    pub(crate) fn malformed(at: usize, message: impl Into<String>) -> Self {
        Self::Malformed { line: at + 1, message: message.into() }
    }

    pub(crate) fn unsupported(at: usize, message: impl Into<String>) -> Self {
        Self::Unsupported { line: at + 1, message: message.into() }
    }
}

impl fmt::Display for PatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("The text contains no patch."),
            Self::Malformed { line, message } => write!(f, "The patch is malformed at its line {line}: {message}"),
            Self::Unsupported { line, message } => write!(f, "The patch can't be applied, line {line}: {message}"),
            Self::Exists { path, from: None, .. } => write!(f, "The patch creates `{path}`, which already exists."),
            Self::Exists { path, from: Some(from), .. } => {
                write!(f, "The patch moves or copies `{from}` to `{path}`, which already exists.")
            }
            Self::Missing { path } => write!(f, "The patch changes `{path}`, which doesn't exist."),
            Self::Leftover { path, line } => {
                write!(f, "The patch deletes `{path}`, but the file contains more than the patch says.")?;
                line.as_ref().map_or(Ok(()), |line| write!(f, "\n{line}"))
            }
            Self::Hunks { path, total, faults } => {
                write!(f, "{} of {total} hunks can't be applied to `{path}`.", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n{fault}"))
            }
            Self::Encoding { path, fault } => write!(f, "`{path}`: {fault}"),
        }
    }
}

impl std::error::Error for PatchFault {}

impl fmt::Display for HunkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hunk {} (line {} of the patch): {}", self.hunk, self.patch_line, self.why)
    }
}

impl fmt::Display for HunkFaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { expected, nearest } => {
                write!(f, "its lines aren't in the file. Expected:")?;
                expected.iter().try_for_each(|line| write!(f, "\n       | {line}"))?;
                match nearest {
                    Some(nearest) => write!(f, "\n{nearest}"),
                    None => write!(f, "\nNothing in the file is similar."),
                }
            }
            Self::Ambiguous { tier, matches } => {
                write!(f, "its lines are in the file more than once")?;
                match tier {
                    MatchTier::Exact => write!(f, ":")?,
                    other => write!(f, " when {other} may differ:")?,
                }
                matches.iter().try_for_each(|line| write!(f, "\n{line}"))
            }
            Self::AlreadyApplied { line } => {
                write!(f, "it is already applied: its result is at line {line}.")
            }
            Self::NoContext => f.write_str("it adds lines without saying where: no line around them is given."),
            Self::HeadingMissing { heading, nearest } => {
                write!(f, "the line `{heading}` after its `@@` isn't in the file.")?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, " {nearest}"))
            }
        }
    }
}

impl From<PatchFault> for ToolError {
    fn from(fault: PatchFault) -> Self {
        let message = fault.to_string();
        match fault {
            PatchFault::Nothing => Self::invalid_args(message)
                .with_hint("Give a unified diff, or a patch between `*** Begin Patch` and `*** End Patch`."),
            PatchFault::Malformed { .. } => {
                Self::invalid_args(message).with_hint("Correct that line of the patch and send it again.")
            }
            PatchFault::Unsupported { .. } => Self::invalid_args(message)
                .with_hint("Leave this part out of the patch and make the change another way."),
            PatchFault::Exists { path, from, format } => {
                Self::new(ErrorCode::PatchMismatch, message).with_hint(existing_hint(&path, from.is_some(), format))
            }
            PatchFault::Missing { .. } => Self::new(ErrorCode::NotFound, message),
            PatchFault::Leftover { .. } => Self::new(ErrorCode::PatchMismatch, message),
            PatchFault::Hunks { faults, .. } => Self::new(code(&faults), message).with_hint(hint(&faults)),
            PatchFault::Encoding { .. } => Self::invalid_args(message)
                .with_hint("Rewrite the file as UTF-8 with `write`, or use other characters."),
        }
    }
}

/// How to go on where a file already exists.
fn existing_hint(path: &str, is_move: bool, format: PatchFormat) -> String {
    let tool = if is_move { "`move` with `overwrite`" } else { "`write`" };
    match format {
        PatchFormat::Envelope => format!(
            "To change it, use `*** Update File: {path}`. To replace it, use {tool}, or put `*** Delete File: {path}` \
             before this in the same patch."
        ),
        PatchFormat::Unified => {
            format!("To change it, read `{path}` and send a diff against what is there. To replace it, use {tool}.")
        }
    }
}

fn code(faults: &[HunkFault]) -> ErrorCode {
    match faults.iter().all(|fault| matches!(fault.why, HunkFaultReason::Ambiguous { .. })) {
        true => ErrorCode::AmbiguousMatch,
        false => ErrorCode::PatchMismatch,
    }
}

fn hint(faults: &[HunkFault]) -> &'static str {
    match faults.first().map(|fault| &fault.why) {
        Some(HunkFaultReason::Ambiguous { .. }) => {
            "Give the hunk more lines of context until it matches in one place only."
        }
        Some(HunkFaultReason::AlreadyApplied { .. }) => "Leave out the hunks that are already applied.",
        Some(HunkFaultReason::NoContext) => {
            "Give at least one line before or after the new ones, or a line after `@@`."
        }
        _ => ErrorCode::PatchMismatch.next_step(),
    }
}
