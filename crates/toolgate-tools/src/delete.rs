//! `delete`: removes a file, or a directory with everything in it (C-50). What is removed is kept for undo. Of a link it
//! removes the link, never what that leads to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, EntryKind, ErrorCode, Hands, Permission, Risk, SideEffect, Spec, Tool, ToolError, WorkspacePath,
};

use crate::support::target_file::TargetFile;

/// Files removed in one call at the most.
const MOST_FILES: usize = 10_000;

/// Removes a file or directory.
pub struct DeleteTool;

/// What to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file or directory, relative to the workspace. Of a link, the link itself is removed.
    path: String,
    /// Whether a directory is removed with everything in it.
    #[serde(default)]
    recursive: bool,
}

/// What is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The path.
    path: String,
    /// How many files were removed.
    files: usize,
}

impl Tool for DeleteTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "delete",
        version: "1.0.0",
        description: "Remove a file, or a directory with everything in it. `undo` brings it back.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsDelete],
        side_effects: &[SideEffect::DeletesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path), Effect::delete(&args.path)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let target = hands.target(Access::Delete, &args.path)?;
        match TargetFile::load_at(hands, &args.path, target.clone()) {
            Ok(found) => {
                found.bytes()?;
                hands.change(vec![found.into_removal()])?;
                Ok(Output { path: args.path, files: 1 })
            }
            Err(error) if error.code == ErrorCode::NotAFile => remove_directory(&args, &target, hands),
            Err(error) => Err(error),
        }
    }
}

fn remove_directory(args: &Args, directory: &WorkspacePath, hands: &Hands) -> Result<Output, ToolError> {
    let mut files = Vec::new();
    collect(hands, directory, &mut files)?;
    if !args.recursive {
        let message = format!("`{}` is a directory with {} files in it.", args.path, files.len());
        return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Set `recursive` to remove it whole."));
    }
    let count = files.len();
    if count > 0 {
        hands.change(files.into_iter().map(TargetFile::into_removal).collect())?;
    }
    hands.remove_empty_directories(directory)?;
    Ok(Output { path: args.path.clone(), files: count })
}

/// Everything in a directory. What can't be removed whole isn't removed at all.
fn collect(hands: &Hands, directory: &WorkspacePath, files: &mut Vec<TargetFile>) -> Result<(), ToolError> {
    if hands.hides_something(directory)? {
        let message = format!("`{}` holds files that are hidden from tools.", directory.path);
        return Err(ToolError::new(ErrorCode::SensitivePath, message));
    }
    for entry in hands.entries_at(directory)? {
        match entry.kind {
            EntryKind::Directory => collect(hands, &entry.place, files)?,
            EntryKind::File | EntryKind::Link if files.len() == MOST_FILES => {
                let message = format!("There are more than {MOST_FILES} files in it.");
                return Err(
                    ToolError::new(ErrorCode::LimitReached, message).with_hint("Remove its directories one by one.")
                );
            }
            EntryKind::File | EntryKind::Link => {
                files.push(TargetFile::load_at(hands, &hands.shown(&entry.place), entry.place.clone())?);
            }
            EntryKind::Other => {
                let message =
                    format!("`{}` is a pipe, socket or device, which can't be brought back.", entry.place.path);
                return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Remove it with `shell` first."));
            }
        }
    }
    Ok(())
}
