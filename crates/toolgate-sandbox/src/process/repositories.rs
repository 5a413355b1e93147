//! Git repositories beneath a folder, and what of them git would obey later: hooks and configuration. Found before a
//! command runs, they are protected; found anew after it, they are what it planted.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that are looked into at most, so that a huge tree costs no more than a large one.
const MOST_FOLDERS: usize = 50_000;

/// Names inside a repository that make git run something.
const OBEYED: &[&str] = &["hooks", "config", "config.worktree"];

/// What git obeys in every repository at and below `root`, submodules, worktrees and bare repositories included. Links
/// aren't followed. Only what exists is listed; `complete` is false if the tree was too large to see all of it.
pub fn obeyed_by_git(root: &Path) -> Obeyed {
    let mut found = Obeyed { places: Vec::new(), complete: true };
    let mut folders = VecDeque::from([root.to_owned()]);
    let mut looked = 0;
    while let Some(folder) = folders.pop_front() {
        looked += 1;
        if looked > MOST_FOLDERS {
            found.complete = false;
            break;
        }
        look_into(&folder, &mut found.places, &mut folders);
    }
    found.places.sort();
    found
}

/// The places that git obeys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obeyed {
    /// Sorted, each beneath the root that was asked for.
    pub places: Vec<PathBuf>,
    /// Whether everything was looked at.
    pub complete: bool,
}

impl Obeyed {
    /// What is here and wasn't there before.
    pub fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a PathBuf> {
        self.places.iter().filter(|place| before.places.binary_search(place).is_err())
    }
}

fn look_into(folder: &Path, places: &mut Vec<PathBuf>, folders: &mut VecDeque<PathBuf>) {
    let is_repository = is_repository(folder);
    if is_repository {
        let names = OBEYED.iter().map(|name| folder.join(name));
        places.extend(names.filter(|path| path.symlink_metadata().is_ok()));
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        if name == ".git" && !kind.is_dir() {
            // It says where the repository really is; pointing it elsewhere would bring another's hooks.
            places.push(entry.path());
        }
        // Objects are most of a repository, and nothing in them is obeyed.
        let of_no_interest = is_repository && ["objects", "refs", "logs", "hooks"].iter().any(|other| name == *other);
        if kind.is_dir() && !of_no_interest {
            folders.push_back(entry.path());
        }
    }
}

/// What git itself looks at.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
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

    fn names(root: &Path, found: &Obeyed) -> Vec<String> {
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
        let found = obeyed_by_git(root);
        let expected = [".git/config", ".git/hooks", ".git/modules/sub/config", "bare/config", "sub/.git"];
        assert_eq!(names(root, &found), expected);
        assert!(found.complete);
        touch(
            root,
            &["planted/.git/HEAD", "planted/.git/objects/x", "planted/.git/refs/x", "planted/.git/hooks/post-checkout"],
        );
        let after = obeyed_by_git(root);
        assert_eq!(after.since(&found).collect::<Vec<_>>(), [&root.join("planted/.git/hooks")]);
    }
}
