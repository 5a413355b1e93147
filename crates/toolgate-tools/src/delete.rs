//! `delete`: removes a file, or a folder with everything in it (C-50). What is removed is kept for undo. Of a link it
//! removes the link, never what that leads to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, EntryKind, ErrorCode, Hands, Permission, Place, Risk, SideEffect, Spec, Tool, ToolError,
};

use crate::file::Found;

/// Files removed in one call at the most.
const MOST_FILES: usize = 10_000;

/// Removes a file or folder.
pub struct Delete;

/// What to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file or folder, relative to the workspace. Of a link, the link itself is removed.
    path: String,
    /// Whether a folder is removed with everything in it.
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

impl Tool for Delete {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "delete",
        version: "1.0.0",
        description: "Remove a file, or a folder with everything in it. `undo` brings it back.",
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
        match Found::look_at(hands, &args.path, target.clone()) {
            Ok(found) => {
                found.bytes()?;
                hands.change(vec![found.vanishing()])?;
                Ok(Output { path: args.path, files: 1 })
            }
            Err(error) if error.code == ErrorCode::NotAFile => remove_folder(&args, &target, hands),
            Err(error) => Err(error),
        }
    }
}

fn remove_folder(args: &Args, folder: &Place, hands: &Hands) -> Result<Output, ToolError> {
    let mut files = Vec::new();
    collect(hands, folder, &mut files)?;
    if !args.recursive {
        let message = format!("`{}` is a folder with {} files in it.", args.path, files.len());
        return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Set `recursive` to remove it whole."));
    }
    let count = files.len();
    if count > 0 {
        hands.change(files.into_iter().map(Found::vanishing).collect())?;
    }
    hands.remove_empty_folders(folder)?;
    Ok(Output { path: args.path.clone(), files: count })
}

/// Everything in a folder. What can't be removed whole isn't removed at all.
fn collect(hands: &Hands, folder: &Place, files: &mut Vec<Found>) -> Result<(), ToolError> {
    if hands.hides_something(folder)? {
        let message = format!("`{}` holds files that are hidden from tools.", folder.path);
        return Err(ToolError::new(ErrorCode::SensitivePath, message));
    }
    for entry in hands.entries_at(folder)? {
        match entry.kind {
            EntryKind::Folder => collect(hands, &entry.place, files)?,
            EntryKind::File | EntryKind::Link if files.len() == MOST_FILES => {
                let message = format!("There are more than {MOST_FILES} files in it.");
                return Err(
                    ToolError::new(ErrorCode::LimitReached, message).with_hint("Remove its folders one by one.")
                );
            }
            EntryKind::File | EntryKind::Link => {
                files.push(Found::look_at(hands, &hands.shown(&entry.place), entry.place.clone())?);
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
