//! Git repositories beneath a directory, and what of them git would load later: hooks and configuration. Found before a
//! command runs, they are protected; found anew after it, they are what it planted.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that are looked into at most, so that a huge tree costs no more than a large one.
const MOST_DIRECTORIES: usize = 50_000;

/// Names inside a repository that make git run something.
const OBEYED: &[&str] = &["hooks", "config", "config.worktree"];

/// What git runs or loads in every repository at and below `root`, submodules, worktrees and bare repositories included. Links
/// aren't followed. Only what exists is listed; `complete` is false if the tree was too large to see all of it.
pub fn autoloaded_by_git(root: &Path) -> GitAutoloaded {
    let mut found = GitAutoloaded { places: Vec::new(), complete: true };
    let mut directories = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(directory) = directories.pop_front() {
        looked += 1;
        if looked > MOST_DIRECTORIES {
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
    /// Whether everything was looked at.
    pub complete: bool,
}

impl GitAutoloaded {
    /// What is here and wasn't there before.
    pub fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.places.iter().filter(|place| before.places.binary_search(place).is_err())
    }
}

fn look_into(directory: &Path, places: &mut Vec<PathBuf>, directories: &mut VecDeque<PathBuf>) {
    let is_repository = is_repository(directory);
    if is_repository {
        let names = OBEYED.iter().map(|name| directory.join(name));
        places.extend(names.filter(|path| path.symlink_metadata().is_ok()));
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        if name == ".git" && !kind.is_dir() {
            // It says where the repository really is; pointing it elsewhere would bring another's hooks.
            places.push(entry.path());
        }
        // Objects are most of a repository, and git runs nothing in them.
        let of_no_interest = is_repository && ["objects", "refs", "logs", "hooks"].iter().any(|other| name == *other);
        if kind.is_dir() && !of_no_interest {
            directories.push_back(entry.path());
        }
    }
}

/// What git itself looks at.
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
