//! The git directory of a workspace that is a linked worktree or a submodule: it is outside of the workspace, and git can do
//! nothing without it. The workspace only names it, and a repository could name anything; so it counts only if it names the
//! workspace in return, as git makes it.

use std::path::{Path, PathBuf};

/// The largest file of git's that is read here.
const MAX_BYTES: u64 = 64 * 1024;

/// The git directory outside of `workspace` that belongs to it; none if there is none.
pub(super) fn outside_of(workspace: &Path) -> Option<PathBuf> {
    let link = workspace.join(".git");
    let own = target(&link, "gitdir: ")?;
    let found = if names_back(&own.join("gitdir"), &link) {
        // A linked worktree: objects, refs and configuration are in the directory that all worktrees share.
        let common = std::fs::canonicalize(own.join(read(&own.join("commondir"))?.trim())).ok()?;
        own.starts_with(&common).then_some(common)?
    } else if is_submodule_of(&own, workspace) {
        own
    } else {
        return None;
    };
    (!found.starts_with(workspace)).then_some(found)
}

/// The directory that a file names after `prefix`.
fn target(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read(file)?;
    let named = text.strip_prefix(prefix)?.trim_end_matches('\n');
    std::fs::canonicalize(file.parent()?.join(named)).ok()
}

fn names_back(file: &Path, link: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    read(file).is_some_and(|text| real(Path::new(text.trim_end_matches('\n'))) == real(link))
}

/// Whether the configuration of a submodule's git directory says that `workspace` is its worktree.
fn is_submodule_of(git: &Path, workspace: &Path) -> bool {
    let configuration = read(&git.join("config")).unwrap_or_default();
    let values =
        configuration.lines().filter_map(|line| line.trim().strip_prefix("worktree")?.trim_start().strip_prefix('='));
    let worktree = values.filter_map(|value| std::fs::canonicalize(git.join(value.trim())).ok()).next_back();
    worktree.is_some() && worktree == std::fs::canonicalize(workspace).ok()
}

/// A small text file.
fn read(file: &Path) -> Option<String> {
    let found = std::fs::symlink_metadata(file).ok().filter(|found| found.is_file() && found.len() <= MAX_BYTES);
    found.and_then(|_| std::fs::read_to_string(file).ok())
}
