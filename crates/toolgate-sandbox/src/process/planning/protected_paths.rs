//! The mounts that keep protected paths from being changed: one for the path itself, and one for every directory between it and
//! its root, which could be renamed otherwise.

use std::path::{Path, PathBuf};

use super::super::error::SandboxError;
use super::super::plan::PinnedPath;
use super::path_lookup::PathLookup;
use super::path_of;

/// The directories to pin and the paths to make read-only. A path that doesn't exist, or isn't in a writable root, needs
/// neither.
pub(super) fn pinned_and_read_only(
    lookup: &PathLookup,
    protected: &[PathBuf],
    writable: &[PinnedPath],
) -> Result<(Vec<PinnedPath>, Vec<PinnedPath>), SandboxError> {
    let (mut pinned, mut read_only) = (Vec::new(), Vec::new());
    for path in protected {
        let Some(place) = protectable(lookup, path)? else { continue };
        let Some(root) = root_of(&path_of(&place), writable) else { continue };
        pinned.extend(between(lookup, &path_of(&place), &root));
        read_only.push(place);
    }
    Ok((pinned, read_only))
}

/// The directories between a path and the writable root that it is in.
pub(super) fn above(lookup: &PathLookup, path: &Path, writable: &[PinnedPath]) -> Vec<PinnedPath> {
    root_of(path, writable).map(|root| between(lookup, path, &root)).unwrap_or_default()
}

fn root_of(path: &Path, writable: &[PinnedPath]) -> Option<PathBuf> {
    let roots = writable.iter().map(path_of).filter(|root| path.starts_with(root));
    roots.max_by_key(|root| root.as_os_str().len())
}

fn between(lookup: &PathLookup, path: &Path, root: &Path) -> Vec<PinnedPath> {
    path.ancestors()
        .skip(1)
        .take_while(|directory| *directory != root)
        .filter_map(|directory| lookup.find(directory))
        .collect()
}

/// What to make read-only for a protected path. A symlink can't be a mount point, and whoever can write to its directory can
/// replace it; so for a symlink it is the directory that holds it.
fn protectable(lookup: &PathLookup, path: &Path) -> Result<Option<PinnedPath>, SandboxError> {
    let Some(parent) = path.parent() else { return Ok(lookup.find(path)) };
    let is_link = |path: &Path| path.symlink_metadata().map(|found| found.is_symlink());
    match is_link(parent) {
        Ok(true) => Err(SandboxError::ProtectedBehindLink { path: path.to_owned() }),
        // Without its directory, the path doesn't exist either.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        _ => Ok(lookup.find(if is_link(path).unwrap_or(false) { parent } else { path })),
    }
}
