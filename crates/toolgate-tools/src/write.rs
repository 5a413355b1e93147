//! `write`: puts a whole file in place, or adds to its end (C-47).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use crate::file::Found;
use crate::text::{Diff, unified};

/// Puts a whole file in place.
pub struct Write;

/// What to write where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace. Folders that are missing are made.
    path: String,
    /// The text.
    content: String,
    /// Whether to replace the file or to add to its end.
    #[serde(default)]
    mode: Mode,
    /// The version this is meant for, from `read`; refused if the file is another by now.
    #[serde(default)]
    expected_sha256: Option<String>,
}

/// How to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Replaces what is there.
    #[default]
    Overwrite,
    /// Adds to its end.
    Append,
}

/// What became of the file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// What was done.
    operation: Operation,
    /// Size of the file now.
    size: usize,
    /// Lines that came.
    additions: usize,
    /// Lines that went.
    deletions: usize,
    /// The unified diff.
    diff: String,
    /// Hash of the file now.
    sha256: String,
}

/// What was done.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// The file is new.
    Created,
    /// It was replaced.
    Overwritten,
    /// It was added to.
    Appended,
    /// It held this text already.
    Unchanged,
}

impl Tool for Write {
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

    fn preview(&self, args: &Args, hands: &Hands) -> Option<Preview> {
        let found = Found::look(hands, &args.path).ok()?;
        Some(Preview { diff: diff(&found, &wanted(&found, args)).text })
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let found = Found::look(hands, &args.path)?;
        let moved_on = found.check_version(hands, args.expected_sha256.as_deref())?;
        if let (Some(what_happened), Mode::Overwrite) = (&moved_on, args.mode) {
            return Err(found.stale(what_happened));
        }
        let new = Blob::from(wanted(&found, &args));
        new.hash_ahead();
        let Diff { text: diff, additions, deletions } = diff(&found, &new);
        let operation = match (&found.bytes, args.mode) {
            (None, _) => Operation::Created,
            (Some(old), _) if *old == new => Operation::Unchanged,
            (Some(_), Mode::Overwrite) => Operation::Overwritten,
            (Some(_), Mode::Append) => Operation::Appended,
        };
        let (size, hash) = (new.len(), new.sha256().to_owned());
        if !matches!(operation, Operation::Unchanged) {
            hands.change(vec![found.becoming(new, None)])?;
        }
        Ok(Output { path: args.path, operation, size, additions, deletions, diff, sha256: hash })
    }
}

fn wanted(found: &Found, args: &Args) -> Vec<u8> {
    match (args.mode, &found.bytes) {
        (Mode::Append, Some(old)) => [old, args.content.as_bytes()].concat(),
        _ => args.content.clone().into_bytes(),
    }
}

fn diff(found: &Found, new: &[u8]) -> Diff {
    let before = found.bytes.is_some().then_some(found.path.as_str());
    unified(before, Some(&found.path), found.bytes.as_deref().unwrap_or_default(), new)
}
