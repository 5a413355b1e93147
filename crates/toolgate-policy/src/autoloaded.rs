//! Files that programs load or run automatically: git's hooks, an editor's tasks, another agent's configuration. The
//! list is data, `autoloaded.toml`, with its own examples. What git itself writes during its work is allowed: its
//! configuration and the todo list of a rebase, as long as their content is ordinary, see [`suspicious_in_git_config`]
//! and [`suspicious_in_git_todo`].

mod git_config;
mod git_todo;

use std::sync::LazyLock;

use serde::Deserialize;

pub(crate) use self::git_config::is_plain_url;
pub use self::git_config::{GitConfigJudgement, judge_git_config, suspicious_in_git_config};
pub use self::git_todo::suspicious_in_git_todo;
use toolgate_config::ConfigFault;

use crate::path_glob::{CaseFolding, PathGlob, PathSet};

/// A file that programs load or run automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoloadedFile {
    /// Which program loads or runs it, in a sentence.
    pub reason: &'static str,
    /// Whether the file can have harmless content.
    pub kind: AutoloadedKind,
}

/// Whether a file that programs load or run automatically can have harmless content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutoloadedKind {
    /// It is never harmless.
    #[default]
    Always,
    /// A repository's configuration: harmless if all settings are ordinary.
    GitConfig,
    /// A file that points to another part of git's data: harmless if that is in the workspace.
    GitLink,
    /// A file that points to a repository's hooks and configuration: harmless in a worktree of that repository.
    GitCommon,
    /// The todo list of a rebase: harmless if it runs nothing.
    GitTodo,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AutoloadedEntry {
    reason: String,
    paths: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    kind: AutoloadedKind,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    #[serde(rename = "match")]
    matches: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    no_match: Vec<String>,
}

static ENTRIES: LazyLock<Vec<AutoloadedEntry>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct AutoloadedTable {
        place: Vec<AutoloadedEntry>,
    }
    serde_json::from_str::<AutoloadedTable>(include_str!(concat!(env!("OUT_DIR"), "/autoloaded.json")))
        .expect("the built-in list is tested")
        .place
});

/// Each entry's patterns, and its exceptions.
static SETS: LazyLock<Vec<(PathSet, PathSet)>> = LazyLock::new(|| {
    let set = |patterns: &[String], build: fn(&str, CaseFolding) -> Result<PathGlob, ConfigFault>| {
        let globs: Vec<_> =
            patterns.iter().map(|path| build(path, CaseFolding::Folded).expect("the list is tested")).collect();
        PathSet::new(CaseFolding::Folded, globs.iter().map(|glob| (0, glob))).expect("the list is tested")
    };
    let sets = |entry: &AutoloadedEntry| {
        let build = if entry.alone { PathGlob::alone } else { PathGlob::new };
        (set(&entry.paths, build), set(&entry.except, PathGlob::alone))
    };
    ENTRIES.iter().map(sets).collect()
});

/// For each entry, the directories that contain such files. A link with one of these names could lead to anything.
static DIRECTORIES: LazyLock<Vec<PathSet>> = LazyLock::new(|| {
    let above = |path: &String| {
        let ends = path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect::<Vec<_>>();
        ends.into_iter().filter(|directory| !directory.ends_with("**"))
    };
    let set = |entry: &AutoloadedEntry| {
        let globs: Vec<_> = entry.paths.iter().flat_map(above).collect();
        let globs = globs.iter().map(|path| PathGlob::alone(path, CaseFolding::Folded).expect("the list is tested"));
        let globs: Vec<_> = globs.collect();
        PathSet::new(CaseFolding::Folded, globs.iter().map(|glob| (0, glob))).expect("the list is tested")
    };
    ENTRIES.iter().map(set).collect()
});

/// Whether programs would load or run a file at this path, relative to the workspace. Directories themselves are never
/// loaded.
pub fn autoloaded(path: &str) -> Option<AutoloadedFile> {
    let matches = |(set, except): &&(PathSet, PathSet)| set.is_match(path) && !except.is_match(path);
    let index = SETS.iter().position(|sets| matches(&sets))?;
    let AutoloadedEntry { reason, kind, .. } = &ENTRIES[index];
    Some(AutoloadedFile { reason, kind: *kind })
}

/// Whether a directory at this path could contain a file that programs load or run automatically: then a link there
/// could provide one. Returns the reason.
pub fn autoloaded_beneath(path: &str) -> Option<&'static str> {
    let index = DIRECTORIES.iter().position(|set| set.is_match(path))?;
    Some(&ENTRIES[index].reason)
}

/// Whether git loads or runs a file at this path, harmless or not. Policy protects these files from every tool; what
/// git itself leaves there when it makes a repository is allowed by its content.
pub fn is_git_autoloaded(path: &str) -> bool {
    let is_gits = |entry: &AutoloadedEntry| entry.kind != AutoloadedKind::Always || entry.reason.starts_with("git ");
    ENTRIES.iter().zip(SETS.iter()).any(|(entry, (set, _))| is_gits(entry) && set.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_keeps_to_its_examples() {
        for (entry, (set, except)) in ENTRIES.iter().zip(SETS.iter()) {
            let matches = |path: &String| set.is_match(path) && !except.is_match(path);
            assert!(!entry.matches.is_empty() && !entry.no_match.is_empty(), "{}", entry.reason);
            entry.matches.iter().for_each(|path| assert!(matches(path), "{path}: {}", entry.reason));
            entry.no_match.iter().for_each(|path| assert!(!matches(path), "{path}: {}", entry.reason));
        }
    }

    #[test]
    fn ordinary_files_are_not_autoloaded() {
        for path in ["src/main.rs", ".git/index", ".git/HEAD", ".gitignore", "package.json", ".github/workflows/a.yml"]
        {
            assert_eq!(autoloaded(path), None, "{path}");
        }
        assert_eq!(autoloaded("new/.git/config").unwrap().kind, AutoloadedKind::GitConfig);
        assert_eq!(autoloaded("tree/.git").unwrap().kind, AutoloadedKind::GitLink);
        assert_eq!(autoloaded(".git/worktrees/tree/commondir").unwrap().kind, AutoloadedKind::GitCommon);
        assert_eq!(autoloaded(".git/rebase-merge/git-rebase-todo").unwrap().kind, AutoloadedKind::GitTodo);
        assert!(
            is_git_autoloaded("new/.git/hooks/update.sample")
                && is_git_autoloaded(".git/config")
                && !is_git_autoloaded(".envrc")
        );
    }

    #[test]
    fn a_directory_that_would_hold_such_files_is_known_by_its_name() {
        for path in [
            ".vscode",
            "sub/.Claude",
            ".idea",
            ".devcontainer",
            ".git/worktrees",
            ".config/goose",
            "a/.git/modules",
            ".github",
        ] {
            assert!(autoloaded_beneath(path).is_some(), "{path}");
        }
        for path in ["src", "vscode", ".vscode/tasks.json", ".vscode/notes", "hooks", ""] {
            assert_eq!(autoloaded_beneath(path), None, "{path}");
        }
    }
}
