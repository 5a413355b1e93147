//! `edit`: replaces one text by another inside a file; every byte outside stays as it is (C-48).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::target_file::TargetFile;
use crate::support::text::{Diff, EditedText, MatchTier, edit_in, unified};

/// Replaces text inside a file.
pub struct EditTool;

/// What to replace where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace.
    path: String,
    /// The text to replace, copied exactly from the file. It must stand there only once, unless `all` is set.
    find: String,
    /// The text to put there, taken literally.
    replace: String,
    /// Whether to replace every place.
    #[serde(default)]
    all: bool,
    /// The version this is meant for, from `read`; refused if the file is another by now.
    #[serde(default)]
    expected_sha256: Option<String>,
}

/// What became of the file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// How many places were replaced.
    replacements: usize,
    /// How far the match had to be stretched; `exact` is the rule.
    tier: MatchTier,
    /// What was overlooked, or done beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Line of the first place, from 1.
    first_line: usize,
    /// Lines that came.
    additions: usize,
    /// Lines that went.
    deletions: usize,
    /// The unified diff.
    diff: String,
    /// Hash of the file now.
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

    fn preview(&self, args: &Args, hands: &Hands) -> Option<Preview> {
        let found = TargetFile::look(hands, &args.path).ok()?;
        let edited = edited(&found, args).ok()?;
        Some(Preview { diff: diff(&found, &edited.content).text })
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let found = TargetFile::look(hands, &args.path)?;
        // The file is hashed meanwhile; an edit of another version is refused for that first.
        let edited = edited(&found, &args);
        let moved_on = found.check_version(hands, args.expected_sha256.as_deref())?;
        let EditedText { content, replacements, tier, note, first_line } = edited?;
        let content = Blob::from(content);
        content.hash_ahead();
        let note = match moved_on {
            None => note,
            // The text still stands there once and exactly: the edit means the same as it did.
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
