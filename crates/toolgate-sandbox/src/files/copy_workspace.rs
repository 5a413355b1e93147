//! Copies the workspace, for work that must not touch the real one. It is read beneath the root's descriptor; symlinks are
//! copied and not followed; hidden paths are neither read nor copied.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use toolgate_contract::{EntryKind, Files, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep, WorkspacePath};

use crate::Roots;

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyTotals {
    /// Files and symlinks.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Copies the workspace into `to`, an empty directory, without what `hides` says is hidden.
pub fn copy_workspace(
    from: &Roots,
    to: &Path,
    hides: &(dyn Fn(&WorkspacePath) -> bool + Sync),
) -> Result<CopyTotals, ToolError> {
    let outcome = Mutex::new(Ok(CopyTotals::default()));
    let visitors = || -> Visitor<'_> {
        Box::new(|walked: &VisitedEntry<'_>| {
            if hides(walked.place) {
                return WalkStep::Past;
            }
            let copied = copy(from, walked, to);
            let mut outcome = outcome.lock();
            match (&mut *outcome, copied) {
                (Ok(sum), Ok(one)) => {
                    *sum = CopyTotals { files: sum.files + one.files, bytes: sum.bytes + one.bytes };
                    WalkStep::On
                }
                (known, Err(error)) => {
                    *known = Err(error);
                    WalkStep::Stop
                }
                (Err(_), Ok(_)) => WalkStep::Stop,
            }
        })
    };
    let everything = WalkOptions { hidden: true, ..WalkOptions::default() };
    from.walk(&WorkspacePath::in_workspace(""), &everything, &visitors)?;
    outcome.into_inner()
}

fn copy(from: &Roots, walked: &VisitedEntry<'_>, to: &Path) -> Result<CopyTotals, ToolError> {
    let target = walked.place.beneath(to);
    let failed = |error: std::io::Error| ToolError::io(&format!("`{}` couldn't be copied", walked.place.path), &error);
    match walked.kind {
        EntryKind::Directory => {
            DirBuilder::new().recursive(true).mode(0o755).create(&target).map_err(failed)?;
            Ok(CopyTotals::default())
        }
        EntryKind::File => {
            make_parent(&target).map_err(failed)?;
            let bytes = copy_file(walked.open()?, &target).map_err(failed)?;
            Ok(CopyTotals { files: 1, bytes })
        }
        EntryKind::Link => {
            make_parent(&target).map_err(failed)?;
            let Some(link) = from.content(walked.place, 4096)?.filter(|content| content.is_link()) else {
                return Ok(CopyTotals::default());
            };
            std::os::unix::fs::symlink(OsStr::from_bytes(&link.bytes), &target).map_err(failed)?;
            Ok(CopyTotals { files: 1, bytes: 0 })
        }
        // A pipe or a device has no content to copy.
        EntryKind::Other => Ok(CopyTotals::default()),
    }
}

/// Several threads walk, so a file may be visited before its directory.
fn make_parent(target: &Path) -> std::io::Result<()> {
    target.parent().map_or(Ok(()), |directory| DirBuilder::new().recursive(true).mode(0o755).create(directory))
}

fn copy_file(mut from: File, target: &Path) -> std::io::Result<u64> {
    let mode = from.metadata()?.mode() & 0o777;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    let bytes = std::io::copy(&mut from, &mut to)?;
    to.set_permissions(PermissionsExt::from_mode(mode))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_stay_links_and_what_is_hidden_stays_behind() {
        let (from, to, outside) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "outside").unwrap();
        fs::create_dir_all(from.path().join("a/b")).unwrap();
        fs::write(from.path().join("a/b/run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.path().join("a/b/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(from.path().join(".env"), "TOKEN=1").unwrap();
        fs::create_dir(from.path().join("empty")).unwrap();
        std::os::unix::fs::symlink(outside.path(), from.path().join("out")).unwrap();
        std::os::unix::fs::symlink("a/b/run.sh", from.path().join("in")).unwrap();
        let roots = Roots::open(from.path()).unwrap();
        let copied = copy_workspace(&roots, to.path(), &|place| place.path == ".env").unwrap();
        assert_eq!(copied, CopyTotals { files: 3, bytes: 10 });
        assert_eq!(fs::read(to.path().join("in")).unwrap(), b"#!/bin/sh\n");
        assert_eq!(fs::metadata(to.path().join("a/b/run.sh")).unwrap().mode() & 0o777, 0o755);
        assert!(fs::symlink_metadata(to.path().join("out")).unwrap().is_symlink(), "not what it leads to");
        assert!(!to.path().join(".env").exists() && to.path().join("empty").is_dir());
    }
}
