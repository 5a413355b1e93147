//! Files with instructions that somebody else follows later: another agent, or a build server. The list is data,
//! `instruction_files.toml`, with its own examples.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::path_glob::{CaseFolding, PathGlob, PathSet};

/// A kind of files with instructions. One approval covers a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionKind {
    /// What such files are, as a person is asked about them.
    pub name: String,
    /// What they do, in a clause.
    pub reason: String,
    paths: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    #[serde(rename = "match")]
    matches: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    no_match: Vec<String>,
}

impl PartialEq for InstructionKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

static KINDS: LazyLock<Vec<InstructionKind>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct InstructionTable {
        kind: Vec<InstructionKind>,
    }
    serde_json::from_str::<InstructionTable>(include_str!(concat!(env!("OUT_DIR"), "/instruction_files.json")))
        .expect("the built-in list is tested")
        .kind
});

/// The patterns of all kinds, each with the index of its kind.
static PATTERNS: LazyLock<PathSet> = LazyLock::new(|| {
    let pattern = |path: &String| PathGlob::new(path, CaseFolding::Folded).expect("the list is tested");
    let globs =
        KINDS.iter().enumerate().flat_map(|(index, kind)| kind.paths.iter().map(move |path| (index, pattern(path))));
    let globs: Vec<(usize, PathGlob)> = globs.collect();
    PathSet::new(CaseFolding::Folded, globs.iter().map(|(index, glob)| (*index, glob))).expect("the list is tested")
});

/// The kind of instructions in a file at this path, relative to the workspace; none if there are none in it.
pub fn instruction_kind(path: &str) -> Option<&'static InstructionKind> {
    PATTERNS.matches(path).first().map(|index| &KINDS[*index])
}

/// Whether this is the name of a kind of instructions, which stands for all files of that kind.
pub fn is_instruction_kind(name: &str) -> bool {
    KINDS.iter().any(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_keeps_to_its_examples() {
        for kind in KINDS.iter() {
            let is_it = |path: &String| instruction_kind(path).is_some_and(|found| found.name == kind.name);
            assert!(!kind.matches.is_empty() && !kind.no_match.is_empty(), "{}", kind.name);
            kind.matches.iter().for_each(|path| assert!(is_it(path), "{path}: {}", kind.name));
            kind.no_match.iter().for_each(|path| assert!(!is_it(path), "{path}: {}", kind.name));
        }
    }

    #[test]
    fn what_is_loaded_automatically_is_no_mere_instruction() {
        for path in
            [".cursor/rules/a.mdc", ".claude/settings.json", ".claude/commands/a.md", ".mcp.json", ".git/hooks/a"]
        {
            assert!(instruction_kind(path).is_none() && crate::autoloaded(path).is_some(), "{path}");
        }
    }
}
