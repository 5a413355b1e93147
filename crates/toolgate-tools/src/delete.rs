//! `delete`: removes a file, or a directory with everything in it. Removed content is saved for undo. For a symbolic
//! link, it removes the link, never the target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, EntryKind, ErrorCode, Hands, Permission, Risk, SideEffect, Spec, Tool, ToolError, WorkspacePath,
};

use crate::support::target_file::TargetFile;

/// Maximum number of files removed in one call.
const MAX_FILES: usize = 10_000;

/// Removes a file or directory.
pub struct DeleteTool;

/// What to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file or directory, relative to the workspace. A link itself is removed.
    path: String,
    /// Whether to remove a directory with everything in it.
    #[serde(default)]
    recursive: bool,
}

/// The result.
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

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
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

fn remove_directory(args: &Args, directory: &WorkspacePath, hands: &dyn Hands) -> Result<Output, ToolError> {
    let mut files = Vec::new();
    collect(hands, directory, &mut files)?;
    if !args.recursive {
        let message = format!("`{}` is a directory with {} files in it.", args.path, files.len());
        return Err(
            ToolError::new(ErrorCode::NotAFile, message).with_hint("Set `recursive` to remove the entire directory.")
        );
    }
    let count = files.len();
    if count > 0 {
        hands.change(files.into_iter().map(TargetFile::into_removal).collect())?;
    }
    hands.remove_empty_directories(directory)?;
    Ok(Output { path: args.path.clone(), files: count })
}

/// Collects every file in a directory. If any entry can't be removed, nothing is removed.
fn collect(hands: &dyn Hands, directory: &WorkspacePath, files: &mut Vec<TargetFile>) -> Result<(), ToolError> {
    if hands.hides_something(directory)? {
        let message = format!("`{}` holds files that are hidden from tools.", directory.path);
        return Err(ToolError::new(ErrorCode::SensitivePath, message));
    }
    for entry in hands.entries_at(directory)? {
        match entry.kind {
            EntryKind::Directory => collect(hands, &entry.place, files)?,
            EntryKind::File | EntryKind::Link if files.len() == MAX_FILES => {
                let message = format!("There are more than {MAX_FILES} files in it.");
                return Err(
                    ToolError::new(ErrorCode::LimitReached, message).with_hint("Remove its directories one by one.")
                );
            }
            EntryKind::File | EntryKind::Link => {
                files.push(TargetFile::load_at(hands, &hands.shown(&entry.place), entry.place.clone())?);
            }
            EntryKind::Other => {
                let message = format!("`{}` is a pipe, socket or device, which undo can't restore.", entry.place.path);
                return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Remove it with `shell` first."));
            }
        }
    }
    Ok(())
}
