//! Finds the git worktree that a path is in, and the git directories that belong to it. In the worktree of a repository `.git` is a
//! directory; in a linked worktree and in a submodule it is a file that names the directory (`gitdir: …`).

use toolgate_contract::{Effect, Files, WorkspacePath};

/// A repository's directory in its worktree, or the file that names the directory.
const GIT_DIRECTORY: &str = ".git";
/// The largest file that names a directory.
const MAX_LINK_BYTES: u64 = 16 * 1024;

/// A path in a worktree, and where git has what it knows about the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrackedPath {
    /// The git directory of the worktree, which holds its index.
    pub(super) git: WorkspacePath,
    /// The git directory that all worktrees of the repository share. It holds the objects and `info/exclude`.
    pub(super) common: WorkspacePath,
    /// The path in the worktree; the worktree itself if it is empty.
    pub(super) path: String,
}

impl TrackedPath {
    /// The path in the innermost worktree that it is in; none if it is in none, or if git's directories are outside of the roots.
    pub(super) fn find(place: &WorkspacePath, files: &dyn Files) -> Option<Self> {
        for worktree in place.ancestors().rev() {
            let git = worktree.join(GIT_DIRECTORY);
            let Some(found) = files.node(&git, false).ok()? else { continue };
            let git =
                if found.state.is_directory() { git } else { named_directory(&git, "gitdir:", &worktree, files)? };
            let common = match files.node(&git.join("commondir"), false).ok()? {
                Some(_) => named_directory(&git.join("commondir"), "", &git, files)?,
                None => git.clone(),
            };
            let path = place.path[worktree.path.len()..].trim_start_matches('/').to_owned();
            return Some(Self { git, common, path });
        }
        None
    }

    /// The same worktree's path of an entry in this directory.
    pub(super) fn join(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) };
        Self { path, ..self.clone() }
    }

    /// The index of the worktree.
    pub(super) fn index(&self) -> WorkspacePath {
        self.git.join("index")
    }
}

/// The directory that a file of git names after a prefix. A relative name starts at `base`.
fn named_directory(
    file: &WorkspacePath,
    prefix: &str,
    base: &WorkspacePath,
    files: &dyn Files,
) -> Option<WorkspacePath> {
    let content = files.content(file, MAX_LINK_BYTES).ok()??;
    let name = std::str::from_utf8(&content.bytes).ok()?.strip_prefix(prefix)?.trim();
    let path = if name.starts_with('/') { name.to_owned() } else { format!("{}/{name}", files.shown(base)) };
    let located = files.locate(vec![Effect::read(path)]).ok()?;
    let place = located.into_iter().next()?.real?;
    files.node(&place, false).ok()?.filter(|found| found.state.is_directory())?;
    Some(place)
}
