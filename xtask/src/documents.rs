//! Checks that the documents name only files and directories that exist, so that a file can't be moved without them.

use std::path::{Path, PathBuf};

use crate::command_line::repository_root;

/// The documents that are a map of the code. The changelog isn't one: it also names what was there before.
const DOCUMENTS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// The directories that a path in a document may lead into.
const SOURCE_DIRECTORIES: &[&str] = &["crates", "xtask", "docs", ".config"];

/// The text between backticks that names a path of this repository. A path with a placeholder or a pattern isn't checked.
fn named_paths(document: &str) -> impl Iterator<Item = &str> {
    let quoted = document.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.map(|path| path.trim_end_matches('/')).filter(|path| {
        let begins_in_sources = SOURCE_DIRECTORIES.iter().any(|directory| path.starts_with(&format!("{directory}/")));
        let is_source = path.ends_with(".rs") || path.contains("/src/") || path.contains("/tests/");
        (begins_in_sources || is_source) && !path.contains([' ', '<', '*', '{'])
    })
}

/// Whether a path is one that a document means: the same, or its end from a component on. `toolgate-` may be left out.
fn is_meant(known: &Path, named: &str) -> bool {
    let known = known.to_string_lossy();
    known.strip_suffix(named).is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || rest.ends_with("toolgate-"))
}

/// Every file and directory beneath a directory, relative to `root`, without what Cargo builds.
fn entries(root: &Path, directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten() {
        let path = directory.join(entry.file_name());
        if entry.file_name() != "target" && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            entries(root, &path, found);
        }
        found.push(path);
    }
}

#[test]
fn every_path_that_a_document_names_exists() {
    let root = repository_root();
    let mut known = Vec::new();
    SOURCE_DIRECTORIES.iter().for_each(|directory| entries(root, Path::new(directory), &mut known));
    let mut missing = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let paths = named_paths(&text).filter(|named| !known.iter().any(|known| is_meant(known, named)));
        missing.extend(paths.map(|path| format!("{document}: {path}")));
    }
    assert!(missing.is_empty(), "these documents name files that don't exist: {missing:#?}");
}

#[test]
fn paths_are_found_in_backticks_and_by_their_ends() {
    let document = "`gate/path.rs`, `crates/a/src/`; `rules/<kind>.rs`, `toolgate.toml`, `tests/*.rs` and `cargo run`";
    assert_eq!(named_paths(document).collect::<Vec<_>>(), ["gate/path.rs", "crates/a/src"]);
    let known = Path::new("crates/toolgate-runtime/src/gate/path.rs");
    for (named, expected) in [
        ("crates/toolgate-runtime/src/gate/path.rs", true),
        ("runtime/src/gate/path.rs", true),
        ("path.rs", true),
        ("time/src/gate/path.rs", false),
        ("path", false),
    ] {
        assert_eq!(is_meant(known, named), expected, "{named}");
    }
}
