//! Folds build output in lists of changes: a directory such as `target/` or `node_modules/` becomes one line with counts,
//! so that what was written by hand can be seen. The directories are data, `build_output.toml`. Only display is folded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use ignore::Match;
use ignore::gitignore::GitignoreBuilder;
use serde::Deserialize;
use toolgate_contract::{Change, FileState, Files, FoldedDirectory, WorkspacePath};

/// A directory with fewer changes is listed path by path.
const FEWEST: usize = 2;
/// Bytes of an ignore file that are read.
const MOST_BYTES: u64 = 1 << 20;
/// The file that marks a directory as a cache, by <https://bford.info/cachedir/>.
const CACHE_TAG: &str = "CACHEDIR.TAG";
/// Git's ignore files of a directory, the one that counts first.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".git/info/exclude"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputTable {
    directory: Vec<OutputEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputEntry {
    #[serde(rename = "what")]
    _what: String,
    paths: Vec<String>,
    #[serde(default)]
    ignored: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    #[serde(rename = "match")]
    matches: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tried by the tests"))]
    no_match: Vec<String>,
}

static TABLE: LazyLock<OutputTable> =
    LazyLock::new(|| toml::from_str(include_str!("build_output.toml")).expect("the table is valid; the tests read it"));

/// Changes as they are shown.
#[derive(Debug, Default, PartialEq)]
pub struct FoldedChanges<'a> {
    /// Those that are listed one by one.
    pub listed: Vec<&'a Change>,
    /// The directories that stand for all others.
    pub folded: Vec<FoldedDirectory>,
}

/// Folds the build output among these changes. The files say what git ignores.
pub fn fold_build_output<'a>(changes: &'a [Change], files: &dyn Files) -> FoldedChanges<'a> {
    // A tag that comes or goes with these changes counts like one that is there.
    let tagged: HashSet<&str> = changes.iter().filter_map(|change| change.path.strip_suffix(CACHE_TAG)).collect();
    let mut is_output =
        |directory: &str| tagged.contains(format!("{directory}/").as_str()) || is_ignored_or_tagged(directory, files);
    fold_with(changes, &mut OutputFinder { is_output: &mut is_output, known: HashMap::new() })
}

fn fold_with<'a>(changes: &'a [Change], finder: &mut OutputFinder<'_>) -> FoldedChanges<'a> {
    let mut shown = FoldedChanges::default();
    if changes.len() < FEWEST {
        shown.listed.extend(changes);
        return shown;
    }
    let directories: Vec<Option<&str>> = changes.iter().map(|change| finder.directory_of(change)).collect();
    let mut folded: BTreeMap<&str, FoldedDirectory> = BTreeMap::new();
    for (change, directory) in changes.iter().zip(&directories) {
        if let Some(directory) = directory {
            folded.entry(directory).or_insert_with(|| FoldedDirectory::new(directory)).add(change);
        }
    }
    folded.retain(|_, directory| directory.count() >= FEWEST);
    let stays = |directory: &Option<&str>| directory.is_none_or(|directory| !folded.contains_key(directory));
    shown
        .listed
        .extend(changes.iter().zip(&directories).filter(|(_, directory)| stays(directory)).map(|(change, _)| change));
    shown.folded.extend(folded.into_values());
    shown
}

/// Finds the directory of build output that a path is in.
struct OutputFinder<'a> {
    /// Whether a directory that people might also write by hand is build output.
    is_output: &'a mut dyn FnMut(&str) -> bool,
    /// The answers so far, by directory.
    known: HashMap<String, bool>,
}

impl OutputFinder<'_> {
    /// The outermost directory of build output that this change is in, or is.
    fn directory_of<'c>(&mut self, change: &'c Change) -> Option<&'c str> {
        let path = change.path.as_str();
        let is_directory = [&change.before, &change.after].into_iter().flatten().any(FileState::is_directory);
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        parents.chain(is_directory.then_some(path)).find(|directory| self.is_folded(directory))
    }

    fn is_folded(&mut self, directory: &str) -> bool {
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let mut entries =
            TABLE.directory.iter().filter(|entry| entry.paths.iter().any(|path| ends_in(directory, path)));
        let is_folded = entries.any(|entry| !entry.ignored || (self.is_output)(directory));
        self.known.insert(directory.to_owned(), is_folded);
        is_folded
    }
}

