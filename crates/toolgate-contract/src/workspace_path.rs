//! Resolved paths. A path is resolved once, before the call is judged; afterwards only the resolved path is opened,
//! without following links, so that what was judged is what is touched.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Effect, escape_path, unescape_path};

/// The directory in a workspace that contains Toolgate's own state.
pub const STATE_DIRECTORY: &str = ".toolgate";

/// A path beneath one of the workspace's roots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkspacePath {
    /// The index of the root; 0 is the workspace itself.
    pub root: usize,
    /// The path relative to that root, without `.`, `..` or links; empty for the root. Bytes that aren't UTF-8 are
    /// escaped, as [`escape_path`] does.
    pub path: String,
}

impl WorkspacePath {
    /// A path in the workspace itself.
    pub fn in_workspace(path: impl Into<String>) -> Self {
        Self { root: 0, path: path.into() }
    }

    /// The path of this name in this directory.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) };
        Self { root: self.root, path }
    }

    /// Every directory that contains this path, from the root down.
    pub fn ancestors(&self) -> impl DoubleEndedIterator<Item = Self> {
        let ends = self.path.match_indices('/').map(|(at, _)| at);
        let paths = std::iter::once("").chain(ends.map(|at| &self.path[..at]));
        paths.map(|path| Self { root: self.root, path: path.to_owned() })
    }

    /// The path of an entry of this directory, by its name as the kernel has it.
    #[must_use]
    pub fn join_bytes(&self, name: &[u8]) -> Self {
        self.join(&escape_path(name))
    }

    /// The path as the kernel has it.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        unescape_path(&self.path)
    }

    /// The directory of the path and its last name, as the kernel has them.
    pub fn parent_and_name(&self) -> (Cow<'_, [u8]>, Cow<'_, [u8]>) {
        let (parent, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        (unescape_path(parent), unescape_path(name))
    }

    /// The path beneath this directory of the machine.
    pub fn beneath(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.bytes()))
    }

    /// Whether `other` is this path or beneath it.
    pub fn covers(&self, other: &Self) -> bool {
        self.root == other.root && is_beneath(&self.path, &other.path)
    }
}

/// Whether `path` is `directory` or inside it. Both are relative, with `/` between names.
fn is_beneath(directory: &str, path: &str) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => directory.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// An effect together with its resolved path.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedEffect {
    /// The effect as the tool stated it.
    pub effect: Effect,
    /// The path as written, relative to its root, without `.` and `..`.
    pub written: Option<WorkspacePath>,
    /// The path with links resolved: the one that will be opened. None if the effect has no path.
    pub real: Option<WorkspacePath>,
}

impl LocatedEffect {
    /// An effect that has no path.
    pub fn nowhere(effect: Effect) -> Self {
        Self { effect, written: None, real: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_itself_and_what_is_beneath_but_no_sibling() {
        let directory = WorkspacePath::in_workspace("src");
        for (path, expected) in
            [("src", true), ("src/a.rs", true), ("src-evil/a.rs", false), ("sr", false), ("", false)]
        {
            assert_eq!(directory.covers(&WorkspacePath::in_workspace(path)), expected, "{path}");
        }
        assert!(WorkspacePath::in_workspace("").covers(&directory), "the root covers everything");
        assert!(!WorkspacePath { root: 1, path: String::new() }.covers(&directory), "another root covers nothing here");
    }
}
