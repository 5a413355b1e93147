//! What a command left: every path with its type, mode, content, target, other names, and its time where that was set.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use toolgate_contract::sha256;

/// Paths whose content has times or numbers in it that are never the same: git's index, and its statistics.
const VARYING: &[&str] = &["index", "ORIG_INDEX", "COMMIT_EDITMSG"];

/// The time of everything in the fixture: 2023-05-06T07:08:09Z.
const FIXTURE_TIME: i64 = 1_683_356_889;

/// One line for every path beneath `root` but Toolgate's own state.
pub(crate) fn describe(root: &Path, started: i64) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if name == ".toolgate" {
                continue;
            }
            let Ok(facts) = std::fs::symlink_metadata(&path) else { continue };
            if facts.is_dir() {
                left.push(path.clone());
            }
            if facts.is_file() && facts.nlink() > 1 {
                names.entry(facts.ino()).or_default().push(name.clone());
            }
            found.insert(name, one(root, &path, &facts, started));
        }
    }
    for mut together in names.into_values() {
        together.sort();
        for name in &together {
            let _ = write!(found.get_mut(name).unwrap(), " linked {}", together.join(" "));
        }
    }
    found
}

fn one(root: &Path, path: &Path, facts: &std::fs::Metadata, started: i64) -> String {
    let kind = facts.file_type();
    let is_varying = path.file_name().is_some_and(|name| VARYING.iter().any(|varying| name == *varying));
    let content = match () {
        () if kind.is_symlink() => format!("-> {}", std::fs::read_link(path).unwrap().display()),
        () if kind.is_dir() => "directory".into(),
        () if kind.is_fifo() => "pipe".into(),
        () if is_varying => "varying".into(),
        () => std::fs::read(path).map_or_else(|error| error.to_string(), |bytes| sha256(without_path(bytes, root))),
    };
    // A time of before the command was kept or set; others are about now. A file that is changed is put in place by a rename, which
    // sets the time of its directory; so only a time that a command gave a directory counts.
    let time = if facts.mtime() < started { facts.mtime().to_string() } else { "now".into() };
    let is_left = kind.is_dir() && (facts.mtime() == FIXTURE_TIME || facts.mtime() >= started);
    let is_in_git = path.components().any(|part| part.as_os_str() == ".git");
    let time = if is_in_git || is_left || kind.is_symlink() { String::new() } else { time };
    format!("{:o} {content} {time}", facts.mode())
}

/// A content in which the path of its own copy of the workspace stands for both.
fn without_path(bytes: Vec<u8>, root: &Path) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => text.replace(root.to_str().unwrap(), "W").into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// What differs between two trees, one line each.
pub(crate) fn differences(plain: &BTreeMap<String, String>, inside: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<&String> = plain.keys().chain(inside.keys()).collect();
    names.sort();
    names.dedup();
    let differing = names.into_iter().filter(|name| plain.get(*name) != inside.get(*name));
    let side = |tree: &BTreeMap<String, String>, name: &String| tree.get(name).map_or("nothing".into(), Clone::clone);
    differing.map(|name| format!("{name}: {} | {}", side(plain, name), side(inside, name))).collect()
}