/// Whether the last names of `directory` are those of `path`.
fn ends_in(directory: &str, path: &str) -> bool {
    directory.strip_suffix(path).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Whether git ignores a directory of the workspace, or the directory is tagged as a cache.
fn is_ignored_or_tagged(directory: &str, files: &dyn Files) -> bool {
    // Paths in other roots are shown as absolute ones.
    if directory.starts_with('/') {
        return false;
    }
    let tag = WorkspacePath::in_workspace(directory).join(CACHE_TAG);
    let is_tagged = files.node(&tag, false).is_ok_and(|node| node.is_some());
    let mut upwards = directory.match_indices('/').map(|(at, _)| &directory[..at]).chain([directory]);
    is_tagged || upwards.any(|path| is_ignored(path, files))
}

/// What git's ignore files say about a directory itself; the nearest one with a match counts.
fn is_ignored(directory: &str, files: &dyn Files) -> bool {
    let above = directory.rmatch_indices('/').map(|(at, _)| &directory[..at]).chain([""]);
    let ignore_files = above.flat_map(|above| IGNORE_FILES.map(|name| (above, name)));
    for (above, name) in ignore_files {
        let place = WorkspacePath::in_workspace(above).join(name);
        let Ok(Some(content)) = files.content(&place, MOST_BYTES) else { continue };
        let mut builder = GitignoreBuilder::new(above);
        // A pattern that can't be read is skipped, as git does.
        String::from_utf8_lossy(&content.bytes).lines().for_each(|line| drop(builder.add_line(None, line)));
        let Ok(rules) = builder.build() else { continue };
        match rules.matched(directory, true) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str) -> Change {
        let state = FileState::new("", 0, 0o644);
        Change { path: path.into(), place: WorkspacePath::in_workspace(path), before: None, after: Some(state) }
    }

    fn fold(changes: &[Change], is_ignored: bool) -> FoldedChanges<'_> {
        fold_with(changes, &mut OutputFinder { is_output: &mut |_| is_ignored, known: HashMap::new() })
    }

    #[test]
    fn every_example_of_the_table_holds() {
        for entry in &TABLE.directory {
            let is_in = |path: &str, is_ignored: bool| {
                let change = change(path);
                let directory = OutputFinder { is_output: &mut |_| is_ignored, known: HashMap::new() }
                    .directory_of(&change)
                    .map(str::to_owned);
                directory.is_some_and(|directory| entry.paths.iter().any(|path| ends_in(&directory, path)))
            };
            for path in &entry.matches {
                assert!(is_in(path, true), "{path} is folded");
                assert_eq!(is_in(path, false), !entry.ignored, "{path} where git ignores nothing");
            }
            entry.no_match.iter().for_each(|path| assert!(!is_in(path, true), "{path} isn't folded"));
        }
    }

    #[test]
    fn a_directory_becomes_one_line_with_counts_and_the_rest_is_listed() {
        let mut changes: Vec<Change> =
            ["Cargo.lock", "src/main.rs", "target/a", "target/debug/b", "target/debug/c"].map(change).into();
        changes[3].before = changes[3].after.clone();
        changes[4].before = changes[4].after.take();
        let shown = fold(&changes, true);
        assert_eq!(
            shown.listed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
            ["Cargo.lock", "src/main.rs"]
        );
        assert_eq!(shown.folded, [FoldedDirectory { path: "target/".into(), created: 1, changed: 1, deleted: 1 }]);
        assert!(fold(&changes, false).folded.is_empty(), "written by hand, as far as anybody knows");
    }

    #[test]
    fn a_single_change_is_listed_and_the_outermost_directory_counts() {
        let alone = [change("node_modules/a.js"), change("a.js")];
        assert_eq!(fold(&alone, true).listed.len(), 2);
        let nested = [change("node_modules/a/dist/x.js"), change("node_modules/b/node_modules/c/y.js")];
        assert_eq!(fold(&nested, true).folded[0].path, "node_modules/");
    }
}
