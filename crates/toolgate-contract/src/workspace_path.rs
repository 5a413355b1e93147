//! Where a path really is. A path is resolved once, before the call is judged; afterwards only the resolved place is
//! opened, with no link followed on the way, so that what was judged is what is touched.

use serde::{Deserialize, Serialize};

use crate::Effect;

/// Where Toolgate keeps its own state in a workspace.
pub const STATE_DIRECTORY: &str = ".toolgate";

/// A spot beneath one of the workspace's roots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkspacePath {
    /// Which root; 0 is the workspace itself.
    pub root: usize,
    /// Relative to that root, no `.`, `..` or links in it; empty for the root.
    pub path: String,
}

impl WorkspacePath {
    /// A place in the workspace itself.
    pub fn in_workspace(path: impl Into<String>) -> Self {
        Self { root: 0, path: path.into() }
    }

    /// Is `other` this place or beneath it?
    pub fn covers(&self, other: &Self) -> bool {
        self.root == other.root && is_beneath(&self.path, &other.path)
    }
}

/// Is `path` the same as `directory` or inside it? Both relative, with `/` between names.
fn is_beneath(directory: &str, path: &str) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => directory.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// An effect together with where its path leads.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedEffect {
    /// The effect as the tool stated it.
    pub effect: Effect,
    /// The path as written, made relative to its root, with `.` and `..` taken out.
    pub written: Option<WorkspacePath>,
    /// Where links lead: the place that will be opened. None when the effect has no path.
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
