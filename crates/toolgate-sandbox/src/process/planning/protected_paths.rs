//! Which mounts keep protected places as they are: the place itself, and every directory between it and the root.

use std::path::{Path, PathBuf};

use super::super::error::SandboxError;
use super::super::plan::PinnedPath;
use super::{find, path_of};

/// The directories to pin and the places to make read-only. What isn't there, or isn't in something writable, needs neither.
pub(super) fn places(
    protected: &[PathBuf],
    writable: &[PinnedPath],
) -> Result<(Vec<PinnedPath>, Vec<PinnedPath>), SandboxError> {
    let (mut pinned, mut kept) = (Vec::new(), Vec::new());
    for path in protected {
        let Some(place) = really(path)? else { continue };
        let Some(root) = root_of(&path_of(&place), writable) else { continue };
        pinned.extend(between(&path_of(&place), &root));
        kept.push(place);
    }
    Ok((pinned, kept))
}

/// The directories between a place and the writable root that it is in.
pub(super) fn above(path: &Path, writable: &[PinnedPath]) -> Vec<PinnedPath> {
    root_of(path, writable).map(|root| between(path, &root)).unwrap_or_default()
}

fn root_of(path: &Path, writable: &[PinnedPath]) -> Option<PathBuf> {
    let roots = writable.iter().map(path_of).filter(|root| path.starts_with(root));
    roots.max_by_key(|root| root.as_os_str().len())
}

fn between(path: &Path, root: &Path) -> Vec<PinnedPath> {
    path.ancestors().skip(1).take_while(|directory| *directory != root).filter_map(find).collect()
}

/// The place that a protected path names. A link can't be covered, only be replaced by whoever may write beside it; so
/// where the way leads over a link, the directory that holds the link is kept as it is.
fn really(path: &Path) -> Result<Option<PinnedPath>, SandboxError> {
    let Some(parent) = path.parent() else { return Ok(find(path)) };
    let is_link = |path: &Path| path.symlink_metadata().map(|found| found.is_symlink());
    match is_link(parent) {
        Ok(true) => Err(SandboxError::ProtectedBehindLink { path: path.to_owned() }),
        // Where there is no directory, nothing is in it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        _ => Ok(find(if is_link(path).unwrap_or(false) { parent } else { path })),
    }
}
