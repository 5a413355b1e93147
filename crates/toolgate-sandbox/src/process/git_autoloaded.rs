//! Finds git repositories beneath a directory, and their files that git runs or loads automatically: hooks and configuration.
//! What exists before a command runs is protected; what exists only after it was created by the command.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that are read at most, which limits the time that a huge tree takes.
const MAX_DIRECTORIES: usize = 50_000;

/// Names inside a repository that make git run something.
const AUTOLOADED_NAMES: &[&str] = &["hooks", "config", "config.worktree"];

/// What git runs or loads in every repository at and below `root`, submodules, worktrees and bare repositories included. Links
/// aren't followed. Only what exists is listed; `complete` is false if the tree was too large to see all of it.
pub fn autoloaded_by_git(root: &Path) -> GitAutoloaded {
    let mut found = GitAutoloaded { places: Vec::new(), complete: true };
    let mut directories = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(directory) = directories.pop_front() {
        looked += 1;
        if looked > MAX_DIRECTORIES {
            found.complete = false;
            break;
        }
        look_into(&directory, &mut found.places, &mut directories);
    }
    found.places.sort();
    found
}

/// The paths that git runs or loads automatically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitAutoloaded {
    /// Sorted, each beneath the root that was asked for.
    pub places: Vec<PathBuf>,
    /// Whether all directories were read.
    pub complete: bool,
}

impl GitAutoloaded {
    /// The paths that `before` doesn't have.
    pub fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.places.iter().filter(|place| before.places.binary_search(place).is_err())
    }
}

fn look_into(directory: &Path, places: &mut Vec<PathBuf>, directories: &mut VecDeque<PathBuf>) {
    let is_repository = is_repository(directory);
    if is_repository {
        let names = AUTOLOADED_NAMES.iter().map(|name| directory.join(name));
        places.extend(names.filter(|path| path.symlink_metadata().is_ok()));
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        if name == ".git" && !kind.is_dir() {
            // A `.git` file names the repository's directory; pointing it elsewhere would load another repository's hooks.
            places.push(entry.path());
        }
        // Objects are most of a repository, and git runs nothing in them.
        let is_skipped = is_repository && ["objects", "refs", "logs", "hooks"].iter().any(|other| name == *other);
        if kind.is_dir() && !is_skipped {
            directories.push_back(entry.path());
        }
    }
}

/// Whether git would take the directory for a repository, by the entries that git itself checks.
fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, paths: &[&str]) {
        for path in paths {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn names(root: &Path, found: &GitAutoloaded) -> Vec<String> {
        found.places.iter().map(|place| place.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn repositories_are_found_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        touch(root, &[".git/HEAD", ".git/config", ".git/objects/x", ".git/refs/x", ".git/hooks/pre-commit"]);
        touch(root, &[".git/modules/sub/HEAD", ".git/modules/sub/config", ".git/modules/sub/objects/x"]);
        touch(
            root,
            &[".git/modules/sub/refs/x", "sub/.git", "bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/config"],
        );
        touch(root, &["not/HEAD", "not/config"]);
        let found = autoloaded_by_git(root);
        let expected = [".git/config", ".git/hooks", ".git/modules/sub/config", "bare/config", "sub/.git"];
        assert_eq!(names(root, &found), expected);
        assert!(found.complete);
        touch(
            root,
            &["planted/.git/HEAD", "planted/.git/objects/x", "planted/.git/refs/x", "planted/.git/hooks/post-checkout"],
        );
        let after = autoloaded_by_git(root);
        assert_eq!(after.since(&found).collect::<Vec<_>>(), [&root.join("planted/.git/hooks")]);
    }
}
