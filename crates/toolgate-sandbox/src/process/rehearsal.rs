//! What a command would change. It ran on overlays; what it wrote lies in folders of the host's, in the overlay's own form,
//! which is read back here: a device with the number 0 means that something is gone, a folder marked opaque replaces the
//! one below it, everything else is new content.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::{Doing, SandboxError};
use super::plan::Overlay;
use super::profile::Profile;

/// The kept-apart changes of one command. Dropping it drops them.
#[derive(Debug)]
pub struct Rehearsal {
    layers: Vec<Layer>,
}

/// One writable root, and where its changes go.
#[derive(Debug)]
struct Layer {
    root: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

/// One path that the command would change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathChange {
    /// Where it is, in the workspace's own terms.
    pub path: PathBuf,
    /// What happens to it.
    pub kind: ChangeKind,
    /// Where its new content is. A folder, a link or a file; nothing if it is deleted.
    pub content: Option<PathBuf>,
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It wasn't there.
    Created,
    /// It was there with other content, another mode, or as something else.
    Changed,
    /// It would be gone.
    Deleted,
}

impl Rehearsal {
    /// Makes the folders for the changes of every writable folder.
    pub(super) fn prepare(profile: &Profile, folder: &Path) -> Result<Self, SandboxError> {
        const WHAT: &str = "Making folders for a rehearsal";
        let folder = folder.canonicalize().doing(WHAT)?;
        let mut layers = Vec::new();
        for (number, root) in profile.writable.iter().enumerate() {
            let root = root.canonicalize().doing(WHAT)?;
            let layer = Layer {
                root,
                upper: folder.join(format!("changes-{number}")),
                work: folder.join(format!("work-{number}")),
            };
            fs::create_dir(&layer.upper).and_then(|()| fs::create_dir(&layer.work)).doing(WHAT)?;
            // The overlay's topmost folder is this one, so it looks like the one that it stands for.
            let mode = layer.root.metadata().doing(WHAT)?.permissions();
            fs::set_permissions(&layer.upper, mode).doing(WHAT)?;
            layers.push(layer);
        }
        Ok(Self { layers })
    }

    pub(super) fn overlays(&self) -> Vec<Overlay> {
        let text = |path: &Path| CString::new(path.as_os_str().to_owned().into_vec()).unwrap_or_default();
        let overlay =
            |layer: &Layer| Overlay { path: text(&layer.root), upper: text(&layer.upper), work: text(&layer.work) };
        self.layers.iter().map(overlay).collect()
    }

    /// Everything that would change, in order. Ask when the command has ended.
    pub fn changes(&self) -> std::io::Result<Vec<PathChange>> {
        let mut changes = Vec::new();
        for layer in &self.layers {
            compare_folders(&layer.upper, &layer.root, true, &mut changes)?;
        }
        changes.sort();
        Ok(changes)
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        for layer in &self.layers {
            // The kernel leaves a folder there that not even its owner may enter.
            let _ = fs::set_permissions(layer.work.join("work"), fs::Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&layer.work);
            let _ = fs::remove_dir_all(&layer.upper);
        }
    }
}

/// Compares a folder of changes with the one that it lies over; `merged` says whether that one shows through.
fn compare_folders(upper: &Path, lower: &Path, merged: bool, changes: &mut Vec<PathChange>) -> std::io::Result<()> {
    for entry in fs::read_dir(upper)? {
        let entry = entry?;
        let (above, below) = (entry.path(), lower.join(entry.file_name()));
        let found = fs::symlink_metadata(&above)?;
        let before = fs::symlink_metadata(&below).ok();
        if found.file_type().is_char_device() && found.rdev() == 0 {
            deleted(&below, changes)?;
        } else if found.is_dir() {
            compare_folder(&above, &below, before.as_ref(), changes)?;
        } else {
            let kind = match before {
                None => Some(ChangeKind::Created),
                Some(before) if before.is_dir() => {
                    deleted(&below, changes)?;
                    Some(ChangeKind::Created)
                }
                Some(before) => (!is_same(&above, &found, &below, &before)).then_some(ChangeKind::Changed),
            };
            changes.extend(kind.map(|kind| PathChange { path: below, kind, content: Some(above) }));
        }
    }
    if !merged {
        for entry in fs::read_dir(lower)? {
            let entry = entry?;
            if fs::symlink_metadata(upper.join(entry.file_name())).is_err() {
                deleted(&entry.path(), changes)?;
            }
        }
    }
    Ok(())
}

fn compare_folder(
    above: &Path,
    below: &Path,
    before: Option<&fs::Metadata>,
    changes: &mut Vec<PathChange>,
) -> std::io::Result<()> {
    let was_folder = before.is_some_and(fs::Metadata::is_dir);
    if !was_folder {
        let kind = if before.is_some() { ChangeKind::Changed } else { ChangeKind::Created };
        changes.push(PathChange { path: below.to_owned(), kind, content: Some(above.to_owned()) });
        // There is nothing below it to compare with.
        return compare_folders(above, below, true, changes);
    }
    if before.is_some_and(|before| fs::metadata(above).is_ok_and(|now| now.mode() != before.mode())) {
        let kind = ChangeKind::Changed;
        changes.push(PathChange { path: below.to_owned(), kind, content: Some(above.to_owned()) });
    }
    compare_folders(above, below, !is_opaque(above), changes)
}

/// Lists a place and everything in it as deleted. What isn't there any more below was made and removed by the command.
fn deleted(below: &Path, changes: &mut Vec<PathChange>) -> std::io::Result<()> {
    let Ok(before) = fs::symlink_metadata(below) else { return Ok(()) };
    if before.is_dir() {
        for entry in fs::read_dir(below)? {
            deleted(&entry?.path(), changes)?;
        }
    }
    changes.push(PathChange { path: below.to_owned(), kind: ChangeKind::Deleted, content: None });
    Ok(())
}

/// A file that was only opened for writing, or touched, is copied up but not changed.
fn is_same(above: &Path, found: &fs::Metadata, below: &Path, before: &fs::Metadata) -> bool {
    if found.mode() != before.mode() || found.len() != before.len() {
        return false;
    }
    if found.is_symlink() {
        return fs::read_link(above).ok() == fs::read_link(below).ok();
    }
    found.is_file() && has_same_content(above, below).unwrap_or(false)
}

fn has_same_content(first: &Path, second: &Path) -> std::io::Result<bool> {
    use std::io::BufRead;
    let open = |path: &Path| fs::File::open(path).map(|file| std::io::BufReader::with_capacity(64 << 10, file));
    let (mut first, mut second) = (open(first)?, open(second)?);
    loop {
        let (one, two) = (first.fill_buf()?, second.fill_buf()?);
        let length = one.len().min(two.len());
        if length == 0 || one[..length] != two[..length] {
            return Ok(one.len() == two.len() && length == 0);
        }
        first.consume(length);
        second.consume(length);
    }
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(folder, c"user.overlay.opaque", &mut value).is_ok_and(|length| length == 1 && value == *b"y")
}
