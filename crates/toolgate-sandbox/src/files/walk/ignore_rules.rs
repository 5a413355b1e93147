//! The ignore files that apply in a directory: its own, and those of the directories above it up to the root. They are read
//! like any other file, beneath the root and without following symlinks, and up to a limited size.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;
use toolgate_contract::EntryKind;

use super::{WalkRoot, join};

/// The names of ignore files, highest precedence first.
const FILES: [&[u8]; 4] = [b".rgignore", b".ignore", b".gitignore", EXCLUDE];
/// The ignore file of one repository and one person, in git's own directory.
const EXCLUDE: &[u8] = b".git/info/exclude";
/// From here on in [`FILES`], rules end where another repository begins.
const GITS: usize = 2;
/// Bytes of an ignore file that are read.
const MOST_BYTES: u64 = 1024 * 1024;

/// The rules that apply in a directory.
#[derive(Default)]
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// By the index of its file in [`FILES`].
    own: Vec<(usize, Gitignore)>,
    is_repository: bool,
}

impl IgnoreRules {
    /// The rules that the directories above `start` have for its entries.
    pub(super) fn above(root: &WalkRoot<'_>, start: &[u8]) -> Arc<Self> {
        let mut rules = Arc::default();
        let ends = start.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let directories = ends.map(|(at, _)| &start[..at]);
        let directories = (!start.is_empty()).then_some(&b""[..]).into_iter().chain(directories);
        for directory in directories {
            let exists = |name: &[u8]| root.open(&join(directory, name), rustix::fs::OFlags::PATH).is_ok();
            rules = Self::found(root, directory, &exists, &rules);
        }
        rules
    }

    /// The rules that apply in a directory with these entries; those of its parent if it adds none.
    pub(super) fn of(
        root: &WalkRoot<'_>,
        directory: &[u8],
        entries: &[(Vec<u8>, EntryKind)],
        above: &Arc<Self>,
    ) -> Arc<Self> {
        let exists = |name: &[u8]| entries.binary_search_by(|(entry, _)| entry.as_slice().cmp(name)).is_ok();
        Self::found(root, directory, &exists, above)
    }

    fn found(root: &WalkRoot<'_>, directory: &[u8], exists: &dyn Fn(&[u8]) -> bool, above: &Arc<Self>) -> Arc<Self> {
        let is_repository = exists(b".git");
        let is_there = |name: &[u8]| if name == EXCLUDE { is_repository } else { exists(name) };
        let read = |(index, name): (usize, &&[u8])| Some((index, read(root, directory, name)?));
        let own: Vec<_> = FILES.iter().enumerate().filter(|(_, name)| is_there(name)).filter_map(read).collect();
        if own.is_empty() && !is_repository {
            return Arc::clone(above);
        }
        Arc::new(Self { above: Some(Arc::clone(above)), own, is_repository })
    }

    /// What the rules say about a path beneath their directory. Of each kind of ignore file the nearest one with a match
    /// counts, and of the kinds the one with the highest precedence.
    pub(super) fn matched(&self, path: &Path, is_directory: bool) -> Match<()> {
        let mut found = [const { Match::None }; FILES.len()];
        let mut is_other_repository = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            for (index, matcher) in &rules.own {
                if found[*index].is_none() && !(is_other_repository && *index >= GITS) {
                    found[*index] = matcher.matched(path, is_directory).map(|_| ());
                }
            }
            is_other_repository |= rules.is_repository;
            next = rules.above.as_deref();
        }
        found.into_iter().find(|found| !found.is_none()).unwrap_or(Match::None)
    }
}

/// Reads one ignore file. A file that can't be read has no rules, and an invalid line is no rule.
fn read(root: &WalkRoot<'_>, directory: &[u8], name: &[u8]) -> Option<Gitignore> {
    let fd = root.open_file(&join(directory, name)).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(fd).take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let (complete, _) = if bytes.len() as u64 == MOST_BYTES { split_last_line(&bytes) } else { (&bytes[..], &[][..]) };
    let text = String::from_utf8_lossy(complete);
    let mut builder = GitignoreBuilder::new(OsStr::from_bytes(directory));
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // A pattern that can't be read is skipped, as git does.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// All lines but the last, which was cut off.
fn split_last_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1))
}
