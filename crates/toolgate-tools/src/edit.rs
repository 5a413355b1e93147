//! `edit`: replaces text inside a file, in one place or several; every other byte stays unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::{Diff, EditedText, MatchTier, edit_in, unified};

/// Maximum number of replacements in one call.
const MAX_EDITS: u32 = 100;

/// Replaces text inside a file.
pub struct EditTool;

/// The replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace.
    path: String,
    /// Copied exactly from the file, with enough lines around it to occur only once, unless `all` is set.
    #[serde(default)]
    find: Option<String>,
    /// The new text, taken literally.
    #[serde(default)]
    replace: Option<String>,
    /// Whether to replace all.
    #[serde(default)]
    all: bool,
    /// In place of `find` and `replace`: several, each on the result of the one before, all or none.
    #[serde(default)]
    #[schemars(length(max = MAX_EDITS))]
    edits: Vec<Replacement>,
    /// From `read`; refused if the file has changed since.
    #[serde(default)]
    expected_sha256: Option<String>,
}

// One of several replacements.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replacement {
    // Described where a single one is: the list of tools has to stay short.
    find: String,
    replace: String,
    #[serde(default)]
    all: bool,
}

/// The result of the edit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// How many were replaced.
    replacements: usize,
    /// How lenient the match was; usually `exact`.
    tier: MatchTier,
    /// Ignored or adjusted differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Line of the first one, from 1.
    first_line: usize,
    /// Lines added.
    additions: usize,
    /// Lines removed.
    deletions: usize,
    /// The unified diff.
    diff: String,
    /// New hash of the file.
    sha256: String,
}

impl Tool for EditTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "edit",
        version: "1.1.0",
        description: "Replace a text inside a file by another, or several with `edits`.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsWrite],
        side_effects: &[SideEffect::WritesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path), Effect::write(&args.path)]
    }

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let found = TargetFile::load(hands, &args.path)?;
        let edited = edited(&found, args)?;
        Ok(Some(Preview { diff: diff(&found, &edited.content).text }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let found = TargetFile::load(hands, &args.path)?;
        // The hash is computed concurrently; a version mismatch is reported before any match failure.
        let edited = edited(&found, &args);
        let moved_on = found.check_version(hands, args.expected_sha256.as_deref())?;
        let EditedText { content, replacements, tier, note, first_line } = edited?;
        let content = Blob::from(content);
        hash_ahead(&content);
        let note = match moved_on {
            None => note,
            // The text still occurs exactly once, so the edit still means the same.
            Some(what_happened) if tier == MatchTier::Exact && args.is_certain() => {
                Some(format!("The edit was rebased: since the file was last seen, {what_happened}"))
            }
            Some(what_happened) => return Err(found.stale(&what_happened)),
        };
        let Diff { text: diff, additions, deletions } = diff(&found, &content);
        let changes = hands.change(vec![found.into_edit(content, None)])?;
        let sha256 = changes.into_iter().find_map(|change| change.after).map(|after| after.sha256).unwrap_or_default();
        Ok(Output { path: args.path, replacements, tier, note, first_line, additions, deletions, diff, sha256 })
    }
}

impl Args {
    /// The replacements to make, in order.
    fn replacements(&self) -> Result<Vec<Replacement>, ToolError> {
        match (&self.find, &self.replace, self.edits.is_empty()) {
            (Some(find), Some(replace), true) => {
                Ok(vec![Replacement { find: find.clone(), replace: replace.clone(), all: self.all }])
            }
            (None, None, false) if !self.all => Ok(self.edits.clone()),
            (None, None, false) => Err(ToolError::invalid_args("With `edits`, each has an `all` of its own.")),
            (.., false) => Err(ToolError::invalid_args("Give either `find` and `replace`, or `edits`.")),
            (None, ..) => Err(ToolError::invalid_args("`find` is missing.")),
            (_, None, _) => Err(ToolError::invalid_args("`replace` is missing.")),
        }
    }

    /// Whether every text must occur exactly once, so that the edits mean the same in a file that has changed.
    fn is_certain(&self) -> bool {
        !self.all && self.edits.iter().all(|edit| !edit.all)
    }
}

/// The file with all replacements, each made on the result of the one before. The first that fails is named.
fn edited(found: &TargetFile, args: &Args) -> Result<EditedText, ToolError> {
    let replacements = args.replacements()?;
    let (encoding, count) = (found.encoding(), replacements.len());
    let mut done: Option<EditedText> = None;
    for (number, Replacement { find, replace, all }) in (1..).zip(&replacements) {
        let bytes = match &done {
            Some(edited) => &edited.content,
            None => found.bytes()?,
        };
        let next =
            edit_in(encoding, bytes, find, replace, *all).map_err(|fault| in_series(fault.into(), number, count))?;
        done = Some(match done {
            Some(before) => EditedText {
                replacements: before.replacements + next.replacements,
                tier: before.tier.max(next.tier),
                note: before.note.into_iter().chain(next.note).reduce(|first, second| format!("{first} {second}")),
                first_line: before.first_line.min(next.first_line),
                content: next.content,
            },
            None => next,
        });
    }
    done.ok_or_else(|| ToolError::invalid_args("`edits` is empty."))
}

/// The error of one of several edits, with its number.
fn in_series(error: ToolError, number: usize, count: usize) -> ToolError {
    match count {
        1 => error,
        _ => {
            ToolError { message: format!("Edit {number} of {count}: {} Nothing was changed.", error.message), ..error }
        }
    }
}

fn diff(found: &TargetFile, new: &[u8]) -> Diff {
    unified(Some(&found.path), Some(&found.path), found.bytes.as_deref().unwrap_or_default(), new)
}
