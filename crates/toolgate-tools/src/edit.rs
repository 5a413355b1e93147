//! `edit`: replaces one text by another inside a file; every other byte stays unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::{Diff, EditedText, MatchTier, edit_in, unified};

/// Replaces text inside a file.
pub struct EditTool;

/// The replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace.
    path: String,
    /// The text to replace, copied exactly from the file. It must occur only once, unless `all` is set.
    find: String,
    /// The new text, taken literally.
    replace: String,
    /// Whether to replace all.
    #[serde(default)]
    all: bool,
    /// The version this edit is for, from `read`; refused if the file has changed since.
    #[serde(default)]
    expected_sha256: Option<String>,
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
        version: "1.0.0",
        description: "Replace a text inside a file by another. Copy `find` exactly from the file, with enough lines \
                      around it to be unique.",
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
            Some(what_happened) if tier == MatchTier::Exact && !args.all => {
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

fn edited(found: &TargetFile, args: &Args) -> Result<EditedText, ToolError> {
    let bytes = found.bytes()?;
    Ok(edit_in(found.encoding(), bytes, &args.find, &args.replace, args.all)?)
}

fn diff(found: &TargetFile, new: &[u8]) -> Diff {
    unified(Some(&found.path), Some(&found.path), found.bytes.as_deref().unwrap_or_default(), new)
}
