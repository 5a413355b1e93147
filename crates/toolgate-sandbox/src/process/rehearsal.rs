//! The directories that take a command's staged changes: for every writable root the upper directory of an overlay, and the
//! work directory that overlayfs needs beside it.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::{HostContext, SandboxError};
use super::plan::OverlayMount;

/// The staged changes of one command. Dropping it removes them, unless they are to be kept.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    layers: Vec<OverlayLayer>,
    is_kept: bool,
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
        let mut made = Self { layers: Vec::new(), is_kept: false };
        for (number, root) in writable.iter().enumerate() {
            let layer = OverlayLayer::new(root.canonicalize().doing(WHAT)?, &directory, number);
            fs::create_dir(&layer.upper).and_then(|()| fs::create_dir(&layer.work)).doing(WHAT)?;
            // The root of the overlay has the mode and time of its upper directory, which therefore gets those of the real root.
            let real = layer.root.metadata().doing(WHAT)?;
            let times = fs::FileTimes::new().set_modified(real.modified().doing(WHAT)?);
            fs::File::open(&layer.upper).and_then(|upper| upper.set_times(times)).doing(WHAT)?;
            fs::set_permissions(&layer.upper, real.permissions()).doing(WHAT)?;
            made.layers.push(layer);
        }
        Ok(made)
    }

    /// The directories that an earlier process made for these roots, in this order.
    pub(crate) fn of(roots: Vec<PathBuf>, directory: &Path) -> Self {
        let layer = |(number, root): (usize, PathBuf)| OverlayLayer::new(root, directory, number);
        Self { layers: roots.into_iter().enumerate().map(layer).collect(), is_kept: false }
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

    /// Sets whether the changes stay on disk when this value is dropped.
    pub(crate) fn set_kept(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        for layer in self.layers.iter().filter(|_| !self.is_kept) {
            remove(&layer.work);
            remove(&layer.upper);
        }
    }
}

/// Removes a directory with everything in it, also directories whose mode keeps the owner out: overlayfs leaves one, and a
/// command can make others.
pub(crate) fn remove(directory: &Path) {
    if fs::remove_dir_all(directory).is_err() {
        make_accessible(directory);
        let _ = fs::remove_dir_all(directory);
    }
}

fn make_accessible(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_accessible(&entry.path());
        }
    }
}
