//! `delete`: removes a file, or a directory with everything in it. Removed content is saved for undo. For a symbolic
//! link, it removes the link, never the target.

use std::os::fd::BorrowedFd;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Change, ChangeSource, Effect, ErrorCode, FileState, Hands, PIPE_MODE, Permission, Preview, Risk,
    SideEffect, Spec, Tool, ToolError, WorkspacePath, counted,
};

use crate::support::size;

/// Maximum number of files and directories removed in one call.
const MAX_PATHS: usize = 20_000;

/// Maximum number of paths that a preview lists.
const SHOWN_PATHS: usize = 10;

/// Removes a file or directory.
pub struct DeleteTool;

/// What to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace. Of a link, the link itself.
    path: String,
    /// A directory with everything in it.
    #[serde(default)]
    recursive: bool,
    /// Although it is larger than what `undo` can keep.
    #[serde(default)]
    permanently: bool,
}

/// The result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The path.
    path: String,
    /// How many files were removed, without directories.
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

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let removals = checked_removals(args, hands, hands.place(&args.path)?)?;
        Ok(Some(Preview { diff: summary(args, &removals, hands.undo_room()) }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let removals = checked_removals(&args, hands, hands.target(Access::Delete, &args.path)?)?;
        let files = removals.iter().filter(|change| !is_directory(change)).count();
        hands.write_changes(removals, &NothingNew)?;
        Ok(Output { path: args.path, files })
    }
}

/// What a call removes, unless it may not.
fn checked_removals(args: &Args, hands: &dyn Hands, target: WorkspacePath) -> Result<Vec<Change>, ToolError> {
    let removals = removals(hands, &args.path, target)?;
    if is_directory(&removals[0]) && !args.recursive {
        let files = removals.iter().filter(|change| !is_directory(change)).count();
        let message = format!("`{}` is a directory with {} in it.", args.path, counted(files, "file"));
        return Err(
            ToolError::new(ErrorCode::NotAFile, message).with_hint("Set `recursive` to remove the entire directory.")
        );
    }
    if !args.permanently {
        check_undo_room(&args.path, &removals, hands.undo_room())?;
    }
    Ok(removals)
}

fn is_directory(change: &Change) -> bool {
    change.before.as_ref().is_some_and(FileState::is_directory)
}

fn bytes_of(change: &Change) -> u64 {
    change.before.as_ref().map_or(0, |before| before.bytes)
}

/// What is removed, for the person who is asked: how much of it, the first paths, and whether undo brings it back.
fn summary(args: &Args, removals: &[Change], room: u64) -> String {
    let files: Vec<&Change> = removals.iter().filter(|change| !is_directory(change)).collect();
    let bytes = files.iter().map(|file| bytes_of(file)).sum();
    let counted = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let mut text = format!("{}: {}", args.path, counted(files.len(), "file", "files"));
    if is_directory(&removals[0]) {
        text += &format!(" in {}", counted(removals.len() - files.len(), "directory", "directories"));
    }
    let undo = if bytes <= room { "`undo` brings it back" } else { "NOTHING brings it back" };
    text += &format!(", {}; {undo}\n", size::in_words(bytes));
    for file in files.iter().take(SHOWN_PATHS) {
        text += &format!("-{} ({})\n", file.path, size::in_words(bytes_of(file)));
    }
    match files.len().saturating_sub(SHOWN_PATHS) {
        0 => text,
        more => text + &format!("… and {more} more\n"),
    }
}

/// The removal of a path and of everything in it. If any of it can't be removed, nothing is.
fn removals(hands: &dyn Hands, path: &str, target: WorkspacePath) -> Result<Vec<Change>, ToolError> {
    let (mut removals, mut pending) = (Vec::new(), vec![target]);
    while let Some(place) = pending.pop() {
        let before = hands.state_at(&place)?.ok_or_else(|| ToolError::not_found(path))?;
        let path = hands.shown(&place);
        if before.is_directory() {
            if hands.hides_something(&place)? {
                let message = format!("`{path}` holds files that are hidden from tools.");
                return Err(ToolError::new(ErrorCode::SensitivePath, message));
            }
            pending.extend(hands.entries_at(&place)?.into_iter().rev().map(|entry| entry.place));
        } else if !(before.is_file() || before.is_link() || before.kind() == PIPE_MODE) {
            let message = format!("`{path}` is a socket or device, which undo can't restore.");
            return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Remove it with `shell` first."));
        }
        if removals.len() == MAX_PATHS {
            let message = format!("There are more than {MAX_PATHS} files and directories in it.");
            return Err(
                ToolError::new(ErrorCode::LimitReached, message).with_hint("Remove its directories one by one.")
            );
        }
        removals.push(Change { path, place, before: Some(before), after: None });
    }
    Ok(removals)
}

/// Refuses what undo couldn't bring back.
fn check_undo_room(path: &str, removals: &[Change], room: u64) -> Result<(), ToolError> {
    let bytes: u64 = removals.iter().filter_map(|change| Some(change.before.as_ref()?.bytes)).sum();
    if bytes <= room {
        return Ok(());
    }
    let message = format!(
        "`{path}` holds {}, and undo can keep {room} of them (`undo.quota_bytes`), so removing it can't be undone.",
        counted(bytes, "byte")
    );
    Err(ToolError::new(ErrorCode::LimitReached, message)
        .with_hint("Set `permanently` to remove it all the same, or ask the person to raise `undo.quota_bytes`."))
}

/// A change that only removes needs no new content.
struct NothingNew;

impl ChangeSource for NothingNew {
    fn put(&self, _change: &Change, _directory: BorrowedFd<'_>, _name: &[u8], _temporary: &str) -> std::io::Result<()> {
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}
