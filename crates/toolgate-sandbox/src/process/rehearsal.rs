//! The directories that a command's changes go to when they are kept apart: for every writable root one that takes them, in the
//! overlay's own form, and one beside it that the kernel works in.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::{HostContext, SandboxError};
use super::plan::OverlayMount;

/// The kept-apart changes of one command. Dropping it drops them, unless they were asked to stay.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    layers: Vec<OverlayLayer>,
    stays: bool,
}

/// One writable root, and where its changes go.
#[derive(Debug)]
struct OverlayLayer {
    root: PathBuf,
    upper: PathBuf,
    work: PathBuf,
}

impl OverlayLayer {
    fn new(root: PathBuf, directory: &Path, number: usize) -> Self {
        let [upper, work] = ["changes", "work"].map(|name| directory.join(format!("{name}-{number}")));
        Self { root, upper, work }
    }
}

impl Rehearsal {
    /// Makes the directories for the changes of every writable directory.
    pub(crate) fn prepare(writable: &[PathBuf], directory: &Path) -> Result<Self, SandboxError> {
        const WHAT: &str = "Making directories for a command's changes";
        let directory = directory.canonicalize().doing(WHAT)?;
        let mut made = Self { layers: Vec::new(), stays: false };
        for (number, root) in writable.iter().enumerate() {
            let layer = OverlayLayer::new(root.canonicalize().doing(WHAT)?, &directory, number);
            fs::create_dir(&layer.upper).and_then(|()| fs::create_dir(&layer.work)).doing(WHAT)?;
            // The overlay's topmost directory is this one, so it looks like the one that it stands for.
            let mode = layer.root.metadata().doing(WHAT)?.permissions();
            fs::set_permissions(&layer.upper, mode).doing(WHAT)?;
            made.layers.push(layer);
        }
        Ok(made)
    }

    /// The directories that were made for these roots, in this order, by somebody before.
    pub(crate) fn of(roots: Vec<PathBuf>, directory: &Path) -> Self {
        let layer = |(number, root): (usize, PathBuf)| OverlayLayer::new(root, directory, number);
        Self { layers: roots.into_iter().enumerate().map(layer).collect(), stays: false }
    }

    pub(crate) fn overlays(&self) -> Vec<OverlayMount> {
        let text = |path: &Path| CString::new(path.as_os_str().to_owned().into_vec()).unwrap_or_default();
        let overlay = |layer: &OverlayLayer| OverlayMount {
            path: text(&layer.root),
            upper: text(&layer.upper),
            work: text(&layer.work),
        };
        self.layers.iter().map(overlay).collect()
    }

    /// Every root, and where its changes are.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.layers.iter().map(|layer| (layer.root.as_path(), layer.upper.as_path()))
    }

    /// Whether the changes outlast this value.
    pub(crate) fn set_stays(&mut self, stays: bool) {
        self.stays = stays;
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        for layer in self.layers.iter().filter(|_| !self.stays) {
            remove(&layer.work);
            remove(&layer.upper);
        }
    }
}

/// Removes a directory with everything in it, also what its owner may not enter: the kernel leaves such a directory, and a
/// command can.
pub(crate) fn remove(directory: &Path) {
    if fs::remove_dir_all(directory).is_err() {
        open_up(directory);
        let _ = fs::remove_dir_all(directory);
    }
}

fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
