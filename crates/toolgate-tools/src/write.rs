//! `write`: creates or replaces a file, or appends to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::{Diff, unified};

/// Creates or replaces a file.
pub struct WriteTool;

/// File and content.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace; missing directories are created.
    path: String,
    /// The text.
    content: String,
    /// Replaces the file or appends to it.
    #[serde(default)]
    mode: WriteMode,
    /// From `read`; refused if the file has changed since.
    #[serde(default)]
    expected_sha256: Option<String>,
}

/// How to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    // Described with the argument: the list of tools has to stay short.
    #[default]
    Overwrite,
    Append,
}

/// The result of the write.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// What was done.
    operation: WriteOperation,
    /// New size of the file.
    size: usize,
    /// Lines added.
    additions: usize,
    /// Lines removed.
    deletions: usize,
    /// The unified diff.
    diff: String,
    /// New hash of the file.
    sha256: String,
}

/// What was done.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WriteOperation {
    /// The file is new.
    Created,
    /// Replaced.
    Overwritten,
    /// Appended to.
    Appended,
    /// Had this content already.
    Unchanged,
}

impl Tool for WriteTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "write",
        version: "1.0.0",
        description: "Create a file or replace it whole, or append to it. To change a part of a file, use `edit`.",
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
        Ok(Some(Preview { diff: diff(&found, &wanted(&found, args)).text }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let found = TargetFile::load(hands, &args.path)?;
        let moved_on = found.check_version(hands, args.expected_sha256.as_deref())?;
        if let (Some(what_happened), WriteMode::Overwrite) = (&moved_on, args.mode) {
            return Err(found.stale(what_happened));
        }
        let new = Blob::from(wanted(&found, &args));
        hash_ahead(&new);
        let Diff { text: diff, additions, deletions } = diff(&found, &new);
        let operation = match (&found.bytes, args.mode) {
            (None, _) => WriteOperation::Created,
            (Some(old), _) if *old == new => WriteOperation::Unchanged,
            (Some(_), WriteMode::Overwrite) => WriteOperation::Overwritten,
            (Some(_), WriteMode::Append) => WriteOperation::Appended,
        };
        let (size, hash) = (new.len(), new.sha256().to_owned());
        if !matches!(operation, WriteOperation::Unchanged) {
            hands.change(vec![found.into_edit(new, None)])?;
        }
        Ok(Output { path: args.path, operation, size, additions, deletions, diff, sha256: hash })
    }
}

fn wanted(found: &TargetFile, args: &Args) -> Vec<u8> {
    match (args.mode, &found.bytes) {
        (WriteMode::Append, Some(old)) => [old, args.content.as_bytes()].concat(),
        _ => args.content.clone().into_bytes(),
    }
}

fn diff(found: &TargetFile, new: &[u8]) -> Diff {
    let before = found.bytes.is_some().then_some(found.path.as_str());
    unified(before, Some(&found.path), found.bytes.as_deref().unwrap_or_default(), new)
}
