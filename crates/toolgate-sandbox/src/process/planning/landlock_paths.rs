//! Hides paths without mounts. A Landlock ruleset can only allow, so everything except what is hidden is allowed, path by path.

use std::path::{Path, PathBuf};

use super::super::plan::SandboxPlan;
use super::path_lookup::PathLookup;
use super::{in_order, path_of};

/// The plan where nothing can be mounted: no tmpfs, no masks, and a list of the paths that can be read.
pub(super) fn without_mounts(lookup: &PathLookup, mut plan: SandboxPlan) -> SandboxPlan {
    let as_path = |path: &std::ffi::CString| PathBuf::from(path.to_string_lossy().into_owned());
    let mounts = plan.tmpfs_mounts.iter().chain(&plan.late_tmpfs_mounts);
    let mut hidden: Vec<PathBuf> = mounts.map(|tmpfs| as_path(&tmpfs.path)).collect();
    hidden.extend(plan.masked.iter().chain(&plan.secret).map(path_of));
    hidden.push("/dev".into());
    let starts = match &plan.only {
        None => vec![PathBuf::from("/")],
        // Programs need the processes' own directory, which is a mount of its own elsewhere.
        Some(places) => places.iter().map(path_of).chain([PathBuf::from("/proc")]).collect(),
    };
    let mut visible = Vec::new();
    for start in starts {
        collect(&start, &hidden, &mut visible);
    }
    let mut only: Vec<_> = visible.iter().filter_map(|path| lookup.find(path)).collect();
    only.append(&mut plan.shown);
    plan.only = Some(in_order(only));
    plan.tmpfs_mounts.clear();
    plan.late_tmpfs_mounts.clear();
    plan.pinned.clear();
    plan.protected.clear();
    plan.masked.clear();
    plan.substitutes.clear();
    plan
}

/// Adds `path`; if something in it is hidden, adds its other entries instead.
fn collect(path: &Path, hidden: &[PathBuf], visible: &mut Vec<PathBuf>) {
    if hidden.iter().any(|other| path.starts_with(other)) {
        return;
    }
    if !hidden.iter().any(|other| other.starts_with(path)) {
        visible.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            collect(&entry.path(), hidden, visible);
        }
    }
}
